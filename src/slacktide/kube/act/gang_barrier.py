"""Pods of a group that have their places wait for each other: none is bound before so many can be.

A place may have to wait until victims are gone. Where one of the places is lost by then and too few are left, all are
given up: a group that cannot start as a whole takes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision


@dataclass(slots=True)
class _Pending:
    """Pods of a group that are on their way: by UID their decisions, ``None`` while somebody is in the way, and how
    many have somebody in the way."""

    decisions: dict[str, Decision | None] = field(default_factory=dict)
    waiting: int = 0


class GangBarrier:
    """Decisions about pods of groups that are on their way to be bound."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pending: dict[str, _Pending] = {}
        self._group_of: dict[str, str] = {}
        self.unshown: dict[str, Decision] = {}
        """Those that wait for others of their group only, which nobody was told yet."""

    def begins(self, uid: str) -> None:
        """A place was decided on for a pod."""
        self.leaves(uid)
        group = self._engine.pods[uid].group
        if group:
            self._group_of[uid] = group
            pending = self._pending.setdefault(group, _Pending())
            pending.decisions[uid] = None
            pending.waiting += 1

    def ready(self, decision: Decision) -> bool:
        """Nobody is in a decision's way any more; whether its pod is of a group, and so may have to wait for others."""
        group = self._group_of.get(decision.uid)
        if group is None:
            return False
        pending = self._pending[group]
        pending.waiting -= pending.decisions[decision.uid] is None
        pending.decisions[decision.uid] = self.unshown[decision.uid] = decision
        return True

    def group_of(self, uid: str) -> str:
        """The group of a pod that is on its way; else empty."""
        return self._group_of.get(uid, "")

    def due(self, group: str) -> list[Decision]:
        """Decisions of a group that need not wait: where those that are ready, and those bound, are enough; O(1) where
        they are not."""
        pending = self._pending.get(group)
        if pending is None or not self._is_known(group):
            return []
        if self._engine.groups.placed(group) - pending.waiting < self._engine.groups.least(group):
            return []
        return [one for one in pending.decisions.values() if one is not None]

    def leaves(self, uid: str) -> tuple[str, Decision | None]:
        """A pod is bound now, or gives up its place; its group, empty where it was not on its way in one, and the
        decision that waited for others of it, if it did."""
        group = self._group_of.pop(uid, "")
        self.unshown.pop(uid, None)
        if not group:
            return "", None
        pending = self._pending[group]
        found = pending.decisions.pop(uid)
        pending.waiting -= found is None
        if not pending.decisions:
            del self._pending[group]
        return group, found

    def groups(self) -> list[str]:
        """Those that somebody is on his way of."""
        return list(self._pending)

    def broken(self, group: str) -> list[str]:
        """Pods on their way in vain: with all places that are left their group has too few; O(1) where it has not."""
        pending = self._pending.get(group)
        if pending is None:
            return []
        enough = self._is_known(group) and self._engine.groups.placed(group) >= self._engine.groups.least(group)
        return [] if enough else list(pending.decisions)

    def _is_known(self, group: str) -> bool:
        return group in self._engine.groups.numbers
