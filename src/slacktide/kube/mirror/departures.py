"""Pods of ours that were bound and are no more: what a replica that stands by saw go, and can tell once it leads.

A pod that comes and goes while nobody leads is in no ledger, and no list shows it any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from slacktide.kube.mirror.pod_record import PodRecord

KEPT_SECONDS = 900.0
"""Ledgers of what changes are written within seconds, and none is missed for as long as the API server is away."""
MOST_KEPT = 20_000
"""Some 20 MB; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A pod as it was last, when it was seen to be no more, seconds since 1970, and whose doing that was (a number of
    :data:`slacktide.model.causes.CAUSES`), unless a former leader told it to go."""

    record: PodRecord
    at: float
    ended_by: int


class Departures:
    """The last of them, in order."""

    def __init__(self) -> None:
        self._kept: deque[Departure] = deque(maxlen=MOST_KEPT)

    def note(self, record: PodRecord, now: float, ended_by: int) -> None:
        """A pod is gone, which was seen."""
        while self._kept and self._kept[0].at < now - KEPT_SECONDS:
            self._kept.popleft()
        if record.ours and record.pod.spec.node_name:
            self._kept.append(Departure(record, now, ended_by))

    def taken(self) -> Iterator[Departure]:
        """All of them, once: who leads hears of each departure itself."""
        while self._kept:
            yield self._kept.popleft()
