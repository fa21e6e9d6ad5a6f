"""A line of claims before a counter: who comes first gets what it asks for, while there is enough.

Whoever does not fit is passed over, and later ones that do fit get theirs. A change of one claim moves few others as a
rule, and only these are looked at: the line is cut into blocks, which know how much their claims take, and whether one
of them gets too much or could get something. A change costs O(blocks + claims of a block), and so does each claim that
it moves; where claims of many different shapes are refused, the search for one that fits may look at more blocks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from slacktide.kube.feed.fed_pod import FedPod

Amounts = tuple[int, int]
"""Of CPU and of memory."""
Limits = tuple[float, float]
Rank = tuple[bool, float, str]
"""The place of a workload among all: those with settled pods first, then by when they came, then by key."""
SIZE = 64
"""Claims of a block at first; it is cut in two when it has twice as many."""


class QueuePosition(NamedTuple):
    """Where in the line: by the time of its coming, then by name."""

    came: float
    uid: str


@dataclass(slots=True, eq=False)
class Claim:
    """What a pod takes of a quota: nanos of CPU and of memory times promise, and a place of its workload."""

    pod: FedPod
    workload: str
    workload_created: float
    amounts: Amounts
    position: QueuePosition
    settled: bool = False
    """It had a place when this was last looked at. Else it stands in the line."""
    taken: bool = False
    """In the line: it gets what it asks for."""
    barred: bool = False
    """In the line: it gets nothing, however much there is."""

    @property
    def uid(self) -> str:
        return self.position.uid

    @property
    def refused(self) -> bool:
        """Whether it gets no promise."""
        return not (self.settled or self.taken)

    @property
    def rank(self) -> Rank:
        """Of its workload, if it had no other pods."""
        return not self.settled, self.workload_created, self.workload

    def asks_for_the_same(self, other: Claim) -> bool:
        """Whether nothing is different but perhaps that one is settled."""
        return (self.amounts, self.workload, self.workload_created, self.position) == (
            other.amounts, other.workload, other.workload_created, other.position,
        )  # fmt: skip


POSITION = attrgetter("position")


@dataclass(slots=True)
class Block:
    """Neighbours in the line, at least one, in their order."""

    claims: list[Claim]
    total: Amounts = field(init=False)
    """What they take."""
    highest: Limits = field(init=False)
    """The most that is taken up to one of them that takes, of what is taken in the block."""
    lowest: Limits = field(init=False)
    """The least that would be taken up to one of them that takes nothing, if it took what it asks for."""

    def __post_init__(self) -> None:
        self.sum_up()

    def sum_up(self) -> None:
        """Work out what the block knows, from its claims."""
        cpu = memory = 0
        high_cpu = high_memory = -math.inf
        low_cpu = low_memory = math.inf
        for claim in self.claims:
            with_cpu, with_memory = cpu + claim.amounts[0], memory + claim.amounts[1]
            if claim.taken:  # what is taken grows, so that the last one is the highest
                high_cpu, high_memory = cpu, memory = with_cpu, with_memory
            elif not claim.barred:
                low_cpu = with_cpu if with_cpu < low_cpu else low_cpu
                low_memory = with_memory if with_memory < low_memory else low_memory
        self.total, self.highest, self.lowest = (cpu, memory), (high_cpu, high_memory), (low_cpu, low_memory)


class Line:
    """Claims in their order. ``base`` is what others have taken before all of them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.base: Amounts = (0, 0)
        self._blocks: list[Block] = []

    def __iter__(self) -> Iterator[Claim]:
        """In their order."""
        return (claim for block in self._blocks for claim in block.claims)

    @property
    def taken(self) -> Amounts:
        """What all take, and the others before them."""
        return self._before(len(self._blocks))

    def add_base(self, amounts: Amounts, sign: int = 1) -> None:
        """Others before all take more (or less)."""
        self.base = self.base[0] + sign * amounts[0], self.base[1] + sign * amounts[1]

    def fill(self, claims: Iterable[Claim]) -> None:
        """Let these stand in an empty line, and decide on each; O(n log n), and much faster than one by one."""
        ordered = sorted(claims, key=POSITION)
        cpu, memory = self.base
        for claim in ordered:
            ends = cpu + claim.amounts[0], memory + claim.amounts[1]
            claim.taken = not claim.barred and ends[0] <= self.limits[0] and ends[1] <= self.limits[1]
            if claim.taken:
                cpu, memory = ends
        self._blocks = [Block(ordered[begin : begin + SIZE]) for begin in range(0, len(ordered), SIZE)]

    def insert(self, claim: Claim) -> None:
        """A claim joins, and has nothing as yet."""
        claim.taken = False
        if not self._blocks:
            self._blocks.append(Block([claim]))
            return
        number = self._block_of(claim)
        block = self._blocks[number]
        insort(block.claims, claim, key=POSITION)
        if len(block.claims) >= 2 * SIZE:
            self._blocks.insert(number + 1, Block(block.claims[SIZE:]))
            del block.claims[SIZE:]
        block.sum_up()

    def remove(self, claim: Claim) -> None:
        """A claim leaves, with what it has."""
        number = self._block_of(claim)
        block = self._blocks[number]
        del block.claims[bisect_left(block.claims, claim.position, key=POSITION)]
        claim.taken = False
        if block.claims:
            block.sum_up()
        else:
            del self._blocks[number]

    def put(self, claim: Claim, *, taken: bool, barred: bool = False) -> None:
        """A claim gets what it asks for, or does not, or is ``barred`` from it."""
        claim.taken, claim.barred = taken, barred
        self._blocks[self._block_of(claim)].sum_up()

    def first_wrong(self) -> Claim | None:
        """The first that gets more than there is, or nothing though there is enough; None where all is right."""
        (cpu, memory), (limit_cpu, limit_memory) = self.base, self.limits
        for block in self._blocks:
            too_much = cpu + block.highest[0] > limit_cpu or memory + block.highest[1] > limit_memory
            if too_much or (cpu + block.lowest[0] <= limit_cpu and memory + block.lowest[1] <= limit_memory):
                for claim in block.claims:
                    ends = cpu + claim.amounts[0], memory + claim.amounts[1]
                    if not claim.barred and claim.taken != (ends[0] <= limit_cpu and ends[1] <= limit_memory):
                        return claim
                    if claim.taken:
                        cpu, memory = ends
            else:
                cpu, memory = cpu + block.total[0], memory + block.total[1]
        return None

    def before(self, claim: Claim) -> Amounts:
        """What is taken before a claim, by all that come first."""
        number = self._block_of(claim)
        cpu, memory = self._before(number)
        for other in self._blocks[number].claims:
            if other is claim:
                break
            if other.taken:
                cpu, memory = cpu + other.amounts[0], memory + other.amounts[1]
        return cpu, memory

    def _before(self, number: int) -> Amounts:
        """What is taken before a block."""
        cpu, memory = self.base
        for block in self._blocks[:number]:
            cpu, memory = cpu + block.total[0], memory + block.total[1]
        return cpu, memory

    def _block_of(self, claim: Claim) -> int:
        """The block in which a claim stands, or would."""
        return max(0, bisect_right(self._blocks, claim.position, key=lambda block: block.claims[0].position) - 1)
