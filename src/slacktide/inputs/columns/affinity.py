"""The columns about affinity and budgets, from distinct texts to a workload's placements and budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns import affinity_text
from slacktide.inputs.columns.affinity_text import NamedBudget
from slacktide.inputs.columns.cells import Codes, Distinct
from slacktide.inputs.problems import Problems
from slacktide.model import Budget, Placement


def placements(
    count: int, codes: Mapping[str, Codes], tables: Mapping[str, Distinct[Any]]
) -> tuple[Codes, tuple[Placement, ...]] | None:
    """Each row's index among the distinct placements; ``None`` where nobody has affinity of any kind.

    ``codes`` are columns by name, as far as the file has them; ``tables`` says what codes stand for.
    """
    names = ("marks", "rules", "preferences")
    columns = [codes.get(name, np.zeros(count, np.int32)) for name in names]
    if not any(one.any() for one in columns):
        return None
    marks, rules, preferences = (tables[name].values for name in names)
    key = (columns[0].astype(np.int64) * len(rules) + columns[1]) * len(preferences) + columns[2]
    found, index = np.unique(key, return_inverse=True)
    rest, third = np.divmod(found, len(preferences))
    first, second = np.divmod(rest, len(rules))
    made = [
        Placement(marks[a], rules[b], preferences[c])
        for a, b, c in zip(first.tolist(), second.tolist(), third.tolist(), strict=True)
    ]
    return index.reshape(-1).astype(np.int32), tuple(made)


def budgets(
    codes: Codes, values: Sequence[NamedBudget | None], lines: NDArray[np.int64] | None, problems: Problems
) -> tuple[Codes, tuple[Budget, ...]] | None:
    """Each row's index among the budgets, -1 for none; ``None`` where nobody has one.

    Adds to ``problems`` every cell that gives a name another bound than another row does, and every
    name that has no bound in any row.
    """
    if not codes.any():
        return None
    known: dict[str, tuple[int, Budget]] = {}
    texts = [_text(one) for one in values]
    index = np.full(len(texts), -1, np.int32)

    def refuse(code: int, expected: str) -> None:
        problems.add_rows(codes == code, lines, "budget", [texts[code]] * len(codes), expected)

    for code, one in enumerate(values):
        if one is None or one[1] is None:
            continue
        name, bound = one[0], one[1]
        if name in known:
            expected = f"{affinity_text.format_budget(known[name][1])!r}, as in another row, or {name!r} alone"
            refuse(code, expected)
        else:
            known[name] = len(known), affinity_text.budget_of(name, bound)
            index[code] = known[name][0]
    for code, one in enumerate(values):
        if one is not None and one[1] is None:
            if one[0] in known:
                index[code] = known[one[0]][0]
            else:
                refuse(code, f"a bound in one of the rows, such as '{texts[code]} max-unavailable 1'")
    return index[codes], tuple(budget for _, budget in known.values())


def _text(one: NamedBudget | None) -> str:
    if one is None:
        return ""
    name, bound = one
    return name if bound is None else affinity_text.format_budget(affinity_text.budget_of(name, bound))
