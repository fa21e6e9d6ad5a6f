"""A dry run: watches a cluster beside the scheduler that works there, decides as if it were ours, and writes nothing.

Two engines hear of the same pods. One follows reality and never decides: what it delivers is what the other
scheduler delivers. The other one's pods are where our decisions put them (:mod:`slacktide.kube.shadow`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from slacktide.config import Config
from slacktide.kube import comparing, objects
from slacktide.kube.beginning import begin
from slacktide.kube.clock import Clock
from slacktide.kube.comparing import Tally, compared
from slacktide.kube.connection import ApiError, Connection, KubeError
from slacktide.kube.counts import NOT_FOUND
from slacktide.kube.handlers import probes, subscriptions, wait_for_rows
from slacktide.kube.intake import Intake
from slacktide.kube.kinds import HasMetadata, Identity, Malformed
from slacktide.kube.metadata import Metadata
from slacktide.kube.objects import Pod, ServiceClass, ServiceClassSpec
from slacktide.kube.promises import Tier
from slacktide.kube.scheduler import STALE_SECONDS
from slacktide.kube.shadow import Quiet, SeenWorld, Shadow, ShadowWorld, preempted_by_scheduler
from slacktide.kube.tending import TICK_SECONDS, retire_vacant
from slacktide.kube.times import rfc3339
from slacktide.kube.watching import Handler, Reflector
from slacktide.live.engine import Engine

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


class Both:
    """A handler that tells two others."""

    def __init__(self, one: Handler[Any], other: Handler[Any]) -> None:
        self._both = one, other

    def replaced(self, found: Sequence[HasMetadata]) -> None:
        for each in self._both:
            each.replaced(found)

    def changed(self, found: HasMetadata) -> None:
        for each in self._both:
            each.changed(found)

    def deleted(self, identity: Identity, last: HasMetadata | None) -> None:
        for each in self._both:
            each.deleted(identity, last)

    def malformed(self, problem: Malformed) -> None:
        for each in self._both:
            each.malformed(problem)


class Starts:
    """Start-up delays as the pods of a cluster show them; a journal of the engine that follows reality."""

    def __init__(self, drawn: Callable[[], float], measured: bool, seed: int) -> None:
        self._drawn, self._measured = drawn, measured
        self._random = random.Random(seed)  # no secret
        self._bound: dict[str, float] = {}
        self._of: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED_STARTS))
        self._all: deque[float] = deque(maxlen=10 * REMEMBERED_STARTS)
        self.key_of: Callable[[str], str] = lambda _uid: ""

    def __call__(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Hear of an operation."""
        if name == "bound_elsewhere":
            self._bound[arguments[0]] = arguments[2]
        elif name == "ready":
            bound = self._bound.pop(arguments[0], None)
            if bound is not None:
                self._of[self.key_of(arguments[0])].append(max(0.0, arguments[1] - bound))
                self._all.append(max(0.0, arguments[1] - bound))
        elif name == "gone":
            self._bound.pop(arguments[0], None)
        elif name == "controller_gone":
            self._of.pop(arguments[0], None)

    def draw(self, key: str) -> float:
        """The next start-up of a controller's pod, seconds: one of those measured, its own first, else drawn."""
        if self._measured:
            known = self._of.get(key) or self._all
            if known:
                return self._random.choice(known)
        return self._drawn()


class Reality(Intake):
    """Follows what the other scheduler does, and counts whom it preempts."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.preempted: Counter[str] = Counter()
        self.bound = 0
        self._victims: set[str] = set()

    def changed(self, pod: Pod) -> None:
        entry = self.pods.get(pod.metadata.uid)
        if entry is not None and entry.key and self.engine is not None:
            if pod.spec.node_name and not entry.pod.spec.node_name:
                self.bound += 1
            if entry.uid not in self._victims and preempted_by_scheduler(pod):
                self._victims.add(entry.uid)
                self.preempted[entry.key] += 1
        super().changed(pod)

    def deleted(self, identity: Identity, last: Pod | None) -> None:
        super().deleted(identity, last)
        self._victims.discard(identity.uid)


class DryRun:
    """``run`` until cancelled; ``report`` at any time. ``starts`` says how long start-ups take."""

    def __init__(self, connection: ReadOnly, config: Config, starts: Starts) -> None:
        self.connection, self.config, self.starts = connection, config, starts
        self.clock = Clock()
        self._work = asyncio.Event()
        self.reality = Reality(config, SeenWorld(config), self.clock, Quiet())
        self.shadow = Shadow(config, ShadowWorld(config), self.clock, starts.draw, self._work.set)
        self.did = Tally(preempted=lambda: self.reality.preempted)
        self.would = Tally(preempted=lambda: self.shadow.preempted)
        self.reflectors: list[Reflector[Any]] = []
        self.probes = probes(connection, self.shadow.world)
        self.began = 0.0

    @property
    def synced(self) -> bool:
        """Whether every watch has told its first list, and the comparison has begun."""
        return self.began > 0.0

    def stale(self) -> str:
        """The kind whose watch is dead, or empty."""
        return next((one.kind.plural for one in self.reflectors if one.age() > STALE_SECONDS), "")

    async def run(self) -> None:
        """Watch and decide until cancelled."""
        pairs = zip(
            subscriptions(self.reality.world, self.reality), subscriptions(self.shadow.world, self.shadow), strict=True
        )
        without_classes = not await self._has_classes()
        for (kind, one), (_, other) in pairs:
            if kind is objects.SERVICE_CLASS and without_classes:
                self._give_classes()
            else:
                self.reflectors.append(Reflector(self.connection, kind, Both(one, other)))
        async with asyncio.TaskGroup() as group:
            for reflector in (*self.reflectors, *self.probes):
                group.create_task(reflector.run())
            for reflector in self.reflectors:
                await reflector.synced.wait()
            await wait_for_rows(self.probes)
            self._begin()
            group.create_task(self._tidy())
            await self._decide()

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
        LOG.info("the cluster knows no ServiceClass; the classes are those of the settings")
        for one in self.config.classes:
            tiers = tuple(Tier(tier.boundary, tier.bonus) for tier in one.tiers)
            spec = ServiceClassSpec(one.slo, one.rank, one.margin, one.overhead_limit, tiers)
            for intake in (self.reality, self.shadow):
                intake.world.classes.see(ServiceClass(Metadata(one.name), spec))

    def _begin(self) -> None:
        began = self.clock()
        real = Engine(self.config, self._hear_of_reality)
        self.starts.key_of = lambda uid: real.incarnations[uid].key
        begin(self.reality, real, {}, lambda _decision, _leaving: None)
        self.did.begin(real, began)
        ours = Engine(self.config, self.would)
        begin(self.shadow, ours, {}, self.shadow.adopt)
        self.would.begin(ours, began)
        self.began = began
        LOG.info(
            "dry run beside %s: %d nodes, %d pods with a promise",
            self.config.kube.scheduler_name, len(ours.hosts), len(ours.incarnations),
        )  # fmt: skip
        self._work.set()

    def _hear_of_reality(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.starts(name, arguments)
        self.did(name, arguments)

    async def _decide(self) -> None:
        engine = self.shadow.engine
        assert engine is not None  # noqa: S101  # _begin made it
        deeds = self.shadow.deeds
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._work.wait(), self.config.scheduler.watchdog)
            self._work.clear()
            await asyncio.sleep(0)
            if self.stale() or not engine.waiting():
                continue
            began = asyncio.get_running_loop().time()
            self.shadow.world.edge.refresh(engine, self.clock())
            for decision in engine.run(self.clock()).decisions:
                self.shadow.carry_out(decision)
            took = asyncio.get_running_loop().time() - began
            deeds.passes += 1
            deeds.longest_pass = max(deeds.longest_pass, took)
            if took > 0.01:
                await asyncio.sleep(min(took / 2, 0.1))

    async def _tidy(self) -> None:
        """Instances that nobody replaced count no more, in either engine."""
        patience = self.config.kube.vacancy
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.shadow.forget_displaced(patience)
            for intake in (self.reality, self.shadow):
                if intake.engine is not None:
                    retire_vacant(intake.engine, self.clock(), patience)

    def report(self) -> dict[str, Any]:
        """What the other scheduler did and delivered, and what we would have; plain JSON."""
        now = self.clock()
        deeds, shadow = self.shadow.deeds, self.shadow
        strangers = 0 if shadow.engine is None else len(shadow.engine.others)
        return {
            "scheduler": self.config.kube.scheduler_name,
            "policy": self.config.policy.name,
            "since": rfc3339(self.began or now),
            "until": rfc3339(now),
            "seconds": now - (self.began or now),
            "did": {"bound": self.reality.bound, "preempted": self.reality.preempted.total()},
            "would": {"bound": deeds.bound, "preempted": deeds.preempted, "passes": deeds.passes,
                      "longest_pass": deeds.longest_pass},
            "strangers": strangers,
            **compared(self.did.now(now), self.would.now(now)),
        }  # fmt: skip

    def text(self) -> str:
        """The report for people."""
        return comparing.text(self.report())
