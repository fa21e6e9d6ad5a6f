"""Tables of marks, rules, preferences and budgets, from a workload's placements and its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.tables import affinity_records as records
from slacktide.kernels.tables import schema
from slacktide.model import Hosts, Placement, Term, Topology, Workload
from slacktide.model.matching import matching_hosts
from slacktide.model.placement import CLUSTER, HOST

RULES = {"near": records.NEAR_BY, "away": records.AWAY, "spread": records.SPREAD}


def domains(topology: Topology, hosts: Hosts) -> NDArray[np.int32]:
    """The domain of every host in a topology, from 0 in order of appearance, or -1; shape (hosts,)."""
    if topology.key == HOST:
        found = np.arange(len(hosts), dtype=np.int32)
    elif topology.key == CLUSTER:
        found = np.zeros(len(hosts), np.int32)
    else:
        numbers: dict[str | None, int] = {None: -1}
        values = (attributes.get(topology.key) for attributes in hosts.attributes)
        found = np.array([numbers.setdefault(value, len(numbers) - 1) for value in values], np.int32)
    if not topology.within.constraints or found.max(initial=-1) < 0:  # made-up keys cost no search for hosts
        return found
    inside = matching_hosts([topology.within], hosts)[0] & (found >= 0)
    _, renumbered = np.unique(found[inside], return_inverse=True)
    found = np.full(len(hosts), -1, np.int32)
    found[inside] = renumbered
    return found


class Counters:
    """Which marks are counted over which domains: those that any placement asks about."""

    def __init__(self) -> None:
        self.topologies: dict[Topology, int] = {}
        self.numbers: dict[tuple[str, int], int] = {}
        self.by_mark: dict[str, list[int]] = {}

    def number(self, mark: str, topology: Topology) -> int:
        """The counter of a mark over a topology, a new one where there was none."""
        at = self.topologies.setdefault(topology, len(self.topologies))
        known = self.numbers.get((mark, at))
        if known is None:
            known = self.numbers[mark, at] = len(self.numbers)
            self.by_mark.setdefault(mark, []).append(known)
        return known

    def note(self, placement: Placement) -> None:
        """Make sure that there is a counter for all that a placement asks about."""
        for mark, topology in placement.asked:
            self.number(mark, topology)

    def of_marks(self, placement: Placement) -> list[int]:
        """Counters that count instances of this placement."""
        return sorted({c for mark in placement.marks for c in self.by_mark.get(mark, [])})


def counter_rows(counters: Counters, domain: NDArray[np.int32], known: int = 0, first: int = 0) -> tuple[Any, int]:
    """The records of all counters but the first ``known`` ones, and where their tallies end, which begin at ``first``.

    ``domain`` has shape (topologies, hosts).
    """
    table = np.zeros(len(counters.numbers) - known, records.COUNTER)
    for row, (_, topology) in enumerate(islice(counters.numbers, known, None)):
        count = int(domain[topology].max(initial=-1)) + 1
        table[row] = (topology, first, count, 0)
        first += count
    return table, first


def count_placed(
    carried: Mapping[int, Sequence[int]],
    instances: Any,
    domain: NDArray[np.int32],
    table: Any,
    tallies: NDArray[np.int64],
) -> None:
    """Add the instances that are on hosts to tallies and totals of counters; ``carried`` are those of each kind.

    O(instances * topologies), and O(domains) for each counter: kinds that carry the same are counted together.
    """
    together: dict[tuple[int, ...], int] = {}
    placed = instances[instances["state"] == schema.PLACED]
    part_of = np.full(int(placed["kind"].max(initial=-1)) + 1, -1)
    for kind, counters in carried.items():
        if kind < len(part_of):
            part_of[kind] = together.setdefault(tuple(counters), len(together))
    parts = part_of[placed["kind"]]
    order = np.argsort(parts, kind="stable")
    hosts, ends = placed["host"][order], np.searchsorted(parts[order], np.arange(len(together) + 1))
    for counters, part in together.items():
        on = hosts[ends[part] : ends[part + 1]]
        counted: dict[int, NDArray[np.int64]] = {}
        for c in counters:
            topology, first, count, _ = table[c].tolist()
            if topology not in counted:
                domains_of = domain[topology, on]
                counted[topology] = np.bincount(domains_of[domains_of >= 0], minlength=count)
            tallies[first : first + count] += counted[topology]
            table[c]["total"] += counted[topology].sum()


RECORDS = {"marks": np.dtype(np.int64), "conditions": records.CONDITION, "preferences": records.PREFERENCE}


@dataclass(slots=True)
class AffinityRows:
    """What kinds ask for, one after the other, that is not in the tables yet; ``entered`` rows of each are."""

    marks: list[int] = field(default_factory=list)
    conditions: list[tuple[int, ...]] = field(default_factory=list)
    preferences: list[tuple[int, ...]] = field(default_factory=list)
    entered: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RECORDS, 0))

    def place(self, name: str, count: int) -> dict[str, int]:
        """Where the next ``count`` rows of a table are, as a kind's record has it."""
        return {f"{name}_at": self.entered[name] + len(getattr(self, name)), name: count}

    def arrays(self) -> dict[str, Any]:
        """These rows, by the name of their table."""
        return {name: np.array(getattr(self, name), dtype) for name, dtype in RECORDS.items()}


def add_marks(rows: AffinityRows, carried: Sequence[int]) -> dict[str, int]:
    """Append the counters that count a kind; the fields of its record."""
    places = rows.place("marks", len(carried))
    rows.marks.extend(carried)
    return places


def add_kind(
    rows: AffinityRows, placement: Placement, counters: Counters, term_number: dict[Term, int]
) -> dict[str, int]:
    """Append what a placement asks for; the fields of its kind's record."""
    carried = counters.of_marks(placement)
    places = rows.place("conditions", len(placement.rules)) | rows.place("preferences", len(placement.preferences))
    places |= add_marks(rows, carried)
    counted = frozenset(carried)
    for rule in placement.rules:
        c = counters.number(rule.mark, rule.topology)
        mark = counters.by_mark[rule.mark][0]
        rows.conditions.append((RULES[rule.kind], c, mark, rule.skew, rule.min_domains, int(c in counted), 0))
    for preference in placement.preferences:
        c = counters.number(preference.mark, preference.topology) if preference.mark else -1
        rows.preferences.append((preference.weight, c, 0 if preference.mark else term_number[preference.term]))
    return places


def preferred_terms(placements: Sequence[Placement]) -> list[Term]:
    """Terms that preferences speak of, each once."""
    return list({one.term: None for placement in placements for one in placement.preferences if not one.mark})


def counters_of(workload: Workload) -> Counters:
    """Those of a simulated run."""
    counters = Counters()
    for placement in workload.placements:
        counters.note(placement)
    return counters


def arrays(
    workload: Workload, hosts: Hosts, kinds: Any, placement_of_kind: NDArray[np.int64], counters: Counters
) -> dict[str, Any]:
    """Tables of a simulated run by their names; fills the kinds' own fields.

    Terms of preferences stand behind the workload's own in ``allowed``.
    """
    numbers = {term: len(workload.terms) + i for i, term in enumerate(preferred_terms(workload.placements))}
    rows = AffinityRows()
    for k, at in enumerate(placement_of_kind):
        for name, value in add_kind(rows, workload.placements[at], counters, numbers).items():
            kinds[k][name] = value
    domain = np.full((len(counters.topologies), len(hosts)), -1, np.int32)
    for topology, t in counters.topologies.items():
        domain[t] = domains(topology, hosts)
    table, ends = counter_rows(counters, domain)
    return {
        "counters": table,
        "tallies": np.zeros(ends, np.int64),
        "domain": domain,
        **rows.arrays(),
        "points": np.zeros(len(hosts), np.int64),
        **budget_arrays(workload),
    }


def budget_arrays(workload: Workload) -> dict[str, Any]:
    """Budgets of a simulated run, nobody live yet."""
    budgets = np.zeros(len(workload.budgets), records.BUDGET)
    for b, budget in enumerate(workload.budgets):
        if budget.max_unavailable is not None:
            budgets[b] = (records.UNAVAILABLE, budget.max_unavailable, 0, 0, 0)
        else:
            budgets[b] = (records.AVAILABLE, budget.min_available, 0, 0, 0)
    return {"budgets": budgets} if workload.budget is None else {"budgets": budgets, "budget": workload.budget}
