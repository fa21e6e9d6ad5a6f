"""Controllers as the engine's requests: their classes, how many pods they want, their ledgers, and what remains."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.checkpoint import NewerLedger, moved
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.promise import Promise, promise_in
from slacktide.engine.ledger.rest import at_rest
from slacktide.engine.ledger.restore import restore
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.errors import StateError
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.starts import Starts
from slacktide.kube.feed.succession import Succession
from slacktide.kube.indexes import take_out
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.objects import Availability
from slacktide.kube.translate.owners import Target, is_followed
from slacktide.kube.translate.service_classes import ClassIsGone, Promised
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model import APPROACHES, INDEPENDENT
from slacktide.model.service_class import class_name

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Memory:
    """A ledger at rest since ``at``, seconds since 1970."""

    target: Target
    rest: Mapping[str, Any]
    at: float


class Memories:
    """By namespace and name of the ledger's object, which only one workload at a time has; the oldest first."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Memory] = {}

    def keep(self, target: Target, rest: Mapping[str, Any], at: float) -> None:
        """A workload was deleted."""
        self._known.pop((target.namespace, target.ledger), None)
        self._known[target.namespace, target.ledger] = Memory(target, rest, at)

    def take(self, target: Target, at: float) -> dict[str, Any] | None:
        """What one of the same name goes on from, as of ``at``; it is forgotten here."""
        known = self._known.get((target.namespace, target.ledger))
        if known is None or known.target.uid == target.uid or not _is_same(known.target, target):
            return None
        del self._known[target.namespace, target.ledger]
        return moved(known.rest, at)

    def over(self, now: float, longest: float, most: int) -> list[Target]:
        """Those that are kept no more, as they are older than ``longest`` seconds, or there are more than ``most`` of a
        namespace; they are forgotten here."""
        theirs: dict[str, list[Memory]] = {}
        for one in self._known.values():
            theirs.setdefault(one.target.namespace, []).append(one)
        gone = []
        for found in theirs.values():
            found.sort(key=lambda one: one.at)
            beyond = len(found) - most
            gone += [one.target for i, one in enumerate(found) if i < beyond or one.at + longest <= now]
        for target in gone:
            del self._known[target.namespace, target.ledger]
        return gone


def _is_same(one: Target, other: Target) -> bool:
    return (one.group, one.kind, one.name) == (other.group, other.kind, other.name)


BATCH = ("Job", "CronJob")
"""Kinds whose instances complete."""


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
        self._sharing: dict[tuple[str, str], set[str]] = {}
        """Their keys by namespace and name of the ledger, which one that was deleted and still has pods shares with one
        of the same name."""
        self.deleted: set[str] = set()
        """Keys of controllers that are no more but may have pods yet."""
        self.ledgers: dict[str, Availability] = {}
        """Ledgers of a former leader that nobody went on from yet, by the UID of their controllers."""
        self.memories = Memories()
        self.starts = Starts(engine.config)
        self._youngest: dict[str, tuple[float, str]] = {}
        """Of controllers whose templates nobody reads, by key: the creation and UID of the youngest pod so far."""
        self.left_alone: set[str] = set()
        """Keys of controllers whose ledgers a later release wrote: accounted for in memory, and not written."""
        self._lost: dict[str, str] = {}
        """Of controllers that keep a promise which they could not get anew, by key: why."""
        self.restores_all = False
        """All pods are told at once to a new engine, which goes on from each ledger with the pods that it is about."""

    def ensure(self, target: Target, promised: Promised, batch: bool, pod: PodRecord | None = None) -> None:
        """Make sure that the engine knows a controller and its class, as its template says, or this ``pod``.

        Where a custom resource makes the pods, whose template nobody reads, it is the class of the youngest of them.
        """
        engine, key = self._engine, target.key
        known = engine.controllers.get(key)
        is_old = pod is not None and not is_followed(target) and self._is_old(key, pod)
        if known is not None and known.service.name != promised.service.name and is_old:
            return
        ledger = self._ledger(target) if known is None else None
        if known is None or (known.service, known.everything) != (promised.service, promised.everything):
            approach = _approach(ledger, INDEPENDENT if target.is_pod else promised.approach)  # one is like another
            everything = promised.everything
            engine.controller(key, promised.service, approach, batch, everything, self._clock())
            if known is not None:
                self._listener.changed(key)
        if (None if known is None else known.limits) != promised.limits:
            engine.limits(key, promised.limits, self._clock())
        if known is None:
            self.targets[key] = target
            self._sharing.setdefault((target.namespace, target.ledger), set()).add(key)
            self._listener.changed(key)
            watched = self._mirror.owners.watched.get(target.uid)
            if target.is_pod:
                engine.desired(key, 1, self._clock())
            elif watched is not None and watched.desired >= 0:
                engine.desired(key, watched.desired, self._clock())
            if watched is not None and watched.suspended:
                engine.suspend(key, watched.suspended, self._clock())
        if known is None and not self.restores_all:
            self.restore(target, [])

    def _ledger(self, target: Target) -> Availability | None:
        """What is written of a workload, and has not been gone on from. Its own namespace's: pods name the UIDs of
        owners that nobody reads, and may name another's."""
        found = self.ledgers.get(target.uid)
        return found if found is not None and found.metadata.namespace == target.namespace else None

    def _is_old(self, key: str, pod: PodRecord) -> bool:
        """Whether a younger pod has said what class a controller is of."""
        its = (pod.pod.metadata.creation_timestamp or pod.seen, pod.uid)
        youngest = self._youngest[key] = max(self._youngest.get(key, its), its)
        return its < youngest

    def promised(self, target: Target, said: str) -> Promised:
        """What a controller without pods is promised: by its template, else by the class that its ledger named.

        Raises :class:`Unschedulable` where that cannot be told.
        """
        watched, classes = self._mirror.owners.watched.get(target.uid), self._mirror.classes
        batch = target.kind in BATCH
        try:
            if watched is None or watched.template is None:
                found = classes.remembered(said, batch)
            else:
                found = classes.of_template(watched.template, target.namespace, batch)
        except ClassIsGone as problem:
            return self.kept(target, problem)
        return self.starts.held_back(target.key, found)

    def class_changed(self, key: str) -> None:
        """A controller's class is another, or for others: tell it once where it only keeps its promise by now."""
        service, target = self._engine.controllers[key].service, self.targets[key]
        lost = self._mirror.classes.lost(service, target.namespace)
        before = self._lost.pop(key, "")
        if lost:
            self._lost[key] = lost
        if lost and lost != before:
            self._listener.only_keeps(target, lost)

    def kept(self, target: Target | None, problem: ClassIsGone) -> Promised:
        """What a controller was promised by a class that is no more: that holds on.

        One that the engine does not know yet has it in its ledger. Raises the ``problem`` where it was promised nothing
        by this class.
        """
        known = None if target is None else self._engine.controllers.get(target.key)
        ledger = None if target is None or known is not None else self._ledger(target)
        if known is not None:
            found: Promise | None = Promise(known.service, known.limits, known.everything)
        else:
            found = None if ledger is None else promise_in(ledger.status.accumulators)
        name = "" if found is None else class_name(found.service.name)
        if found is None or problem.name not in ("", name):
            raise problem
        if not problem.name and not self._mirror.classes.gone(found.service):
            raise problem  # its class is there, but not for who names none
        approach = _approach(ledger, INDEPENDENT) if known is None else known.approach
        return Promised(found.service, approach, name, found.limits, found.everything)

    def follow_templates(self, targets: Iterable[Target]) -> None:
        """Templates or classes changed: controllers without pods follow; where there are pods, they say it."""
        engine, watched = self._engine, self._mirror.owners.watched
        for target in targets:
            key, one = target.key, engine.controllers.get(target.key)
            if one is None or len(one.vacant) != len(one.rows) or key in self.deleted or target.uid not in watched:
                continue
            with contextlib.suppress(Unschedulable):
                self.ensure(target, self.promised(target, one.service.name), one.batch)

    def restore(self, target: Target, pods: list[dict[str, Any]]) -> None:
        """Go on from a controller's ledger, where there is one that can be read, and from what its pods say."""
        ledger, now = self._ledger(target), self._clock()
        if ledger is not None:
            del self.ledgers[target.uid]
        checkpoint = dict(ledger.status.accumulators) if ledger is not None and ledger.status.accumulators else None
        if checkpoint is None:
            checkpoint = self._remembered(target, min([now, *(one["created"] for one in pods)]))
        if checkpoint is None and not pods:
            return
        self.starts.go_on(target.key, checkpoint or {})
        try:
            restore(self._engine, target.key, checkpoint, pods, now)
        except NewerLedger as problem:
            self.left_alone.add(target.key)
            LOG.warning(
                "ledger %s/%s is left alone, as a later release wrote it (%s); its workload is accounted for in memory "
                "only, until that release runs again", target.namespace, target.ledger, problem
            )  # fmt: skip
            restore(self._engine, target.key, None, pods, now)
        except StateError as problem:
            LOG.warning(
                "ledger %s/%s cannot be read and starts from zero: %s", target.namespace, target.ledger, problem
            )
            restore(self._engine, target.key, None, pods, now)
        self._listener.changed(target.key)

    def _remembered(self, target: Target, at: float) -> dict[str, Any] | None:
        """The ledger of one that was deleted and had the same name, where it was measured in the same way."""
        found = self.memories.take(target, at)
        approach = APPROACHES[self._engine.controllers[target.key].approach]
        return found if found is not None and found.get("approach") == approach else None

    def books(self, key: str, now: float) -> dict[str, Any]:
        """What a controller's ledger says for a new leader."""
        return export(self._engine, key, now) | self.starts.said(key)

    def bury(self, target: Target) -> None:
        """A workload is deleted: its ledger is kept as it is now, for one of the same name."""
        engine, now, key = self._engine, self._clock(), target.key
        if key not in engine.controllers or key in self.deleted or not is_followed(target):
            return
        try:
            books, status = at_rest(self.books(key, now)), slo_status(engine, key, now)
        except StateError as problem:  # it is no more all the same
            LOG.warning("ledger %s/%s of a deleted workload is not kept: %s", target.namespace, target.ledger, problem)
            return
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
        if target.is_pod and key not in self.deleted:
            engine.desired(key, 0, self._clock())
        elif key in self.deleted:
            self.deleted.discard(key)
            self._forget(key)
            self.left_alone.discard(key)
            self._youngest.pop(key, None)
            self._lost.pop(key, None)
            self.starts.forget(key)
            engine.controller_gone(key, self._clock())
            self._succession.forget(key)
            self._listener.finished(key)

    def _forget(self, key: str) -> None:
        target = self.targets.pop(key, None)
        if target is not None:
            take_out(self._sharing, (target.namespace, target.ledger), key)

    def is_anothers(self, deleted: Target) -> bool:
        """Whether a workload that lives has the ledger of one that was deleted."""
        return bool(self._sharing.get((deleted.namespace, deleted.ledger), set()) - self.deleted)

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
