"""All pods that claim a class in a namespace that quotas bound: who gets a promise, and how much is used.

Pods that have a place (they are settled) have what they have. The others stand in a line, :mod:`.quota_line`; those of
workloads beyond the limit of workloads are barred there. That a pod has got a place is noticed when it would lose its
promise otherwise: until then it makes no difference, as what comes before it in the line is the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.quota_line import Claim, Line, QueuePosition, Rank
from slacktide.kube.translate.disruption_budgets import Quota


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
        self._most = _most_workloads(limits)
        self._turned: dict[str, None] = {}
        """Workloads that came within the limit of workloads, or fell out of it, and whose pods are to hear of it."""
        self._before: dict[str, bool] = {}
        """Whether pods were refused, of those looked at since the last :meth:`decide`."""
        self._provisional: dict[str, None] = {}
        """Settled pods that are on no node yet: what was decided for them may be given up."""

    # -- what is so now --------------------------------------------------------------------------------------------

    @property
    def used(self) -> tuple[int, int, int]:
        """Nanos of CPU and of memory, and workloads that have a place."""
        settled = bisect_left(self._order, (True, -math.inf, ""))
        places = max(settled, len(self._order) if self._most == math.inf else min(len(self._order), int(self._most)))
        return (*self._line.taken, places)

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
        for claim in claims:
            if claim.settled:
                fresh._line.add_base(claim.amounts)
                fresh._watch(claim)
            else:
                claim.barred = not fresh._is_within(claim.workload)
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
            if self._turned:
                self._tell_turned(next(iter(self._turned)))
                continue
            wrong = self._line.first_wrong()
            if wrong is None:
                break
            self._move(wrong, taken=not wrong.taken, barred=False)
        before, self._before = self._before, {}
        return [uid for uid, was in before.items() if was != (uid in self.refused)]

    # -- the line --------------------------------------------------------------------------------------------------

    def _stand(self, claim: Claim) -> None:
        claim.barred = not self._is_within(claim.workload)
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

    def _is_within(self, workload: str) -> bool:
        """Whether a workload is among those that may have pods."""
        ranks = self._workloads[workload].ranks
        return self._most == math.inf or bisect_left(self._order, ranks[0][0]) < self._most

    def _rank(self, workload: str, before: Rank, after: Rank | None, uid: str) -> None:
        """A pod of a workload ranks otherwise than before, or no more."""
        ranks = self._workloads[workload].ranks
        first = ranks[0][0]
        del ranks[bisect_left(ranks, (before, uid))]
        if after is not None:
            insort(ranks, (after, uid))
        self._reorder(workload, first)

    def _reorder(self, workload: str, before: Rank | None) -> None:
        """A workload may have another place among all; those at the limit may come within it or fall out."""
        ranks = self._workloads[workload].ranks
        after = ranks[0][0] if ranks else None
        if before == after:
            return
        if before is not None:
            self._turn(place := bisect_left(self._order, before), +1)
            del self._order[place]
        if after is not None:
            self._turn(place := bisect_left(self._order, after), 0)
            self._order.insert(place, after)
            self._turned[workload] = None

    def _turn(self, place: int, further: int) -> None:
        """Something before the limit of workloads goes from the order (``further`` 1) or comes into it (0)."""
        at = self._most - 1 + further
        if place < self._most and 0 <= at < len(self._order):
            self._turned[self._order[int(at)][2]] = None

    def _tell_turned(self, workload: str) -> None:
        """Bar a workload's pods, or let them in."""
        del self._turned[workload]
        if workload not in self._workloads:
            return
        barred = not self._is_within(workload)
        for claim in tuple(self._workloads[workload].claims.values()):
            if claim.settled or claim.barred == barred:
                continue
            if self._move(claim, taken=claim.taken and not barred, barred=barred):  # so its workload has one, too
                self._turned[workload] = None
                return


def _amounts(limits: Sequence[Quota]) -> tuple[float, float]:
    cpu = min((one.cpu for one in limits if one.cpu is not None), default=math.inf)
    return cpu, min((one.memory for one in limits if one.memory is not None), default=math.inf)


def _most_workloads(limits: Sequence[Quota]) -> float:
    return min((one.workloads for one in limits if one.workloads is not None), default=math.inf)
