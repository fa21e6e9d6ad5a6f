"""A story: what objects of a cluster were like, from when on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from slacktide.kube.client.kinds import Kind


@dataclass(frozen=True, slots=True)
class Change:
    """From ``at`` on (seconds since 1970) an object was like this, or was no more; ``found`` is of the kind's type, or
    a ``Malformed``."""

    at: float
    kind: Kind[Any]
    found: Any
    deleted: bool = False


@dataclass(slots=True)
class Findings:
    """What a source told, and what it left out: ``counts`` of things found, ``notes`` for people, each said once."""

    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say it, where it was not said yet."""
        if text not in self.notes:
            self.notes.append(text)


@dataclass(slots=True)
class Story:
    """``beginning``: what there was at the beginning, in any order. ``changes``: what came then, in order of time.

    ``source`` names where it is from; ``begin`` is the beginning, seconds since 1970; ``until`` the end, None: the last
    change. A ``snapshot`` has no changes: it goes on as it is.
    """

    source: str
    begin: float
    beginning: Iterator[Change]
    changes: Iterator[Change]
    findings: Findings
    until: float | None = None
    snapshot: bool = False
