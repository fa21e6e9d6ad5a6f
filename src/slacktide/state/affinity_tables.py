"""Tables of marks, rules, preferences and budgets, from a workload's placements and its hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


def counter_table(counters: Counters, domain: NDArray[np.int32]) -> tuple[Any, NDArray[np.int64]]:
    """The records of all counters, and their tallies, all 0; ``domain`` has shape (topologies, hosts)."""
    table = np.zeros(len(counters.numbers), records.COUNTER)
    first = 0
    for (_, topology), c in counters.numbers.items():
        count = int(domain[topology].max(initial=-1)) + 1
        table[c] = (topology, first, count, 0)
        first += count
    return table, np.zeros(first, np.int64)


def count_placed(
    counters: Counters,
    placements: Sequence[Placement],
    instances: Any,
    domain: NDArray[np.int32],
    table: Any,
    tallies: NDArray[np.int64],
) -> None:
    """Add the instances that are on hosts to tallies and totals; ``placements`` are those of their kinds."""
    placed = instances[instances["state"] == schema.PLACED]
    order = np.argsort(placed["kind"], kind="stable")
    hosts = placed["host"][order]
    begins = np.searchsorted(placed["kind"][order], np.arange(len(placements) + 1))
    for kind, placement in enumerate(placements):
        on = hosts[begins[kind] : begins[kind + 1]]
        if not len(on):  # as most are where many were asked for anew
            continue
        for c in counters.of_marks(placement):
            if not table[c]["domains"]:
                continue
            domains_of = domain[table[c]["topology"], on]
            domains_of = domains_of[domains_of >= 0]
            np.add.at(tallies, table[c]["first"] + domains_of, 1)
            table[c]["total"] += len(domains_of)


@dataclass(frozen=True, slots=True)
class AffinityRows:
    """What kinds ask for, one after the other, and where each kind's begins (fields of KIND by name)."""

    marks: list[int]
    conditions: list[tuple[int, ...]]
    preferences: list[tuple[int, ...]]


def add_kind(
    rows: AffinityRows, placement: Placement, counters: Counters, term_number: dict[Term, int]
) -> dict[str, int]:
    """Append what a placement asks for; the fields of its kind's record."""
    carried = counters.of_marks(placement)
    places = {
        "marks_at": len(rows.marks),
        "marks": len(carried),
        "conditions_at": len(rows.conditions),
        "conditions": len(placement.rules),
        "preferences_at": len(rows.preferences),
        "preferences": len(placement.preferences),
    }
    rows.marks.extend(carried)
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
    rows = AffinityRows([], [], [])
    for k, at in enumerate(placement_of_kind):
        for name, value in add_kind(rows, workload.placements[at], counters, numbers).items():
            kinds[k][name] = value
    domain = np.full((len(counters.topologies), len(hosts)), -1, np.int32)
    for topology, t in counters.topologies.items():
        domain[t] = domains(topology, hosts)
    table, tallies = counter_table(counters, domain)
    return {
        "counters": table,
        "tallies": tallies,
        "domain": domain,
        "marks": np.array(rows.marks, np.int64),
        "conditions": np.array(rows.conditions, records.CONDITION),
        "preferences": np.array(rows.preferences, records.PREFERENCE),
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
