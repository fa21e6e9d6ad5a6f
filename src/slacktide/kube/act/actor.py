"""Decisions carried out: evict, wait until the victims are gone, bind; what comes of it goes back to the engine.

Every act asks first whether we still lead. What waits for what is decided here; evictions, bindings, nominations and
devices have modules of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any

from slacktide.engine.core import types
from slacktide.engine.core.types import Decision
from slacktide.kube.act.binder import CLOSED, Binder
from slacktide.kube.act.counts import CONTESTED, Contest, Counts
from slacktide.kube.act.device_allocation import DeviceAllocator
from slacktide.kube.act.eviction import Evictor
from slacktide.kube.act.nomination_writer import FormerNominations, NominationWriter
from slacktide.kube.act.reservations import GangBarrier, Nomination, Reservations, fits
from slacktide.kube.act.second_look import places_to_take, take_free_nodes
from slacktide.kube.client.log_fields import about
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.events import SessionContext
from slacktide.kube.resources.objects import pod_reference

LOG = logging.getLogger(__name__)


class Actor:
    """Carries decisions out, ``settings.bindings`` at a time. ``leading`` is asked before every act.

    ``before_eviction`` is awaited before a pod is evicted: see :class:`.eviction.EvictionListener`.
    """

    def __init__(
        self, session: SessionContext, counts: Counts, before_eviction: Callable[[str], Coroutine[Any, Any, bool]]
    ) -> None:
        self.settings, self.feed = session.settings, session.feed
        self.recorder, self.clock, self.leading, self.counts = session.recorder, session.clock, session.leading, counts
        self._gate, self.before_eviction = session.gate, before_eviction
        self.reservations = Reservations()
        self.contest = Contest()
        self._gangs = GangBarrier(self.feed.engine)
        self.devices = DeviceAllocator(session)
        self._binder = Binder(session, self.devices, counts, self.give_up)
        self._evictor = Evictor(session, self.reservations, counts, listener=self)
        self._nominations = NominationWriter(session, self._awaited)
        self._former_nominations = FormerNominations(session, self._nominations)
        self._taken_back: set[str] = set()
        """Hosts from which a decision of the present pass would have had victims go, which stay after all."""
        self._group: asyncio.TaskGroup | None = None
        self.latest = float("-inf")
        """When the latest decision was carried out, or begun to be."""

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._nominations.begin(group)
            group.create_task(self._former_nominations.run())
            for _ in range(self.settings.bindings):
                group.create_task(self._binder.run(group))
            for _ in range(max(1, self.settings.bindings // 2)):
                group.create_task(self._evictor.run())
            group.create_task(self._lose_patience())

    @property
    def nominations(self) -> dict[str, Nomination]:
        """Decisions that wait for somebody to leave, by the UID of the pod that is to come."""
        return self.reservations.nominations

    @property
    def at_work(self) -> int:
        """Bindings and evictions that wait for their turn: what the API server is to be asked."""
        return self._binder.waiting + self._evictor.waiting

    def expect(self, decisions: Iterable[Decision]) -> None:
        """All decisions of a pass, before any is carried out: pods of a group wait for each other, and the room of all
        victims is free in the engine by now, which those who are carried out first must not take for theirs."""
        self._taken_back.clear()
        for decision in decisions:
            self._gangs.begins(decision.uid)
            for victim in decision.victims:  # also on other nodes, where they are of a group that goes as a whole
                self.reservations.goes(victim.uid, self.feed.engine.pods[victim.uid].host)

    def carry_out(self, decision: Decision) -> bool:
        """Begin to carry out a decision that the engine has just made; whether its victims have to go."""
        one = self.feed.engine.pods.get(decision.uid)
        is_stale = one is None or one.state != types.PLACED  # given up by now, with others of its group
        if not is_stale and (problem := self._hindrance(decision)):
            self.give_up(decision.uid, problem, at_once=True)
            is_stale = True
        if is_stale:
            for victim in decision.victims:
                self.reservations.stays(victim.uid)
                self._taken_back.add(self.feed.engine.pods[victim.uid].host)
                self.feed.engine.spared(victim.uid, self.clock())
            return False
        self.feed.pods[decision.uid].queue = fed_pod.NOWHERE
        self.latest = self.clock()
        uids = [victim.uid for victim in decision.victims]
        outstanding = self.reservations.in_the_way(self.feed.engine, decision).union(uids)
        if not outstanding:
            self._has_its_place(decision)
            return True
        self.reservations.add(Nomination(decision, outstanding))
        if not uids and self._group is not None:
            self._group.create_task(self.nominate(decision))
        for uid in uids:
            self._evictor.evict(uid, decision)
        return True

    def _hindrance(self, decision: Decision) -> str:
        """Why a decision of a pass cannot be carried out, or empty: the room that it was given may have been that of
        victims of an earlier one which was not carried out, and its devices may be another's by now."""
        if decision.victims and self.contest.lasts(self.clock()):
            return CONTESTED
        if decision.host in self._taken_back and not fits(self.feed.engine, decision):
            return f"victims on {decision.host} were not evicted after all"
        return self.devices.reserve(decision.uid, decision.host)

    def adopt(self, decision: Decision, leaving: set[str]) -> None:
        """Go on with a former leader's decision, whose victims are told to leave already, or are gone."""
        self._gangs.begins(decision.uid)
        self.feed.pods[decision.uid].nominated = decision.host
        if problem := self.devices.reserve(decision.uid, decision.host):
            self.give_up(decision.uid, problem)
            return
        if not leaving:
            self._has_its_place(decision)
            return
        self.reservations.add(Nomination(decision, set(leaving)), max(map(self._patience, leaving)))

    def doubt(self, pod: FedPod) -> None:
        """A pod is nominated for a place that is not kept; a former leader may have done that."""
        self._former_nominations.doubt(pod)

    def look_again(self, *, everybody: bool) -> list[Decision]:
        """Let pods whose places are kept go where they need not wait (:func:`.second_look.take_free_nodes`)."""
        kept = dict(self.nominations)
        found = list(take_free_nodes(self.feed.engine, self.reservations, self.clock(), everybody=everybody))
        for decision in found:
            if not self._binder.stands(decision):
                continue  # it was given up with another one of its group
            before, pod = kept[decision.uid], self.feed.pods[decision.uid]
            if problem := self.devices.reserve(decision.uid, decision.host):
                self.give_up(decision.uid, problem)
                continue
            self._has_its_place(decision)
            LOG.info(
                "pod %s/%s does not wait for its victims: node %s has room for it", *pod.namespaced_name, decision.host,
                extra=about(pod.namespaced_name, decision.host),
            )  # fmt: skip
            self._tell_given_up(pod, before.decision.host, f"node {decision.host} has room for it now")
        if everybody:
            self._look_at_groups()
        return found

    def hand_over(self, waiting: Iterable[str]) -> Iterator[Decision]:
        """After a pass: more important pods that wait take places kept for others (:mod:`.second_look`)."""
        engine, now = self.feed.engine, self.clock()
        for uid, other, metric in places_to_take(engine, self.reservations, waiting, now):
            host, pod = self.nominations[other].decision.host, self.feed.pods[uid]
            name = "/".join(pod.namespaced_name)
            self.give_up(other, f"pod {name}, which is more important, takes its place", at_once=True)
            engine.nominated(uid, host, now)
            decision = Decision(uid, host, metric)
            said = about(pod.namespaced_name, host)
            LOG.info("pod %s takes the place of a less important one on node %s", name, host, extra=said)
            if self.carry_out(decision):
                yield decision

    # -- pods of groups --------------------------------------------------------------------------------------------

    def _has_its_place(self, decision: Decision) -> None:
        """Nobody is in a decision's way: it is bound, or waits for others of its group."""
        if not self._binder.stands(decision):
            return
        if self._gangs.ready(decision):
            self._release(self._gangs.group_of(decision.uid))
        else:
            self._binder.bind(decision)

    def _release(self, group: str) -> None:
        """Bind the pods of a group, where enough of them have their places, all of which are still open."""
        due = self._gangs.due(group)
        closed = [one for one in due if not self._binder.is_open(self.feed.pods.get(one.uid), one)]
        for one in due if not closed else ():
            self._gangs.leaves(one.uid)
            self._binder.bind(one)
        for one in closed:
            self.give_up(one.uid, CLOSED.format(one.host), at_once=True)
        if closed:
            self._release(group)

    def _look_at_groups(self) -> None:
        """After a pass: what is kept for groups that cannot start is given up, and where others wait is told."""
        for group in self._gangs.groups():
            self._disband(group, "too few of its pods still have a node")
            self._release(group)  # it may need fewer by now
        unshown, self._gangs.unshown = self._gangs.unshown, {}
        for uid, decision in unshown.items():
            if uid in self.feed.pods:
                self._nominations.show(self.feed.pods[uid], decision.host)

    def _disband(self, group: str, reason: str) -> None:
        """Give up the places of a group that cannot start any more."""
        for uid in self._gangs.broken(group):
            why = f"its pod group {group} cannot start as a whole: {reason}"
            self._give_up(uid, why, self._gangs.leaves(uid)[1], at_once=True)

    def withdrawn(self, uid: str, reason: str) -> None:
        """A pod must not start as things are: a place that is kept for it is given up. What is being bound goes on."""
        if self._keeps_a_place(uid):
            self.give_up(uid, reason, at_once=True)

    def regrouped(self, uid: str) -> None:
        """A pod is of another group by now, or of none; what that means to those of its former one is looked at after
        the next pass, when all that changed is known."""
        if not self._keeps_a_place(uid):
            return
        _, decision = self._gangs.leaves(uid)
        self._gangs.begins(uid)
        if decision is not None:
            self._has_its_place(decision)

    def _keeps_a_place(self, uid: str) -> bool:
        """Whether a place is kept for a pod, until victims or others of its group let it be bound."""
        return uid in self.nominations or bool(self._gangs.group_of(uid))

    def _patience(self, leaving: str) -> float:
        return self.clock() + self.feed.grace(leaving) + self.settings.victim_patience

    def begins(self, uid: str) -> None:
        """A victim is being told to go, or was: its time runs from now on."""
        self.reservations.expect_gone(uid, self._patience(uid))

    # -- outcomes --------------------------------------------------------------------------------------------------

    def ended(self, uid: str) -> None:
        """A pod is no more: a place that waited for it to go may be free now."""
        self.reservations.drop(uid)
        self._nominations.forget(uid)
        self._evictor.forget(uid)
        group, _ = self._gangs.leaves(uid)
        if group:
            self._disband(group, "one of its pods was deleted")
        for decision in self.reservations.ended(uid, self.feed.engine):
            self._has_its_place(decision)

    def confirmed(self, uid: str) -> None:
        """A pod is seen to be bound, perhaps by somebody else: nothing is kept for it any more."""
        self.reservations.drop(uid)
        self._nominations.forget(uid)
        group, _ = self._gangs.leaves(uid)
        if group:
            self._release(group)

    def give_up(self, uid: str, reason: str, *, at_once: bool = False) -> None:
        """A decision cannot be carried out: the pod waits again, after a pause unless ``at_once``. If too few others of
        its group have places, they give them up, too."""
        group, waited = self._gangs.leaves(uid)
        self._give_up(uid, reason, waited, at_once=at_once)
        if group:
            self._disband(group, reason)

    def _give_up(self, uid: str, reason: str, waited: Decision | None, *, at_once: bool) -> None:
        """As :meth:`give_up`, of one pod; ``waited``: its place was free, and it waited for others of its group."""
        nomination = self.reservations.drop(uid)
        pod, engine = self.feed.pods.get(uid), self.feed.engine
        if pod is None or not pod.key:
            self.devices.release(uid)
            return
        one = engine.pods.get(uid)
        if one is None or one.state != types.PLACED or one.bound:
            self.devices.release(uid)
            return
        self.counts.refused += 1
        said = about(pod.namespaced_name, one.host)
        engine.refused(uid, self.clock())
        pod.failures += 1
        pod.queue = fed_pod.BACKOFF
        self.devices.release(uid)
        self.devices.give_up(pod, self._group)
        LOG.info("pod %s/%s goes back to the queue: %s", *pod.namespaced_name, reason, extra=said)
        kept = nomination.decision if nomination is not None else waited
        if kept is not None or (pod.nominated and not pod.unnominated):
            self._tell_given_up(pod, kept.host if kept is not None else pod.nominated, reason)
        if at_once and pod.failures < 3 and pod.queue == fed_pod.BACKOFF:
            self._wake(uid)
            self.feed.listener.work()
            return
        if pod.queue != fed_pod.BACKOFF:
            return  # it waits for something else by now
        if kept is None:
            pod.refusal = reason
            self.feed.listener.waits(pod)
        pause = min(self.settings.backoff_longest, self.settings.backoff_first * 2.0 ** (pod.failures - 1))
        asyncio.get_running_loop().call_later(pause, self._gate.call, partial(self._wake, uid))

    def find_other_devices(self, uids: Iterable[str]) -> None:
        """Pods found no place: their claims may have devices on nodes where they cannot go, and get others."""
        self.devices.find_others(uids, self._group)

    def _tell_given_up(self, pod: FedPod, node: str, reason: str) -> None:
        note = f"nomination of node {node} withdrawn: {reason}"
        reference = pod_reference(pod.pod)
        self.recorder.record(reference, "FailedScheduling", note, event_type="Warning", action="Nominating")
        if not self._keeps_a_place(pod.uid):
            self._nominations.clear(pod)

    def _wake(self, uid: str) -> None:
        """A pod takes part in passes again, if nothing keeps it from that by now."""
        pod = self.feed.pods.get(uid)
        if pod is not None and pod.queue == fed_pod.BACKOFF:
            self.feed.active(pod)
            self.feed.consider(pod)

    # -- places that wait ------------------------------------------------------------------------------------------

    async def nominate(self, decision: Decision) -> None:
        """Write down for which node the pod waits, for its owner and a new leader to see; returns once it was tried."""
        nomination, pod = self.nominations.get(decision.uid), self.feed.pods.get(decision.uid)
        if nomination is not None and nomination.decision is decision and pod is not None:
            await self._nominations.shown(pod, decision.host)

    def _awaited(self, uid: str) -> str:
        """Whom a pod waits for that a place is kept for; empty where it waits for others of its group."""
        nomination = self.nominations.get(uid)
        if nomination is None:
            return ""
        names = self._names(nomination.outstanding)
        return f"nominated to node {nomination.decision.host}, waiting for {names} to terminate"

    def _names(self, uids: Iterable[str]) -> str:
        pods = [self.feed.pods.get(uid) for uid in uids]
        return ", ".join(sorted("/".join(one.namespaced_name) for one in pods if one is not None))

    async def _lose_patience(self) -> None:
        """Give up places whose victims do not go."""
        while True:
            await asyncio.sleep(1.0)
            await self._gate.passed()
            now = self.clock()
            for uid, nomination in list(self.nominations.items()):
                late = self.reservations.late(nomination, now)
                if late and self.nominations.get(uid) is nomination:  # else it went with another one of its group
                    self.counts.given_up += 1
                    self.give_up(uid, f"{self._names(late)} did not terminate in time")
            # No place waits for them any more: all that did are given up.
            self._not_going(self.reservations.overdue(now))

    def _not_going(self, uids: Iterable[str]) -> None:
        """A victim that does not go takes its room until it is gone, and is not chosen again."""
        engine = self.feed.engine
        for uid in uids:
            self.reservations.stays(uid)
            one = engine.pods.get(uid)
            if one is not None and one.state == types.LEAVING:
                engine.spared(uid, self.clock())
                for other in self.reservations.beyond(engine, uid):
                    self.give_up(other, f"victims on {one.host} were not evicted after all", at_once=True)
                engine.displace(uid, self.clock())  # it was told to go, and counts as disrupted
                engine.doomed(uid)
                self.feed.succeed(one.key, uid)
                self.feed.listener.changed(one.key)
