"""Decisions carried out: evict, wait until the victims are gone, bind; what comes of it goes back to the engine.

Every act asks first whether we still lead. An act whose outcome is not known (no
answer came) is looked up before anything else is done about that pod.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from slacktide.config import KubeSettings
from slacktide.kube import entries
from slacktide.kube.bodies import encode_binding, encode_pod_status
from slacktide.kube.claiming import Claiming
from slacktide.kube.connection import STRATEGIC_MERGE_PATCH, ApiError, Connection, Unreachable
from slacktide.kube.counts import (
    ASK_AGAIN_SECONDS,
    CONFLICT,
    LONGEST_PAUSE_SECONDS,
    NOT_FOUND,
    SERVER_ERROR,
    TOO_MANY,
    Counts,
)
from slacktide.kube.entries import Entry
from slacktide.kube.evicting import Evictor
from slacktide.kube.intake import Intake
from slacktide.kube.kinds import Malformed
from slacktide.kube.objects import POD, pod_reference
from slacktide.kube.recorder import Recorder
from slacktide.kube.reserving import Nomination, Reservations
from slacktide.live import parts
from slacktide.live.parts import Decision

LOG = logging.getLogger(__name__)

CLOSED = "node {} does not take it any more"


class Actor:
    """Carries decisions out, ``settings.bindings`` at a time. ``leading`` is asked before every act."""

    def __init__(
        self,
        connection: Connection,
        settings: KubeSettings,
        intake: Intake,
        recorder: Recorder,
        clock: Callable[[], float],
        leading: Callable[[], bool],
    ) -> None:
        self.connection, self.settings, self.intake, self.recorder = connection, settings, intake, recorder
        self.clock, self.leading = clock, leading
        self.counts = Counts()
        self.places = Reservations()
        self._bindings: asyncio.Queue[Decision] = asyncio.Queue()
        self._claiming = Claiming(connection, intake, clock, leading)
        self._evictor = Evictor(connection, settings, intake, recorder, leading, self.places, self.counts, outcome=self)
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for _ in range(self.settings.bindings):
                group.create_task(self._bind_all())
            for _ in range(max(1, self.settings.bindings // 2)):
                group.create_task(self._evictor.run())
            group.create_task(self._lose_patience())

    @property
    def nominations(self) -> dict[str, Nomination]:
        """Decisions that wait for somebody to leave, by the UID of the pod that is to come."""
        return self.places.nominations

    @property
    def under_way(self) -> int:
        """Decisions that wait for their turn or for victims."""
        return self._bindings.qsize() + len(self.nominations)

    def carry_out(self, decision: Decision) -> None:
        """Begin to carry out a decision that the engine has just made."""
        engine = self.intake.engine
        assert engine is not None  # noqa: S101  # it decided
        uids = {victim.uid for victim in decision.victims}
        for uid in uids:
            self.places.goes(uid, decision.host)
        outstanding = uids | self.places.in_the_way(engine, decision)
        if not outstanding:
            self._bindings.put_nowait(decision)
            return
        self.places.add(Nomination(decision, outstanding, self._patience(outstanding)))
        if not uids and self._group is not None:
            self._group.create_task(self.nominate(decision))
        for uid in uids:
            self._evictor.evict(uid, decision)

    def adopt(self, decision: Decision, leaving: set[str]) -> None:
        """Go on with a former leader's decision, whose victims are told to leave already, or are gone."""
        if not leaving:
            self._bindings.put_nowait(decision)
            return
        self.places.add(Nomination(decision, set(leaving), self._patience(leaving), shown=True))

    def _patience(self, leaving: set[str]) -> float:
        return (
            self.clock()
            + max(entries.grace(self.intake.pods.get(uid)) for uid in leaving)
            + self.settings.victim_patience
        )

    # -- outcomes --------------------------------------------------------------------------------------------------

    def ended(self, uid: str) -> None:
        """A pod is no more: a place that waited for it to go may be free now."""
        self.places.drop(uid)
        self._evictor.forget(uid)
        for decision in self.places.ended(uid):
            self._bindings.put_nowait(decision)

    def give_up(self, uid: str, reason: str, *, at_once: bool = False, kept: Decision | None = None) -> None:
        """A decision cannot be carried out: the pod waits again, after a pause unless ``at_once``.

        ``kept``: it was to be bound, perhaps to a place that had been kept for it.
        """
        nomination = self.places.drop(uid)
        entry, engine = self.intake.pods.get(uid), self.intake.engine
        if entry is None or engine is None or not entry.key:
            return
        one = engine.incarnations.get(uid)
        if one is None or one.state != parts.PLACED or one.bound:
            return
        self.counts.refused += 1
        engine.refused(uid, self.clock())
        entry.failures += 1
        LOG.info("pod %s/%s waits again: %s", *entry.place, reason)
        if nomination is not None:
            self._tell_given_up(entry, nomination.decision.host, nomination.shown, reason)
        elif kept is not None and kept.victims:
            self._tell_given_up(entry, kept.host, True, reason)
        if at_once and entry.failures < 3:
            entry.queue = entries.ACTIVE
            engine.wake(uid)
            self.intake.watcher.work()
            return
        pause = min(self.settings.backoff_longest, self.settings.backoff_first * 2.0 ** (entry.failures - 1))
        entry.queue = entries.BACKOFF
        asyncio.get_running_loop().call_later(pause, self._wake, uid)

    def _tell_given_up(self, entry: Entry, node: str, shown: bool, reason: str) -> None:
        note = f"its place on {node} is given up: {reason}"
        reference = pod_reference(entry.pod)
        self.recorder.record(reference, "FailedScheduling", note, kind="Warning", action="Nominating")
        if shown and self._group is not None:
            self._group.create_task(self._show(entry, ""))

    def _wake(self, uid: str) -> None:
        entry = self.intake.pods.get(uid)
        if entry is not None and entry.queue == entries.BACKOFF:
            entry.queue = entries.ACTIVE
            self.intake.consider(entry)

    # -- binding ---------------------------------------------------------------------------------------------------

    async def _bind_all(self) -> None:
        while True:
            decision = await self._bindings.get()
            entry = self.intake.pods.get(decision.uid)
            if entry is None or not self.leading():
                continue
            if not self._is_open(entry, decision):
                self.give_up(decision.uid, CLOSED.format(decision.host), at_once=True, kept=decision)
            elif entry.needs.provision:
                assert self._group is not None  # noqa: S101  # run() made it
                self._group.create_task(self._bind_with_volumes(entry, decision))
            else:
                await self._bind(entry, decision)

    def _is_open(self, entry: Entry, decision: Decision) -> bool:
        """Whether the node still takes the pod: it may have been cordoned, tainted or lost since the decision."""
        engine = self.intake.engine
        return engine is not None and bool(entry.key) and engine.is_open(entry.uid, decision.host)

    async def _bind_with_volumes(self, entry: Entry, decision: Decision) -> None:
        """Making volumes takes long, and holds up nobody else."""
        problem = await self._claiming.ready(entry, decision.host)
        if not problem and not self._is_open(entry, decision):
            problem = CLOSED.format(decision.host)
        if problem:
            self.give_up(decision.uid, problem, kept=decision)
        else:
            await self._bind(entry, decision)

    async def _bind(self, entry: Entry, decision: Decision) -> None:
        namespace, name = entry.place
        body = encode_binding(namespace, name, decision.uid, decision.host)
        try:
            await self.connection.post(POD.path(namespace, name, "binding"), body, permit=self.leading)
        except ApiError as error:
            if error.status == TOO_MANY:
                self._again(decision, error.retry_after)
            elif error.status == CONFLICT or error.status >= SERVER_ERROR:
                # It may be bound: by an earlier request, or by this one.
                await self._look_up(entry, decision, str(error))
            elif error.status != NOT_FOUND:  # of one that is gone the watch will tell
                self.give_up(decision.uid, str(error), kept=decision)
            return
        except Unreachable as error:
            await self._look_up(entry, decision, str(error))
            return
        self._has_bound(entry, decision)

    def _again(self, decision: Decision, after: float | None) -> None:
        """The API server had no time for a binding: it is sent once more, after a pause that holds up nobody else."""
        self.counts.retried += 1
        pause = min(after or ASK_AGAIN_SECONDS, LONGEST_PAUSE_SECONDS)
        asyncio.get_running_loop().call_later(pause, self._bindings.put_nowait, decision)

    async def _look_up(self, entry: Entry, decision: Decision, problem: str) -> None:
        """No answer that tells came to a binding: ask until it is known whether it was carried out."""
        namespace, name = entry.place
        pause = 0.0
        while self.leading() and entry.uid in self.intake.pods:
            await asyncio.sleep(pause)
            pause = ASK_AGAIN_SECONDS
            try:
                found = POD.decode(await self.connection.get(POD.path(namespace, name)))
            except ApiError as error:
                if error.status == NOT_FOUND:
                    return
                continue
            except Unreachable:
                continue
            if isinstance(found, Malformed) or found.metadata.uid != decision.uid:
                return
            if found.spec.node_name == decision.host:
                self._has_bound(entry, decision)
            elif found.spec.node_name:
                return  # the watch will tell
            else:
                self.give_up(decision.uid, problem, at_once=True, kept=decision)
            return

    def _has_bound(self, entry: Entry, decision: Decision) -> None:
        engine = self.intake.engine
        self.counts.bound += 1
        entry.failures = 0
        entry.queue = entries.NOWHERE
        if engine is not None and entry.key:
            one = engine.incarnations.get(decision.uid)
            if one is not None and one.state == parts.PLACED and not one.bound:
                engine.bound(decision.uid, self.clock())
        namespace, name = entry.place
        note = f"Successfully assigned {namespace}/{name} to {decision.host}"
        self.recorder.record(pod_reference(entry.pod), "Scheduled", note, action="Binding")

    # -- places that wait ------------------------------------------------------------------------------------------

    async def nominate(self, decision: Decision) -> None:
        """Write down for which node the pod waits, for its owner to see."""
        nomination, entry = self.nominations.get(decision.uid), self.intake.pods.get(decision.uid)
        if nomination is not None and entry is not None and not nomination.shown:
            nomination.shown = True
            nomination.shown = await self._show(entry, decision.host)

    async def _show(self, entry: Entry, node: str) -> bool:
        """Write a pod's nomination; none is taken away where there is another by then. Whether it is written."""
        uid, body = entry.uid, encode_pod_status(entry.uid, nominated_node=node)
        try:
            path = POD.path(*entry.place, "status")
            permit = self.leading if node else lambda: self.leading() and uid not in self.nominations
            await self.connection.patch(path, body, STRATEGIC_MERGE_PATCH, permit=permit)
        except (ApiError, Unreachable) as error:
            LOG.debug("nomination of %s/%s: %s", *entry.place, error)
            return False
        return True

    async def _lose_patience(self) -> None:
        """Give up places whose victims do not go."""
        while True:
            await asyncio.sleep(1.0)
            now = self.clock()
            for uid, nomination in list(self.nominations.items()):
                if now > nomination.patient_until:
                    self.counts.given_up += 1
                    late = [self.intake.pods.get(other) for other in nomination.outstanding]
                    names = ", ".join(sorted("/".join(one.place) for one in late if one is not None))
                    self.give_up(uid, f"{names} did not go in time")
                    self._not_going(nomination.outstanding)

    def _not_going(self, uids: set[str]) -> None:
        """Who was told to go and does not takes its room until it is gone, and is nobody's victim again."""
        engine = self.intake.engine
        for uid in uids:
            self.places.stays(uid)
            one = None if engine is None else engine.incarnations.get(uid)
            if engine is not None and one is not None and one.state == parts.LEAVING:
                engine.spared(uid, self.clock())
                engine.doomed(uid)
                self.intake.succeed(one.key, uid)
                self.intake.watcher.changed(one.key)
