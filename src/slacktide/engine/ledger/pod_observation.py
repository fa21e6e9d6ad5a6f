"""What a pod says of itself when the scheduler sees it for the first time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NotRequired, TypedDict

from slacktide.engine.core.types import snap
from slacktide.errors import StateError


class PodNow(TypedDict):
    """A pod as it is now; times in seconds since 1970, plain JSON.

    spec         number of its spec
    created      creationTimestamp
    host, since  where it is bound ("": nowhere) and since when (lastTransitionTime of PodScheduled)
    ready, ready_since  its Ready condition and the lastTransitionTime of that
    leaving      it has a deletionTimestamp
    budget       as for ``Engine.arrive``
    cause, cause_since  whose doing it is that it is not ready (as in ``Engine.blame``), and since when
    stopped, stopped_by  when it stopped being ready before ``ready_since``, where it is ready again after that, and
                 whose doing that was (as in ``Engine.blame``)
    ended, completed    of a pod that is over, whether it ran to its end and is still listed or was seen to go: when
                 (the last container's finishedAt), and whether it succeeded; then ``ready`` and ``ready_since`` tell
                 since when it had been ready
    ended_by     whose doing that end was, or of a pod that was told to go
    ended_until  where that is an operator's: the end of the maintenance window
    """

    uid: str
    name: str
    spec: int
    created: float
    host: str
    since: float | None
    ready: bool
    ready_since: float | None
    leaving: bool
    budget: NotRequired[str]
    cause: NotRequired[int]
    cause_since: NotRequired[float | None]
    stopped: NotRequired[float | None]
    stopped_by: NotRequired[int]
    ended: NotRequired[float | None]
    completed: NotRequired[bool]
    ended_by: NotRequired[int]
    ended_until: NotRequired[float]


@dataclass(frozen=True, slots=True)
class PodObservation:
    """:class:`PodNow` in order: ``created <= since <= ready_since``, all times on the grid."""

    uid: str
    name: str
    spec: int
    created: float
    host: str
    since: float
    ready: bool
    ready_since: float
    leaving: bool
    budget: str
    stopped: float | None
    ended: float | None
    completed: bool
    cause: int = 0
    cause_since: float = 0.0
    stopped_by: int = 0
    ended_by: int = 0
    ended_until: float = 0.0


def observe(pod: Mapping[str, Any]) -> PodObservation:
    """What a pod says, made consistent; a time that is missing is the earliest possible.

    Raises :class:`StateError` where it lacks its uid, name, spec or creation.
    """
    for name in ("uid", "name", "spec", "created"):
        if pod.get(name) is None:
            raise StateError(f"pod {pod.get('uid') or pod.get('name')}: {name}: found nothing, expected a value")
    created = snap(pod["created"])
    since = _no_earlier(pod.get("since"), created)
    ready_since = _no_earlier(pod.get("ready_since"), since)
    stopped, ended = pod.get("stopped"), pod.get("ended")
    return PodObservation(
        uid=pod["uid"],
        name=pod["name"],
        spec=pod["spec"],
        created=created,
        host=pod.get("host") or "",
        since=since,
        ready=bool(pod.get("ready")),
        ready_since=ready_since,
        leaving=bool(pod.get("leaving")),
        budget=pod.get("budget") or "",
        stopped=None if stopped is None else snap(stopped),
        ended=None if ended is None else _no_earlier(ended, created),
        completed=bool(pod.get("completed")),
        cause=int(pod.get("cause") or 0),
        cause_since=_no_earlier(pod.get("cause_since"), since),
        stopped_by=int(pod.get("stopped_by") or 0),
        ended_by=int(pod.get("ended_by") or 0),
        ended_until=snap(pod.get("ended_until") or 0.0),
    )


def _no_earlier(at: float | None, than: float) -> float:
    return than if at is None else max(than, snap(at))


def hashed(uid: str) -> int:
    """A pod's uid as 63 bits, never 0."""
    return (int.from_bytes(blake2b(uid.encode(), digest_size=8).digest(), "little") >> 1) or 1
