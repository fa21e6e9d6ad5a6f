"""``slacktide run --dry-run``: says what it would have done and delivered beside a scheduler, and writes nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from slacktide.config import Config
from slacktide.dryrun.comparison import Tally, text
from slacktide.dryrun.dry_run import DryRun, ReadOnly, Starts
from slacktide.dryrun.reality import Deeds
from slacktide.dryrun.shadow import Shadow
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import BoundElsewhere, Ready
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.kube.client.credentials import Access
from slacktide.kube.client.http import KubeError
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import POD, Identity, Pod, ServiceClass, ServiceClassSpec
from slacktide.settings import load_live
from support import made_objects, virtual_time

"""Whatever the scheduler's account asks for is written down."""


def settings() -> Config:
    config = load_live()
    kube = replace(config.kube, scheduler_name="default-scheduler", all_nodes=True, learn_startup=False)
    return replace(config, kube=kube, qos=replace(config.qos, alpha=1.0))


class Scene:
    """A shadow with two nodes of one core, told by hand; starts take ``startup`` seconds of the loop's clock."""

    def __init__(self, startup: float = 0.05) -> None:
        self.woken = 0
        self.now = 1_790_000_000.0
        self.mirror = ClusterMirror(settings(), lambda: self.now)
        self.engine, self.deeds = Engine(settings()), Deeds()
        self.shadow = Shadow(
            self.mirror, self.engine, self.deeds, lambda: self.now, lambda: 0.0, lambda _key: startup, self._wake
        )
        self.mirror.follow(self.shadow)
        for name, slo, rank in (("gold", 0.999, 1), ("bronze", 0.5, 3)):
            self.mirror.on_class_update(ServiceClass(Metadata(name), ServiceClassSpec(slo, rank, namespaces=("*",))))
        for name in ("a", "b"):
            self.mirror.on_node_update(made_objects.node(name, allocatable={"cpu": "1", "memory": "1Gi", "pods": "9"}))

    def _wake(self) -> None:
        self.woken += 1

    def pod(self, name: str, service: str, node: str = "", ready: bool = False, **more: Any) -> Pod:
        conditions = [{"type": "Ready", "status": "True"}] if ready else []
        body = {
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"slacktide.io/class": service}}
            | more.pop("metadata", {}),
            "spec": {
                "schedulerName": "default-scheduler",
                "nodeName": node,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            },
            "status": {"conditions": conditions + more.pop("conditions", [])},
        }
        found = made_objects.decoded(POD, body)
        self.mirror.on_pod_update(found)
        return found

    def passes(self, after: float = 0.0) -> list[tuple[str, str]]:
        self.now += after
        decisions = self.engine.run(self.now).decisions
        for one in decisions:
            self.shadow.carry_out(one)
        return [(one.uid, one.host) for one in decisions]

    async def comes(self, uid: str, state: tuple[str, str, bool]) -> None:
        """Wait until a pod is so."""
        async with asyncio.timeout(60):
            while self.state(uid) != state:
                await asyncio.sleep(0.01)

    def state(self, uid: str) -> tuple[str, str, bool]:
        one = self.engine.pods[uid]
        return types.STATES[one.state], one.host, one.ready


def played(play: Callable[[Scene], Any]) -> Callable[[], None]:
    def test() -> None:
        async def main() -> None:
            await play(Scene())

        virtual_time.run(main)

    test.__doc__ = play.__doc__
    return test


@played
async def test_reality_s_binding_does_not_place_a_pod_here(scene: Scene) -> None:
    scene.pod("p", "gold")
    scene.pod("p", "gold", node="elsewhere", ready=True)
    assert scene.state("p") == ("waiting", "", False)
    ((uid, host),) = scene.passes()
    assert (uid, host in ("a", "b")) == ("p", True)
    assert scene.state("p") == ("placed", host, False)
    await scene.comes("p", ("placed", host, True))


@played
async def test_a_victim_goes_after_its_grace_period_and_waits_again(scene: Scene) -> None:
    for name in ("x", "y"):
        scene.pod(name, "bronze")
    for uid, host in scene.passes():
        await scene.comes(uid, ("placed", host, True))
    scene.now += 100
    scene.pod("p", "gold")
    ((_, host),) = scene.passes()
    victim = next(uid for uid in ("x", "y") if scene.state(uid)[0] == "leaving")
    assert scene.state(victim)[1] == host
    await scene.comes(victim, ("waiting", "", False))
    await scene.comes("p", ("placed", host, True))
    assert scene.deeds.preempted.total() == 1
    key = scene.engine.pods[victim].key
    found = slo_status(scene.engine, key, scene.now)
    assert (found.preemptions, found.starts, found.waiting) == (1, 1, 1)
    scene.mirror.on_pod_delete(Identity("default", "p", "p", ""), None)
    assert scene.passes() == [(victim, host)]


@played
async def test_a_pod_ends_when_reality_ends_it_wherever_it_is(scene: Scene) -> None:
    scene.pod("p", "gold")
    scene.passes()
    scene.mirror.on_pod_delete(Identity("default", "p", "p", ""), None)
    assert scene.engine.pods == {}
    await asyncio.sleep(0.2)  # its start-up ends for nobody
    scene.pod("q", "gold")
    assert len(scene.passes()) == 1


@played
async def test_one_that_falls_ill_in_reality_is_ill_here_until_it_is_well(scene: Scene) -> None:
    scene.pod("p", "gold")
    ((_, host),) = scene.passes()
    await scene.comes("p", ("placed", host, True))
    scene.pod("p", "gold", node="n", conditions=[{"type": "Ready", "status": "False"}])
    assert scene.state("p")[2], "one that has never been ready there may well be here"
    scene.pod("p", "gold", node="n", ready=True)
    scene.pod("p", "gold", node="n", conditions=[{"type": "Ready", "status": "False"}])
    assert not scene.state("p")[2]
    scene.pod("p", "gold", node="n", ready=True)
    assert scene.state("p")[2]
    lost = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
    scene.pod("p", "gold", node="n", conditions=lost)  # as of a node that is taken for lost
    assert scene.state("p")[2]


@played
async def test_a_node_that_goes_takes_what_only_we_had_there(scene: Scene) -> None:
    scene.pod("p", "gold")
    ((_, host),) = scene.passes()
    await scene.comes("p", ("placed", host, True))
    scene.mirror.on_node_delete(host)
    assert scene.state("p") == ("waiting", "", False)
    assert scene.passes() == [("p", "b" if host == "a" else "a")]


@played
async def test_a_pod_without_a_promise_takes_room_where_it_is(scene: Scene) -> None:
    scene.pod("s", "platinum", node="a", ready=True)
    scene.pod("p", "gold")
    scene.pod("q", "gold")
    assert [host for _, host in scene.passes()] == ["b"]


def owned(**metadata: Any) -> dict[str, Any]:
    owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "t", "controller": True}
    return {"ownerReferences": [owner], **metadata}


@played
async def test_a_replacement_goes_on_for_whom_only_reality_preempted(scene: Scene) -> None:
    scene.pod("x", "bronze", metadata=owned())
    ((_, host),) = scene.passes()
    await scene.comes("x", ("placed", host, True))
    disrupted = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    leaving = owned(deletionTimestamp="2026-01-01T00:00:00Z")
    scene.now += 10
    scene.pod("x", "bronze", node="n", metadata=leaving, conditions=disrupted)
    scene.pod("y", "bronze", metadata=owned())
    scene.mirror.on_pod_delete(Identity("default", "x", "x", ""), None)
    assert scene.state("y") == ("placed", host, True)
    assert list(scene.engine.pods) == ["y"]
    found = slo_status(scene.engine, scene.engine.pods["y"].key, scene.now + 10)
    assert (found.starts, found.preemptions, found.running, found.waiting) == (1, 0, 1, 0)
    scene.mirror.on_pod_delete(Identity("default", "y", "y", ""), None)
    assert scene.engine.pods == {}
    assert len(scene.shadow.specs) == 0


@played
async def test_whom_nobody_replaces_ends_after_a_while(scene: Scene) -> None:
    scene.pod("x", "bronze", metadata=owned())
    scene.passes()
    disrupted = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    leaving = owned(deletionTimestamp="2026-01-01T00:00:00Z")
    scene.pod("x", "bronze", node="n", metadata=leaving, conditions=disrupted)
    scene.mirror.on_pod_delete(Identity("default", "x", "x", ""), None)
    scene.now += 59
    scene.shadow.forget_displaced(60)
    assert list(scene.engine.pods) == ["x"]
    scene.now += 2
    scene.shadow.forget_displaced(60)
    assert scene.engine.pods == {}


def first(uid: str) -> str:
    return uid[0]


def test_start_ups_are_measured_by_controller_and_else_drawn() -> None:
    starts = Starts(lambda: 7.0, measured=True, seed=1)
    assert starts.draw("a") == 7.0
    starts.hear(BoundElsewhere("a1", "n", 100.0), first)
    starts.hear(Ready("a1", 103.0), first)
    starts.hear(Ready("b1", 103.0), first)  # bound before we watched: nothing is known of its start
    assert (starts.draw("a"), starts.draw("b")) == (3.0, 3.0)
    starts.hear(BoundElsewhere("b2", "n", 100.0), first)
    starts.hear(Ready("b2", 101.0), first)
    assert {starts.draw("b") for _ in range(20)} == {1.0}
    assert {starts.draw("c") for _ in range(50)} == {1.0, 3.0}
    assert Starts(lambda: 7.0, measured=False, seed=1).draw("a") == 7.0


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_connection_of_a_dry_run_cannot_write(method: str) -> None:
    async def main() -> None:
        async with ReadOnly(Access("http://127.0.0.1:9", credentials=None)) as connection:  # type: ignore[arg-type]
            with pytest.raises(KubeError, match="a dry run writes nothing"):
                await connection.request(method, "/api/v1/pods")

    asyncio.run(main())


def test_a_tally_counts_from_its_beginning_and_keeps_whom_it_has_lost() -> None:
    from engine.workbench import BRONZE as CLASS
    from engine.workbench import T0, engine_with

    engine = engine_with()
    tally = Tally({"k": 3})
    engine.journal = tally
    engine.controller("k", CLASS, 2, False)
    engine.arrive("p", "p", "k", 2, T0)
    tally.begin(engine, T0 + 10)
    engine.bound_elsewhere("p", "node-0", T0 + 14)
    engine.ready("p", T0 + 16)
    (found,) = tally.now(T0 + 26).values()
    assert (found.lifetime, found.received, found.delivered, found.preemptions) == (16, 10, 10 / 26, 3)
    engine.gone("p", T0 + 30)
    engine.controller_gone("k", T0 + 30)
    (found,) = tally.now(T0 + 99).values()
    assert (found.lifetime, found.received, found.waiting) == (20, 14, 1)


def test_a_report_before_anything_has_happened() -> None:
    async def main() -> str:
        access = Access("http://127.0.0.1:9", credentials=None)  # type: ignore[arg-type]
        async with ReadOnly(access) as connection:
            watched = DryRun(connection, settings(), Starts(lambda: 1.0, True, 0))
            assert not watched.synced
            assert json.dumps(watched.report())
            return text(watched.report())

    assert asyncio.run(main()).startswith("Dry run beside default-scheduler for 0 s, policy qos-driven; nothing was")
