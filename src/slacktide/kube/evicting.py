"""Victims told to go through the Eviction API, within their budgets; what is answered goes to who acts.

A victim whose beneficiary does not wait for it any more stays, if it was not told yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from slacktide.config import KubeSettings
from slacktide.kube.bodies import encode_deletion, encode_eviction
from slacktide.kube.connection import ApiError, Connection, Unreachable
from slacktide.kube.counts import ASK_AGAIN_SECONDS, LONGEST_PAUSE_SECONDS, NOT_FOUND, SERVER_ERROR, TOO_MANY, Counts
from slacktide.kube.entries import Entry
from slacktide.kube.intake import Intake
from slacktide.kube.objects import POD, pod_reference
from slacktide.kube.recorder import Recorder
from slacktide.kube.reserving import Reservations
from slacktide.live import parts
from slacktide.live.parts import Decision

SEVERAL_BUDGETS = "more than one PodDisruptionBudget"


class Outcome(Protocol):
    """Who is told what comes of evictions."""

    def ended(self, uid: str) -> None:
        """A victim is no more."""

    def give_up(self, uid: str, reason: str, *, at_once: bool = False) -> None:
        """A decision for a pod cannot be carried out."""

    async def nominate(self, decision: Decision) -> None:
        """Write down for which node the pod waits."""


class Evictor:
    """Evicts the victims of decisions, one after another for each :meth:`run`; ``leading`` is asked before each."""

    def __init__(
        self,
        connection: Connection,
        settings: KubeSettings,
        intake: Intake,
        recorder: Recorder,
        leading: Callable[[], bool],
        places: Reservations,
        counts: Counts,
        outcome: Outcome,
    ) -> None:
        self.connection, self.settings, self.intake, self.recorder = connection, settings, intake, recorder
        self.leading, self.places, self.counts, self.outcome = leading, places, counts, outcome
        self._of_victim: dict[str, Decision] = {}
        self._waiting: asyncio.Queue[tuple[str, Decision]] = asyncio.Queue()

    def evict(self, uid: str, decision: Decision) -> None:
        """A victim is to go for a decision, as soon as it has its turn."""
        self._of_victim[uid] = decision
        self._waiting.put_nowait((uid, decision))

    def forget(self, uid: str) -> None:
        """A pod is no more."""
        self._of_victim.pop(uid, None)

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            uid, decision = await self._waiting.get()
            victim = self.intake.pods.get(uid)
            if victim is None:
                self.outcome.ended(uid)  # the watch may have told before it was chosen
            elif self.is_wanted(decision):
                await self.outcome.nominate(decision)
                await self._evict(victim, decision)
            elif self.leading():
                self._spare(victim, decision)

    def is_wanted(self, decision: Decision) -> bool:
        """Whether victims of a decision shall still go: it is the one that its pod waits for, and we lead."""
        nomination = self.places.nominations.get(decision.uid)
        return nomination is not None and nomination.decision is decision and self.leading()

    async def _evict(self, victim: Entry, decision: Decision) -> None:
        namespace, name = victim.place
        path = POD.path(namespace, name, "eviction")
        body = encode_eviction(namespace, name, victim.uid)
        beneficiary = self.intake.pods.get(decision.uid)
        unknown = False  # whether an answer is missing, so that it may be going because of us
        while self.is_wanted(decision) and victim.key:
            pause = ASK_AGAIN_SECONDS
            if victim.pod.metadata.deletion_timestamp is not None and not unknown:
                return  # somebody else made it go
            try:
                await self.connection.post(path, body, timeout=15.0, permit=lambda: self.is_wanted(decision))
            except ApiError as error:
                if error.status == NOT_FOUND:
                    if unknown:
                        self._has_evicted(victim, decision, beneficiary)
                    return  # the watch will tell
                overdrawn = (error.status == TOO_MANY and "disruption budget" in error.message) or (
                    error.status == SERVER_ERROR and SEVERAL_BUDGETS in error.message
                )
                if overdrawn and self.settings.disruption_budgets == "best-effort":
                    await self._delete(victim, decision, beneficiary)
                    return
                if overdrawn or error.status not in (TOO_MANY, SERVER_ERROR, 503, 504):
                    self._refused_to_go(victim, decision, error.message, overdrawn)
                    return
                pause = min(error.retry_after or pause, LONGEST_PAUSE_SECONDS)
                unknown |= error.status != TOO_MANY
            except Unreachable:
                unknown = True  # an eviction may be asked for twice
            else:
                self._has_evicted(victim, decision, beneficiary)
                return
            await asyncio.sleep(pause)
        if unknown and (not victim.key or victim.pod.metadata.deletion_timestamp is not None):
            self._has_evicted(victim, decision, beneficiary)
        elif self.leading():
            self._spare(victim, decision)

    async def _delete(self, victim: Entry, decision: Decision, beneficiary: Entry | None) -> None:
        """A victim that a budget forbids to evict goes all the same, where budgets are best effort."""
        body = encode_deletion(victim.uid)
        try:
            await self.connection.delete(POD.path(*victim.place), body, permit=lambda: self.is_wanted(decision))
        except (ApiError, Unreachable) as error:
            if not (isinstance(error, ApiError) and error.status == NOT_FOUND):
                self._refused_to_go(victim, decision, str(error), overdrawn=False)
        else:
            self._has_evicted(victim, decision, beneficiary)

    def _has_evicted(self, victim: Entry, decision: Decision, beneficiary: Entry | None) -> None:
        self.counts.evicted += 1
        mine = next(one.metric for one in decision.victims if one.uid == victim.uid)
        whom = "a pod that is gone" if beneficiary is None else "/".join(beneficiary.place)
        note = f"Preempted on {decision.host} for {whom}: slack {mine:.1f} s, that of the other {decision.metric:.1f} s"
        related = None if beneficiary is None else pod_reference(beneficiary.pod)
        self.recorder.record(pod_reference(victim.pod), "Preempted", note, action="Preempting", related=related)

    def _refused_to_go(self, victim: Entry, decision: Decision, reason: str, overdrawn: bool) -> None:
        """The API server does not evict a victim, as a rule for its budget: the beneficiary tries elsewhere."""
        self.counts.evictions_refused += 1
        engine = self.intake.engine
        self._spare(victim, decision)
        if engine is not None and overdrawn and victim.budget in engine.budgets:
            engine.budget(victim.budget, 0)
        if self.is_wanted(decision):
            self.outcome.give_up(decision.uid, f"{'/'.join(victim.place)} is not evicted: {reason}", at_once=True)

    def _spare(self, victim: Entry, decision: Decision) -> None:
        if self._of_victim.get(victim.uid, decision) is not decision:
            return  # it goes for somebody else by now
        self._of_victim.pop(victim.uid, None)
        if victim.pod.metadata.deletion_timestamp is not None:
            return  # it goes all the same
        for uid in self.places.stays(victim.uid):
            awaiting = self.places.nominations.get(uid)
            if awaiting is not None and awaiting.decision is not decision:
                self.outcome.give_up(uid, f"{'/'.join(victim.place)} stays after all", at_once=True)
        engine = self.intake.engine
        if engine is not None and victim.key and engine.incarnations[victim.uid].state == parts.LEAVING:
            self.counts.spared += 1
            engine.spared(victim.uid, self.intake.clock())
            self.intake.succession.stays(victim.key)
            self.intake.succeed(victim.key, victim.uid)
            self.intake.watcher.changed(victim.key)
