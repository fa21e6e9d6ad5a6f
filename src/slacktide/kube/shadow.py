"""The cluster as it would be: pods come and end as in reality; placement, start-up and preemption are ours.

A shadow reads the same watches as a scheduler and sends nothing. A pod that another scheduler bound waits here
until a pass of ours places it; it is ready after a start-up delay; a victim of ours goes after its grace period and
its instance waits again. What this cannot know: pods that another scheduler's preemption ends, and that nothing
replaces, end here too, and work that reality finishes earlier or later than we would is finished when reality says.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from slacktide.config import Config
from slacktide.kube import entries
from slacktide.kube.entries import Entry
from slacktide.kube.intake import Intake
from slacktide.kube.kinds import Identity
from slacktide.kube.objects import Pod
from slacktide.kube.owners import Target
from slacktide.kube.refusals import Unschedulable, gated
from slacktide.kube.world import World
from slacktide.live import parts
from slacktide.live.parts import Decision

LOG = logging.getLogger(__name__)

REMEMBERED_SECONDS = 3600.0
"""Timers of a pod that goes on under another's name find it for so long."""
DISRUPTED, BY_SCHEDULER = "DisruptionTarget", "PreemptionByScheduler"


def preempted_by_scheduler(pod: Pod) -> bool:
    """Whether another scheduler's preemption ends a pod."""
    return any(
        one.type == DISRUPTED and one.status == "True" and one.reason == BY_SCHEDULER for one in pod.status.conditions
    )


class Quiet:
    """A watcher who does nothing."""

    def work(self) -> None: ...

    def confirmed(self, uid: str) -> None: ...

    def ended(self, uid: str) -> None: ...

    def changed(self, key: str) -> None: ...

    def began(self, target: Target) -> None: ...

    def finished(self, key: str) -> None: ...

    def waits(self, entry: Entry) -> None: ...


class _Told(Quiet):
    """Passes on what concerns a shadow."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    def work(self) -> None:
        self._shadow.wake_up()

    def ended(self, uid: str) -> None:
        self._shadow.ended(uid)


class SeenWorld(World):
    """What pods depend on, where nobody is warned of rivals: there they are what is looked at."""

    def warn_of(self, pod: Pod) -> None: ...


class ShadowWorld(SeenWorld):
    """As a scheduler's, but pods of the shadow that are on a node that goes start anew."""

    def drop_node(self, name: str) -> None:
        shadow = self.intake
        super().drop_node(name)
        if isinstance(shadow, Shadow):
            shadow.node_gone(name)


@dataclass(frozen=True, slots=True)
class Displaced:
    """A pod that reality preempted and we would not have: it runs on here until its replacement comes."""

    uid: str
    key: str
    spec: int
    target: Target
    since: float


@dataclass
class Deeds:
    """What we would have done."""

    bound: int = 0
    preempted: int = 0
    passes: int = 0
    longest_pass: float = 0.0


class Shadow(Intake):
    """Handler of the watch of pods; ``draw`` gives a controller's next start-up delay, seconds, by its key."""

    def __init__(
        self,
        config: Config,
        world: World,
        clock: Callable[[], float],
        draw: Callable[[str], float],
        wake: Callable[[], None],
    ) -> None:
        super().__init__(config, world, clock, _Told(self))
        self.deeds = Deeds()
        self.preempted: Counter[str] = Counter()
        """Victims of ours by controller."""
        self._draw, self.wake_up = draw, wake
        self._starts: dict[str, int] = {}
        """Of pods that we placed: the number of their present start, by which a timer knows that it is still meant."""
        self._over: set[str] = set()
        """Of these: whose start-up is over."""
        self._were_ready: set[str] = set()
        self._sick: set[str] = set()
        """Pods that reality had ready and has not any more."""
        self._nominations: dict[str, tuple[Decision, set[str]]] = {}
        self._beneficiary: dict[str, str] = {}
        self._displaced: dict[str, deque[Displaced]] = {}
        self._gone_on: set[str] = set()
        """Pods that reality is ending and that go on here under another's name."""
        self._now_called: dict[str, str] = {}
        self._number = 0

    def ended(self, uid: str) -> None:
        """Reality ended a pod: nobody waits for it any more, and it waits for nobody."""
        self._starts.pop(uid, None)
        for those in (self._over, self._were_ready, self._sick):
            those.discard(uid)
        self._nominations.pop(uid, None)
        self._one_fewer(uid)

    # -- pods ------------------------------------------------------------------------------------------------------

    def changed(self, pod: Pod) -> None:
        entry = self.pods.get(pod.metadata.uid)
        if entry is not None and entry.key and pod.metadata.deletion_timestamp is not None:
            self._perhaps_displaced(entry, pod)
        super().changed(pod)

    def deleted(self, identity: Identity, last: Pod | None) -> None:
        super().deleted(identity, last)
        self._gone_on.discard(identity.uid)

    def _bound(self, entry: Entry) -> None:
        """Reality has bound a pod; here it is where we put it, or waits."""
        engine = self.engine
        assert engine is not None  # noqa: S101
        if entry.uid in self._gone_on:
            return
        if not entry.key:
            try:
                self.specs.check(entry)
            except Unschedulable:
                self._other(entry)  # it has no promise here: it takes room where it is
                return
            if entry.other:
                engine.other_gone(entry.uid)
                entry.other = ""
            self._unbound(entry)
            return
        one = engine.incarnations[entry.uid]
        if one.state in (parts.ASLEEP, parts.WAITING):
            self._unbound(entry)
        elif entry.uid in self._starts:
            self._follow_sickness(entry)
        else:
            self._follow_readiness(entry)

    def _unbound(self, entry: Entry) -> None:
        if entry.key or not self._displaced or not self._goes_on(entry):
            super()._unbound(entry)

    def _follow_sickness(self, entry: Entry) -> None:
        """One that was ready in reality and is not any more would not be with us either, wherever it is."""
        if any(one.type == "Ready" and one.status == "True" for one in entry.pod.status.conditions):
            self._were_ready.add(entry.uid)
            self._sick.discard(entry.uid)
        elif entry.uid in self._were_ready:
            self._sick.add(entry.uid)
        self._settle(entry.uid)

    def _settle(self, uid: str) -> None:
        """Tell the engine whether a pod that we placed is ready."""
        engine = self.engine
        one = None if engine is None else engine.incarnations.get(uid)
        if engine is None or one is None or one.state not in (parts.PLACED, parts.LEAVING):
            return
        well = uid in self._over and uid not in self._sick
        if well and not one.ready:
            engine.ready(uid, self.clock())
        elif one.ready and not well:
            engine.unready(uid, self.clock())

    # -- what another scheduler preempts, and we would not have ----------------------------------------------------

    def _perhaps_displaced(self, entry: Entry, pod: Pod) -> None:
        engine, target = self.engine, entry.target
        if engine is None or target is None or target.kind == "Pod" or not preempted_by_scheduler(pod):
            return
        one = engine.incarnations[entry.uid]
        if one.state != parts.PLACED or not one.bound:
            return  # it waits, or leaves, here too: its replacement goes on with its instance anyway
        gone = Displaced(entry.uid, entry.key, entry.spec, target, self.clock())
        self._displaced.setdefault(entry.key, deque()).append(gone)
        self._gone_on.add(entry.uid)
        entry.key, entry.spec = "", -1

    def _goes_on(self, entry: Entry) -> bool:
        """Whether a new pod goes on with the incarnation of one that only reality preempted."""
        engine, pod = self.engine, entry.pod
        assert engine is not None  # noqa: S101
        if pod.metadata.deletion_timestamp is not None or gated(pod):
            return False
        try:
            number = self.specs.of(entry, engine)
        except Unschedulable:
            return False
        key = self.enter(entry)
        waiting = self._displaced.get(key)
        if not key or not waiting:
            return False
        former = waiting.popleft()
        if not waiting:
            del self._displaced[key]
        one = engine.incarnations[entry.uid] = engine.incarnations.pop(former.uid)
        one.uid, one.name = entry.uid, pod.metadata.name
        engine.uid_of_row[one.row] = entry.uid
        engine.controllers[key].rows[one.row] = one.name
        self.specs.take(entry, number, engine)
        if number != former.spec:
            engine.respec(entry.uid, number)
        self.specs.release(former.spec, engine)
        entry.key, entry.queue, entry.problem = key, entries.NOWHERE, ""
        self._take_over(former, entry.uid, one.ready)
        return True

    def _take_over(self, former: Displaced, uid: str, ready: bool) -> None:
        """Timers of the former pod are the new one's now."""
        was_ours = former.uid in self._starts
        self._starts[uid] = self._starts.pop(former.uid, 0)
        self._over.discard(former.uid)
        self._now_called[former.uid] = uid
        loop = asyncio.get_running_loop()
        loop.call_later(REMEMBERED_SECONDS, self._now_called.pop, former.uid, None)
        if ready:
            self._over.add(uid)
        elif not was_ours:
            self._begin_start(uid, former.key)

    def forget_displaced(self, patience: float) -> None:
        """Who was not replaced within ``patience`` seconds ends here too."""
        oldest = self.clock() - patience
        for waiting in list(self._displaced.values()):
            for former in [one for one in waiting if one.since < oldest]:
                self._end_displaced(former)

    def _end_displaced(self, former: Displaced) -> None:
        engine, waiting = self.engine, self._displaced[former.key]
        assert engine is not None  # noqa: S101
        waiting.remove(former)
        if not waiting:
            del self._displaced[former.key]
        engine.gone(former.uid, self.clock())
        self.specs.release(former.spec, engine)
        self.ended(former.uid)
        self.world.left(engine, former.target)
        self.wake_up()

    # -- our decisions ---------------------------------------------------------------------------------------------

    def carry_out(self, decision: Decision) -> None:
        """What a decision would lead to."""
        self.pods[decision.uid].queue = entries.NOWHERE
        if not decision.victims:
            self._bind(decision)
            return
        self.adopt(decision, {victim.uid for victim in decision.victims})
        engine, loop = self.engine, asyncio.get_running_loop()
        assert engine is not None  # noqa: S101
        for victim in decision.victims:
            self.deeds.preempted += 1
            self.preempted[engine.incarnations[victim.uid].key] += 1
            loop.call_later(entries.grace(self.pods.get(victim.uid)), self._leaves, victim.uid)

    def adopt(self, decision: Decision, leaving: set[str]) -> None:
        """A place is kept for a pod until these are gone."""
        if not leaving:
            self._bind(decision)
            return
        self._nominations[decision.uid] = decision, set(leaving)
        for uid in leaving:
            self._beneficiary[uid] = decision.uid

    def _bind(self, decision: Decision) -> None:
        engine, entry = self.engine, self.pods.get(decision.uid)
        if engine is None or entry is None or not entry.key:
            return
        one = engine.incarnations[decision.uid]
        if one.state != parts.PLACED or one.bound:
            return
        engine.bound(decision.uid, self.clock())
        self.deeds.bound += 1
        self._begin_start(decision.uid, entry.key)

    def _begin_start(self, uid: str, key: str) -> None:
        self._number += 1
        self._starts[uid] = self._number
        self._over.discard(uid)
        asyncio.get_running_loop().call_later(self._draw(key), self._started, uid, self._number)

    def _started(self, uid: str, number: int) -> None:
        while uid in self._now_called:
            uid = self._now_called[uid]
        if self._starts.get(uid) == number:
            self._over.add(uid)
            self._settle(uid)

    def _leaves(self, uid: str) -> None:
        """A victim's grace period is over: it is gone, and its instance waits again."""
        while uid in self._now_called:
            uid = self._now_called[uid]
        engine = self.engine
        one = None if engine is None else engine.incarnations.get(uid)
        if one is not None and one.state == parts.LEAVING:
            former = next((each for each in self._displaced.get(one.key, ()) if each.uid == uid), None)
            if former is None:
                self._restart(uid)
            else:
                self._end_displaced(former)
        self._one_fewer(uid)

    def _restart(self, uid: str) -> None:
        """A pod ends here and not in reality: its next incarnation comes at once."""
        engine, entry = self.engine, self.pods.get(uid)
        assert engine is not None  # noqa: S101
        if entry is None or not entry.key:
            return
        now = self.clock()
        engine.gone(uid, now)
        self._starts[uid] = 0
        self._over.discard(uid)
        engine.arrive(uid, entry.pod.metadata.name, entry.key, entry.spec, now, entry.budget)
        if entry.pod.metadata.deletion_timestamp is None:
            entry.queue = entries.ACTIVE
            engine.wake(uid)
        self.wake_up()

    def _one_fewer(self, uid: str) -> None:
        beneficiary = self._beneficiary.pop(uid, "")
        nomination = self._nominations.get(beneficiary)
        if nomination is None:
            return
        decision, outstanding = nomination
        outstanding.discard(uid)
        if not outstanding:
            del self._nominations[beneficiary]
            self._bind(decision)

    def node_gone(self, name: str) -> None:
        """A node is no more; what only we had there starts anew elsewhere."""
        engine = self.engine
        if engine is None:
            return
        here = [uid for uid, one in engine.incarnations.items() if one.host == name and uid in self._starts]
        for uid in here:
            self._restart(uid)
