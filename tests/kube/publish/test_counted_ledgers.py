"""Before a pod is evicted the ledger that counts this disruption is the last one: the real writer, a played server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import msgspec

from slacktide.engine.core.engine import Engine
from slacktide.kube.client.gate import Gate
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.client.timestamps import rfc3339
from slacktide.kube.feed.listener import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.publish.availability import LedgerCounts, LedgerWriter
from slacktide.kube.publish.events import EventRecorder
from slacktide.kube.publish.term_context import TermContext
from slacktide.kube.resources.objects import POD, ServiceClass, ServiceClassSpec
from slacktide.settings import load_live
from support import made_objects, virtual_time

NOW = 1_790_000_000.0
KEY_OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "owner", "controller": True}


class Server:
    """Takes a ledger a second after it was sent; ``has``: what the last one says of disruptions."""

    def __init__(self) -> None:
        self.has: dict[str, Any] = {}
        self.taken = 0

    async def patch(self, path: str, body: bytes, *_: Any, **__: Any) -> bytes:
        await asyncio.sleep(1.0)
        self.has = msgspec.json.decode(body)["status"]["accumulators"]["disruptions"]
        self.taken += 1
        return b""


def calm_pod(name: str) -> dict[str, Any]:
    """A pod of a workload with a cooldown, which has been ready for an hour."""
    since = rfc3339(NOW - 3600.0)
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in ("Ready", "PodScheduled")]
    labels = {"slacktide.io/class": "calm"}
    metadata = {"name": name, "namespace": "n", "uid": name, "labels": labels, "ownerReferences": [KEY_OWNER]}
    return {
        "metadata": metadata | {"creationTimestamp": since},
        "spec": {"schedulerName": "slacktide", "nodeName": "a", "containers": [made_objects.container(cpu="1m")]},
        "status": {"phase": "Running", "conditions": conditions},
    }


def wants_the_place_of(engine: Engine, victim: str, number: int, now: float) -> None:
    """A disruption of a pod begins."""
    assert engine.pods[victim].ready
    engine.displace(victim, now)
    assert number


def test_a_ledger_that_is_being_written_does_not_count_what_comes_later() -> None:
    """One disruption is counted, and taken back; while that is being written another one begins.

    It looks like the first one. The ledger that is under way lacks it and comes to the API server last: were the
    second pod evicted by then, a new leader would not know.
    """
    config, server = load_live(), Server()
    config = replace(config, kube=replace(config.kube, ledger_qps=1000.0))

    async def play() -> None:
        loop = asyncio.get_running_loop()

        def clock() -> float:
            return NOW + loop.time()

        mirror = ClusterMirror(config, clock)
        mirror.see_class(ServiceClass(Metadata("calm"), ServiceClassSpec(0.5, 1, cooldown="10m")))
        mirror.see_node(
            made_objects.node("a", labels={"slacktide.io/managed": "true"}, allocatable={"cpu": "9", "pods": "9"})
        )
        for name in ("web-0", "web-1"):
            mirror.see_pod(made_objects.decoded(POD, calm_pod(name)))
        feed = LiveFeed(mirror, Engine(config), FeedListener(), clock, lambda: 0.0)
        connection = cast("Any", server)
        recorder = EventRecorder(connection, "slacktide", "test")
        term = TermContext(connection, config.kube, feed, recorder, clock, lambda: True, Gate())
        writer = LedgerWriter(term, LedgerCounts(), lambda: False)
        take_over(feed, {}, lambda _decision, _leaving: None)
        mirror.follow(feed)
        engine = feed.engine
        (key,) = engine.controllers
        engine.displace("web-0", clock())
        assert await writer.before_eviction(key)
        assert server.has["told"] == ["web-0"]
        engine.displaced("web-0", clock(), told=False)
        under_way = asyncio.ensure_future(writer._write(key))  # noqa: SLF001  # as one of its tasks does
        await asyncio.sleep(0.5)
        engine.displace("web-1", clock())
        assert await writer.before_eviction(key)
        assert under_way.done()
        assert (server.has["recovering"], server.has["told"]) == (1, ["web-1"])
        assert await writer.before_eviction(key)
        assert server.taken == 3, "what is counted is not written again"

    virtual_time.run(play)
