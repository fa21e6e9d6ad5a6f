"""Ledgers of workloads that were deleted: whoever comes by the same namespace, kind and name goes on from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slacktide.engine.ledger.checkpoint import moved
from slacktide.kube.translate.owners import Target


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

    def __len__(self) -> int:
        return len(self._known)

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
