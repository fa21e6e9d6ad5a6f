"""Pods whose resize does not fit where they run: they keep their room, and move if that lasts and they can afford it.

The kubelet resizes pods in place and says of what it cannot do that it is Deferred (until there is room) or Infeasible
(condition PodResizePending). How much room counts is :mod:`slacktide.kube.demand`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slacktide.config import KubeSettings
from slacktide.kube.bodies import encode_eviction
from slacktide.kube.connection import ApiError, Connection, Unreachable
from slacktide.kube.counts import NOT_FOUND, TOO_MANY, Counts
from slacktide.kube.demand import pending_resize, wanted
from slacktide.kube.entries import Entry, grace
from slacktide.kube.objects import POD, Pod, pod_reference
from slacktide.kube.owners import controlling
from slacktide.kube.recorder import Recorder
from slacktide.kube.refusals import Unschedulable
from slacktide.live.moving import is_whole, obstacle

if TYPE_CHECKING:
    from slacktide.kube.intake import Intake
    from slacktide.live.engine import Engine

LOG = logging.getLogger(__name__)

ON_RESIZE = "slacktide.io/on-resize"
MOVE, STAY = "move", "stay"
BOUND_TO_NODES = ("DaemonSet", "Node")
"""Owners whose pods come back to the node they left."""
TICK_SECONDS = 1.0
ASK_AGAIN_SECONDS = 10.0
"""After an eviction that was refused."""
NOBODY_MAKES_IT_ANEW = f"nobody would create it anew; annotation {ON_RESIZE}: {MOVE} says that it may go all the same"


@dataclass(slots=True)
class Pending:
    """A resize that waits: what it is, since when we know, and what its owner was told."""

    what: object
    since: float
    told: str = ""


class Resizes:
    """Pods of ours whose resizes wait, kept by events."""

    def __init__(self) -> None:
        self._pending: dict[str, Pending] = {}

    def see(self, entry: Entry, now: float) -> None:
        """A pod as it is now."""
        pod = entry.pod
        if not entry.ours or not pending_resize(pod):
            self._pending.pop(entry.uid, None)
            return
        known, what = self._pending.get(entry.uid), (pod.spec.containers, pod.spec.init_containers, pod.spec.resources)
        if known is None or known.what != what:
            self._pending[entry.uid] = Pending(what, now)

    def drop(self, uid: str) -> None:
        """A pod is no more."""
        self._pending.pop(uid, None)

    def overdue(self, until: float) -> Iterator[tuple[str, Pending]]:
        """UIDs of pods whose resizes have waited since this instant at least, those that waited longest first."""
        late = [(uid, one) for uid, one in self._pending.items() if one.since <= until]
        return iter(sorted(late, key=lambda found: (found[1].since, found[0])))


def stays(pod: Pod) -> str:
    """Why a pod is not moved for a resize, whatever the cluster looks like; empty where it may be."""
    said = pod.metadata.annotations.get(ON_RESIZE, "")
    owner = controlling(pod.metadata)
    if said == STAY:
        return f"annotation {ON_RESIZE}: {STAY}"
    if said not in ("", MOVE):
        return f"annotation {ON_RESIZE}: found {said!r}, expected {MOVE} or {STAY}"
    if owner is not None and owner.kind in BOUND_TO_NODES:
        return f"a {owner.kind} would create it anew on the same node"
    return NOBODY_MAKES_IT_ANEW if owner is None and said != MOVE else ""


class Mover:
    """Evicts pods whose resizes have waited for ``kube.resize_patience``, one at a time; ``leading`` is asked first."""

    def __init__(
        self,
        connection: Connection,
        settings: KubeSettings,
        intake: Intake,
        recorder: Recorder,
        counts: Counts,
        leading: Callable[[], bool],
    ) -> None:
        self._connection, self._settings, self._intake = connection, settings, intake
        self._recorder, self._counts, self._leading = recorder, counts, leading
        self._moving: tuple[str, str, float] | None = None  # a pod's UID, its controller, and until when we wait
        self._not_before: dict[str, float] = {}
        self._unknown: set[str] = set()  # evictions to which no answer came

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._intake.engine is not None and self._leading() and self._settings.resize_patience is not None:
                await self.look(self._intake.clock(), self._settings.resize_patience)

    async def look(self, now: float, patience: float) -> None:
        """Move the first pod that may be, if no other is on its way; tell of the others why they stay."""
        engine = self._intake.engine
        pods = self._intake.pods
        self._not_before = {uid: after for uid, after in self._not_before.items() if uid in pods}
        self._unknown &= pods.keys()
        if engine is None or self._is_busy(now):
            return
        for uid, pending in self._intake.resizes.overdue(now - patience):
            entry = self._intake.pods.get(uid)
            if entry is None or not entry.key or now < self._not_before.get(uid, now):
                continue
            if entry.pod.metadata.deletion_timestamp is not None:
                if uid in self._unknown:
                    self._has_moved(entry, now)
                continue
            reason = self._why_not(engine, entry, now)
            if not reason:
                await self._evict(entry, now)
                return
            self._tell(entry, pending, reason)

    def _why_not(self, engine: Engine, entry: Entry, now: float) -> str:
        # Its volumes may have been made, or bound to its node, since it was placed.
        volumes = self._intake.world.storage.needs(entry.pod)
        try:
            found = stays(entry.pod) or volumes.waits
            return found or obstacle(engine, entry.uid, wanted(entry.pod), now, volumes.term)
        except Unschedulable as problem:
            return problem.reason

    def _is_busy(self, now: float) -> bool:
        """Whether a pod was moved whose replacement does not run yet, and may still."""
        engine = self._intake.engine
        if self._moving is None or engine is None:
            return False
        uid, key, until = self._moving
        if now < until and (uid in self._intake.pods or not is_whole(engine, key)):
            return True
        self._moving = None
        return False

    def _tell(self, entry: Entry, pending: Pending, reason: str) -> None:
        """Say once of each resize why its pod stays; numbers in the reason do not make it another one."""
        sort = "".join(letter for letter in reason if not letter.isdigit())
        if sort == pending.told:
            return
        pending.told = sort
        note = f"its resize is {pending_resize(entry.pod)}, and the pod stays for now: {reason}"
        self._recorder.record(pod_reference(entry.pod), "ResizeWaits", note, kind="Warning", action="Resizing")

    async def _evict(self, entry: Entry, now: float) -> None:
        namespace, name = entry.place
        path, body = POD.path(namespace, name, "eviction"), encode_eviction(namespace, name, entry.uid)
        self._not_before[entry.uid] = now + ASK_AGAIN_SECONDS
        try:
            await self._connection.post(path, body, timeout=15.0, permit=self._leading)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return  # the watch will tell
            self._counts.evictions_refused += 1
            LOG.info("pod %s/%s is not moved for its resize: %s", namespace, name, error)
            engine = self._intake.engine
            overdrawn = error.status == TOO_MANY and "disruption budget" in error.message
            # Where budgets are best effort, decisions do not look at them: this one is a matter of moving only.
            overdrawn = overdrawn and self._settings.disruption_budgets != "best-effort"
            if overdrawn and engine is not None and entry.budget in engine.budgets:
                engine.budget(entry.budget, 0)
        except Unreachable:
            self._unknown.add(entry.uid)
        else:
            self._has_moved(entry, now)

    def _has_moved(self, entry: Entry, now: float) -> None:
        """A pod is told to go for its resize; whoever replaces it goes on with its ledger when it is gone."""
        self._unknown.discard(entry.uid)
        self._counts.moved += 1
        until = now + grace(entry) + self._settings.victim_patience
        self._moving = (entry.uid, entry.key, until)
        self._intake.resizes.drop(entry.uid)
        if entry.uid in self._intake.pods and entry.key:
            self._intake.succession.told(entry.key, entry.uid)
            self._intake.watcher.changed(entry.key)
        note = f"Evicted from {entry.pod.spec.node_name}: its resize is {pending_resize(entry.pod)} there, and another "
        note += "node has room for it"
        self._recorder.record(pod_reference(entry.pod), "ResizeMoved", note, action="Resizing")
