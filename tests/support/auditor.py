"""Checks a decision log against the physics of a cluster; knows no policy, no metric and none of the package's code.

Only times, hosts and amounts are replayed: who is where, whether it fits, whether it may be there; and of
requests of several instances who is there at all, who is removed, who starts with whom, and what is lost. Rules
about neighbours, budgets and ``policy.min_running`` are asked at every placement (``audit_neighbours``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import NamedTuple

import numpy as np

from slacktide.model import Constraint, Term
from slacktide.model.workload import CONCURRENT
from slacktide.sim import RunResult
from support.audit_neighbours import broken_rules, overdrawn
from support.clusters import POLICIES_WITH_RULES, Cluster
from support.runs import Decision, decisions_of

SLACK = Fraction(1, 10**6)
"""Amounts are rounded to whole numbers of at most this share of the unit."""


def satisfied(term: Term, attributes: dict[str, str]) -> bool:
    """Whether a host may be used, by the text of the constraints alone."""
    for constraint in term.constraints:
        assert isinstance(constraint, Constraint), "what files cannot say does not come up here"
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


COMPLETION, HOST, SCALE, ARRIVAL = range(4)
"""What happens at one instant, in this order; then decisions."""

GANGS = POLICIES_WITH_RULES
"""Policies that start gangs as a whole."""


class Happening(NamedTuple):
    """``which``: a row that completes or comes, a place among the host or scale events."""

    time: float
    kind: int
    which: int


def on_grid(seconds: float) -> float:
    """As times are rounded (docs/semantics.md, Times)."""
    return seconds if seconds == inf else round(float(seconds) * 2**20) / 2**20


@dataclass
class Audit:
    """Who is there and on which host while the log is replayed."""

    cluster: Cluster
    completed: Mapping[int, float]
    removed: Mapping[int, float] = field(default_factory=dict)
    live: set[int] = field(default_factory=set)
    held_back: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By batch request: rows to be released."""
    where: dict[int, int] = field(default_factory=dict)
    on: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    down: set[int] = field(default_factory=set)
    placed_in: dict[int, int] = field(default_factory=dict)
    placed_at: dict[int, float] = field(default_factory=dict)
    ready_from: dict[int, float] = field(default_factory=dict)
    """When its start-up ends at the earliest."""
    starts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    been_on: set[tuple[int, int]] = field(default_factory=set)
    ran: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds on hosts, start-ups among them, that are not lost."""
    awaited: list[int] = field(default_factory=list)
    """Rows of a gang that have to start next."""
    faults: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        self.faults.append(text)

    # Requests of several instances

    def request_of(self, row: int) -> int:
        """Its request, -1 where every row is one."""
        of = self.cluster.workload.request
        return -1 if of is None else int(of[row])

    def siblings(self, row: int) -> list[int]:
        """Live rows of its request, itself among them, in order."""
        mine = self.request_of(row)
        return sorted(k for k in self.live if self.request_of(k) == mine) if mine >= 0 else [row]

    def loses(self, row: int) -> bool:
        """Whether a stopped instance starts from nothing again."""
        work, requests = self.cluster.config.simulation.preempted_work, self.cluster.workload.requests
        batch = requests is not None and bool(requests.batch[self.request_of(row)])
        return work == "lost" or (work == "by-kind" and batch)

    def goes_in_gang(self, row: int) -> bool:
        """Whether it starts with all others of its request that wait, or not at all."""
        requests, policy = self.cluster.workload.requests, self.cluster.config.policy
        if requests is None or not policy.gang or policy.name not in GANGS:
            return False
        index = self.request_of(row)
        return requests.approach[index] == CONCURRENT and not requests.batch[index] and len(self.siblings(row)) > 1

    # What happens

    def happenings(self) -> list[Happening]:
        """All that is known to happen before the end, in order; at the end only completions."""
        workload, end = self.cluster.workload, self.cluster.config.simulation.end
        ends = [Happening(time, COMPLETION, row) for row, time in self.completed.items()]
        others = [
            *(Happening(on_grid(e[0]), HOST, place) for place, e in enumerate(self.cluster.events)),
            *(Happening(on_grid(t), ARRIVAL, row) for row, t in enumerate(workload.admission.tolist())),
        ]
        if workload.requests is not None:
            times = workload.requests.scale_time.tolist()
            others += [Happening(on_grid(t), SCALE, place) for place, t in enumerate(times)]
        final = inf if end is None else on_grid(end)
        return sorted(ends + [one for one in others if one.time < final])

    def replay(self, log: Sequence[Decision]) -> list[str]:
        """All that is wrong with the log, in words."""
        happenings = self.happenings()
        for decision in log:
            while happenings and happenings[0].time <= decision[1]:
                self.happen(*happenings.pop(0))
            self.decide(decision)
        for one in happenings:
            self.happen(*one)
        if self.awaited:
            self.fault(f"rows {self.awaited} of a gang never started")
        for row in self.removed:
            if row in self.live:
                self.fault(f"row {row} is removed when nothing is scaled")
        return self.faults

    def happen(self, time: float, kind: int, which: int) -> None:
        if kind == COMPLETION:
            self.complete(time, which)
        elif kind == HOST:
            self.change_host(time, which)
        elif kind == SCALE:
            self.scale(time, which)
        else:
            self.arrive(which)

    def complete(self, time: float, row: int) -> None:
        if row not in self.where:
            self.fault(f"{time}: {row} completes without running")
            return
        self.check_work(time, row)
        self.take_off(row, time, stopped=False)
        self.live.discard(row)
        following = self.held_back[self.request_of(row)]
        end = self.cluster.config.simulation.end
        if following and (end is None or time < on_grid(end)):
            self.live.add(following.pop(0))

    def check_work(self, time: float, row: int) -> None:
        """It completes when what it kept, start-ups apart, is what it had to do."""
        delays = (*self.cluster.hot, *self.cluster.cold)
        starts = 1 if self.loses(row) else self.starts[row]
        done = self.ran[row] + time - self.placed_at[row]
        least = on_grid(self.cluster.workload.duration[row]) + on_grid(min(delays))
        if not least - 1e-6 <= done <= least + starts * max(delays) + 1e-6:
            self.fault(f"{time}: {row} completes after {done} s on hosts, expected {least} s and its start-ups")

    def change_host(self, time: float, which: int) -> None:
        _, host, word = self.cluster.events[which][:3]
        assert word in ("fail", "drain", "repair"), f"the auditor does not know what {word!r} does to room and rules"
        if word == "repair":
            self.down.discard(host)
            return
        self.down.add(host)
        for row in list(self.on[host]):
            self.take_off(row, time)

    def scale(self, time: float, which: int) -> None:
        """As many go as there are too many, those who wait first."""
        requests = self.cluster.workload.requests
        assert requests is not None
        index, wanted = int(requests.scale_request[which]), int(requests.scale_replicas[which])
        live = [row for row in self.live if self.request_of(row) == index]
        gone = [row for row in live if self.removed.get(row) == time]
        if len(gone) != max(0, len(live) - wanted):
            self.fault(f"{time}: request {index} gives up {gone} of {live} to have {wanted}")
        some_ran = any(row in self.where for row in gone)
        for row in gone:
            self.live.discard(row)
            if row in self.where:
                self.take_off(row, time, stopped=False)
        if some_ran and any(row not in self.where for row in live if row in self.live):
            self.fault(f"{time}: request {index} gives up one on a host while another waits")

    def arrive(self, row: int) -> None:
        requests, index = self.cluster.workload.requests, self.request_of(row)
        window = int(requests.parallelism[index]) if requests is not None and requests.batch[index] else 0
        if window and len([k for k in self.live if self.request_of(k) == index]) >= window:
            self.held_back[index].append(row)
        else:
            self.live.add(row)

    def take_off(self, row: int, time: float, stopped: bool = True) -> None:
        host = self.where.pop(row)
        self.on[host].discard(row)
        self.ran[row] += time - self.placed_at[row]
        if stopped and self.loses(row):
            self.ran[row] = 0.0

    # Decisions

    def decide(self, decision: Decision) -> None:
        number, time, row, host, victims = decision
        here = f"pass {number}, {time} s, request {row} on host {host}"
        if row in self.where:
            self.fault(f"{here}: bound twice")
        if row not in self.live:
            self.fault(f"{here}: it is not there yet, or no more")
        self.check_gang(row, here)
        self.check_victims(row, host, victims, time, here)
        for victim in victims:
            if self.where.get(victim) != host:
                self.fault(f"{here}: victim {victim} is not there")
            elif self.placed_in.get(victim) == number:
                self.fault(f"{here}: victim {victim} was placed in this very pass")
            if victim in self.where:
                self.take_off(victim, time)
        self.check_place(row, host, here)
        self.where[row] = host
        self.on[host].add(row)
        self.placed_in[row], self.placed_at[row] = number, time
        delays = self.cluster.hot if (row, host) in self.been_on else self.cluster.cold
        self.ready_from[row] = time + on_grid(min(delays))
        self.been_on.add((row, host))
        self.starts[row] += 1
        self.check_room(host, here)

    def check_gang(self, row: int, here: str) -> None:
        """All who wait start in this pass, one directly after the other."""
        if self.awaited:
            if row != self.awaited[0]:
                self.fault(f"{here}: rows {self.awaited} of a gang that began to start have their turn")
            self.awaited = [k for k in self.awaited if k != row]
        elif self.goes_in_gang(row):
            waiting = [k for k in self.siblings(row) if k not in self.where]
            if waiting[:1] != [row]:
                self.fault(f"{here}: the first of the gang's {waiting} has its turn")
            self.awaited = [k for k in waiting if k != row]

    def check_victims(self, row: int, host: int, victims: Sequence[int], time: float, here: str) -> None:
        """None too young, none beyond a budget, and none where a rule fails that this cannot mend."""
        if not victims:
            return
        least = on_grid(self.cluster.config.policy.min_running)
        young = [k for k in victims if time - self.placed_at.get(k, -inf) < least]
        if young:
            self.fault(f"{here}: victims {young} had not run long enough")
        beyond = overdrawn(self.cluster, victims, self.live, lambda k: k in self.where and time >= self.ready_from[k])
        if beyond:
            self.fault(f"{here}: budget overdrawn, victims are {beyond}")
        broken = broken_rules(self.cluster, row, host, self.where, satisfied, ("near", "spread"))
        if broken:
            self.fault(f"{here}: preempts where {broken} fails")

    def check_place(self, row: int, host: int, here: str) -> None:
        workload = self.cluster.workload
        if host in self.down:
            self.fault(f"{here}: the host is down")
        if not satisfied(workload.terms[workload.term[row]], dict(self.cluster.hosts.attributes[host])):
            self.fault(f"{here}: constraint broken")
        broken = broken_rules(self.cluster, row, host, self.where, satisfied)
        if broken:
            self.fault(f"{here}: rule broken: {broken}")
        siblings = [k for k in self.on[host] if workload.job[k] == workload.job[row]]
        if workload.anti_affinity[row] and siblings:
            self.fault(f"{here}: beside {siblings} of its anti-affine job")

    def check_room(self, host: int, here: str) -> None:
        for r, capacity in enumerate(self.cluster.hosts.capacity[host]):
            used = sum((Fraction(float(self.cluster.workload.demand[k, r])) for k in self.on[host]), Fraction(0))
            if used > Fraction(float(capacity)) + SLACK:
                self.fault(f"{here}: resource {r} exceeded, {float(used)} of {capacity}")


def audit(
    cluster: Cluster,
    log: Sequence[Decision],
    completed: Mapping[int, float],
    removed: Mapping[int, float] | None = None,
) -> list[str]:
    """All that is wrong with a decision log; ``completed`` and ``removed`` map rows to seconds."""
    return Audit(cluster, completed, removed or {}).replay(log)


def faults_of(cluster: Cluster, result: RunResult) -> list[str]:
    """All that is wrong with a run of the core whose decisions were recorded."""
    rows = result.requests if result.instances is None else result.instances
    instants = []
    for name in ("completed", "removed"):
        times = rows.get(name, np.full(len(rows["row"]), np.nan))
        there = ~np.isnan(times)
        instants.append(dict(zip(rows["row"][there].tolist(), times[there].tolist(), strict=True)))
    return audit(cluster, decisions_of(result), *instants)
