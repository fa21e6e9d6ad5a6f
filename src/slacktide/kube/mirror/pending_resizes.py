"""Pods of ours whose resize does not fit where they run, and since when.

The kubelet resizes pods in place and says of what it cannot do that it is Deferred (until there is room) or Infeasible
(condition PodResizePending). How much room counts is :mod:`slacktide.kube.translate.pod_resources`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.translate.pod_resources import pending_resize


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
