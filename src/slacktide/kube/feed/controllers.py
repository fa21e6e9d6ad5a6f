"""Controllers as the engine's requests: their classes, how many pods they want, their ledgers, their ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.checkpoint import NewerLedger, export
from slacktide.engine.ledger.rest import at_rest
from slacktide.engine.ledger.restore import restore
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.errors import StateError
from slacktide.kube.feed.listener import FeedListener
from slacktide.kube.feed.memories import Memories
from slacktide.kube.feed.succession import Succession
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import Availability
from slacktide.kube.translate.owners import Target, is_followed
from slacktide.kube.translate.service_classes import Promised
from slacktide.model import APPROACHES

LOG = logging.getLogger(__name__)


class Controllers:
    """Tells an engine of controllers."""

    def __init__(
        self,
        mirror: ClusterMirror,
        engine: Engine,
        listener: FeedListener,
        succession: Succession,
        clock: Callable[[], float],
    ) -> None:
        self._mirror, self._engine, self._listener = mirror, engine, listener
        self._succession, self._clock = succession, clock
        self.targets: dict[str, Target] = {}
        """Controllers that the engine knows, by key."""
        self.deleted: set[str] = set()
        """Keys of controllers that are no more but may have pods yet."""
        self.ledgers: dict[str, Availability] = {}
        """Ledgers of a former leader that nobody went on from yet, by the UID of their controllers."""
        self.memories = Memories()
        self.left_alone: set[str] = set()
        """Keys of controllers whose ledgers a later release wrote: accounted for in memory, and not written."""
        self.restores_all = False
        """All pods are told at once to a new engine, which goes on from each ledger with the pods that it is about."""

    def ensure(self, target: Target, promised: Promised, batch: bool) -> None:
        """Make sure that the engine knows a controller and its class.

        That is its template's, where this is known, else that of its youngest pod.
        """
        engine, key = self._engine, target.key
        known = engine.controllers.get(key)
        ledger = self.ledgers.get(target.uid) if known is None else None
        if known is None or (known.service, known.everything) != (promised.service, promised.everything):
            approach, everything = _approach(ledger, promised.approach), promised.everything
            engine.controller(key, promised.service, approach, batch, everything, self._clock())
        if (None if known is None else known.limits) != promised.limits:
            engine.limits(key, promised.limits, self._clock())
        if known is None:
            self.targets[key] = target
            self._listener.changed(key)
            watched = self._mirror.owners.watched.get(target.uid)
            if target.kind == "Pod":
                engine.desired(key, 1, self._clock())
            elif watched is not None and watched.desired >= 0:
                engine.desired(key, watched.desired, self._clock())
            if watched is not None and watched.suspended:
                engine.suspend(key, watched.suspended, self._clock())
        if known is None and not self.restores_all:
            self.restore(target, [])

    def restore(self, target: Target, pods: list[dict[str, Any]]) -> None:
        """Go on from a controller's ledger, where there is one that can be read, and from what its pods say."""
        ledger, now = self.ledgers.pop(target.uid, None), self._clock()
        checkpoint = dict(ledger.status.accumulators) if ledger is not None and ledger.status.accumulators else None
        if checkpoint is None:
            checkpoint = self._remembered(target, min([now, *(one["created"] for one in pods)]))
        if checkpoint is None and not pods:
            return
        try:
            restore(self._engine, target.key, checkpoint, pods, now)
        except NewerLedger as problem:
            self.left_alone.add(target.key)
            LOG.warning(
                "ledger %s/%s is left alone, and its workload accounted for anew, in memory only: %s; run that release "
                "again", target.namespace, target.ledger, problem
            )  # fmt: skip
            restore(self._engine, target.key, None, pods, now)
        except StateError as problem:
            LOG.warning("ledger %s/%s cannot be read and begins anew: %s", target.namespace, target.ledger, problem)
            restore(self._engine, target.key, None, pods, now)
        self._listener.changed(target.key)

    def _remembered(self, target: Target, at: float) -> dict[str, Any] | None:
        """The ledger of one that was deleted and had the same name, where it was measured in the same way."""
        found = self.memories.take(target, at)
        approach = APPROACHES[self._engine.controllers[target.key].approach]
        return found if found is not None and found.get("approach") == approach else None

    def bury(self, target: Target) -> None:
        """A workload is deleted: its ledger is kept as it is now, for one of the same name."""
        engine, now, key = self._engine, self._clock(), target.key
        if key not in engine.controllers or key in self.deleted or not is_followed(target):
            return
        books, status = at_rest(export(engine, key, now)), slo_status(engine, key, now)
        self.memories.keep(target, books, now)
        self._listener.buried(target, books, status)

    def remembered_no_more(self, now: float) -> list[Target]:
        """Deleted workloads whose ledgers are kept no longer; they are forgotten here.

        A promise over a window needs its ledger for as long as that.
        """
        kube = self._engine.config.kube
        longest = max(kube.ledger_memory, self._mirror.classes.longest_window)
        return self.memories.over(now, longest, kube.ledger_memories)

    def want(self, target: Target, desired: int, finished: bool) -> None:
        """How many instances a controller wants; ``finished``: it makes no more."""
        engine = self._engine
        if target.key not in engine.controllers:
            return
        if engine.controllers[target.key].desired != desired:
            engine.desired(target.key, desired, self._clock())
            self._listener.changed(target.key)
        if finished and engine.controllers[target.key].vacant:
            engine.retire(target.key, self._clock())
            self._listener.changed(target.key)

    def suspend(self, target: Target, count: int) -> None:
        """So many instances of a controller are suspended (0: none)."""
        known = self._engine.controllers.get(target.key)
        if known is not None and known.suspended[0] != count:
            self._engine.suspend(target.key, count, self._clock())
            self._listener.changed(target.key)

    def pod_left(self, target: Target) -> None:
        """A pod of a controller is over; so is the controller, where it was deleted and has no more of them.

        A bare pod that ran to its end keeps its ledger, of an instance that is no more, as long as somebody keeps it.
        """
        engine, key = self._engine, target.key
        controller = engine.controllers.get(key)
        if controller is None or len(controller.vacant) != len(controller.rows):
            return
        if target.kind == "Pod" and key not in self.deleted:
            engine.desired(key, 0, self._clock())
        elif key in self.deleted:
            self.deleted.discard(key)
            self.targets.pop(key, None)
            self.left_alone.discard(key)
            engine.controller_gone(key, self._clock())
            self._succession.forget(key)
            self._listener.finished(key)

    def gone(self, target: Target) -> None:
        """A controller object is gone; its ledger goes with its last pod."""
        key = target.key
        self.bury(target)
        if key in self._engine.controllers:
            self.deleted.add(key)
            self._engine.desired(key, 0, self._clock())
            self.pod_left(target)


def _approach(ledger: Availability | None, promised: int) -> int:
    """A controller is measured as it was at first, whatever its pods and its class say by now."""
    said = None if ledger is None else ledger.status.accumulators.get("approach")
    return APPROACHES.index(said) if isinstance(said, str) and said in APPROACHES else promised
