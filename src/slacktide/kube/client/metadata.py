"""What all objects share: instants, metadata, owners, selectors, references.

Field names follow Kubernetes in snake case; only fields in use are decoded. What is absent is ``None`` for an object,
``""`` for a string, ``{}`` for a dictionary and ``()`` for a list. Quantities, operators and other enumerations stay
strings: the code that uses one checks it, so that a wrong one concerns only its own object.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

REMEMBERED_TIMESTAMPS = 16_384
"""Most timestamps have whole seconds, so that thousands of objects share a few of them."""
TIMESTAMP_SECONDS = 1.0
"""Most timestamps are whole seconds, rounded down."""
SOON_SECONDS = 1.5
"""What is seen so long after the beginning of its timestamp's second was seen as it happened."""


class Instant(float):
    """An instant in UNIX seconds; it has its own type so that decoders recognise timestamps."""

    __slots__ = ()


def unix_seconds(text: str) -> float:
    """UNIX seconds of an RFC 3339 timestamp, with or without a fraction.

    Raises ``ValueError`` for anything else, also for a time without a zone.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"found {text!r:.80}, expected an RFC 3339 timestamp such as 2026-01-31T12:00:00Z")
    return moment.timestamp()


def rfc3339(seconds: float) -> str:
    """The RFC 3339 timestamp of UNIX seconds, in UTC with exactly six decimals (Kubernetes' MicroTime)."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def whole_seconds(seconds: float) -> str:
    """The same in whole seconds, for people."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@lru_cache(REMEMBERED_TIMESTAMPS)
def _instant(text: str) -> Instant:
    return Instant(unix_seconds(text))


def decode_special(kind: type[Any], value: Any) -> Any:
    """The hook that decoders call for types they do not know; here only ``Instant``.

    Raises ``ValueError`` for what is no timestamp and ``NotImplementedError`` for other types.
    """
    if kind is not Instant:
        raise NotImplementedError(f"no decoder for {kind}")
    if not isinstance(value, str):
        raise ValueError(f"found {value!r:.80}, expected an RFC 3339 timestamp")
    return _instant(value)


def encode_special(value: Any) -> Any:
    """The hook that encoders call for types they do not know; here only ``Instant``."""
    if isinstance(value, Instant):
        return rfc3339(value)
    raise NotImplementedError(f"no encoder for {type(value)}")


def happened(said: float | None, now: float, away: float) -> float:
    """When something happened that is seen ``now`` and of which a timestamp of the API speaks, seconds since 1970.

    What is seen at once happened now, whatever others' clocks say. What is seen as a watch catches up, after it was
    ``away`` for so many seconds (0: it was not), happened within the timestamp's second, since the watch was lost and
    not after now: it is put in the middle of what these leave, half a second off at most where clocks agree, and
    no more than the watch was away where they do not.
    """
    if said is None or away <= 0.0:
        return now
    first = min(now, max(said, now - away))
    last = max(first, min(now, said + TIMESTAMP_SECONDS))
    return (first + last) / 2


def seen_at(said: float | None, seen: float) -> float:
    """When something happened of which a timestamp of the API speaks and which somebody saw, seconds since 1970.

    What is seen within the timestamp's second, or just after, happened then; of what is seen late the timestamp is all
    that is known.
    """
    if said is None:
        return seen
    return min(seen, said + TIMESTAMP_SECONDS) if said <= seen < said + SOON_SECONDS else said


class Part(msgspec.Struct, rename="camel", gc=False, frozen=True, omit_defaults=True):
    """Base of every decoded structure; these never form cycles, so the garbage collector need not look at them."""


class OwnerReference(Part, frozen=True):
    """Who owns an object; ``controller`` marks the one that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Part, frozen=True):
    """An object's metadata; ``namespace`` is empty for cluster-scoped objects."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    creation_timestamp: Instant | None = None
    deletion_timestamp: Instant | None = None
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def version(self) -> int:
        """Of one object they may be compared, as its watch delivers them in order."""
        return int(self.resource_version or 0)


class Requirement(Part, frozen=True):
    """One requirement on labels: ``key operator values`` (In, NotIn, Exists, DoesNotExist; for nodes also Gt, Lt)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Part, frozen=True):
    """Labels that must match and expressions that must hold; empty selects everything, absent nothing."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()


class NodeSelectorTerm(Part, frozen=True):
    """Requirements on a node's labels and fields that must all hold; an empty term matches no node."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Part, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Condition(Part, frozen=True):
    """One condition of an object's status; ``status`` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Instant | None = None


class Reference(Part, frozen=True):
    """Points at an object: what an event regards, what a volume is claimed by."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
