"""A line of claims before a counter: who comes first gets what it asks for, while there is enough.

Whoever does not fit is passed over, and later ones that do fit get theirs. A change of one claim moves few others as a
rule, and only these are looked at: the line is a balanced tree (a treap) whose nodes know of all below them how much is
taken, and whether one of them gets too much or could get something. O(log n) for a change and for each claim that it
moves; where claims of many different shapes are refused, the search for one that fits may look at more of them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

Amounts = tuple[int, int]
"""Of CPU and of memory."""
Limits = tuple[float, float]
NOTHING: Amounts = (0, 0)


class Place(NamedTuple):
    """Where in the line: by the time of its coming, then by name."""

    came: float
    uid: str


class Waiting:
    """A claim in the line. ``taken``: it gets what it asks for; ``barred``: it gets nothing, however much there is."""

    __slots__ = ("amounts", "barred", "highest", "left", "lowest", "place", "rank", "right", "taken", "total", "up")

    def __init__(self, place: Place, amounts: Amounts, *, barred: bool = False) -> None:
        self.place, self.amounts, self.barred = place, amounts, barred
        self.taken = False
        self.rank = zlib.crc32(place.uid.encode())
        self.left: Waiting | None = None
        self.right: Waiting | None = None
        self.up: Waiting | None = None
        self.total = NOTHING
        """What those of its subtree take."""
        self.highest: Limits = (-math.inf, -math.inf)
        """The most that is taken up to one of them that takes, of what is taken in the subtree."""
        self.lowest: Limits = (math.inf, math.inf)
        """The least that would be taken up to one of them that takes nothing, if it took what it asks for."""
        self.sum_up()

    def sum_up(self) -> None:
        """Work out what this node knows, from its children."""
        left, right = self.left, self.right
        cpu, memory = NOTHING if left is None else left.total
        high_cpu, high_memory = (-math.inf, -math.inf) if left is None else left.highest
        low_cpu, low_memory = (math.inf, math.inf) if left is None else left.lowest
        with_cpu, with_memory = cpu + self.amounts[0], memory + self.amounts[1]
        if self.taken:
            cpu, memory = with_cpu, with_memory
            high_cpu, high_memory = max(high_cpu, cpu), max(high_memory, memory)
        elif not self.barred:
            low_cpu, low_memory = min(low_cpu, with_cpu), min(low_memory, with_memory)
        if right is not None:
            high_cpu, high_memory = max(high_cpu, cpu + right.highest[0]), max(high_memory, memory + right.highest[1])
            low_cpu, low_memory = min(low_cpu, cpu + right.lowest[0]), min(low_memory, memory + right.lowest[1])
            cpu, memory = cpu + right.total[0], memory + right.total[1]
        self.total = cpu, memory
        self.highest, self.lowest = (high_cpu, high_memory), (low_cpu, low_memory)


class Line:
    """Claims in their order. ``base`` is what others have taken before all of them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.base = NOTHING
        self._root: Waiting | None = None

    def __iter__(self) -> Iterator[Waiting]:
        """In their order."""
        above: list[Waiting] = []
        node = self._root
        while above or node is not None:
            while node is not None:
                above.append(node)
                node = node.left
            one = above.pop()
            yield one
            node = one.right

    @property
    def taken(self) -> Amounts:
        """What all take, and the others before them."""
        below = NOTHING if self._root is None else self._root.total
        return self.base[0] + below[0], self.base[1] + below[1]

    def add_base(self, amounts: Amounts, sign: int = 1) -> None:
        """Others before all take more (or less)."""
        self.base = self.base[0] + sign * amounts[0], self.base[1] + sign * amounts[1]

    # -- who stands in it ------------------------------------------------------------------------------------------

    def fill(self, claims: Iterable[Waiting]) -> None:
        """Let these stand in an empty line, and decide on each; O(n log n), and much faster than one by one."""
        spine: list[Waiting] = []
        cpu, memory = self.base
        for one in sorted(claims, key=lambda claim: claim.place):
            ends = cpu + one.amounts[0], memory + one.amounts[1]
            one.taken = not one.barred and ends[0] <= self.limits[0] and ends[1] <= self.limits[1]
            if one.taken:
                cpu, memory = ends
            last: Waiting | None = None
            while spine and spine[-1].rank < one.rank:
                last = spine.pop()
                last.sum_up()
            one.left, one.right, one.up = last, None, spine[-1] if spine else None
            if last is not None:
                last.up = one
            if spine:
                spine[-1].right = one
            spine.append(one)
        for node in reversed(spine):
            node.sum_up()
        self._root = spine[0] if spine else None

    def insert(self, one: Waiting) -> None:
        """A claim joins, and has nothing as yet."""
        above, node = None, self._root
        while node is not None and node.rank >= one.rank:
            above, node = node, node.left if one.place < node.place else node.right
        one.left, one.right = _split(node, one.place)
        for child in (one.left, one.right):
            if child is not None:
                child.up = one
        self._hang(one, above, one.place)
        self._changed(one)

    def remove(self, one: Waiting) -> None:
        """A claim leaves, with what it has."""
        rest, above = _joined(one.left, one.right), one.up
        if rest is None:
            if above is None:
                self._root = None
            elif above.left is one:
                above.left = None
            else:
                above.right = None
        else:
            self._hang(rest, above, one.place)
        one.left = one.right = one.up = None
        if above is not None:
            self._changed(above)

    def bar(self, one: Waiting, barred: bool) -> None:
        """A claim gets nothing, however much there is; or may get something again."""
        one.barred = barred
        one.taken = one.taken and not barred
        self._changed(one)

    def flip(self, one: Waiting) -> None:
        """A claim that had nothing gets what it asks for, or the other way round."""
        one.taken = not one.taken
        self._changed(one)

    # -- who is wrong ----------------------------------------------------------------------------------------------

    def first_wrong(self) -> Waiting | None:
        """The first that gets more than there is, or nothing though there is enough; None where all is right."""
        return self._wrong(self._root, *self.base)

    def before(self, one: Waiting) -> Amounts:
        """What is taken before a claim, by all that come first."""
        cpu, memory = self.base
        node: Waiting | None = one
        below: Waiting | None = None
        while node is not None:
            if below is None or below is node.right:
                if node.left is not None:
                    cpu, memory = cpu + node.left.total[0], memory + node.left.total[1]
                if below is not None and node.taken:
                    cpu, memory = cpu + node.amounts[0], memory + node.amounts[1]
            below, node = node, node.up
        return cpu, memory

    def _wrong(self, node: Waiting | None, cpu: int, memory: int) -> Waiting | None:
        limit_cpu, limit_memory = self.limits
        while node is not None:
            too_much = cpu + node.highest[0] > limit_cpu or memory + node.highest[1] > limit_memory
            may_fit = cpu + node.lowest[0] <= limit_cpu and memory + node.lowest[1] <= limit_memory
            if not too_much and not may_fit:
                return None
            left = node.left
            if left is not None:
                if (found := self._wrong(left, cpu, memory)) is not None:
                    return found
                cpu, memory = cpu + left.total[0], memory + left.total[1]
            fits = cpu + node.amounts[0] <= limit_cpu and memory + node.amounts[1] <= limit_memory
            if not node.barred and fits != node.taken:
                return node
            if node.taken:
                cpu, memory = cpu + node.amounts[0], memory + node.amounts[1]
            node = node.right
        return None

    # -- the tree --------------------------------------------------------------------------------------------------

    def _hang(self, one: Waiting, above: Waiting | None, place: Place) -> None:
        one.up = above
        if above is None:
            self._root = one
        elif place < above.place:
            above.left = one
        else:
            above.right = one

    def _changed(self, one: Waiting) -> None:
        node: Waiting | None = one
        while node is not None:
            node.sum_up()
            node = node.up


def _split(node: Waiting | None, place: Place) -> tuple[Waiting | None, Waiting | None]:
    """Those of a subtree that come before a place, and the others."""
    if node is None:
        return None, None
    if node.place < place:
        before, after = _split(node.right, place)
        node.right = before
        if before is not None:
            before.up = node
        node.sum_up()
        return node, after
    before, after = _split(node.left, place)
    node.left = after
    if after is not None:
        after.up = node
    node.sum_up()
    return before, node


def _joined(before: Waiting | None, after: Waiting | None) -> Waiting | None:
    """One subtree of two that stand one after the other."""
    if before is None or after is None:
        return after if before is None else before
    if before.rank >= after.rank:
        before.right = _joined(before.right, after)
        if before.right is not None:
            before.right.up = before
        before.sum_up()
        return before
    after.left = _joined(before, after.left)
    if after.left is not None:
        after.left.up = after
    after.sum_up()
    return after
