"""Pods whose resize does not fit where they run. They keep their room; later they move, if their slack allows it.

Which resizes wait, and since when, is :mod:`slacktide.kube.mirror.pod_record`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from slacktide.engine.core.relocation import is_whole, obstacle
from slacktide.kube.act.counts import Counts
from slacktide.kube.client.http import NOT_FOUND, TOO_MANY, ApiError, Unreachable
from slacktide.kube.client.log_fields import about
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.mirror.pod_record import PendingResize, grace
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.resources.objects import POD, Pod, encode_eviction, pod_reference
from slacktide.kube.translate.nodes import pending_resize, wanted
from slacktide.kube.translate.owners import BOUND_TO_NODES, controlling
from slacktide.kube.translate.unschedulable import Unschedulable

LOG = logging.getLogger(__name__)

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
