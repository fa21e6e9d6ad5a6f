"""What somebody could do to get ahead of others, told to a feed by hand: it gains nothing and costs nobody anything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slacktide.engine.core.engine import Engine
from slacktide.engine.explain.reasons import Explainer
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.slo_status import SloStatus, slo_status
from slacktide.kube.client.metadata import Metadata, rfc3339
from slacktide.kube.feed.controllers import Memories
from slacktide.kube.feed.fed_pod import UNSCHEDULABLE, FedPod, FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.publish.state_events import document
from slacktide.kube.resources.custom_resources import AvailabilityStatus, WindowSpec
from slacktide.kube.resources.objects import (
    AVAILABILITY,
    DEPLOYMENT,
    JOB,
    MAINTENANCE_WINDOW,
    NODE,
    POD,
    Availability,
    Identity,
    ServiceClass,
    ServiceClassSpec,
)
from slacktide.kube.translate.owners import Target, cannot_make, suspended
from slacktide.model.causes import CLUSTER, OPERATOR, WORKLOAD
from slacktide.settings import load_live
from support import made_objects

T0 = 1_790_000_000.0
ALPHA = load_live().qos.alpha
STARTUP, CREATION = 300.0, 600.0
"""``kube.startup_allowance`` and ``kube.creation_allowance``."""


class Heard(FeedListener):
    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.buried_ones: list[tuple[Target, dict[str, Any], SloStatus]] = []
        self.kept_ones: list[tuple[Target, str]] = []

    def only_keeps(self, target: Target, why: str) -> None:
        self.kept_ones.append((target, why))

    def buried(self, target: Target, books: dict[str, Any], status: SloStatus) -> None:
        self.buried_ones.append((target, books, status))

    def waits(self, pod: FedPod) -> None:
        self.waiting.append(pod.uid)


class World:
    """A mirror with nodes of four cores, classes, and a feed with a new engine; ``t`` seconds have passed."""

    def __init__(self, approach: str = "independent", slo: float = 0.9) -> None:
        self.t = 0.0
        self.config = load_live()
        self.mirror = ClusterMirror(self.config, self.clock)
        for name, rank in (("silver", 2), ("gold", 1)):
            spec = ServiceClassSpec(slo if name == "silver" else 0.999, rank, approach=approach, namespaces=("*",))
            self.mirror.on_class_update(ServiceClass(Metadata(name), spec))
        for name in ("a", "b"):
            self.node(name)
        self.lead()

    def lead(self, ledgers: dict[str, Availability] | None = None) -> None:
        """A new leader."""
        self.engine, self.heard = Engine(self.config), Heard()
        self.feed = LiveFeed(self.mirror, self.engine, self.heard, self.clock, lambda: 0.0)
        take_over(self.feed, ledgers or {}, lambda _decision, _leaving: None)
        self.mirror._followers[:] = [self.feed]  # the former leader is gone

    def clock(self) -> float:
        return T0 + self.t

    def node(self, name: str, ready: bool = True, since: float = -1000.0, cpu: str = "4", **spec: Any) -> None:
        labels = {"node-restriction.kubernetes.io/slacktide": "true", "room": name}
        status = {
            "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"},
            "conditions": [
                {"type": "Ready", "status": str(ready), "lastTransitionTime": rfc3339(T0 + since)},
            ],
        }
        self.mirror.on_node_update(
            made_objects.decoded(NODE, {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status})
        )

    def away_for_a_moment(self, name: str) -> None:
        """A node is lost and back at once."""
        self.node(name, ready=False, since=self.t)
        self.node(name, since=self.t)

    def owner(
        self,
        replicas: int = 1,
        service: str = "silver",
        fails: bool = False,
        uid: str = "web",
        annotations: dict[str, str] | None = None,
    ) -> None:
        template = {"metadata": {"labels": {"slacktide.io/class": service}, "annotations": annotations or {}}}
        failing = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}] if fails else []
        body = {
            "metadata": {"name": "web", "namespace": "default", "uid": uid},
            "spec": {"replicas": replicas, "template": template},
            "status": {"conditions": failing},
        }
        found = made_objects.decoded(DEPLOYMENT, body)
        self.mirror.on_controller_update(
            found, "apps/v1", "Deployment", replicas, fails=cannot_make(found), template=found.spec.template
        )

    def pod(
        self,
        name: str,
        node: str = "",
        *,
        ready: float | None = None,
        unready: float | None = None,
        started: float | None = None,
        created: float = 0.0,
        bound: float | None = None,
        status: dict[str, Any] | None = None,
        container: dict[str, Any] | None = None,
        going: bool = False,
        marked: str = "",
        service: str = "silver",
        cpu: str = "1",
        uid: str = "web",
        kind: str = "Deployment",
        **spec: Any,
    ) -> None:
        """A pod as it is now; ``ready`` or ``unready`` since then, its container started then."""
        conditions = []
        if node:
            conditions.append(condition("PodScheduled", True, created if bound is None else bound))
        if ready is not None or unready is not None:
            conditions.append(condition("Ready", ready is not None, ready if ready is not None else unready or 0.0))
        if marked:
            conditions.append(condition("DisruptionTarget", True, self.t) | {"reason": marked})
        state = {"state": {"running": {"startedAt": rfc3339(T0 + started)}}} if started is not None else {}
        group = "batch/v1" if kind == "Job" else "apps/v1"
        owner = {"apiVersion": group, "kind": kind, "name": "web", "uid": uid, "controller": True}
        metadata: dict[str, Any] = {
            "name": name, "namespace": "default", "uid": name, "labels": {"slacktide.io/class": service},
            "ownerReferences": [owner], "creationTimestamp": rfc3339(T0 + created),
        }  # fmt: skip
        if going:
            metadata["deletionTimestamp"] = rfc3339(T0 + self.t)
        body = {
            "metadata": metadata,
            "spec": {"schedulerName": "slacktide", "nodeName": node, "containers": [made_objects.container(cpu=cpu)]}
            | spec,
            "status": {
                "phase": "Running" if started is not None else "Pending",
                "conditions": conditions,
                "containerStatuses": [{"name": "c"} | state | (container or {})],
            }
            | (status or {}),
        }
        self.mirror.on_pod_update(made_objects.decoded(POD, body))

    def database(self, node: str = "") -> None:
        """A pod that others may want to be near, of no class."""
        body = {
            "metadata": {"name": "db", "namespace": "default", "uid": "db", "labels": {"app": "db"}},
            "spec": {
                "schedulerName": "slacktide",
                "nodeName": node,
                "containers": [made_objects.container(cpu="1")],
            },
        }
        self.mirror.on_pod_update(made_objects.decoded(POD, body))

    def up(self, name: str, node: str = "a", **more: Any) -> None:
        """A pod that is bound and ready at once."""
        self.pod(name, node, ready=self.t, started=self.t, created=self.t, **more)

    def drop(self, name: str) -> None:
        self.mirror.on_pod_delete(Identity("default", name, name, ""), None)

    def tick(self, t: float) -> None:
        """Time goes on, and what changes by itself is told."""
        self.t = t
        self.feed.reconsider(self.feed.blame.due(self.clock(), self.feed.pods.values()))

    @property
    def key(self) -> str:
        (key,) = self.engine.controllers
        return key

    def status(self, t: float | None = None) -> SloStatus:
        return slo_status(self.engine, self.key, T0 + (self.t if t is None else t))

    def lost(self, t: float | None = None) -> tuple[float, float, float]:
        """Seconds by cause."""
        found = self.status(t).losses
        return found.cluster, found.workload, found.operator

    def window(self, start: float, end: float, name: str = "work", **selector: str) -> None:
        spec: dict[str, Any] = {"start": rfc3339(T0 + start), "end": rfc3339(T0 + end)}
        if selector:
            spec["nodeSelector"] = {"matchLabels": selector}
        self.mirror.maintenance.see(
            made_objects.decoded(MAINTENANCE_WINDOW, {"metadata": {"name": name}, "spec": spec})
        )


def condition(name: str, holds: bool, since: float) -> dict[str, str]:
    return {"type": name, "status": str(holds), "lastTransitionTime": rfc3339(T0 + since)}


def ended(at: float, code: int = 1) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "startedAt": rfc3339(T0 + at - 1), "finishedAt": rfc3339(T0 + at)}}


@pytest.fixture
def world() -> World:
    found = World()
    found.owner()
    return found


# -- pods on nodes -----------------------------------------------------------------------------------------------------


def test_a_failing_probe(world: World) -> None:
    world.up("p")
    world.t = 100.0
    world.pod("p", "a", unready=100, started=0)
    assert world.lost(1000) == (0, 900, 0)
    found = world.status(1000)
    assert (found.delivered, found.running, found.state) == (1.0, 0, "Kept")
    world.t = 1000.0
    world.pod("p", "a", ready=1000, started=0)
    assert world.lost(2000) == (0, 900, 0)
    assert world.status(2000).running == 1


def test_a_crash_loop(world: World) -> None:
    world.up("p")
    world.t = 50.0
    waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended(50), "restartCount": 1}
    world.pod("p", "a", unready=50, container=waiting)
    world.t = 90.0
    again = {"state": {"running": {"startedAt": rfc3339(T0 + 90)}}, "lastState": ended(50), "restartCount": 1}
    world.pod("p", "a", unready=50, container=again)
    assert world.lost(150) == (0, 100, 0)


def test_a_crash_loop_that_never_was_ready(world: World) -> None:
    world.pod("p", "a")
    world.t = 8.0
    world.pod("p", "a", container={"state": ended(8)})
    assert world.lost(100) == (8, 92, 0)


@pytest.mark.parametrize(
    "reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError"]
)
def test_an_image_that_cannot_be_pulled(world: World, reason: str) -> None:
    world.pod("p", "a")
    world.t = 5.0
    world.pod("p", "a", container={"state": {"waiting": {"reason": reason}}})
    assert world.lost(1000) == (5, 995, 0)


def test_an_image_that_is_being_pulled_is_the_clusters_doing(world: World) -> None:
    world.pod("p", "a", container={"state": {"waiting": {"reason": "ContainerCreating"}}})
    assert world.lost(100) == (100, 0, 0)


def test_a_start_up_that_never_ends(world: World) -> None:
    """The cluster's until the containers run, and for the allowance after that."""
    world.pod("p", "a")
    world.t = 20.0
    world.pod("p", "a", unready=0, started=20)
    world.tick(20 + STARTUP - 1)
    assert world.lost() == (19 + STARTUP, 0, 0)
    world.tick(20 + STARTUP + 7)  # late, and exact all the same
    assert world.lost(5000) == (20 + STARTUP, 5000 - 20 - STARTUP, 0)


def test_containers_that_never_start(world: World) -> None:
    """A volume that is not there keeps a pod from starting, and no container says so."""
    world.pod("p", "a", container={"state": {"waiting": {"reason": "ContainerCreating"}}})
    world.tick(CREATION + 1)
    assert world.lost(5000) == (CREATION, 5000 - CREATION, 0)


def test_an_init_container_that_never_ends(world: World) -> None:
    init = {"name": "i", "state": {"running": {"startedAt": rfc3339(T0 + 3)}}}
    spec: dict[str, Any] = {"initContainers": [made_objects.container(name="i")]}
    world.t = 3.0
    world.pod("p", "a", status={"initContainerStatuses": [init]}, **spec)
    world.tick(3 + STARTUP + 1)
    assert world.lost(2000) == (3 + STARTUP, 2000 - 3 - STARTUP, 0)


def test_a_node_that_was_lost_and_comes_back(world: World) -> None:
    world.up("p")
    world.t = 100.0
    world.node("a", ready=False, since=100)
    world.pod("p", "a", unready=100, started=0)
    world.t = 200.0
    world.node("a", since=200)
    assert world.lost(210) == (110, 0, 0)
    world.t = 215.0
    world.pod("p", "a", ready=215, started=0)
    assert world.lost(300) == (115, 0, 0)
    world.t = 400.0
    world.pod("p", "a", unready=400, started=0)  # now by itself
    assert world.lost(450) == (115, 50, 0)


def readiness(ready: bool, since: float, *, reason: str = "", containers: bool = True) -> dict[str, Any]:
    """The status of a pod whose containers run, with these conditions."""
    found = [condition("Ready", ready, since) | {"reason": reason}, condition("ContainersReady", containers, since)]
    return {"phase": "Running", "conditions": [condition("PodScheduled", True, 0), *found]}


def test_a_node_that_was_away_for_a_moment(world: World) -> None:
    """It is back before its pods are said to be unready, as the controller manager does of lost nodes."""
    world.up("p")
    world.t = 100.0
    world.away_for_a_moment("a")
    world.t = 101.0
    world.pod("p", "a", started=0, status=readiness(False, 100))
    assert world.lost(130) == (29, 0, 0)
    world.t = 130.0
    world.pod("p", "a", ready=130, started=0, status=readiness(True, 130))
    world.t = 140.0
    world.pod("p", "a", started=0, status=readiness(False, 140, reason="ContainersNotReady", containers=False))
    assert world.lost(150) == (29, 10, 0)


def test_nobody_is_taken_for_lost_for_ever(world: World) -> None:
    world.up("p")
    world.t = 100.0
    world.away_for_a_moment("a")
    world.pod("p", "a", started=0, status=readiness(False, 100))
    world.tick(100 + STARTUP + 1)
    assert world.lost(2000) == (STARTUP, 1900 - STARTUP, 0)


@pytest.mark.parametrize(
    ("was_away", "status"),
    [
        (False, readiness(False, 101)),
        (True, readiness(False, 101, containers=False)),
        (True, readiness(False, 101, reason="ReadinessGatesNotReady")),
        (True, readiness(False, 101, reason="ContainersNotReady", containers=False)),
    ],
)
def test_all_else_that_makes_a_pod_unready_is_its_own_doing(
    world: World, was_away: bool, status: dict[str, Any]
) -> None:
    world.up("p")
    world.t = 100.0
    if was_away:
        world.away_for_a_moment("a")
    world.t = 101.0
    world.pod("p", "a", started=0, status=status)
    assert world.lost(131) == (0, 30, 0)


def test_one_that_crashed_or_was_told_to_go_is_not_taken_for_lost(world: World) -> None:
    world.up("p")
    world.t = 100.0
    world.away_for_a_moment("a")
    world.t = 105.0
    crashed = readiness(False, 105) | {"containerStatuses": [{"name": "c", "state": ended(105)}]}
    world.pod("p", "a", status=crashed)
    assert world.lost(130) == (0, 25, 0)
    world.t = 130.0
    world.pod("p", "a", status=readiness(False, 105), started=0, going=True)
    assert world.lost(150) == (0, 45, 0)


def test_a_class_that_counts_everything() -> None:
    world = World()
    world.mirror.on_class_update(
        ServiceClass(Metadata("silver"), ServiceClassSpec(0.9, 2, counts="everything", namespaces=("*",)))
    )
    world.owner()
    world.up("p")
    world.t = 100.0
    world.pod("p", "a", unready=100, started=0)
    assert world.status(200).delivered == 0.5
    assert world.lost(200) == (0, 100, 0)  # whose doing it was is known all the same
    world.t = 200.0
    world.mirror.on_class_update(ServiceClass(Metadata("silver"), ServiceClassSpec(0.9, 2, namespaces=("*",))))
    assert world.status(200).delivered == 0.5
    assert world.status(300).delivered == pytest.approx(200 / 300)


# -- pods that wait ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approach", ["concurrent", "aggregated"])
@pytest.mark.parametrize("how", [{"cpu": "5"}, {"nodeSelector": {"room": "z"}}])
def test_an_impossible_replica(approach: str, how: dict[str, Any]) -> None:
    world = World(approach)
    world.owner(2)
    world.up("p")
    world.pod("x", **how)
    assert world.status(1000).delivered == 1.0
    assert world.lost(1000) == (0, 1000, 0)
    assert world.heard.waiting == ["x"]  # it is told why
    assert world.feed.pods["x"].queue == UNSCHEDULABLE
    assert not world.engine.anybody_waits()
    world.t = 500.0
    world.node("z", cpu="16")
    assert world.engine.anybody_waits()  # now it can be placed, and waits for the cluster
    assert world.lost(600) == (100, 500, 0)


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"slacktide.io/class": "silver"}}, "topologyKey": "room"}
        ]
    }
}


NOT_ON_C = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "room", "operator": "NotIn", "values": ["c"]}]}]
        }
    }
}


def placed(world: World) -> set[str]:
    """A pass; who got a node and is ready there."""
    found = {one.uid: one.host for one in world.engine.run(world.clock()).decisions}
    for uid, host in found.items():
        world.pod(uid, host, ready=world.t, started=world.t, created=world.t, affinity=APART)
    return set(found)


@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
def test_replicas_that_keep_apart_beyond_the_number_of_nodes(approach: str) -> None:
    """Two of four have no place, by what their owner asks for; they make nobody late and drive nobody out."""
    world = World(approach)
    world.owner(4)
    for name in ("p", "q", "x", "y"):
        world.pod(name, affinity=APART)
    assert placed(world) == {"p", "q"}
    assert world.lost(1000) == (0, 2000, 0)
    assert world.status(1000).delivered == 1.0
    assert not world.engine.anybody_waits()
    assert [world.feed.pods[uid].queue for uid in ("x", "y")] == [UNSCHEDULABLE] * 2
    assert world.heard.waiting == ["x", "y"]  # they are told why
    # A third node: one of them has a place now, and waits for the cluster until it is there.
    world.t = 1000.0
    world.node("c")
    assert world.engine.anybody_waits()
    assert world.lost(1100) == (100, 2100, 0)
    world.t = 1100.0
    assert placed(world) == {"x"}
    assert world.lost(1200) == (100, 2200, 0)
    # A node is lost: what was there is missing by the cluster's doing, and the last one as before.
    world.t = 1200.0
    world.node("c", ready=False, since=1200)
    world.mirror.on_node_delete("c")
    world.drop("x")
    world.pod("x2", created=1200, affinity=APART)
    assert world.lost(1300) == (200, 2300, 0)
    # One is taken away by its owner: its node is for one of the two that wait, and three have places for three.
    world.t = 1300.0
    world.drop("q")
    world.owner(3)
    assert len(placed(world)) == 1
    assert world.lost(1300) == (200, 2300, 0)
    assert world.lost(1400) == (300, 2300, 0)


def test_who_leads_later_finds_the_same_ones_too_many() -> None:
    world = World("concurrent")
    world.owner(4)
    for name in ("x", "y"):
        world.pod(name, affinity=APART)  # they are listed first
    world.up("p", affinity=APART)
    world.up("q", "b", affinity=APART)
    assert world.lost(100) == (0, 200, 0)
    assert not world.engine.anybody_waits()


def test_a_pod_too_many_drives_no_honest_pod_out() -> None:
    """A concurrent workload that asks for more than there is place for is not late, so that it takes nobody's place."""
    world = World("concurrent")
    world.node("c")
    body = {"metadata": {"name": "other", "namespace": "default", "uid": "other"}, "spec": {"replicas": 1}}
    world.mirror.on_controller_update(made_objects.decoded(DEPLOYMENT, body), "apps/v1", "Deployment", 1)
    world.up("honest", "c", uid="other", cpu="4")
    world.owner(4)
    world.up("p", "a", affinity=APART | NOT_ON_C)
    world.up("q", "b", affinity=APART | NOT_ON_C)
    for name in ("x", "y"):
        world.pod(name, affinity=APART | NOT_ON_C)
    world.t = 10_000.0
    world.mirror.on_node_delete("b")
    world.drop("q")
    world.pod("q2", created=10_000, affinity=APART)  # only c is left for it, without honest
    assert world.engine.run(world.clock()).decisions == ()
    assert slo_status(world.engine, world.engine.pods["p"].key, world.clock()).delivered == 1.0


def test_a_node_without_the_label_of_a_place_bounds_nothing(world: World) -> None:
    world.owner(3)
    apart = json.loads(json.dumps(APART).replace('"room"', '"rack"'))
    for name in ("p", "q", "x"):
        world.pod(name, affinity=apart)
    assert world.lost(100) == (300, 0, 0)


def near(label: str, key: str = "room") -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": key}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_a_pod_that_must_be_near_somebody_who_is_not_there(world: World) -> None:
    world.pod("p", affinity=near("db"))
    assert world.lost(100) == (0, 100, 0)
    assert world.heard.waiting == ["p"]
    assert not world.engine.anybody_waits()
    world.t = 100.0
    world.database()  # it waits for a node as well: from now on that is ours to do
    assert world.engine.anybody_waits()
    key = world.engine.pods["p"].key
    assert slo_status(world.engine, key, T0 + 150).losses.cluster == 50.0
    world.database("b")
    (decision,) = world.engine.run(world.clock()).decisions
    assert (decision.uid, decision.host) == ("p", "b")


def test_a_pod_that_must_be_near_others_where_no_node_has_such_places(world: World) -> None:
    world.database("b")
    world.pod("p", affinity=near("db", "rack"))
    assert slo_status(world.engine, world.engine.pods["p"].key, T0 + 100).losses.workload == 100.0


def test_what_some_node_could_take_once_is_possible(world: World) -> None:
    world.node("big", cpu="16")
    world.pod("p", cpu="9")
    world.mirror.on_node_delete("big")
    assert world.lost(100) == (100, 0, 0)


def test_what_some_node_could_take_is_remembered_when_its_last_pod_went_with_it(world: World) -> None:
    """The pods of a lost node are deleted before others come in their place: nobody has their spec for a moment."""
    world.node("big", cpu="16")
    world.pod("p", cpu="9")
    world.mirror.on_node_delete("big")
    world.drop("p")
    assert world.engine.specs == {}
    world.pod("q", cpu="9")
    lost = world.lost(100)
    assert (lost[0], lost[1]) == (100, 0)


def test_what_daemons_take_on_every_node_is_not_to_be_had(world: World) -> None:
    for name in ("a", "b"):
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
        body = {
            "metadata": {"name": f"d-{name}", "namespace": "default", "uid": f"d-{name}", "ownerReferences": [owner]},
            "spec": {"nodeName": name, "containers": [made_objects.container(cpu="500m")]},
        }
        world.mirror.on_pod_update(made_objects.decoded(POD, body))
    world.pod("p", cpu="3600m")
    assert world.lost(100) == (0, 100, 0)
    world.pod("p", cpu="3500m")
    assert world.lost(200) == (200, 0, 0)


def test_cordoned_and_lost_nodes_make_nothing_impossible(world: World) -> None:
    world.node("a", ready=False, since=0)
    world.node("b", unschedulable=True)
    world.pod("p")
    assert world.lost(100) == (100, 0, 0)


def test_pods_with_gates_do_not_make_others_wait() -> None:
    world = World("concurrent")
    world.owner(2)
    world.up("p")
    world.up("q", "b")
    world.t = 100.0
    world.node("b", ready=False, since=100)
    world.mirror.on_node_delete("b")
    world.drop("q")  # its node is gone: the cluster's doing
    assert world.lost(110) == (10, 0, 0)
    world.t = 110.0
    world.pod("q2", created=110, schedulingGates=[{"name": "wait"}])
    assert world.lost(210) == (10, 100, 0)
    world.t = 210.0
    world.pod("q2", created=110)
    assert world.lost(220) == (20, 100, 0)


def test_a_controller_that_may_not_make_its_pods(world: World) -> None:
    world.owner(2)
    world.up("p")
    world.up("q", "b")
    world.t = 100.0
    world.pod("q", "b", ready=0, started=0, going=True, marked="DeletionByTaintManager")
    world.drop("q")
    world.owner(2, fails=True)  # its quota is less by now
    assert world.lost(300) == (0, 200, 0)
    world.t = 300.0
    world.owner(2)
    assert world.lost(310) == (10, 200, 0)


# -- pods that go ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marked", "cordoned", "cause"),
    [
        ("", False, WORKLOAD),  # deleted by its owner, or by a person
        ("EvictionByEvictionAPI", False, WORKLOAD),  # whoever may evict it: so may its owner
        ("EvictionByEvictionAPI", True, CLUSTER),  # drained
        ("DeletionByTaintManager", False, CLUSTER),
        ("TerminationByKubelet", False, CLUSTER),
    ],
)
def test_who_made_it_go(world: World, marked: str, cordoned: bool, cause: int) -> None:
    world.up("p")
    world.t = 100.0
    if cordoned:
        world.node("a", unschedulable=True)
    world.pod("p", "a", ready=0, started=0, going=True, marked=marked)
    world.drop("p")
    world.t = 110.0
    world.pod("p2", created=110)
    lost = [0.0, 0.0, 0.0]
    lost[cause] = 10.0
    assert world.lost() == tuple(lost)
    world.t = 120.0  # it waited for a node for 10 s, whoever was to blame for that it had to
    world.pod("p2", "b", created=120)
    lost[CLUSTER] += 10.0
    assert world.lost() == tuple(lost)
    lost[cause] += 30.0  # its start-up follows from what came before
    assert world.lost(150) == tuple(lost)


def test_a_rollout_with_a_surge() -> None:
    world = World("concurrent")
    world.owner(1)
    world.up("old")
    world.t = 100.0
    world.pod("new", created=100)
    (decision,) = world.engine.run(world.clock()).decisions
    world.pod("new", decision.host, created=100)
    assert world.lost(130) == (0, 30, 0)
    assert world.status(130).delivered == 1.0


def test_a_pod_terminating_on_a_dead_node(world: World) -> None:
    """Its replacement is ready at once; today's six hours of Terminating do not count."""
    world.up("old")
    world.t = 100.0
    world.node("a", ready=False, since=100)
    world.pod("old", "a", unready=100, started=0)
    world.t = 400.0
    world.pod("old", "a", unready=100, started=0, going=True, marked="DeletionByTaintManager")
    world.pod("new", created=400)
    world.pod("new", "b", created=400)
    world.t = 410.0
    world.pod("new", "b", created=400, started=405, ready=410)
    assert world.lost(6 * 3600.0) == (310, 0, 0)
    found = world.status(6 * 3600.0)
    assert (found.running, found.waiting) == (1, 0)
    assert world.engine.room("b")["cpu"] == 3000
    assert "old" in world.engine.others  # it takes its room until it is gone
    world.pod("old", "a", unready=100, started=0, going=True, marked="DeletionByTaintManager")
    world.drop("old")
    assert "old" not in world.engine.others
    assert world.status(6 * 3600.0).running == 1


def test_a_pod_terminating_on_a_dead_node_whose_replacement_was_there_first(world: World) -> None:
    world.up("old")
    world.t = 100.0
    world.pod("old", "a", ready=0, started=0, going=True, marked="EvictionByEvictionAPI")
    world.pod("new", created=100)
    world.pod("new", "b", created=100, started=100, ready=100)
    assert len(world.engine.controllers[world.key].rows) == 2
    world.t = 110.0
    world.pod("old", "a", unready=110, started=0, going=True, marked="EvictionByEvictionAPI")
    assert len(world.engine.controllers[world.key].rows) == 1
    assert world.status(1000).running == 1
    assert world.status(1000).delivered == 1.0


def test_a_new_leader_leaves_pods_out_that_have_a_replacement(world: World) -> None:
    world.node("a", ready=False, since=50)
    world.t = 400.0
    world.pod("old", "a", unready=50, started=0, going=True, marked="DeletionByTaintManager")
    world.pod("new", "b", created=300, started=305, ready=310)
    world.lead()
    found = world.status(1000)
    assert (found.running, found.waiting) == (1, 0)
    assert found.delivered == 690 / 700
    assert "old" in world.engine.others


def job(world: World, suspend: bool) -> None:
    body = {
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"parallelism": 2, "completions": 5, "suspend": suspend},
    }
    found = made_objects.decoded(JOB, body)
    world.mirror.on_controller_update(found, "batch/v1", "Job", -1, suspended=suspended(found))


def test_a_suspended_job() -> None:
    world = World()
    job(world, suspend=False)
    for name in ("p", "q"):
        world.up(name, kind="Job")
    world.t = 100.0
    job(world, suspend=True)
    for name in ("p", "q"):
        world.pod(name, "a", ready=0, started=0, going=True, kind="Job")
        world.drop(name)
    found = world.status(1000)
    assert (found.delivered, found.losses.operator, found.losses.cluster) == (1.0, 1800.0, 0.0)
    world.t = 1000.0
    job(world, suspend=False)
    world.pod("r", created=1000, kind="Job")
    assert world.lost(1010) == (10, 0, 1800)


# -- maintenance windows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("selector", "cause"), [({}, OPERATOR), ({"room": "a"}, OPERATOR), ({"room": "b"}, CLUSTER)])
def test_a_drain_within_a_declared_window(world: World, selector: dict[str, str], cause: int) -> None:
    world.window(50, 500, **selector)
    world.up("p")
    world.tick(100)
    world.node("a", unschedulable=True)
    world.pod("p", "a", ready=0, started=0, going=True, marked="EvictionByEvictionAPI")
    world.drop("p")
    world.pod("p2", created=100, nodeSelector={"room": "a"})  # it waits, and may be placed at any time
    assert world.engine.anybody_waits()
    world.tick(300)
    assert not world.engine.run(world.clock()).decisions
    lost = [0.0, 0.0, 0.0]
    lost[cause] = 300.0
    assert world.lost(400) == tuple(lost)
    world.tick(500)  # the window is over
    lost[cause] = 400.0
    lost[CLUSTER] += 50.0
    assert world.lost(550) == tuple(lost)


@pytest.mark.parametrize("replaced", ["never", "waits", "starts"])
def test_what_is_lost_after_the_window_is_the_clusters(world: World, replaced: str) -> None:
    """To the second, though somebody looks only now and then, and another window goes on."""
    world.window(50, 140, room="a")
    world.window(50, 5000, name="other", room="b")
    world.up("p")
    world.tick(100)
    world.node("a", unschedulable=True)
    world.pod("p", "a", ready=0, started=0, going=True, marked="EvictionByEvictionAPI")
    world.drop("p")
    if replaced != "never":
        world.pod("p2", created=100)
    if replaced == "starts":
        world.tick(110)
        world.pod("p2", "b", created=100, bound=110)
    world.tick(145)
    world.tick(150)
    assert world.lost(200) == (60, 0, 40)


def test_a_drain_stays_one_though_the_node_is_open_again_before_the_pod_is_gone(world: World) -> None:
    world.window(50, 5000, room="a")
    world.up("p")
    world.tick(100)
    world.node("a", unschedulable=True)
    world.pod("p", "a", ready=0, started=0, going=True, marked="EvictionByEvictionAPI")
    world.pod("p2", created=100, nodeSelector={"room": "a"})
    world.tick(110)
    world.node("a")
    world.pod("p", "a", unready=110, started=0, going=True, marked="EvictionByEvictionAPI")
    world.tick(120)
    world.drop("p")
    cluster, workload, _ = world.lost(200)
    assert (cluster, workload) == (0, 0)


def test_a_node_that_is_lost_outside_of_the_window_is_the_clusters(world: World) -> None:
    world.window(50, 60)
    world.up("p")
    world.tick(100)
    world.node("a", ready=False, since=100)
    world.pod("p", "a", unready=100, started=0)
    assert world.lost(200) == (100, 0, 0)


def test_an_open_window_is_nobodys_excuse_where_nothing_is_worked_on(world: World) -> None:
    world.window(0, 1000)
    world.tick(1)
    world.up("p")
    world.t = 100.0
    world.pod("p", "a", ready=0, started=0, going=True)
    world.drop("p")
    assert world.lost(200) == (0, 100, 0)


# -- over restarts -----------------------------------------------------------------------------------------------------


def test_causes_survive_a_new_leader(world: World) -> None:
    world.up("p")
    world.t = 100.0
    world.pod("p", "a", unready=100, started=0)
    world.t = 200.0
    saved = export(world.engine, world.key, world.clock())
    target = world.feed.controllers.targets[world.key]
    owner = Metadata(target.ledger, "default", "x")
    world.t = 260.0
    world.lead({"web": Availability(owner, AvailabilityStatus(accumulators=saved))})
    assert world.lost(300) == (0, 200, 0)
    world.t = 300.0
    world.pod("p", "a", ready=300, started=0)
    assert world.lost(400) == (0, 200, 0)
    assert world.status(400).delivered == 1.0


# -- whose promise it is -----------------------------------------------------------------------------------------------


def test_a_single_pod_with_another_label(world: World) -> None:
    world.up("p")
    world.pod("p", "a", ready=0, started=0, service="gold")
    world.pod("q", service="gold")
    assert world.status().service == "silver"
    assert {world.engine.specs[one.spec].service.name for one in world.engine.pods.values()} == {"silver"}
    world.owner(service="gold")  # the template is another
    assert world.status().service == "gold"
    assert {world.engine.specs[one.spec].service.name for one in world.engine.pods.values()} == {"gold"}


# -- deleted and created anew ------------------------------------------------------------------------------------------


def kept(world: World) -> dict[str, Availability]:
    """The ledgers as a new leader reads them."""
    found = {}
    for key, target in world.feed.controllers.targets.items():
        books = world.feed.controllers.books(key, world.clock())
        status = slo_status(world.engine, key, world.clock())
        body = document(target, books, status)
        found[target.uid] = made_objects.decoded(AVAILABILITY, json.loads(json.dumps(body)))
    for target, books, status in world.heard.buried_ones:
        body = document(target, books, status, deleted=books["at"])
        found[target.uid] = made_objects.decoded(AVAILABILITY, json.loads(json.dumps(body)))
    return found


@pytest.mark.parametrize("leads", ["on", "anew", "anew later"])
@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
def test_deleted_and_created_anew(approach: str, leads: str) -> None:
    """A workload that ran for a while has slack; whoever deletes it and creates it anew goes on with that."""
    world = World(approach)
    world.owner(2)
    for name in ("p", "q"):
        world.up(name)
    world.t = 10_000.0
    before = world.status()
    world.mirror.on_controller_delete("web")
    for name in ("p", "q"):
        world.drop(name)
    assert not world.engine.controllers
    world.t = 20_000.0
    if leads == "anew":
        world.lead(kept(world))
    world.owner(2, uid="web2")
    ledgers = kept(world)
    for name in ("p2", "q2"):
        world.pod(name, created=20_000, uid="web2")
    if leads == "anew later":
        world.lead(ledgers)
    after = world.status()
    assert (after.losses.good, after.delivered) == (before.losses.good, before.delivered) == (20_000.0, 1.0)
    if approach != "aggregated":  # whose promise cannot break while both run
        assert after.slack == before.slack == pytest.approx(10_000 / 0.9 - 10_000 - ALPHA, abs=1e-5)
    assert len(world.engine.controllers[world.key].rows) == 2
    world.t = 20_010.0
    assert world.lost() == (20, 0, 0)  # both wait for the cluster


def test_debts_stay_as_well_and_others_begin_anew() -> None:
    world = World()
    world.owner()
    world.pod("p")  # waits
    world.t = 100.0
    world.mirror.on_controller_delete("web")
    world.drop("p")
    world.t = 200.0
    world.owner(uid="web2")
    world.pod("p2", created=200, uid="web2")
    assert world.status(200).slack == pytest.approx(-100 - ALPHA)
    body = {"metadata": {"name": "other", "namespace": "default", "uid": "other"}, "spec": {"replicas": 1}}
    world.mirror.on_controller_update(made_objects.decoded(DEPLOYMENT, body), "apps/v1", "Deployment", 1)
    world.pod("o", created=200, uid="other")
    assert slo_status(world.engine, world.engine.pods["o"].key, T0 + 200).slack == pytest.approx(-ALPHA)


def test_what_is_remembered_is_bounded_in_time_and_number() -> None:
    memories = Memories()
    for i in range(5):
        memories.keep(Target("apps/v1", "Deployment", "default", f"d{i}", f"u{i}"), {}, 100.0 * i)
    memories.keep(Target("apps/v1", "Deployment", "elsewhere", "d0", "v0"), {}, 0.0)
    assert [one.name for one in memories.over(450.0, 300.0, 9)] == ["d0", "d1", "d0"]
    assert [one.name for one in memories.over(450.0, 300.0, 2)] == ["d2"]
    new = Target("apps/v1", "Deployment", "default", "d4", "new")
    assert memories.take(Target("example.com/v1", "Deployment", "default", "d4", "new"), 0.0) is None
    assert memories.take(Target("apps/v1", "Deployment", "default", "d4", "u4"), 0.0) is None  # it is the same
    assert memories.take(new, 7.0) == {"at": 7.0}
    assert memories.take(new, 7.0) is None


def test_a_ledger_is_kept_as_long_as_the_longest_window_of_a_class(world: World) -> None:
    month, day = 30 * 86_400.0, 86_400.0
    world.owner()
    world.up("p")
    world.mirror.on_controller_delete("web")
    world.drop("p")
    controllers = world.feed.controllers
    quarter = WindowSpec(calendar="1Q")
    world.mirror.on_class_update(
        ServiceClass(Metadata("gold"), ServiceClassSpec(0.999, 1, window=quarter, namespaces=("*",)))
    )
    assert controllers.remembered_no_more(T0 + month + day) == []
    assert controllers.remembered_no_more(T0 + 92 * day) == []
    world.mirror.on_class_update(ServiceClass(Metadata("gold"), ServiceClassSpec(0.999, 1, namespaces=("*",))))
    assert [one.name for one in controllers.remembered_no_more(T0 + month + day)] == ["web"]


def test_an_impossible_pod_is_told_what_it_lacks(world: World) -> None:
    world.pod("x", cpu="5")
    assert (
        Explainer(world.engine)
        .reason("x", world.clock())
        .startswith("0/2 nodes are available: 2 Insufficient cpu. preemption: ")
    )


def test_a_drain_whose_cordon_is_seen_late(world: World) -> None:
    """Watches of pods and of nodes have no order among each other."""
    world.up("p")
    world.t = 100.0
    world.pod("p", "a", ready=0, started=0, going=True, marked="EvictionByEvictionAPI")
    world.node("a", unschedulable=True)
    world.drop("p")
    assert world.lost(110) == (10, 0, 0)


@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
@pytest.mark.parametrize(("declared", "cause"), [(False, CLUSTER), (True, OPERATOR)])
def test_a_drain_whose_replacement_comes_before_it_is_gone(approach: str, declared: bool, cause: int) -> None:
    """As controllers do it: they make a new pod as soon as the old one is told to go."""
    world = World(approach)
    world.owner()
    if declared:
        world.window(50, 5000)
    world.up("p")
    world.tick(100)
    world.node("a", unschedulable=True)
    world.pod("p", "a", ready=0, started=0, going=True, marked="EvictionByEvictionAPI")
    world.pod("p2", created=100)
    world.drop("p")
    world.t = 150.0
    world.pod("p2", "b", created=150)
    lost = [0.0, 0.0, 0.0]
    lost[cause] = 100.0
    assert world.lost(200) == tuple(lost)
    world.t = 200.0
    world.pod("p2", "b", created=150, started=160, ready=200)
    assert world.lost(300) == tuple(lost)


def test_a_drain_whose_cordon_is_seen_after_the_replacement(world: World) -> None:
    world.window(50, 5000)
    world.up("p")
    world.tick(100)
    world.pod("p", "a", ready=0, started=0, going=True, marked="EvictionByEvictionAPI")
    world.pod("p2", created=100, nodeSelector={"room": "a"})
    world.node("a", unschedulable=True)
    world.drop("p")
    assert world.lost(200) == (0, 0, 100)


def test_a_failing_probe_within_the_second_of_its_readiness(world: World) -> None:
    """Timestamps of objects are whole seconds."""
    world.pod("p", "a")
    world.t = 5.4
    world.pod("p", "a", ready=5, started=5)
    world.t = 5.9
    world.pod("p", "a", unready=5, started=5)
    cluster, workload, _ = world.lost(100)
    assert cluster == pytest.approx(5.4, abs=1e-5)
    assert workload == pytest.approx(94.1, abs=1e-5)
