"""The columns about affinity and budgets, from distinct texts to a workload's placements and budgets."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns import affinity_text
from slacktide.inputs.columns.affinity_text import NamedBudget
from slacktide.inputs.columns.cells import Distinct
from slacktide.inputs.problems import Problems
from slacktide.model import Budget, Placement, Preference, Rule

Codes = NDArray[np.int32]


@dataclass(slots=True)
class AffinityTables:
    """What the cells of one file say."""

    marks: Distinct[tuple[str, ...]] = field(default_factory=lambda: Distinct(affinity_text.parse_marks))
    rules: Distinct[tuple[Rule, ...]] = field(default_factory=lambda: Distinct(affinity_text.parse_rules))
    preferences: Distinct[tuple[Preference, ...]] = field(
        default_factory=lambda: Distinct(affinity_text.parse_preferences)
    )
    budget: Distinct[NamedBudget | None] = field(default_factory=lambda: Distinct(affinity_text.parse_budget))


EXPECTED = {
    "marks": affinity_text.EXPECTED_MARKS,
    "rules": affinity_text.EXPECTED_RULES,
    "preferences": affinity_text.EXPECTED_PREFERENCES,
    "budget": affinity_text.EXPECTED_BUDGET,
}
"""By column, what its cells may hold."""


@dataclass(slots=True)
class AffinityColumns:
    """The columns as read, shape (n,): numbers in ``tables``, 0 where the cell is empty or broken."""

    marks: Codes
    rules: Codes
    preferences: Codes
    budget: Codes
    tables: AffinityTables

    @classmethod
    def empty_cells(cls, count: int, tables: AffinityTables) -> AffinityColumns:
        """``count`` rows in which nothing is given."""
        return cls(**{name: np.zeros(count, np.int32) for name in EXPECTED}, tables=tables)

    def placements(self) -> tuple[Codes, tuple[Placement, ...]] | None:
        """Each row's index among the distinct placements; ``None`` where nobody has affinity of any kind."""
        if not (self.marks.any() or self.rules.any() or self.preferences.any()):
            return None
        marks, rules, preferences = (
            table.values for table in (self.tables.marks, self.tables.rules, self.tables.preferences)
        )
        key = (self.marks.astype(np.int64) * len(rules) + self.rules) * len(preferences) + self.preferences
        found, index = np.unique(key, return_inverse=True)
        rest, third = np.divmod(found, len(preferences))
        first, second = np.divmod(rest, len(rules))
        made = [
            Placement(marks[a], rules[b], preferences[c])
            for a, b, c in zip(first.tolist(), second.tolist(), third.tolist(), strict=True)
        ]
        return index.reshape(-1).astype(np.int32), tuple(made)

    def budgets(self, lines: NDArray[np.int64] | None, problems: Problems) -> tuple[Codes, tuple[Budget, ...]] | None:
        """Each row's index among the budgets, -1 for none; ``None`` where nobody has one.

        Adds to ``problems`` every cell that gives a name another bound than another row does, and every
        name that has no bound in any row.
        """
        if not self.budget.any():
            return None
        known: dict[str, tuple[int, Budget]] = {}
        listed = self.tables.budget.values[1:]
        texts = ["", *(_text(one) for one in listed)]
        index = np.full(len(texts), -1, np.int32)
        for code, one in enumerate(listed, start=1):
            if one is None or one[1] is None:
                continue
            name, bound = one[0], one[1]
            if name in known:
                expected = f"{affinity_text.format_budget(known[name][1])!r}, as in another row, or {name!r} alone"
                self._refuse(code, texts[code], expected, lines, problems)
            else:
                known[name] = len(known), affinity_text.budget_of(name, bound)
                index[code] = known[name][0]
        for code, one in enumerate(listed, start=1):
            if one is not None and one[1] is None:
                if one[0] in known:
                    index[code] = known[one[0]][0]
                else:
                    expected = f"a bound in one of the rows, such as '{texts[code]} max-unavailable 1'"
                    self._refuse(code, texts[code], expected, lines, problems)
        return index[self.budget], tuple(budget for _, budget in known.values())

    def _refuse(self, code: int, text: str, expected: str, lines: NDArray[np.int64] | None, problems: Problems) -> None:
        problems.add_rows(self.budget == code, lines, "budget", [text] * len(self.budget), expected)


def _text(one: NamedBudget | None) -> str:
    if one is None:
        return ""
    name, bound = one
    return name if bound is None else affinity_text.format_budget(affinity_text.budget_of(name, bound))
