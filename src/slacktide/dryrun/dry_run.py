"""A dry run: watches a cluster beside the scheduler that works there, decides as if it were ours, and writes nothing.

Two engines hear of the same pods. One follows reality and never decides: what it delivers is what the other
scheduler delivers. The other one's pods are where our decisions put them (:mod:`slacktide.dryrun.shadow`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from aiohttp import web

from slacktide.config import Config
from slacktide.dryrun import comparison
from slacktide.dryrun.comparison import Tally, compared
from slacktide.dryrun.reality import Deeds, RealityCounter
from slacktide.dryrun.shadow import Shadow
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import BoundElsewhere, ControllerGone, Gone, Operation, Ready
from slacktide.kube.client.http import NOT_FOUND, UNAVAILABLE, ApiError, Connection, KubeError
from slacktide.kube.client.metadata import rfc3339
from slacktide.kube.clock import LATER, Clock
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.feed import Feed
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.housekeeping import TICK_SECONDS, retire_vacant
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import Watches
from slacktide.kube.observe.http_site import Route
from slacktide.kube.resources import objects
from slacktide.kube.translate.service_classes import resource_of

LOG = logging.getLogger(__name__)

REMEMBERED_STARTS = 50
"""Of each controller; ten times as many of all."""


class ReadOnly(Connection):
    """A connection that sends nothing but GET."""

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        """As its base's; raises :class:`KubeError` for what would write."""
        if method != "GET":
            raise KubeError(f"{method} {path}: a dry run writes nothing")
        return await super().request(method, path, **options)


class Starts:
    """Start-up delays as the pods of a cluster show them to the engine that follows reality."""

    def __init__(self, drawn: Callable[[], float], measured: bool, seed: int) -> None:
        self._drawn, self._measured = drawn, measured
        self._random = random.Random(seed)  # no secret
        self._bound: dict[str, float] = {}
        self._of: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED_STARTS))
        self._all: deque[float] = deque(maxlen=10 * REMEMBERED_STARTS)

    def hear(self, operation: Operation, key_of: Callable[[str], str]) -> None:
        """Hear of an operation; ``key_of`` gives a pod's controller."""
        match operation:
            case BoundElsewhere(uid, at=at):
                self._bound[uid] = at
            case Ready(uid, at):
                bound = self._bound.pop(uid, None)
                if bound is not None:
                    self._of[key_of(uid)].append(max(0.0, at - bound))
                    self._all.append(max(0.0, at - bound))
            case Gone(uid):
                self._bound.pop(uid, None)
            case ControllerGone(key):
                self._of.pop(key, None)

    def draw(self, key: str) -> float:
        """The next start-up of a controller's pod, seconds: one of those measured, its own first, else drawn."""
        if self._measured:
            known = self._of.get(key) or self._all
            if known:
                return self._random.choice(known)
        return self._drawn()


class DryRun:
    """``run`` until cancelled; ``report`` at any time. ``starts`` says how long start-ups take."""

    def __init__(self, connection: ReadOnly, config: Config, starts: Starts) -> None:
        self.connection, self.config, self.starts = connection, config, starts
        self.clock = Clock()
        self.mirror = ClusterMirror(config, self.clock)
        self.watches = Watches(connection, self.mirror, config.kube.watch_seconds)
        self.did, self.would = Deeds(), Deeds()
        self.began = 0.0
        self._work = asyncio.Event()
        self._did = Tally(self.did.preempted)
        self._would = Tally(self.would.preempted)

    @property
    def synced(self) -> bool:
        """Whether every watch has told its first list, and the comparison has begun."""
        return self.began > 0.0

    @property
    def engine(self) -> Engine | None:
        """The engine that decides, once the comparison has begun."""
        return self._would.engine

    @property
    def missing(self) -> str:
        """It needs no custom resource, as it has the classes of the settings."""
        return ""

    def stale(self) -> str:
        """Why nothing can be decided: which watch is dead; or empty."""
        return self.watches.stale()

    async def run(self) -> None:
        """Watch and decide until cancelled."""
        if not await self._has_classes():
            self.watches.leave_out(objects.SERVICE_CLASS)
            self._give_classes()
        async with asyncio.TaskGroup() as group:
            for one in self.watches.running():
                group.create_task(one)
            await self.watches.first_lists()
            reality, shadow = self._begin()
            group.create_task(self._tidy(reality, shadow))
            await self._decide(shadow)

    async def _has_classes(self) -> bool:
        try:
            await self.connection.get(objects.SERVICE_CLASS.path(), query={"limit": "1"})
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return False
        return True

    def _give_classes(self) -> None:
        """A cluster without slacktide's resources: the classes are those of the settings."""
        LOG.info("the cluster has no ServiceClass; using the classes of the settings file")
        for one in self.config.classes:
            self.mirror.on_class_update(resource_of(one))

    def _begin(self) -> tuple[Feed, Shadow]:
        """Both engines, told all that is known; from now on they hear of changes."""
        began, clock, away = self.clock(), self.clock, self.watches.away

        def hear(operation: Operation) -> None:
            self.starts.hear(operation, lambda uid: real.pods[uid].key)
            self._did(operation)

        real = Engine(self.config, hear)
        reality = LiveFeed(self.mirror, real, FeedListener(), clock, away)
        take_over(reality, {}, lambda _decision, _leaving: None)
        self._did.begin(real, began)
        ours = Engine(self.config, self._would)
        shadow = Shadow(self.mirror, ours, self.would, clock, away, self.starts.draw, self._work.set)
        take_over(shadow, {}, shadow.adopt)
        self._would.begin(ours, began)
        for follower in (RealityCounter(reality, self.did), reality, shadow):
            self.mirror.follow(follower)
        self.began = began
        LOG.info(
            "dry run beside %s: %d nodes, %d pods with a promise",
            self.config.kube.scheduler_name, len(ours.hosts), len(ours.pods),
        )  # fmt: skip
        self._work.set()
        return reality, shadow

    async def _decide(self, shadow: Shadow) -> None:
        engine, deeds, watchdog = shadow.engine, self.would, self.config.scheduler.watchdog
        longest = watchdog
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(longest):
                    await self._work.wait()
            self._work.clear()
            longest = watchdog
            await asyncio.sleep(0)
            self.watches.look_for_dead()
            if self.stale() or not engine.anybody_waits():
                continue
            began = asyncio.get_running_loop().time()
            shadow.network.refresh(self.clock())
            for decision in engine.run(self.clock()).decisions:
                shadow.carry_out(decision)
            took = asyncio.get_running_loop().time() - began
            deeds.passes += 1
            deeds.longest_pass = max(deeds.longest_pass, took)
            if took > 0.01:
                await asyncio.sleep(min(took / 2, 0.1))
            longest = min(watchdog, engine.until_crossing(self.clock()) + LATER)

    async def _tidy(self, reality: Feed, shadow: Shadow) -> None:
        """Instances that nobody replaced count no more, in either engine."""
        patience = self.config.kube.vacancy
        while True:
            await asyncio.sleep(TICK_SECONDS)
            shadow.forget_displaced(patience)
            for feed in (reality, shadow):
                feed.reconsider(feed.blame.due(self.clock(), feed.pods.values()))
            for feed in (reality, shadow):
                retire_vacant(feed.engine, self.clock(), patience)

    def report(self) -> dict[str, Any]:
        """What the other scheduler did and delivered, and what we would have; plain JSON."""
        now = self.clock()
        did, would, engine = self.did, self.would, self.engine
        return {
            "scheduler": self.config.kube.scheduler_name,
            "policy": self.config.policy.name,
            "since": rfc3339(self.began or now),
            "until": rfc3339(now),
            "seconds": now - (self.began or now),
            "did": {"bound": did.bound, "preempted": did.preempted.total()},
            "would": {"bound": would.bound, "preempted": would.preempted.total(), "passes": would.passes,
                      "longest_pass": would.longest_pass},
            "strangers": 0 if engine is None else len(engine.others),
            **compared(self._did.now(now), self._would.now(now)),
        }  # fmt: skip

    def text(self) -> str:
        """The report for people."""
        return comparison.text(self.report())


def reports(watched: DryRun) -> dict[str, Route]:
    """What to serve of a dry run: /report as JSON, or as text with ?format=text."""

    async def report(request: web.Request) -> web.Response:
        if not watched.synced:
            return web.json_response({"error": "the watches have not told their first lists"}, status=UNAVAILABLE)
        if request.query.get("format") == "text":
            return web.Response(text=watched.text() + "\n")
        return web.json_response(watched.report())

    return {"/report": report}
