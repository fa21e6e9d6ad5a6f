"""Pods are evicted by the Eviction API: victims, within their budgets; answers go to a listener. A victim stays if its
beneficiary no longer waits for it, and it was not told yet.

And pods whose resize does not fit where they run. They keep their room; later they move, if their slack allows it.
Which resizes wait, and since when, is :class:`slacktide.kube.mirror.pod_record.PendingResizes`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from slacktide.engine.core import types
from slacktide.engine.core.relocation import is_whole, obstacle
from slacktide.engine.core.types import Decision
from slacktide.kube.act.counts import ASK_AGAIN_SECONDS, LONGEST_PAUSE_SECONDS, Counts
from slacktide.kube.act.reservations import Reservations
from slacktide.kube.client.http import (
    GATEWAY_TIMEOUT,
    NOT_FOUND,
    SERVER_ERROR,
    STRATEGIC_MERGE_PATCH,
    TOO_MANY,
    UNAVAILABLE,
    ApiError,
    NotSent,
    Unreachable,
)
from slacktide.kube.client.log_fields import about
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.mirror.pod_record import PendingResize, grace
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.resources.bodies import encode_deletion, encode_eviction, encode_pod_status
from slacktide.kube.resources.objects import POD, Condition, Instant, Pod, pod_reference
from slacktide.kube.translate.nodes import pending_resize, wanted
from slacktide.kube.translate.owners import BOUND_TO_NODES, controlling
from slacktide.kube.translate.unschedulable import Unschedulable

LOG = logging.getLogger(__name__)

EVICTED = "DisruptionTarget"
"""The condition of a pod that is evicted."""
NOT_COUNTED = "its Availability cannot be written, and a new leader would not know of this disruption"
SEVERAL_BUDGETS = "more than one PodDisruptionBudget"


class EvictionListener(Protocol):
    """Who is told what comes of evictions."""

    def begins(self, uid: str) -> None:
        """A victim is being told to go, or has been: its time to be gone begins."""

    def ended(self, uid: str) -> None:
        """A victim is no more."""

    def give_up(self, uid: str, reason: str, *, at_once: bool = False) -> None:
        """A decision for a pod cannot be carried out."""

    async def nominate(self, decision: Decision) -> None:
        """Write down for which node the pod waits."""

    async def before_eviction(self, key: str) -> bool:
        """Write down what a controller has and suffers, where no ledger tells of it yet; whether one does then."""


class Evictor:
    """Evicts the victims of decisions, one after another for each :meth:`run`; ``leading`` is asked before each."""

    def __init__(
        self, session: SessionContext, reservations: Reservations, counts: Counts, listener: EvictionListener
    ) -> None:
        self.connection, self.settings, self.feed = session.connection, session.settings, session.feed
        self.recorder, self.leading, self._gate = session.recorder, session.leading, session.gate
        self.reservations, self.counts, self.listener = reservations, counts, listener
        self._of_victim: dict[str, Decision] = {}
        self._told: dict[str, Decision] = {}
        """Victims that were evicted and are not gone yet."""
        self._waiting: asyncio.Queue[tuple[str, Decision]] = asyncio.Queue()

    def evict(self, uid: str, decision: Decision) -> None:
        """A victim is to go for a decision, as soon as it has its turn."""
        self._of_victim[uid] = decision
        self._waiting.put_nowait((uid, decision))

    @property
    def waiting(self) -> int:
        """Victims that have not had their turn."""
        return self._waiting.qsize()

    def forget(self, uid: str) -> None:
        """A pod is no more."""
        self._of_victim.pop(uid, None)
        self._told.pop(uid, None)

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            uid, decision = await self._waiting.get()
            victim = self.feed.pods.get(uid)
            if victim is None:
                await self._gate.passed()
                self.listener.ended(uid)  # the watch may have told before it was chosen
                continue
            try:
                await self._has_its_turn(victim, decision)
            except Exception as error:  # others go all the same
                barrier = self.feed.mirror.barrier
                found = barrier.failed(pod_reference(victim.pod), error)
                await self._gate.passed()
                with barrier.around(found.about):
                    self._refused_to_go(victim, decision, f"it cannot be evicted: {found.problem}", overdrawn=False)

    async def _has_its_turn(self, victim: FedPod, decision: Decision) -> None:
        if self.is_wanted(decision):
            self.listener.begins(victim.uid)  # also what comes first may hang
            await self.listener.nominate(decision)
            if await self.listener.before_eviction(victim.key):
                self.listener.begins(victim.uid)
                await self._evict(victim, decision)
            elif self.leading():
                await self._gate.passed()
                self._refused_to_go(victim, decision, NOT_COUNTED, overdrawn=False)
        elif self.leading():
            await self._gate.passed()
            self._spare(victim, decision)
            self._takes_its_room(victim)

    def is_wanted(self, decision: Decision) -> bool:
        """Whether victims of a decision shall still go: it is the one that its pod waits for, and we lead."""
        nomination = self.reservations.nominations.get(decision.uid)
        return nomination is not None and nomination.decision is decision and self.leading()

    async def _evict(self, victim: FedPod, decision: Decision) -> None:
        namespace, name = victim.namespaced_name
        path = POD.path(namespace, name, "eviction")
        body = encode_eviction(namespace, name, victim.uid)
        beneficiary = self.feed.pods.get(decision.uid)
        unknown = False  # whether an answer is missing, so that it may be going because of us
        while self.is_wanted(decision) and victim.key:
            pause = ASK_AGAIN_SECONDS
            if victim.pod.metadata.deletion_timestamp is not None and not unknown:
                return  # somebody else evicted it
            try:
                await self._gate.after(
                    self.connection.post(path, body, timeout=15.0, permit=lambda: self.is_wanted(decision))
                )
            except ApiError as error:
                if error.status == NOT_FOUND:
                    if not unknown:
                        return  # the watch will tell
                    await self._hears_of_its_end(victim)
                    break
                overdrawn = (error.status == TOO_MANY and "disruption budget" in error.message) or (
                    error.status == SERVER_ERROR and SEVERAL_BUDGETS in error.message
                )
                if overdrawn and (self.settings.disruption_budgets == "best-effort" or decision.beyond):
                    await self._delete(victim, decision, beneficiary)
                    return
                if overdrawn or error.status not in (TOO_MANY, SERVER_ERROR, UNAVAILABLE, GATEWAY_TIMEOUT):
                    self._refused_to_go(victim, decision, error.message, overdrawn)
                    return
                pause = min(error.retry_after or pause, LONGEST_PAUSE_SECONDS)
                unknown |= error.status != TOO_MANY
            except Unreachable as error:
                unknown |= not isinstance(error, NotSent)  # an eviction may be asked for twice
            else:
                self._has_evicted(victim, decision, beneficiary)
                return
            await asyncio.sleep(pause)
        await self._gate.passed()
        if unknown and _goes(victim) and not _goes_by_itself(victim):
            self._has_evicted(victim, decision, beneficiary)
        elif self.leading():
            self._spare(victim, decision)
            self._takes_its_room(victim)

    async def _hears_of_its_end(self, victim: FedPod) -> None:
        while victim.key and self.leading():
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _delete(self, victim: FedPod, decision: Decision, beneficiary: FedPod | None) -> None:
        """Where budgets are best effort, or nobody else makes room, a victim goes although one forbids its eviction.

        It is marked before, as by an eviction and by kube-scheduler: its Job may be told not to count such ends.
        """
        path, body = POD.path(*victim.namespaced_name), encode_deletion(victim.uid)
        marked = False

        def permit() -> bool:
            return self.is_wanted(decision)

        try:
            await self._mark(victim, f"slacktide: preempting to accommodate {_named(beneficiary)}", permit)
            marked = True
            await self._gate.after(self.connection.delete(path, body, permit=permit))
        except NotSent:
            if self.leading():
                await self._unmark(victim, marked)
                self._spare(victim, decision)
                self._takes_its_room(victim)
        except ApiError as error:
            if error.status != NOT_FOUND:
                await self._unmark(victim, marked)
                self._refused_to_go(victim, decision, str(error), overdrawn=False)
        except Unreachable as error:  # it may go, and keeps its mark
            self._refused_to_go(victim, decision, str(error), overdrawn=False)
        else:
            self._has_evicted(victim, decision, beneficiary)

    async def _mark(self, victim: FedPod, why: str, permit: Callable[[], bool]) -> None:
        """Say of a pod, before it is deleted, that this is not its own doing; of one that stays (no ``why``) not any
        more."""
        now = Instant(self.feed.clock())
        marked = Condition(EVICTED, str(bool(why)), "PreemptionByScheduler" if why else "Spared", why, now)
        path, body = POD.path(*victim.namespaced_name, "status"), encode_pod_status(victim.uid, marked)
        await self._gate.after(self.connection.patch(path, body, STRATEGIC_MERGE_PATCH, permit=permit))

    async def _unmark(self, victim: FedPod, marked: bool) -> None:
        """A pod that was ``marked`` stays. Where this cannot be said, the control plane does so after two minutes."""
        if marked:
            with contextlib.suppress(ApiError, Unreachable):
                await self._mark(victim, "", self.leading)

    def _has_evicted(self, victim: FedPod, decision: Decision, beneficiary: FedPod | None) -> None:
        self.counts.evicted += 1
        self._told[victim.uid] = decision
        self.listener.begins(victim.uid)
        mine = next(one.metric for one in decision.victims if one.uid == victim.uid)
        slack = f"its slack is {mine:.1f} s, that of the preemptor {decision.metric:.1f} s"
        node, group = victim.pod.spec.node_name, self._goes_with(victim)
        whole = f" with its pod group {group}" if group else ""
        note = f"Preempted by pod {_named(beneficiary)} on node {node}{whole}: {slack}"
        known = self.feed.engine.pods.get(victim.uid)  # the watch may have told of its end already
        if known is not None and self.feed.engine.specs[known.spec].bare:
            note += "; it is a bare pod, which no controller creates again"
        related = None if beneficiary is None else pod_reference(beneficiary.pod)
        self.recorder.record(pod_reference(victim.pod), "Preempted", note, action="Preempting", related=related)

    def _refused_to_go(self, victim: FedPod, decision: Decision, reason: str, overdrawn: bool) -> None:
        """The API server does not evict a victim, as a rule for its budget: the beneficiary tries elsewhere."""
        self.counts.evictions_refused += 1
        self._spare(victim, decision)
        if overdrawn:
            self.feed.overdrawn(victim)
        if self.is_wanted(decision):
            why = f"{'/'.join(victim.namespaced_name)} is not evicted: {reason}{self._rest_of_group(victim, decision)}"
            self.listener.give_up(decision.uid, why, at_once=True)
        self._takes_its_room(victim)

    def _takes_its_room(self, victim: FedPod) -> None:
        """A victim stays, on whose room others than its beneficiary may have counted, too."""
        one = self.feed.engine.pods.get(victim.uid)
        if one is not None and one.state == types.PLACED:
            for uid in self.reservations.beyond(self.feed.engine, victim.uid):
                self.listener.give_up(uid, f"{'/'.join(victim.namespaced_name)} is not evicted after all", at_once=True)

    def _goes_with(self, victim: FedPod) -> str:
        """The pod group that a victim belongs to, if that goes as a whole; else empty."""
        one = self.feed.engine.pods.get(victim.uid)
        return one.group if one is not None and self.feed.engine.groups.is_whole(one.group) else ""

    def _rest_of_group(self, victim: FedPod, decision: Decision) -> str:
        """What becomes of the others of a group that was to go as a whole and of which one stays; empty: there are
        none."""
        group, engine = self._goes_with(victim), self.feed.engine
        others = {one.uid for one in decision.victims if one.uid != victim.uid}
        others = (
            {uid for uid in others if uid not in engine.pods or engine.pods[uid].group == group} if group else set()
        )
        if not others:
            return ""
        told = sum(uid not in engine.pods or self._told.get(uid) is decision for uid in others)
        return f"; of its pod group {group}, {told} were evicted already, and {len(others) - told} are not evicted"

    def _spare(self, victim: FedPod, decision: Decision) -> None:
        if self._of_victim.get(victim.uid, decision) is not decision:
            return  # it goes for another beneficiary by now
        self._of_victim.pop(victim.uid, None)
        if victim.pod.metadata.deletion_timestamp is not None:
            self.listener.begins(victim.uid)
            return  # it goes in any case
        for uid in self.reservations.stays(victim.uid):
            awaiting = self.reservations.nominations.get(uid)
            if awaiting is not None and awaiting.decision is not decision:
                self.listener.give_up(uid, f"{'/'.join(victim.namespaced_name)} is not evicted after all", at_once=True)
        engine = self.feed.engine
        if victim.key and engine.pods[victim.uid].state == types.LEAVING:
            self.counts.spared += 1
            engine.spared(victim.uid, self.feed.clock())
            self.feed.succession.stays(victim.key)
            self.feed.succeed(victim.key, victim.uid)
            self.feed.listener.changed(victim.key)


def _named(beneficiary: FedPod | None) -> str:
    return "a deleted pod" if beneficiary is None else "/".join(beneficiary.namespaced_name)


def _goes(victim: FedPod) -> bool:
    """Whether it was told to go, or is gone, as far as the watch has told."""
    return not victim.key or victim.pod.metadata.deletion_timestamp is not None


def _goes_by_itself(victim: FedPod) -> bool:
    """Whether the watch has shown how one that goes came to that, and no eviction: the API server marks who is evicted
    before it deletes it."""
    is_marked = any(one.type == EVICTED for one in victim.pod.status.conditions)
    is_seen = victim.record.is_final or victim.pod.metadata.deletion_timestamp is not None
    return is_seen and not is_marked


ON_RESIZE = "slacktide.io/on-resize"
MOVE, STAY = "move", "stay"
TICK_SECONDS = 1.0
MOVE_AGAIN_SECONDS = 10.0
"""After an eviction that was refused."""
NOBODY_MAKES_IT_ANEW = f"no controller creates a bare pod again; annotation {ON_RESIZE}: {MOVE} allows its eviction"


def stays(pod: Pod) -> str:
    """Why a pod is not moved for a resize, whatever the cluster looks like; empty where it may be."""
    said = pod.metadata.annotations.get(ON_RESIZE, "")
    owner = controlling(pod.metadata)
    if said == STAY:
        return f"annotation {ON_RESIZE}: {STAY}"
    if said not in ("", MOVE):
        return f"annotation {ON_RESIZE}: found {said!r}, expected {MOVE} or {STAY}"
    if pod.spec.resource_claims or pod.status.extended_resource_claim_status is not None:
        return "it has ResourceClaims, and its replacement might find no devices"
    if owner is not None and owner.kind in BOUND_TO_NODES:
        return f"its {owner.kind} would create it again on the same node"
    return NOBODY_MAKES_IT_ANEW if owner is None and said != MOVE else ""


class Relocator(SessionPart):
    """Evicts pods whose resizes have waited for ``kube.resize_patience``, one at a time; ``leading`` is asked first."""

    def __init__(
        self, session: SessionContext, counts: Counts, before_eviction: Callable[[str], Coroutine[Any, Any, bool]]
    ) -> None:
        super().__init__(session)
        self._counts, self._before_eviction = counts, before_eviction
        self._moving: tuple[str, str, float] | None = None  # a pod's UID, its controller, and until when we wait
        self._not_before: dict[str, float] = {}
        self._unknown: set[str] = set()  # evictions to which no answer came
        self._moved: dict[str, PendingResize] = {}
        self._told: dict[str, tuple[PendingResize, str]] = {}
        """What owners were told of their pods' resizes."""

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self._gate.passed()
            if self._leading() and self._settings.resize_patience is not None:
                await self.look(self._feed.clock(), self._settings.resize_patience)

    async def look(self, now: float, patience: float) -> None:
        """Move the first pod that may be, if no other is on its way; tell of the others why they stay."""
        pods = self._feed.pods
        self._not_before = {uid: after for uid, after in self._not_before.items() if uid in pods}
        self._moved = {uid: one for uid, one in self._moved.items() if uid in pods}
        self._told = {uid: one for uid, one in self._told.items() if uid in pods}
        self._unknown &= pods.keys()
        if self._is_busy(now):
            return
        for uid, pending in self._feed.mirror.resizes.overdue(now - patience):
            pod = pods.get(uid)
            if pod is None or not pod.key or now < self._not_before.get(uid, now) or self._moved.get(uid) is pending:
                continue
            if pod.pod.metadata.deletion_timestamp is not None:
                if uid in self._unknown:
                    self._has_moved(pod, pending, now)
                continue
            reason = self._why_not(pod, now)
            if not reason:
                await self._evict(pod, pending, now)
                return
            self._tell(pod, pending, reason)

    def _why_not(self, pod: FedPod, now: float) -> str:
        # Its volumes may have been made, or bound to its node, since it was placed.
        volumes = self._feed.mirror.storage.needs(pod.pod)
        try:
            found = stays(pod.pod) or volumes.waits
            asked = {**wanted(pod.pod), **dict(self._feed.mirror.attachments.demand_elsewhere(pod.pod))}
            return found or obstacle(self._feed.engine, pod.uid, asked, now, volumes.term)
        except Unschedulable as problem:
            return problem.reason

    def _is_busy(self, now: float) -> bool:
        """Whether a pod was moved whose replacement does not run yet, and may still."""
        if self._moving is None:
            return False
        uid, key, until = self._moving
        if now < until and (uid in self._feed.pods or not is_whole(self._feed.engine, key)):
            return True
        self._moving = None
        return False

    def _tell(self, pod: FedPod, pending: PendingResize, reason: str) -> None:
        """Say once of each resize why its pod stays; numbers in the reason do not make it another one."""
        sort = "".join(letter for letter in reason if not letter.isdigit())
        if self._told.get(pod.uid) == (pending, sort):
            return
        self._told[pod.uid] = pending, sort
        note = f"its resize is {pending_resize(pod.pod)}, and the pod is not evicted for it: {reason}"
        self._recorder.record(pod_reference(pod.pod), "ResizeWaits", note, event_type="Warning", action="Resizing")

    async def _evict(self, pod: FedPod, pending: PendingResize, now: float) -> None:
        namespace, name = pod.namespaced_name
        path, body = POD.path(namespace, name, "eviction"), encode_eviction(namespace, name, pod.uid)
        self._not_before[pod.uid] = now + MOVE_AGAIN_SECONDS
        engine = self._feed.engine
        engine.displace(pod.uid, now)
        if not await self._gate.after(self._before_eviction(pod.key)):
            self._stays(pod.uid)
            return
        pod.evicted = True  # the watch may tell of it before the answer comes
        try:
            await self._gate.after(self._connection.post(path, body, timeout=15.0, permit=self._leading))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return  # the watch will tell
            self._stays(pod.uid)
            pod.evicted = False
            self._counts.evictions_refused += 1
            said = about((namespace, name))
            LOG.info("pod %s/%s is not evicted for its resize: %s", namespace, name, error, extra=said)
            overdrawn = error.status == TOO_MANY and "disruption budget" in error.message
            # Where budgets are best effort, decisions do not look at them: this one is a matter of moving only.
            overdrawn = overdrawn and self._settings.disruption_budgets != "best-effort"
            if overdrawn:
                self._feed.overdrawn(pod)
        except Unreachable:
            self._unknown.add(pod.uid)
        else:
            self._has_moved(pod, pending, now)

    def _stays(self, uid: str) -> None:
        """A pod was not told to leave: nothing of it is counted."""
        if uid in self._feed.engine.pods:
            self._feed.engine.displaced(uid, self._feed.clock(), told=False)

    def _has_moved(self, pod: FedPod, pending: PendingResize, now: float) -> None:
        """A pod is told to go for its resize; whoever replaces it goes on with its ledger when it is gone."""
        self._unknown.discard(pod.uid)
        self._counts.moved += 1
        until = now + grace(pod.pod) + self._settings.victim_patience
        self._moving = (pod.uid, pod.key, until)
        self._moved[pod.uid] = pending
        if pod.uid in self._feed.pods and pod.key:
            self._feed.succession.told(pod.key, pod.uid)
            self._feed.listener.changed(pod.key)
        note = f"Evicted from {pod.pod.spec.node_name}: its resize is {pending_resize(pod.pod)} there, and another "
        note += "node has room for it"
        self._recorder.record(pod_reference(pod.pod), "ResizeMoved", note, action="Resizing")
