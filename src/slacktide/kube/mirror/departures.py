"""Pods of ours that were bound and go, or are no more: what a replica that stands by saw, and can tell once it leads.

A pod that comes and goes while nobody leads is in no ledger, and no list shows it any more. Whose doing its end is
shows when it is told to go: later its node is open again, or its maintenance window is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from slacktide.kube.mirror.pod_record import End, PodRecord
from slacktide.kube.resources.objects import Pod
from slacktide.model.causes import WORKLOAD

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
