"""Places that are kept until those who must leave them are gone.

To the engine a victim's room is free from the decision on. On the node it is taken until the victim has
ended. So every pod that needs that room waits for it, also one that was decided on later, and also if the
beneficiary does not come any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import PLACED, Decision, Pod
from slacktide.kube.indexes import take_out


@dataclass(slots=True)
class Nomination:
    """A decision whose place is not free as yet.

    outstanding  who must go first
    looked       the version of the node's contents with which it was looked whether the place is free all the same; -1:
                 who goes and comes there is another one since
    """

    decision: Decision
    outstanding: set[str]
    looked: int = -1


@dataclass(slots=True)
class _Node:
    going: set[str] = field(default_factory=set)
    expected: set[str] = field(default_factory=set)


class Reservations:
    """Nominations by the UID of the pod that waits, and who is going from which node."""

    def __init__(self) -> None:
        self.nominations: dict[str, Nomination] = {}
        self._nodes: dict[str, _Node] = {}
        self._going: dict[str, str] = {}
        self._awaited: dict[str, set[str]] = {}
        self._patience: dict[str, float] = {}
        """Until when those that a place waited for should have gone, also where it waits no more; infinite before they
        are told to. Thousands of evictions take their time."""

    def goes(self, uid: str, node: str) -> None:
        """A pod was chosen to leave a node; its room is another's from now on."""
        self._going[uid] = node
        self._nodes.setdefault(node, _Node()).going.add(uid)

    def stays(self, uid: str) -> list[str]:
        """A pod does not leave, or its room stays taken; the pods that waited for it in vain."""
        self._gone(uid)
        return sorted(self._awaited.get(uid, ()))

    def add(self, nomination: Nomination, until: float = math.inf) -> None:
        """Keep a place; who must go first should have gone ``until`` then, where nothing else was said of that one."""
        uid, node = nomination.decision.uid, nomination.decision.host
        self.nominations[uid] = nomination
        self._nodes.setdefault(node, _Node()).expected.add(uid)
        self._await(nomination, nomination.outstanding, until)

    def expect_gone(self, uid: str, until: float) -> None:
        """A pod is being told to go, and should have gone ``until`` then."""
        if uid in self._patience:
            self._patience[uid] = until

    def standing(self, engine: Engine) -> list[tuple[str, Pod]]:
        """Pods that places are kept for, by UID, which the engine still has on these nodes and which are not bound."""
        return [
            (uid, one)
            for uid, nomination in self.nominations.items()
            if (one := engine.pods.get(uid)) is not None
            and one.state == PLACED and not one.bound and one.host == nomination.decision.host
        ]  # fmt: skip

    def late(self, nomination: Nomination, now: float) -> set[str]:
        """Those that a place waits for and that should have gone by now, or stay after all."""
        return {uid for uid in nomination.outstanding if now > self._patience.get(uid, -math.inf)}

    def drop(self, uid: str) -> Nomination | None:
        """A pod waits no more, for whatever reason."""
        nomination = self.nominations.pop(uid, None)
        if nomination is None:
            return None
        for other in nomination.outstanding:
            take_out(self._awaited, other, uid)
        node = nomination.decision.host
        self._nodes[node].expected.discard(uid)
        self._changed(node)
        return nomination

    def ended(self, uid: str, engine: Engine) -> list[Decision]:
        """A pod is no more; decisions whose places are free by that.

        Another one may have gone at once where there was room for it just then: who counted on that room waits for
        those who go besides.
        """
        self._gone(uid)
        free = []
        for one in sorted(self._awaited.pop(uid, ())):
            nomination = self.nominations[one]
            nomination.outstanding.discard(uid)
            if nomination.outstanding:
                continue
            node = self._nodes[nomination.decision.host]
            if node.going and not _has_room(engine, nomination.decision, node.going, node.expected - {one}):
                self._await(nomination, node.going, math.inf)
            else:
                self.drop(one)
                free.append(nomination.decision)
        return free

    def _await(self, nomination: Nomination, others: Iterable[str], until: float) -> None:
        nomination.outstanding.update(others)
        for other in sorted(others):  # who is overdue is told in this order
            self._awaited.setdefault(other, set()).add(nomination.decision.uid)
            self._patience.setdefault(other, until)

    def overdue(self, now: float) -> list[str]:
        """Pods that should have gone by now, and for which no place waits any more."""
        return [uid for uid, until in self._patience.items() if now > until and uid not in self._awaited]

    def are_going(self, nomination: Nomination) -> bool:
        """Whether all that a place waits for were chosen to leave its node by us, and still do."""
        return nomination.outstanding <= self._nodes[nomination.decision.host].going

    def in_the_way(self, engine: Engine, decision: Decision) -> set[str]:
        """Who must have left the node, besides the decision's own victims, before its pod can be bound.

        The pod counts in the engine as on this node, or on another.
        """
        node = self._nodes.get(decision.host)
        if node is None:
            return set()
        own = {victim.uid for victim in decision.victims}
        others = node.going - own
        return others if others and not fits(engine, decision, others, node.expected - {decision.uid}) else set()

    def beyond(self, engine: Engine, stays: str) -> Iterator[str]:
        """Pods for which there is no room any more as this one stays on its node after all, the last decided first:
        what its beneficiary would have left over was theirs. Each is to be given up before the next is asked for."""
        one = engine.pods[stays]
        demand = engine.specs[one.spec].demand
        while expected := self._nodes[one.host].expected if one.host in self._nodes else ():
            room = engine.room(one.host)
            if all(room.get(name, 0) >= 0 for name, amount in demand if amount):
                return
            yield next(uid for uid in reversed(self.nominations) if uid in expected)

    def _gone(self, uid: str) -> None:
        self._patience.pop(uid, None)
        node = self._going.pop(uid, None)
        if node is not None:
            self._nodes[node].going.discard(uid)
            self._changed(node)

    def _changed(self, node: str) -> None:
        """Fewer go from a node, or come: the places of the others there may be free."""
        for uid in self._nodes[node].expected:
            self.nominations[uid].looked = -1
        if not self._nodes[node].going and not self._nodes[node].expected:
            del self._nodes[node]


def fits(engine: Engine, decision: Decision, going: Iterable[str] = (), expected: Iterable[str] = ()) -> bool:
    """Whether a node has room for a decision's pod while some are still there, and others are not yet.

    Of rules about neighbours the engine knows only how they are once those have gone.
    """
    spec = engine.specs[engine.pods[decision.uid].spec]
    return not spec.placement.rules and _has_room(engine, decision, going, expected)


def _has_room(engine: Engine, decision: Decision, going: Iterable[str], expected: Iterable[str]) -> bool:
    """The same, whatever its rules about neighbours."""
    spec, room = engine.specs[engine.pods[decision.uid].spec], engine.room(decision.host)
    comes = () if engine.pods[decision.uid].host == decision.host else (decision.uid,)  # else it counts there already
    for sign, uids in ((-1, going), (-1, comes), (1, expected)):
        for uid in uids:
            one = engine.pods.get(uid)
            for name, amount in () if one is None else engine.specs[one.spec].demand:
                room[name] = room.get(name, 0) + sign * amount
    return all(room.get(name, -1) >= 0 for name, amount in spec.demand if amount)


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
