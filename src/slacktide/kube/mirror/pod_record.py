"""Pods as the API server last described them, how they take less memory, whose resize waits, and who went while nobody
led.

The kubelet resizes pods in place and says of what it cannot do that it is Deferred (until there is room) or Infeasible
(condition PodResizePending). How much room counts is :mod:`slacktide.kube.translate.nodes`'s.

A pod that comes and goes while nobody leads is in no ledger, and no list shows it any more. Whose doing its end is
shows when it is told to go: later its node is open again, or its maintenance window is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from sys import intern

import msgspec
from msgspec.structs import force_setattr

from slacktide.kube.resources.objects import Malformed, Metadata, Pod, PodSpec, Volume, condition_of, happened, seen_at
from slacktide.kube.translate.causes import is_taken_for_lost
from slacktide.kube.translate.nodes import INFEASIBLE, pending_resize
from slacktide.kube.translate.owners import bounded
from slacktide.kube.translate.pod_terms import READ
from slacktide.model.causes import WORKLOAD

FINAL = ("Succeeded", "Failed")
"""Phases in which a pod takes no room any more, however long it stays listed."""
DEFAULT_GRACE_SECONDS = 30.0
LATE_SECONDS = 1.5
"""A pod that waits for so long after it was seen was held up by something else than our watch."""


@dataclass(frozen=True, slots=True)
class End:
    """Whose doing it is that a pod ends (a number of :data:`slacktide.model.causes.CAUSES`), and, where that is an
    operator's, the end of the maintenance window, seconds since 1970."""

    cause: int
    until: float = 0.0


@dataclass(slots=True, eq=False)
class PodRecord:
    """One pod. ``ours``: its ``schedulerName`` is ours. ``seen``: when we first saw it, seconds since 1970."""

    pod: Pod
    ours: bool
    seen: float = 0.0
    alterations: int = 0
    """How often a version differed from the one before in what a running pod's spec follows from."""
    malformed: str = ""
    """What is wrong with its latest version; ``pod`` is then an earlier one, or says who it is and nothing else."""
    bound_at: float = 0.0
    """When we saw it bound, seconds since 1970; 0: we did not."""
    ready_at: float = 0.0
    """When we saw it become ready, last."""
    unready_at: float = 0.0
    """When we saw that it was ready no more, last."""
    stopped_at: float = 0.0
    """The same of the time before it became ready last: from then until ``ready_at`` it was not."""
    lost_at: float = 0.0
    """When we saw that it was ready no more because its node was taken for lost, last."""
    ended_at: float = 0.0
    """When we saw that it had ended; its containers say that by the second."""
    end: End | None = None
    """Whose doing it is that it ends, as it looked when a replica that stood by saw it told to go."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def namespaced_name(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.pod.metadata.namespace, self.pod.metadata.name

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.pod.status.phase in FINAL

    @property
    def created_at(self) -> float:
        """When it was created, seconds since 1970."""
        return seen_at(self.pod.metadata.creation_timestamp, self.seen)

    def update(self, pod: Pod, now: float) -> None:
        """Takes the pod's latest version, seen ``now``."""
        before, self.pod, self.malformed = self.pod, pod, ""
        if self.ours:  # others' are told anew with every version
            self.alterations += _shape(before) != _shape(pod)
            self._follow(before, now)

    def _follow(self, before: Pod, now: float) -> None:
        """Notes when what changed since ``before`` did: a new leader knows then of what came and went meanwhile."""
        if self.is_final and before.status.phase not in FINAL:
            self.ended_at = seen_at(finished_at(self.pod), now)
        if self.pod.spec.node_name and not before.spec.node_name:
            self.bound_at = seen_at(condition_of(self.pod, "PodScheduled")[1], now)
        was_ready, (is_ready, since) = condition_of(before, "Ready")[0], condition_of(self.pod, "Ready")
        if is_ready and not was_ready:
            self.ready_at, self.stopped_at = seen_at(since, now), self.unready_at
        elif was_ready and not is_ready:
            self.unready_at = seen_at(since, now)
            if is_taken_for_lost(self.pod):
                self.lost_at = self.unready_at

    def waits_since(self, now: float, away: float) -> float:
        """When it began to wait, where it enters the queue now: around its creation if only our watch came late.

        ``away``: seconds that the watch of pods was away, while it catches up.
        """
        late_by_others = now - self.seen >= LATE_SECONDS
        return now if late_by_others else happened(self.pod.metadata.creation_timestamp, now, away)


def finished_at(pod: Pod) -> float | None:
    """When the last of a pod's containers finished, seconds since 1970; None where none says so."""
    runs = [one.state.terminated for one in pod.status.container_statuses if one.state.terminated]
    return max((one.finished_at for one in runs if one.finished_at is not None), default=None)


def grace(pod: Pod | None) -> float:
    """Seconds that a pod may take to end, as far as it is known and says so."""
    seconds = None if pod is None else pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE_SECONDS if seconds is None else float(seconds)


def unread(problem: Malformed, now: float) -> PodRecord:
    """A pod of ours that cannot be read: who it is, and nothing else."""
    metadata = Metadata(problem.name, problem.namespace, problem.uid, problem.resource_version)
    return PodRecord(Pod(metadata, PodSpec(scheduler_name=problem.scheduler)), True, seen=now)


def _shape(pod: Pod) -> tuple[object, ...]:
    """What of a running pod can change and matters to others: labels, leaving, what it takes."""
    spec, status = pod.spec, pod.status
    resized: list[object] = [
        (one.name, one.resources, one.allocated_resources)
        for one in (*status.container_statuses, *status.init_container_statuses)
        if one.resources is not None
    ]
    resized += [status.resources, status.allocated_resources, pending_resize(pod) == INFEASIBLE]
    leaving = pod.metadata.deletion_timestamp is not None
    return pod.metadata.labels, leaving, spec.containers, spec.init_containers, spec.resources, resized


@dataclass(frozen=True, slots=True, eq=False)
class PendingResize:
    """A resize that waits: what it asks for, and since when we know, seconds since 1970."""

    what: object
    since: float


class PendingResizes:
    """Resizes that wait, by the UIDs of their pods; kept by events."""

    def __init__(self) -> None:
        self._pending: dict[str, PendingResize] = {}

    def see(self, record: PodRecord, now: float) -> None:
        """A pod as it is now."""
        pod = record.pod
        if not record.ours or not pending_resize(pod):
            self._pending.pop(record.uid, None)
            return
        known, what = self._pending.get(record.uid), (pod.spec.containers, pod.spec.init_containers, pod.spec.resources)
        if known is None or known.what != what:
            self._pending[record.uid] = PendingResize(what, now)

    def drop(self, uid: str) -> None:
        """A pod is no more."""
        self._pending.pop(uid, None)

    def overdue(self, until: float) -> Iterator[tuple[str, PendingResize]]:
        """UIDs of pods whose resizes have waited since this instant at least, those that waited longest first."""
        late = [(uid, one) for uid, one in self._pending.items() if one.since <= until]
        return iter(sorted(late, key=lambda found: (found[1].since, found[0])))


KEPT_SECONDS = 900.0
"""Ledgers of what changes are written within seconds, and none is missed for as long as the API server is away."""
MOST_KEPT = 20_000
"""Some 20 MB; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A pod as it was last, when it was seen to be no more, seconds since 1970, and whose doing that was, unless a
    former leader told it to go."""

    record: PodRecord
    at: float
    end: End


class Departures:
    """The last of them, in order. ``end_of`` says whose doing it is that a pod ends, as it looks now."""

    def __init__(self, end_of: Callable[[Pod], End]) -> None:
        self._kept: deque[Departure] = deque(maxlen=MOST_KEPT)
        self._going: dict[str, PodRecord] = {}
        self._end_of = end_of

    def told(self, record: PodRecord) -> None:
        """A pod was told to go, which was seen."""
        if record.ours and record.pod.spec.node_name:
            record.end = self._end_of(record.pod)
            self._going[record.uid] = record

    def look_again(self, node: str) -> None:
        """A node is another one: who was told to go from there by nobody else may have been drained. The watch of nodes
        may come later than that of pods."""
        for record in self._going.values():
            if record.pod.spec.node_name == node and record.end == End(WORKLOAD):
                record.end = self._end_of(record.pod)

    def gone(self, record: PodRecord, now: float) -> None:
        """A pod is gone, which was seen."""
        while self._kept and self._kept[0].at < now - KEPT_SECONDS:
            self._kept.popleft()
        if record.ours and record.pod.spec.node_name:
            self._kept.append(Departure(record, now, record.end or self._end_of(record.pod)))

    def forget(self, uid: str) -> None:
        """A pod is no more, or somebody who leads follows it."""
        self._going.pop(uid, None)

    def taken(self) -> Iterator[Departure]:
        """All of them, once: who leads hears of each departure itself."""
        self._going.clear()
        while self._kept:
            yield self._kept.popleft()


SHARED = (*READ, "containers", "init_containers", "overhead", "resources", "volumes")
"""Parts of a pod's spec that come from its template."""
MOST_KNOWN, MOST_BYTES = 4096, 2**24
"""Beyond so many, or so many bytes as they are encoded, sharing begins anew; what is shared already stays so."""
LARGE = 2**17
"""What takes more bytes is not shared: a template of that size is none that many pods have."""
ANNOTATIONS = ("slacktide.io/", "kueue.x-k8s.io/pod-group-")
"""Annotations that begin so are read; others, of up to 256 KiB a pod, are not kept."""

Parts = tuple[object, ...]


class Lightening:
    """Gives pods the parts and labels that they share with others, as there are few templates: half their memory."""

    def __init__(self) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._labels: dict[bytes, Parts] = {}
        self._specs: dict[bytes, Parts] = {}
        self._bytes = 0

    def __call__(self, pod: Pod) -> Pod:
        """The pod, which nobody else has seen yet."""
        metadata, spec = pod.metadata, pod.spec
        # Each pod has a volume with a name of its own, in which its token is: only what is said of a volume ties it.
        tied = tuple(one for one in spec.volumes if one != Volume(one.name))
        read = {key: value for key, value in metadata.annotations.items() if key.startswith(ANNOTATIONS)}
        force_setattr(metadata, "annotations", read)
        # A pod of a StatefulSet has labels of its own, and its template's spec.
        shorter = tuple(map(bounded, metadata.owner_references))
        labels, annotations, owners = self._shared(self._labels, (metadata.labels, read, shorter))
        force_setattr(metadata, "labels", labels)
        force_setattr(metadata, "annotations", annotations)
        force_setattr(metadata, "owner_references", owners)
        force_setattr(spec, "volumes", tied)
        parts = tuple(getattr(spec, name) for name in SHARED)
        for name, part in zip(SHARED, self._shared(self._specs, parts), strict=True):
            force_setattr(spec, name, part)
        for one in pod.status.conditions:
            force_setattr(one, "type", intern(one.type))
            force_setattr(one, "status", intern(one.status))
        return pod

    def _shared(self, known: dict[bytes, Parts], parts: Parts) -> Parts:
        """Parts that are equal to these."""
        encoded = self._encode(parts)
        if len(encoded) > LARGE:
            return parts
        key = blake2b(encoded, digest_size=16).digest()
        found = known.get(key)
        if found is not None:
            return found
        self._bytes += len(encoded)
        if len(known) >= MOST_KNOWN or self._bytes > MOST_BYTES:
            self._labels.clear()
            self._specs.clear()
            self._bytes = len(encoded)
        known[key] = parts
        return parts
