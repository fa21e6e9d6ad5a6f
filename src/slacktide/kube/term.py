"""One term of leadership: what exists only while this replica leads, and the passes that decide."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from slacktide.config import Config
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Outcome
from slacktide.kube.act.actor import Actor
from slacktide.kube.act.counts import Counts
from slacktide.kube.act.relocation import Relocator
from slacktide.kube.client.http import Connection, KubeError
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.listener import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.rivals import Rivals
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.garbage_collection import collect_when_idle
from slacktide.kube.housekeeping import Housekeeper
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import Watches
from slacktide.kube.publish.availability import LedgerCounts, LedgerWriter
from slacktide.kube.publish.conditions import ConditionWriter
from slacktide.kube.publish.events import EventRecorder
from slacktide.kube.publish.term_context import TermContext
from slacktide.kube.resources.objects import Availability

LOG = logging.getLogger(__name__)


class LeadershipLost(KubeError):  # noqa: N818  # an ordinary end, not a mistake
    """Another replica may lead now; this one must not act any more."""


@dataclass(frozen=True)
class Tools:
    """What a term works with and did not make; ``leading`` is asked before every act."""

    connection: Connection
    config: Config
    mirror: ClusterMirror
    watches: Watches
    recorder: EventRecorder
    clock: Callable[[], float]
    leading: Callable[[], bool]
    counts: Counts
    ledgers: LedgerCounts


class Term(FeedListener):
    """The feed, those who act and those who publish, from the time this replica leads until it does not."""

    def __init__(self, tools: Tools, engine: Engine) -> None:
        self._tools, self.engine = tools, engine
        self.feed = LiveFeed(tools.mirror, engine, self, tools.clock, tools.watches.away)
        term = TermContext(tools.connection, tools.config.kube, self.feed, tools.recorder, tools.clock, tools.leading)
        self.actor = Actor(term, tools.counts)
        self.mover = Relocator(term, tools.counts)
        self.ledger = LedgerWriter(term, tools.ledgers, lambda: self.actor.under_way > 0)
        self.reporter = ConditionWriter(term)
        self._housekeeper = Housekeeper(term, self.reporter, self.ledger)
        self._rivals = Rivals()
        self._passes = 0
        self._work = asyncio.Event()

    def take_over(self, ledgers: Mapping[str, Availability]) -> None:
        """Tell the engine all that is known; from now on it hears of changes. ``ledgers`` by their controllers' UID."""
        take_over(self.feed, ledgers, self.actor.adopt)
        self._tools.mirror.follow(self.feed)
        self._work.set()

    # -- what the feed says ----------------------------------------------------------------------------------------

    def work(self) -> None:
        self._work.set()

    def confirmed(self, uid: str) -> None:
        self.actor.reservations.drop(uid)  # where somebody else bound it
        self.reporter.forget(uid)

    def ended(self, uid: str) -> None:
        self.actor.ended(uid)
        self.reporter.forget(uid)

    def changed(self, key: str) -> None:
        self.ledger.changed(key)

    def finished(self, key: str) -> None:
        self.ledger.finished(key)

    def waits(self, pod: FedPod) -> None:
        self.reporter.report(pod)

    def rival(self, pod: FedPod) -> None:
        self._rivals.see(pod.pod)

    # -- passes ----------------------------------------------------------------------------------------------------

    def running(self) -> list[Coroutine[Any, Any, None]]:
        """What is to run beside :meth:`decide`, until it is cancelled."""
        others = (self.actor, self.ledger, self.reporter, self._housekeeper, self.mover)
        return [*(one.run() for one in others), collect_when_idle(lambda: self._passes)]

    async def decide(self) -> None:
        """Passes whenever somebody may be placed, until cancelled. Raises :class:`LeadershipLost`."""
        loop, watchdog = asyncio.get_running_loop(), self._tools.config.scheduler.watchdog
        while True:
            alarm = loop.call_later(watchdog, self._work.set)  # cheaper than a task that waits with a timeout
            await self._work.wait()
            alarm.cancel()
            self._work.clear()
            await asyncio.sleep(0)  # whatever arrived at the same time takes part
            await self._tools.watches.whole_lists()
            if not self._tools.leading():
                raise LeadershipLost("the lease is lost")
            if stale := self._tools.watches.stale():
                LOG.warning("no pass: the watch of %s is dead", stale)
                continue
            took = self._pass()
            if took > 0.01:
                await asyncio.sleep(min(took / 2, 0.1))  # events get their turn between long passes

    def _pass(self) -> float:
        """One pass, where anybody waits; the seconds it took."""
        engine, clock = self.engine, self._tools.clock
        if not engine.anybody_waits():
            return 0.0
        began = time.perf_counter()
        self.feed.network.refresh(clock())
        outcome = engine.run(clock())
        if outcome.problem:
            LOG.error("pass %d: %s", outcome.number, outcome.problem)
        self._carry_out(outcome)
        took = time.perf_counter() - began
        self._passes += 1
        if outcome.waiting:
            self.reporter.after_pass()
        return took

    def _carry_out(self, outcome: Outcome) -> None:
        for decision in outcome.decisions:
            self.feed.pods[decision.uid].queue = fed_pod.NOWHERE
            self.actor.carry_out(decision)
            self._told_to_leave(decision.victims)

    def _told_to_leave(self, victims: tuple[types.Victim, ...]) -> None:
        for victim in victims:
            key = self.engine.pods[victim.uid].key
            self.feed.succession.told(key, victim.uid)
            self.changed(key)

    def queues(self) -> dict[str, int]:
        """How many pods wait, by queue."""
        found = dict.fromkeys(fed_pod.QUEUES, 0)
        for pod in self.feed.pods.values():
            if pod.queue in found:
                found[pod.queue] += 1
        return found
