"""Random marks, rules, preferences and budgets for the rows of a workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.model import (
    NO_CONSTRAINT,
    NO_NEIGHBOURS,
    Budget,
    Placement,
    Preference,
    Rule,
    Term,
    Topology,
    Workload,
)
from slacktide.model.placement import CLUSTER, HOST, RuleKind

MARKS = ("web", "batch", "port:80", "nobody")
"""The last is carried by none."""


class Neighbourhood:
    """What is drawn for one cluster; ``terms`` are those that topologies and preferences may have."""

    def __init__(self, random: np.random.Generator, terms: Sequence[Term]) -> None:
        self.random = random
        self.terms = terms
        self.rules = float(self.pick(0.0, 0.5, 0.8, 1.0, 1.0))
        """Share of placements that have rules; likewise below."""
        self.preferences = float(self.pick(0.0, 0.4, 1.0))
        self.kinds: tuple[RuleKind, ...] = self.pick(
            ("near", "away", "spread"), ("near", "away", "spread"), ("near",), ("away",), ("spread",)
        )

    def pick(self, *options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def policy(self) -> dict[str, Any]:
        """Settings that let rules and budgets decide: at times everybody preempts readily, or nobody too early."""
        found: dict[str, Any] = {"min_running": float(self.pick(0.0, 0.0, 0.0, 5.0, 12.3, 30.0))}
        if self.chance(0.4):
            found |= {"preempt_when": "better", "patience": 0.0, "overhead_scope": "none"}
        return found

    def among(self, workload: Workload) -> Workload:
        """The workload with placements and budgets, now and then without one of the two."""
        # With less demand rules say more often than room where somebody goes.
        workload = replace(workload, demand=workload.demand * float(self.pick(1.0, 1.0, 0.5, 0.25)))
        what = self.pick("both", "both", "placements", "placements", "budgets")
        if what != "budgets":
            made = [self.placement() for _ in range(int(self.random.integers(2, 7)))]
            drawn = tuple(dict.fromkeys([NO_NEIGHBOURS, *made]))
            without = int(self.chance(0.8))
            chosen = self.shared(workload, without, len(drawn) if len(drawn) > 1 else 2) % len(drawn)
            workload = replace(workload, placement=chosen, placements=drawn)
        if what != "placements":
            budgets = tuple(self.budget(f"budget-{number}") for number in range(int(self.random.integers(1, 5))))
            workload = replace(workload, budget=self.shared(workload, -1, len(budgets)), budgets=budgets)
        return workload

    def shared(self, workload: Workload, low: int, high: int) -> NDArray[np.int32]:
        """A number for each row, ``low`` <= it < ``high``: mostly one for all of a request, or of a job."""
        groups = workload.job if workload.request is None else workload.request.astype(np.int64)
        each = {group: int(self.random.integers(low, high)) for group in sorted(set(groups.tolist()))}
        numbers = np.array([each[group] for group in groups.tolist()], np.int32)
        apart = self.random.random(len(workload)) < float(self.pick(0.0, 0.05, 0.3))
        return np.where(apart, self.random.integers(low, high, len(workload)), numbers).astype(np.int32)

    def placement(self) -> Placement:
        marks = tuple(mark for mark in MARKS[:-1] if self.chance(0.4))
        rules = [self.rule(marks) for _ in range(int(self.pick(1, 2, 2, 3)))] if self.chance(self.rules) else []
        some = self.chance(self.preferences)
        preferences = [self.preference() for _ in range(int(self.pick(1, 2, 3)))] if some else []
        return Placement(marks, tuple(rules), tuple(preferences))

    def topology(self) -> Topology:
        key = self.pick(HOST, HOST, CLUSTER, "zone", "zone", "speed", "disk", "rack")
        return Topology(key, self.pick(*self.terms) if self.chance(0.25) else NO_CONSTRAINT)

    def rule(self, marks: Sequence[str]) -> Rule:
        """Mostly about a mark of its own: instances that are to be together, or apart, are often alike."""
        kind = self.pick(*self.kinds)
        mark = self.pick(*marks) if marks and self.chance(0.6) else self.pick(*MARKS)
        if kind != "spread":
            return Rule(kind, mark, self.topology())
        return Rule(kind, mark, self.topology(), int(self.pick(1, 1, 2, 3)), int(self.pick(1, 1, 2, 4)))

    def preference(self) -> Preference:
        weight = int(self.pick(-100, -7, -1, 1, 1, 3, 50))
        if self.chance(0.25):
            return Preference(weight, term=self.pick(*self.terms))
        return Preference(weight, self.pick(*MARKS), self.topology())

    def budget(self, name: str) -> Budget:
        if self.chance(0.5):
            return Budget(name, max_unavailable=int(self.pick(0, 1, 1, 2, 3)))
        return Budget(name, min_available=int(self.pick(0, 1, 1, 2, 5)))
