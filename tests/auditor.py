"""Checks a decision log against the physics of a cluster; knows no policy, no metric and none of the package's code.

Only times, hosts and amounts are replayed: who is where, whether it fits, whether it may be there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from clusters import Cluster
from runs import Decision
from slacktide.model import Term

SLACK = Fraction(1, 10**6)
"""Amounts are rounded to whole numbers of at most this share of the unit."""


def satisfied(term: Term, attributes: dict[str, str]) -> bool:
    """Whether a host may be used, worked out from the words alone."""
    for constraint in term.constraints:
        there = attributes.get(constraint.key)
        if constraint.op == "/=":
            good = there != constraint.value
        elif there is None:
            good = False
        elif constraint.op == "==":
            good = there == constraint.value
        else:
            try:
                low, high = float(there), float(constraint.value)
            except ValueError:
                return False
            good = low < high if constraint.op == "<" else low > high
        if not good:
            return False
    return True


@dataclass
class Audit:
    """Who is on which host while the log is replayed."""

    cluster: Cluster
    completed: dict[int, float]
    where: dict[int, int] = field(default_factory=dict)
    on: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    down: set[int] = field(default_factory=set)
    placed_in: dict[int, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        self.faults.append(text)

    def take_off(self, row: int) -> None:
        host = self.where.pop(row)
        self.on[host].discard(row)

    def replay(self, log: Sequence[Decision]) -> list[str]:
        """All that is wrong with the log, in words."""
        ends = sorted((time, 0, row) for row, time in self.completed.items())
        changes = [(round(time * 2**20) / 2**20, 1, place) for place, (time, _, _) in enumerate(self.cluster.events)]
        happenings = sorted([*ends, *changes])
        for decision in log:
            while happenings and happenings[0][0] <= decision[1]:
                self.happen(*happenings.pop(0))
            self.decide(decision)
        return self.faults

    def happen(self, time: float, kind: int, which: int) -> None:
        if kind == 0:
            if which not in self.where:
                self.fault(f"{time}: {which} completes without running")
            else:
                self.take_off(which)
            return
        _, host, word = self.cluster.events[which]
        if word == "repair":
            self.down.discard(host)
            return
        self.down.add(host)
        for row in list(self.on[host]):
            self.take_off(row)

    def decide(self, decision: Decision) -> None:
        number, time, row, host, victims = decision
        here = f"pass {number}, {time} s, request {row} on host {host}"
        if row in self.where:
            self.fault(f"{here}: bound twice")
        if time + 1e-6 < self.cluster.workload.admission[row]:
            self.fault(f"{here}: before its admission")
        for victim in victims:
            if self.where.get(victim) != host:
                self.fault(f"{here}: victim {victim} is not there")
            elif self.placed_in.get(victim) == number:
                self.fault(f"{here}: victim {victim} was placed in this very pass")
            if victim in self.where:
                self.take_off(victim)
        self.check_place(row, host, here)
        self.where[row] = host
        self.on[host].add(row)
        self.placed_in[row] = number
        self.check_room(host, here)

    def check_place(self, row: int, host: int, here: str) -> None:
        workload = self.cluster.workload
        if host in self.down:
            self.fault(f"{here}: the host is down")
        if not satisfied(workload.terms[workload.term[row]], dict(self.cluster.hosts.attributes[host])):
            self.fault(f"{here}: constraint broken")
        siblings = [k for k in self.on[host] if workload.job[k] == workload.job[row]]
        if workload.anti_affinity[row] and siblings:
            self.fault(f"{here}: beside {siblings} of its anti-affine job")

    def check_room(self, host: int, here: str) -> None:
        for r, capacity in enumerate(self.cluster.hosts.capacity[host]):
            used = sum((Fraction(float(self.cluster.workload.demand[k, r])) for k in self.on[host]), Fraction(0))
            if used > Fraction(float(capacity)) + SLACK:
                self.fault(f"{here}: resource {r} exceeded, {float(used)} of {capacity}")


def audit(cluster: Cluster, log: Sequence[Decision], completed: dict[int, float]) -> list[str]:
    """All that is wrong with a decision log; ``completed`` maps rows to seconds."""
    return Audit(cluster, completed).replay(log)
