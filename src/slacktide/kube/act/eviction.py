"""Victims are evicted by the Eviction API, within their budgets; answers go to a listener.

A victim stays if its beneficiary no longer waits for it, and it was not told yet.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

from slacktide.engine.core import types
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
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.events import SessionContext
from slacktide.kube.resources.bodies import encode_deletion, encode_eviction, encode_pod_status
from slacktide.kube.resources.objects import POD, Condition, Instant, pod_reference

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
