"""A leader's session: what exists only while this replica leads, and the passes that decide."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from slacktide.config import Config
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.engine.ledger.slo_status import SloStatus
from slacktide.kube.act.actor import Actor
from slacktide.kube.act.counts import Counts
from slacktide.kube.act.eviction import Relocator
from slacktide.kube.client.http import Connection, KubeError
from slacktide.kube.client.log_fields import PASS
from slacktide.kube.client.turns import Turns
from slacktide.kube.clock import LATER, work_seconds
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod, FeedListener
from slacktide.kube.feed.hosts import Rivals
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.housekeeping import Housekeeper, collect_when_idle
from slacktide.kube.mirror.barrier import SetAside
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import Watches
from slacktide.kube.publish.availability import LedgerCounts, LedgerWriter
from slacktide.kube.publish.conditions import ConditionWriter
from slacktide.kube.publish.events import EventRecorder, SessionContext
from slacktide.kube.publish.state_events import ShortLives, StateEvents
from slacktide.kube.publish.statuses import GroupConditionWriter, QuotaStatusWriter
from slacktide.kube.resources.objects import Availability, Reference
from slacktide.kube.translate.owners import Target
from slacktide.kube.translate.service_classes import concerns_class

LOG = logging.getLogger(__name__)

CLASS_LOST = "ClassUnavailable"
"""The reason of the event about a workload that keeps a promise which it could not get anew."""
UNUSABLE = "Unusable"
"""The reason of the event about an object that is set aside."""
LEISURE = 9.0
"""Between two looks at places that are kept this many times what the last one took, while nobody waits for a pass."""
TOGETHER = 100
"""So many of those who wait are looked at in one part."""
FEW, TOLD_A_SECOND = 1_000, 5_000
"""Of more than these, who have waited before are looked at in turn beside passes, so many a second at most."""
SLICE_SECONDS = 0.01
"""So long those who are behind are looked at without a pause."""
LOOK_SECONDS = 1.0
"""After this long it is looked whether so many wait, and all of them have their turn again."""

T = TypeVar("T")


class LeadershipLost(KubeError):  # noqa: N818  # an ordinary end, not a mistake
    """Another replica may lead now; this one must not act any more."""


class GaveWay(KubeError):  # noqa: N818  # nor is this
    """This replica led and could not decide; it begins anew, and another one may lead."""


@dataclass(frozen=True)
class ReplicaContext:
    """What a session works with and did not make; ``leading`` is asked before every act."""

    connection: Connection
    config: Config
    mirror: ClusterMirror
    watches: Watches
    recorder: EventRecorder
    clock: Callable[[], float]
    leading: Callable[[], bool]
    counts: Counts
    ledgers: LedgerCounts
    on_decision: Callable[[Decision], None]
    """Hears of each decision, before it is carried out."""


class LeaderSession(FeedListener):
    """The feed, those who act and those who publish, from the time this replica leads until it does not."""

    def __init__(self, replica: ReplicaContext, engine: Engine) -> None:
        self._replica, self.engine = replica, engine
        self.feed = LiveFeed(replica.mirror, engine, self, replica.clock, replica.watches.away)
        self.gate = replica.watches.gate
        session = SessionContext(
            replica.connection,
            replica.config.kube,
            self.feed,
            replica.recorder,
            replica.clock,
            replica.leading,
            self.gate,
        )
        self.ledger = LedgerWriter(session, replica.ledgers, lambda: self.actor.at_work, lambda: self.actor.latest)
        self.actor = Actor(session, replica.counts, self.ledger.before_eviction)
        self.mover = Relocator(session, replica.counts, self.ledger.before_eviction)
        self.reporter = ConditionWriter(session)
        groups = GroupConditionWriter(session, lambda uid: uid in self.actor.nominations)
        self._statuses = (QuotaStatusWriter(session), groups)
        targets = self.feed.controllers.targets
        self.states = StateEvents(replica.recorder.record, engine, targets, replica.clock)
        self._short_lives = ShortLives(replica.recorder.record, engine)
        self._housekeeper = Housekeeper(session, self.reporter, self.ledger, self.states)
        self.losses = self._housekeeper.losses
        self._began = replica.clock()
        self._rivals = Rivals((replica.config.kube.lease_namespace, replica.config.kube.lease_name))
        self._turns = Turns(replica.config.kube.pass_budget)
        self._parts = 0
        self._next_look = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._work, self._behind = asyncio.Event(), asyncio.Event()
        self.feed.catching_up.in_turn = True

    def take_over(self, ledgers: Mapping[str, Availability]) -> None:
        """Tell the engine all that is known; from now on it hears of changes. ``ledgers`` by their controllers' UID."""
        barrier = self._replica.mirror.barrier
        for found in tuple(barrier.aside.values()):  # while nobody led
            self._tell_of(found)
        barrier.on_set_aside = self._tell_of
        take_over(self.feed, ledgers, self.actor.adopt, self.actor.doubt)
        self._replica.mirror.follow(self.feed)
        targets = self.feed.controllers.targets
        known = {key: ledgers[target.uid] for key, target in targets.items() if target.uid in ledgers}
        given_up = [key for key, one in known.items() if one.status.given_up is not None]
        self.states.knew(((key, one.status.state) for key, one in known.items()), given_up)
        # The oldest first, or some are never written.
        for key in sorted(known, key=lambda key: known[key].status.at or 0.0):
            self.ledger.knows(key)
        self._work.set()

    def _tell_of(self, found: SetAside) -> None:
        """Who wrote an object that nobody can use should know."""
        if found.about.name:
            self._replica.recorder.record(
                found.about, UNUSABLE, f"ignored until it changes: {found.problem}", event_type="Warning",
                action="Reading",
            )  # fmt: skip

    # -- what the feed says ----------------------------------------------------------------------------------------

    def work(self) -> None:
        self._work.set()

    def behind(self) -> None:
        self._behind.set()

    def confirmed(self, uid: str) -> None:
        self.actor.confirmed(uid)
        self.reporter.forget(uid)

    def taken(self, uid: str) -> None:  # noqa: ARG002  # whoever it was
        now = self._replica.clock()
        if now >= self._began + self._replica.config.kube.lease_duration:  # else it may be the last leader's
            self.actor.contest.see(now)

    def ended(self, uid: str) -> None:
        self.actor.ended(uid)
        self.reporter.forget(uid)

    def withdrawn(self, uid: str, reason: str) -> None:
        self.actor.withdrawn(uid, reason)

    def regrouped(self, uid: str) -> None:
        self.actor.regrouped(uid)

    def changed(self, key: str) -> None:
        self.ledger.changed(key)

    def finished(self, key: str) -> None:
        self.ledger.finished(key)
        self.losses.forget(key)
        self.states.forget(key)
        self.feed.blame.finished(key)

    def buried(self, target: Target, books: dict[str, Any], status: SloStatus) -> None:
        self.ledger.buried(target, books, status)
        self._short_lives.ends(target, books["at"])

    def waits(self, pod: FedPod) -> None:
        self.reporter.report(pod)

    def overwritten(self, uid: str) -> None:
        self.reporter.overwritten(uid)

    def only_keeps(self, target: Target, why: str) -> None:
        reference = Reference(target.api_version, target.kind, target.namespace, target.name, target.uid)
        self._replica.recorder.record(reference, CLASS_LOST, why, event_type="Warning", action="Promising")

    def rival(self, pod: FedPod) -> None:
        self._rivals.see(pod.pod)

    # -- passes ----------------------------------------------------------------------------------------------------

    def running(self) -> list[Coroutine[Any, Any, None]]:
        """What is to run beside :meth:`decide`, until it is cancelled."""
        others = (self.actor, self.ledger, self.reporter, self._housekeeper, self.mover, *self._statuses)
        beside = self._tell_in_turn(), self._catch_up(), collect_when_idle(lambda: self._parts)
        return [*(one.run() for one in others), *beside]

    async def decide(self) -> None:
        """Passes whenever somebody may be placed, until cancelled.

        Raises :class:`LeadershipLost`, and where others may lead and this replica cannot decide :class:`GaveWay`.
        """
        loop, watchdog = asyncio.get_running_loop(), self._replica.config.scheduler.watchdog
        longest = watchdog
        while True:
            alarm = loop.call_later(longest, self._work.set)  # cheaper than a task that waits with a timeout
            await self._work.wait()
            alarm.cancel()
            longest = watchdog
            self._work.clear()
            await asyncio.sleep(0)  # whatever arrived at the same time takes part
            await self._replica.watches.whole_lists()
            self._must_lead()
            self._replica.watches.look_for_dead()
            if stale := self._replica.watches.stale():
                if self._replica.config.kube.leader_election:
                    raise GaveWay(stale)
                continue
            if self.engine.anybody_waits():
                self._look_again(everybody=False)
            else:
                self._look_again_at_leisure(loop)
            if not self.engine.anybody_waits() and not self.engine.is_to_plan(self._replica.clock()):
                continue
            began = work_seconds()
            with self.gate.closed():  # the pass sees one state; what comes of it is told when all of it is known
                number = PASS.set(self.engine.passes + 1)
                await self._turns.through(self._pass())
                PASS.reset(number)
            took = work_seconds() - began
            if took > 0.01:
                await asyncio.sleep(min(took / 2, 0.1))  # what was held back gets its turn between long passes
            longest = min(watchdog, self.engine.until_crossing(self._replica.clock()) + LATER)

    def _must_lead(self) -> None:
        if not self._replica.leading():
            raise LeadershipLost("lost the lease")

    def _pass(self) -> Generator[None, None, None]:
        """One pass and what follows from it, part by part. Nothing follows where the lease is lost or we are told to
        end meanwhile; then the engine is left as it is after a pass, for who writes ledgers."""
        engine, clock = self.engine, self._replica.clock
        self.feed.network.refresh(clock())
        outcome = yield from self._counted(engine.run_in_parts(clock(), self._turns.allowance))
        if outcome.problem:
            LOG.error("pass %d: %s", outcome.number, outcome.problem)
        self.actor.expect(outcome.decisions)
        for decision in outcome.decisions:
            self._must_lead()
            self._replica.on_decision(decision)
            if self.actor.carry_out(decision):
                for victim in decision.victims:
                    key = self.engine.pods[victim.uid].key
                    self.feed.succession.told(key, victim.uid)
                    self.changed(key)
            yield
        self._look_again(everybody=True)
        waiting = self._to_be_told()
        for decision in self.actor.hand_over(waiting):
            self._replica.on_decision(decision)
            yield
        for at in range(0, len(waiting), TOGETHER):
            self._tell(waiting[at : at + TOGETHER])
            yield

    def _to_be_told(self) -> list[str]:
        """Who waits though there was a pass. Where thousands do: those who came or were woken since the pass before;
        the others have their turn beside passes (:meth:`_tell_in_turn`), or each pass would hold up who comes next."""
        woken, self.feed.woken = self.feed.woken, {}
        if self.engine.count_waiting() <= FEW:
            return self.engine.waiting()
        return [uid for uid in woken if self._waits(uid)]

    async def _tell_in_turn(self) -> None:
        """Of thousands who wait, look at some at a time, again and again. Whose first pass is still to come is left
        out: nothing is known of that pod yet."""
        in_turn: list[str] = []
        while True:
            await asyncio.sleep(TOGETHER / TOLD_A_SECOND if in_turn else LOOK_SECONDS)
            await self.gate.passed()
            if self.engine.count_waiting() <= FEW or not self._replica.leading():
                in_turn.clear()
                continue
            in_turn = in_turn or self.engine.waiting()
            some = [in_turn.pop() for _ in range(min(TOGETHER, len(in_turn)))]
            self._tell([uid for uid in some if uid not in self.feed.woken and self._waits(uid)])

    async def _catch_up(self) -> None:
        """Look at those whose marks changed, a slice at a time, in half of the time at most."""
        while True:
            await self._behind.wait()
            await self.gate.passed()
            began = work_seconds()
            while not self.feed.catching_up.is_over and work_seconds() - began < SLICE_SECONDS:
                self.feed.catching_up.one()
            if self.feed.catching_up.is_over:
                self._behind.clear()
            await asyncio.sleep(work_seconds() - began)

    def _waits(self, uid: str) -> bool:
        one = self.engine.pods.get(uid)
        return one is not None and one.state == types.WAITING

    def _tell(self, waiting: Sequence[str]) -> None:
        """These waited through a pass."""
        self.reporter.after_pass(waiting)
        self.actor.find_other_devices(waiting)

    def _wake(self) -> None:
        self._alarm = None
        self._work.set()

    def _look_again(self, *, everybody: bool) -> None:
        """Pods whose places are kept may find better ones: before a pass the most important, after it all of them."""
        for decision in self.actor.look_again(everybody=everybody):
            self._replica.on_decision(decision)

    def _look_again_at_leisure(self, loop: asyncio.AbstractEventLoop) -> None:
        """The same where no pass follows, for a tenth of the time at most; what happens meanwhile calls for one look.

        Where thousands wait for their victims, each that goes would call for one.
        """
        if self._next_look > loop.time():
            self._alarm = self._alarm or loop.call_at(self._next_look, self._wake)
            return
        began = loop.time()
        self._look_again(everybody=True)
        self._next_look = loop.time() + LEISURE * (loop.time() - began)

    def _counted(self, parts: Generator[None, None, T]) -> Generator[None, None, T]:
        """Counts parts of passes, which must not be held up, while we lead."""
        with closing(parts):
            while True:
                self._parts += 1
                try:
                    next(parts)
                except StopIteration as over:
                    result: T = over.value
                    return result
                yield
                self._must_lead()

    def queues(self) -> dict[str, int]:
        """How many pods wait, by queue."""
        found = Counter(pod.queue for pod in self.feed.pods.values())
        return {name: found[name] for name in fed_pod.QUEUES}

    def without_class(self) -> int:
        """How many pods there are, waiting or running, whose class is not known or cannot be theirs; O(pods)."""
        return sum(concerns_class(pod.problem) for pod in self.feed.pods.values() if pod.problem)
