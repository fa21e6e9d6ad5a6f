"""All pods that claim a class in a namespace that quotas bound: who gets a promise, and how much is used.

Pods that have a place (they are settled) have what they have. The others stand in a line before a counter: who comes
first gets what it asks for, while there is enough; those of workloads beyond the limit of workloads are barred there.
That a pod has got a place is noticed when it would lose its promise otherwise: until then it makes no difference, as
what comes before it in the line is the same.

Whoever does not fit is passed over, and later ones that do fit get theirs. A change of one claim moves few others as a
rule, and only these are looked at: the line is cut into blocks, which know how much their claims take, and whether one
of them gets too much or could get something. A change costs O(blocks + claims of a block), and so does each claim that
it moves; where claims of many different shapes are refused, the search for one that fits may look at more blocks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.translate.disruption_budgets import Quota

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


@dataclass(slots=True)
class Workload:
    """One whose pods claim something; ``ranks`` in order, each with the UID of its pod."""

    claims: dict[str, Claim] = field(default_factory=dict)
    ranks: list[tuple[Rank, str]] = field(default_factory=list)
    beyond: list[QueuePosition] = field(default_factory=list)
    """Its pods that get no promise, in their order."""


class Group:
    """Claims by UID, under ``limits``. ``settled`` says whether a pod has a place by now."""

    def __init__(self, limits: Sequence[Quota], settled: Callable[[FedPod], bool]) -> None:
        self.limits, self._settled = limits, settled
        self.claims: dict[str, Claim] = {}
        self.refused: dict[str, None] = {}
        """UIDs of those that get no promise."""
        self._workloads: dict[str, Workload] = {}
        self._order: list[Rank] = []
        self._line = Line(_amounts(limits))
        self._most = min((one.workloads for one in limits if one.workloads is not None), default=None)
        self._within: set[str] = set()
        """Workloads within the limit of workloads, where there is one."""
        self._is_reordered = False
        self._turned: set[str] = set()
        """Those that came within it, or fell out of it, and whose pods are to hear of it."""
        self._before: dict[str, bool] = {}
        """Whether pods were refused, of those looked at since the last :meth:`decide`."""
        self._provisional: dict[str, None] = {}
        """Settled pods that are on no node yet: what was decided for them may be given up."""

    # -- what is so now --------------------------------------------------------------------------------------------

    @property
    def used(self) -> tuple[int, int, int]:
        """Nanos of CPU and of memory, and workloads that have a place."""
        settled = bisect_left(self._order, (True, -math.inf, ""))
        return (*self._line.taken, max(settled, len(self._order[: self._most])))

    def reason(self, uid: str) -> str:
        """Which quota a pod does not fit in; empty where it gets its promise."""
        claim = self.claims.get(uid)
        if claim is None or not claim.refused:
            return ""
        before = self._line.before(claim)
        rank = self._workloads[claim.workload].ranks[0][0]
        for quota in self.limits:
            if quota.workloads is not None and bisect_left(self._order, rank) >= quota.workloads:
                return quota.reason("workloads")
            for name, limit, taken, asked in zip(
                ("cpu", "memory"), (quota.cpu, quota.memory), before, claim.amounts, strict=True
            ):
                if limit is not None and taken + asked > limit:
                    return quota.reason(name)
        return ""

    def beyond(self, workload: str) -> tuple[str, int] | None:
        """Why the first of a workload's pods that get no promise gets none, and how many there are."""
        found = self._workloads.get(workload)
        return None if found is None or not found.beyond else (self.reason(found.beyond[0].uid), len(found.beyond))

    # -- changes, each to be followed by decide() ------------------------------------------------------------------

    def join(self, claim: Claim) -> None:
        """A pod claims something."""
        self._before.setdefault(claim.uid, False)
        self.claims[claim.uid] = claim
        workload = self._workloads.setdefault(claim.workload, Workload())
        before = workload.ranks[0][0] if workload.ranks else None
        workload.claims[claim.uid] = claim
        insort(workload.ranks, (claim.rank, claim.uid))
        self._reorder(claim.workload, before)
        if claim.settled:
            self._line.add_base(claim.amounts)
            self._watch(claim)
        else:
            self._stand(claim)

    def leave(self, uid: str) -> None:
        """A pod claims nothing any more."""
        claim = self.claims.pop(uid)
        self._note(claim)
        self._say(claim, refused=False)
        self._provisional.pop(uid, None)
        if claim.settled:
            self._line.add_base(claim.amounts, -1)
        else:
            self._line.remove(claim)
        workload = self._workloads[claim.workload]
        del workload.claims[uid]
        self._rank(claim.workload, claim.rank, None, uid)
        if not workload.claims:
            del self._workloads[claim.workload]

    def settle(self, uid: str, settled: bool) -> None:
        """A pod has got a place, or has it no more."""
        claim = self.claims[uid]
        if claim.settled == settled:
            return
        self._note(claim)
        before, claim.settled = claim.rank, settled
        self._rank(claim.workload, before, claim.rank, uid)
        if settled:
            self._line.remove(claim)
            self._line.add_base(claim.amounts)
            self._watch(claim)
            self._say(claim, refused=False)
        else:
            self._provisional.pop(uid, None)
            self._line.add_base(claim.amounts, -1)
            self._stand(claim)

    def rebuild(self, claims: Sequence[Claim], limits: Sequence[Quota]) -> list[str]:
        """Begin anew with these; the UIDs of those of whom something else is true now."""
        before = set(self.refused)
        fresh = Group(limits, self._settled)
        for claim in claims:
            claim.settled, claim.taken = self._settled(claim.pod), False
            fresh.claims[claim.uid] = claim
            workload = fresh._workloads.setdefault(claim.workload, Workload())
            workload.claims[claim.uid] = claim
            workload.ranks.append((claim.rank, claim.uid))
        for workload in fresh._workloads.values():
            workload.ranks.sort()
        fresh._order = sorted(one.ranks[0][0] for one in fresh._workloads.values())
        fresh._within = {name for _, _, name in fresh._order[: fresh._most]}
        for claim in claims:
            if claim.settled:
                fresh._line.add_base(claim.amounts)
                fresh._watch(claim)
            else:
                claim.barred = fresh._is_barred(claim)
        fresh._line.fill(claim for claim in claims if not claim.settled)
        for claim in fresh._line:
            if claim.refused:
                fresh._say(claim, refused=True)
        for name in fresh.__dict__:
            setattr(self, name, getattr(fresh, name))
        return list(before ^ self.refused.keys())

    def decide(self) -> list[str]:
        """Put right what follows from changes; the UIDs of pods of whom something else is true now."""
        for uid in tuple(self._provisional):
            claim = self.claims[uid]
            if claim.pod.pod.spec.node_name:
                del self._provisional[uid]
            elif not self._settled(claim.pod):
                self.settle(uid, False)
        while True:
            if self._is_reordered or self._turned:
                self._bar()
                continue
            wrong = self._line.first_wrong()
            if wrong is None:
                break
            self._move(wrong, taken=not wrong.taken, barred=False)
        before, self._before = self._before, {}
        return [uid for uid, was in before.items() if was != (uid in self.refused)]

    # -- the line --------------------------------------------------------------------------------------------------

    def _stand(self, claim: Claim) -> None:
        claim.barred = self._is_barred(claim)
        self._line.insert(claim)
        self._say(claim, refused=True)

    def _move(self, claim: Claim, *, taken: bool, barred: bool) -> bool:
        """Let a claim have what it asks for, or take it away; whether it had a place by now, which it keeps."""
        if claim.taken and self._settled(claim.pod):
            self.settle(claim.uid, True)
            return True
        self._note(claim)
        self._line.put(claim, taken=taken, barred=barred)
        self._say(claim, refused=not taken)
        return False

    def _watch(self, claim: Claim) -> None:
        if not claim.pod.pod.spec.node_name:
            self._provisional[claim.uid] = None

    def _note(self, claim: Claim) -> None:
        self._before.setdefault(claim.uid, claim.uid in self.refused)

    def _say(self, claim: Claim, *, refused: bool) -> None:
        workload = self._workloads[claim.workload]
        if refused and claim.uid not in self.refused:
            self.refused[claim.uid] = None
            insort(workload.beyond, claim.position)
        elif not refused and claim.uid in self.refused:
            del self.refused[claim.uid]
            del workload.beyond[bisect_left(workload.beyond, claim.position)]

    # -- workloads -------------------------------------------------------------------------------------------------

    def _is_barred(self, claim: Claim) -> bool:
        """Whether a claim's workload is not among those that may have pods, as far as was looked."""
        return self._most is not None and claim.workload not in self._within

    def _rank(self, workload: str, before: Rank, after: Rank | None, uid: str) -> None:
        """A pod of a workload ranks otherwise than before, or no more."""
        ranks = self._workloads[workload].ranks
        first = ranks[0][0]
        del ranks[bisect_left(ranks, (before, uid))]
        if after is not None:
            insort(ranks, (after, uid))
        self._reorder(workload, first)

    def _reorder(self, workload: str, before: Rank | None) -> None:
        """A workload may have another place among all."""
        ranks = self._workloads[workload].ranks
        after = ranks[0][0] if ranks else None
        if before == after:
            return
        if before is not None:
            del self._order[bisect_left(self._order, before)]
        if after is not None:
            insort(self._order, after)
        self._is_reordered = self._most is not None

    def _bar(self) -> None:
        """Bar pods of workloads that fell out of the limit, and let in those of others; O(workloads)."""
        self._is_reordered, within = False, {name for _, _, name in self._order[: self._most]}
        self._turned |= within ^ self._within
        self._within = within
        for name in sorted(self._turned):
            barred = name not in within
            for claim in tuple(self._workloads[name].claims.values()) if name in self._workloads else ():
                if claim.settled or claim.barred == barred:
                    continue
                if self._move(claim, taken=claim.taken and not barred, barred=barred):
                    return  # so its workload has one, too
            self._turned.discard(name)


def _amounts(limits: Sequence[Quota]) -> tuple[float, float]:
    cpu = min((one.cpu for one in limits if one.cpu is not None), default=math.inf)
    return cpu, min((one.memory for one in limits if one.memory is not None), default=math.inf)
