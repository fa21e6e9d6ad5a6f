"""Before a pod is evicted the ledger that counts this disruption is the last one: the real writer, a played server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

import msgspec
import pytest

from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.kube.client.http import ApiError, Unreachable
from slacktide.kube.client.metadata import Metadata, rfc3339
from slacktide.kube.client.pacing import Limiter
from slacktide.kube.client.turns import Gate
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.publish.availability import LedgerCounts, LedgerWriter
from slacktide.kube.publish.events import EventRecorder, SessionContext
from slacktide.kube.resources.objects import POD, ServiceClass, ServiceClassSpec
from slacktide.settings import load_live
from support import made_objects, virtual_time

NOW = 1_790_000_000.0
OWNER = {"apiVersion": "example.org/v1", "kind": "Shop", "name": "web", "uid": "owner", "controller": True}


class Server:
    """Takes every ledger; ``has``: what the last one says of disruptions. Where it is ``mute``, no answer comes.

    It ``refuses`` with this status, where there is one. ``deleted`` are paths of what was deleted.
    """

    def __init__(self) -> None:
        self.has: dict[str, Any] = {}
        self.taken, self.mute = 0, False
        self.refuses, self.asked = 0, 0
        self.deleted: list[str] = []

    async def delete(self, path: str, *_: Any, **__: Any) -> bytes:
        self.deleted.append(path)
        return b"{}"

    async def patch(self, _path: str, body: bytes, *_: Any, **__: Any) -> bytes:
        await asyncio.sleep(1.0)
        self.asked += 1
        if self.refuses:
            raise ApiError(self.refuses, "Invalid", "metadata.name: Invalid value")
        self.has = msgspec.json.decode(body)["status"]["accumulators"].get("disruptions", {})
        self.taken += 1
        if self.mute:
            raise Unreachable("the answer is lost")
        return b""


def calm_pod(name: str) -> dict[str, Any]:
    """A pod of a workload with a cooldown, which has been ready for an hour."""
    since = rfc3339(NOW - 3600.0)
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in ("Ready", "PodScheduled")]
    labels = {"slacktide.io/class": "calm"}
    metadata = {"name": name, "namespace": "n", "uid": name, "labels": labels, "ownerReferences": [OWNER]}
    return {
        "metadata": metadata | {"creationTimestamp": since},
        "spec": {"schedulerName": "slacktide", "nodeName": "a", "containers": [made_objects.container(cpu="1m")]},
        "status": {"phase": "Running", "conditions": conditions},
    }


@asynccontextmanager
async def writing(
    server: Server, *, busy: bool = False, cooldown: str = "10m"
) -> AsyncIterator[tuple[LedgerWriter, Engine, str]]:
    """A writer while it leads, its engine, and the key of the only controller, of two calm pods."""
    config = load_live()
    config = replace(config, kube=replace(config.kube, ledger_qps=1000.0))
    loop = asyncio.get_running_loop()

    def clock() -> float:
        return NOW + loop.time()

    mirror = ClusterMirror(config, clock)
    mirror.on_class_update(
        ServiceClass(Metadata("calm"), ServiceClassSpec(0.5, 1, cooldown=cooldown, namespaces=("*",)))
    )
    room = {"cpu": "9", "pods": "9"}
    mirror.on_node_update(
        made_objects.node("a", labels={"node-restriction.kubernetes.io/slacktide": "true"}, allocatable=room)
    )
    for name in ("web-0", "web-1"):
        mirror.on_pod_update(made_objects.decoded(POD, calm_pod(name)))
    feed = LiveFeed(mirror, Engine(config), FeedListener(), clock, lambda: 0.0)
    connection = cast("Any", server)
    recorder = EventRecorder(connection, "slacktide", "test")
    term = SessionContext(connection, config.kube, feed, recorder, clock, lambda: True, Gate())
    writer = LedgerWriter(term, LedgerCounts(), lambda: int(busy), lambda: float("-inf"))
    take_over(feed, {}, lambda _decision, _leaving: None)
    mirror.follow(feed)
    (key,) = feed.engine.controllers
    yield writer, feed.engine, key


def test_a_ledger_of_a_former_leader_does_not_wait_as_first_ones_do() -> None:
    """Pods that go meanwhile, while this leader dies, could not tell the next one of themselves."""

    async def play(known: bool) -> None:
        server = Server()
        async with writing(server, busy=True) as (writer, _, key):
            writer.changed(key)
            if known:
                writer.knows(key)
            task = asyncio.ensure_future(writer.run())
            await asyncio.sleep(3.0)
            assert server.taken == known
            assert await writer.before_eviction(key)
            await asyncio.sleep(1.5)
            assert server.taken == 1
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    for known in (False, True):
        virtual_time.run(partial(play, known))


def test_a_ledger_of_which_no_answer_came_counts_nothing() -> None:
    """One disruption is counted, and taken back; that is written, and the answer is lost. Another one looks like it.

    The ledger that is there lacks it: were the second pod evicted now, a new leader would not know.
    """

    async def play() -> None:
        server = Server()
        async with writing(server) as (writer, engine, key):
            engine.displace("web-0", NOW)
            assert await writer.before_eviction(key)
            assert server.has["recovering"] == 1
            engine.displaced("web-0", NOW, told=False)
            writer.changed(key)
            server.mute = True
            await writer.flush()
            server.mute = False
            assert server.has["recovering"] == 0
            engine.displace("web-1", NOW)
            assert await writer.before_eviction(key)
            assert (server.has["recovering"], server.has["told"]) == (1, ["web-1"])
            assert await writer.before_eviction(key)
            assert server.taken == 3, "what is counted is not written again"

    virtual_time.run(play)


def test_the_ledger_of_a_deleted_workload_that_waits_for_its_turn_is_written_at_a_clean_stop() -> None:
    async def play() -> None:
        server = Server()
        async with writing(server) as (writer, engine, key):
            controllers = writer._feed.controllers
            controllers.deleted.add(key)
            writer.buried(controllers.targets[key], export(engine, key, NOW), slo_status(engine, key, NOW))
            writer._limiter = Limiter(0.001)
            await writer._limiter.take()  # the next one is due in 1,000 s
            task = asyncio.ensure_future(writer.run())
            await asyncio.sleep(10.0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert server.taken == 0
            await writer.flush()
            assert server.taken == 1

    virtual_time.run(play)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_ledger_that_will_never_be_taken_protects_nobody(status: int) -> None:
    """Nor does it hold an evictor, or is sent again and again."""

    async def play() -> None:
        server = Server()
        server.refuses = status
        loop = asyncio.get_running_loop()
        async with writing(server) as (writer, engine, key):
            engine.displace("web-0", NOW)
            began = loop.time()
            assert await writer.before_eviction(key)
            assert loop.time() - began < 2.0
            assert server.asked == 1
            engine.displace("web-1", NOW)
            assert await writer.before_eviction(key)
            assert loop.time() - began < 2.0
            assert server.asked == 1
            task = asyncio.ensure_future(writer.run())
            await asyncio.sleep(95.0)
            assert 5 <= server.asked <= 12, "it is tried again after a while"
            server.refuses = 0
            await asyncio.sleep(15.0)
            assert server.has["told"] == ["web-0", "web-1"]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    virtual_time.run(play)


@pytest.mark.parametrize("status", [500, 409, 403])
def test_a_ledger_that_may_be_taken_yet_protects_as_ever(status: int) -> None:
    async def play() -> None:
        server = Server()
        server.refuses = status
        async with writing(server) as (writer, engine, key):
            engine.displace("web-0", NOW)
            assert not await writer.before_eviction(key)

    virtual_time.run(play)


def test_where_nothing_limits_disruptions_the_first_ledger_is_there_before_one() -> None:
    """A seed of the simulated cluster found this, where the API server had no time just then."""

    async def play() -> None:
        server = Server()
        server.refuses = 429
        loop = asyncio.get_running_loop()
        async with writing(server, cooldown="") as (writer, _, key):
            writer.changed(key)
            loop.call_later(4.0, setattr, server, "refuses", 0)
            assert await writer.before_eviction(key)
            assert server.taken == 1
            assert loop.time() < 7.0
            assert await writer.before_eviction(key)
            assert server.taken == 1, "another pod that goes needs no further one"

    virtual_time.run(play)


@pytest.mark.parametrize(("status", "goes"), [(429, False), (403, True)])
def test_where_nothing_limits_disruptions_a_missing_right_holds_nobody(status: int, goes: bool) -> None:
    async def play() -> None:
        server = Server()
        server.refuses = status
        async with writing(server, cooldown="") as (writer, _, key):
            writer.changed(key)
            assert await writer.before_eviction(key) is goes

    virtual_time.run(play)


def test_a_ledger_that_cannot_be_made_protects_nobody_either(defects: list[Any]) -> None:
    async def play() -> None:
        server = Server()
        async with writing(server) as (writer, engine, key):
            engine.displace("web-0", NOW)
            writer._body = lambda *_: 1 // 0  # type: ignore[assignment,method-assign]
            assert await writer.before_eviction(key)
            assert server.asked == 0

    virtual_time.run(play)
    assert len(defects) == 1


def test_the_ledger_of_a_deleted_workload_that_will_never_be_taken_is_not_sent_again() -> None:
    async def play() -> None:
        server = Server()
        server.refuses = 422
        async with writing(server) as (writer, engine, key):
            target = writer._feed.controllers.targets[key]
            writer._feed.controllers.deleted.add(key)
            writer.buried(target, export(engine, key, NOW), slo_status(engine, key, NOW))
            task = asyncio.ensure_future(writer.run())
            await asyncio.sleep(60.0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert server.asked == 1

    virtual_time.run(play)


@pytest.mark.parametrize("comes", [True, False])
def test_before_a_ledger_is_forgotten_it_is_asked_again_whose_it_is_by_then(comes: bool) -> None:
    """A workload of the same name may come while that waits for its turn in the rate."""

    async def play() -> None:
        server = Server()
        async with writing(server) as (writer, _, key):
            controllers = writer._feed.controllers
            target = controllers.targets[key]
            controllers.deleted.add(key)  # nobody has that ledger now
            writer._limiter = Limiter(0.1)
            await writer._limiter.take()
            task = asyncio.ensure_future(writer.forget(target))
            await asyncio.sleep(5.0)
            assert not server.deleted
            if comes:
                controllers.deleted.discard(key)
            await asyncio.sleep(10.0)
            assert task.done()
            assert len(server.deleted) == (not comes)

    virtual_time.run(play)
