"""The cluster as it would be: pods come and end as in reality; placement, start-up and preemption are ours.

A shadow reads the same watches as a scheduler and sends nothing. A pod that another scheduler bound waits here
until a pass of ours places it; it is ready after a start-up delay; a victim of ours goes after its grace period and
its instance waits again. What this cannot know: pods that another scheduler's preemption ends, and that nothing
replaces, end here too, and work that reality finishes earlier or later than we would is finished when reality says.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from slacktide.dryrun.reality import Deeds, preempted_by_scheduler
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod, FeedListener
from slacktide.kube.feed.feed import Feed
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.translate.causes import is_taken_for_lost
from slacktide.kube.translate.owners import Target
from slacktide.kube.translate.unschedulable import Unschedulable, gated
from slacktide.model.causes import CLUSTER, WORKLOAD

LOG = logging.getLogger(__name__)

REMEMBERED_SECONDS = 3600.0
"""Timers of a pod that goes on under another's name find it for so long."""


class _ShadowListener(FeedListener):
    """Passes on what concerns a shadow."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    def work(self) -> None:
        self._shadow.wake_up()

    def ended(self, uid: str) -> None:
        self._shadow.ended(uid)


@dataclass(frozen=True, slots=True)
class Displaced:
    """A pod that reality preempted and we would not have: it runs on here until its replacement comes."""

    uid: str
    key: str
    spec: int
    target: Target
    since: float


class Shadow(Feed):
    """A feed whose pods are where our decisions put them.

    ``draw`` gives a controller's next start-up delay, seconds, by its key; ``wake`` is called when somebody may be
    placed. What is done is counted in ``deeds``.
    """

    def __init__(
        self,
        mirror: ClusterMirror,
        engine: Engine,
        deeds: Deeds,
        clock: Callable[[], float],
        away: Callable[[], float],
        draw: Callable[[str], float],
        wake: Callable[[], None],
    ) -> None:
        super().__init__(mirror, engine, _ShadowListener(self), clock, away)
        self._deeds, self._draw, self.wake_up = deeds, draw, wake
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

    # -- pods and nodes --------------------------------------------------------------------------------------------

    def pod(self, record: PodRecord) -> None:
        known = self.pods.get(record.uid)
        if known is not None and known.key and record.pod.metadata.deletion_timestamp is not None:
            self._perhaps_displaced(known)
        super().pod(record)

    def pod_gone(self, record: PodRecord, succeeded: bool) -> None:
        super().pod_gone(record, succeeded)
        self._gone_on.discard(record.uid)

    def node_gone(self, name: str) -> None:
        """A node is no more; what only we had there starts anew elsewhere."""
        self.hosts.gone(name)
        for uid in [uid for uid, one in self.engine.pods.items() if one.host == name and uid in self._starts]:
            self._restart(uid)
        self.listener.work()

    def bound(self, pod: FedPod) -> None:
        """Reality has bound a pod; here it is where we put it, or waits."""
        if pod.uid in self._gone_on:
            return
        if not pod.key:
            try:
                self.specs.check(pod)
            except Unschedulable:
                self.hosts.stranger(pod)  # it has no promise here: it takes room where it is
                return
            self.hosts.stranger_gone(pod)
            self.unbound(pod)
            return
        one = self.engine.pods[pod.uid]
        if one.state in (types.ASLEEP, types.WAITING):
            self.unbound(pod)
        elif pod.uid in self._starts:
            self._follow_sickness(pod)
        else:
            self.follow_readiness(pod)

    def follow_nomination(self, _pod: FedPod, /) -> bool:
        """Nominations are the other scheduler's: ours are not biased by what that one decided."""
        return False

    def unbound(self, pod: FedPod) -> None:
        if pod.key or not self._displaced or not self._goes_on(pod):
            super().unbound(pod)

    def _follow_sickness(self, pod: FedPod) -> None:
        """One that was ready in reality and is not any more would not be with us either, wherever it is; unless that is
        its node's doing there."""
        if any(one.type == "Ready" and one.status == "True" for one in pod.pod.status.conditions):
            self._were_ready.add(pod.uid)
            self._sick.discard(pod.uid)
        elif pod.uid in self._were_ready and not is_taken_for_lost(pod.pod):
            self._sick.add(pod.uid)
        self._settle(pod.uid)

    def _settle(self, uid: str) -> None:
        """Tell the engine whether a pod that we placed is ready."""
        engine, one = self.engine, self.engine.pods.get(uid)
        if one is None or one.state not in (types.PLACED, types.LEAVING):
            return
        well = uid in self._over and uid not in self._sick
        now = self.clock()
        if well and not one.ready:
            engine.ready(uid, now)
            engine.blame(uid, CLUSTER, now)
        elif one.ready and not well:
            if uid in self._sick:  # on any node it would be
                engine.blame(uid, WORKLOAD, now)
            engine.unready(uid, now)

    # -- what another scheduler preempts, and we would not have ----------------------------------------------------

    def _perhaps_displaced(self, pod: FedPod) -> None:
        target = pod.target
        if target is None or target.kind == "Pod" or not preempted_by_scheduler(pod.pod):
            return
        one = self.engine.pods[pod.uid]
        if one.state != types.PLACED or not one.bound:
            return  # it waits, or leaves, here too: its replacement goes on with its instance anyway
        gone = Displaced(pod.uid, pod.key, pod.spec, target, self.clock())
        self._displaced.setdefault(pod.key, deque()).append(gone)
        self._gone_on.add(pod.uid)
        pod.key, pod.spec = "", -1

    def _goes_on(self, pod: FedPod) -> bool:
        """Whether a new pod goes on with the incarnation of one that only reality preempted."""
        engine, metadata = self.engine, pod.pod.metadata
        if metadata.deletion_timestamp is not None or gated(pod.pod):
            return False
        try:
            number = self.specs.of(pod)
        except Unschedulable:
            return False
        key = self.enter(pod)
        waiting = self._displaced.get(key)
        if not key or not waiting:
            return False
        former = waiting.popleft()
        if not waiting:
            del self._displaced[key]
        one = engine.instances.rename(former.uid, pod.uid, metadata.name)
        self.specs.take(pod, number)
        if number != former.spec:
            engine.respec(pod.uid, number)
        self.specs.release(former.spec)
        pod.key, pod.queue, pod.problem = key, fed_pod.NOWHERE, ""
        self._take_over(former, pod.uid, one.ready)
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
        waiting = self._displaced[former.key]
        waiting.remove(former)
        if not waiting:
            del self._displaced[former.key]
        self.engine.gone(former.uid, self.clock())
        self.specs.release(former.spec)
        self.ended(former.uid)
        self.controllers.pod_left(former.target)
        self.wake_up()

    # -- our decisions ---------------------------------------------------------------------------------------------

    def carry_out(self, decision: Decision) -> None:
        """What a decision would lead to."""
        self.pods[decision.uid].queue = fed_pod.NOWHERE
        if not decision.victims:
            self._bind(decision)
            return
        self.adopt(decision, {victim.uid for victim in decision.victims})
        loop = asyncio.get_running_loop()
        for victim in decision.victims:
            self._deeds.preempted[self.engine.pods[victim.uid].key] += 1
            loop.call_later(self.grace(victim.uid), self._leaves, victim.uid)

    def adopt(self, decision: Decision, leaving: set[str]) -> None:
        """A place is kept for a pod until these are gone."""
        if not leaving:
            self._bind(decision)
            return
        self._nominations[decision.uid] = decision, set(leaving)
        for uid in leaving:
            self._beneficiary[uid] = decision.uid

    def _bind(self, decision: Decision) -> None:
        engine, pod = self.engine, self.pods.get(decision.uid)
        if pod is None or not pod.key:
            return
        one = engine.pods[decision.uid]
        if one.state != types.PLACED or one.bound:
            return
        engine.bound(decision.uid, self.clock())
        self._deeds.bound += 1
        self._begin_start(decision.uid, pod.key)

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
        one = self.engine.pods.get(uid)
        if one is not None and one.state == types.LEAVING:
            former = next((each for each in self._displaced.get(one.key, ()) if each.uid == uid), None)
            if former is None:
                self._restart(uid)
            else:
                self._end_displaced(former)
        self._one_fewer(uid)

    def _restart(self, uid: str) -> None:
        """A pod ends here and not in reality: its next incarnation comes at once."""
        engine, pod = self.engine, self.pods.get(uid)
        if pod is None or not pod.key:
            return
        now = self.clock()
        engine.gone(uid, now)
        self._starts[uid] = 0
        self._over.discard(uid)
        engine.arrive(uid, pod.pod.metadata.name, pod.key, pod.spec, now, pod.budget)
        if pod.pod.metadata.deletion_timestamp is None:
            pod.queue = fed_pod.ACTIVE
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
