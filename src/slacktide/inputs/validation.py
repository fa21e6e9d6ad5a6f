"""What every value of a workload and of a host list must be, whatever the format it came in.

Readers turn text into columns; these rules are applied to the columns, so
that each rule is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns import access, affinity_text, instances, members, occasions
from slacktide.inputs.columns.cells import Floats, Integers, said_together
from slacktide.inputs.columns.header import LABEL_COLUMNS
from slacktide.inputs.columns.workload import WorkloadColumns
from slacktide.inputs.problems import Problems
from slacktide.inputs.rows import COLUMNS, OPTIONAL
from slacktide.model import Hosts, Label, Placement, Requests, ServiceClass, Workload, resting

LARGEST = 1e15
"""Seconds or amounts above this are taken for a mistake (whole numbers stay exact in float64 up to 9e15)."""

SECONDS = "seconds, 0 or more and at most 1e15"
SINCE = "seconds from -1e15 to 1e15; below 0: there before the run"
DURATION = "seconds above 0 and at most 1e15; inf or empty: never completes"
AMOUNT = "an amount, 0 or more and at most 1e15"
NUMBER = "a whole number from 0, given once"


def to_workload(columns: WorkloadColumns, classes: tuple[ServiceClass, ...], problems: Problems) -> Workload:
    """The columns as a workload in order of admission, a row for each instance.

    Raises :class:`InputError` for every broken value, together with what ``problems`` holds already.
    """
    lines = columns.lines
    ids, admission, duration = columns.names
    if "constraints" in columns.tables:
        columns.terms = columns.tables["constraints"].values
    check_unique(columns.ids, lines, ids, problems)
    columns.let_go()
    check_range(columns.admission, lines, admission, SINCE, problems, -LARGEST)
    if "lost" not in columns.codes and bool((columns.admission < 0.0).any()):
        columns.codes["lost"] = np.zeros(len(columns.ids), np.int32)  # they were there before, and lost nothing
    wrong = ~((columns.duration > 0) & ((columns.duration <= LARGEST) | np.isinf(columns.duration)))
    problems.add_rows(wrong, lines, duration, columns.duration, DURATION)  # type: ignore[arg-type]
    columns.let_go()
    for index, name in enumerate(columns.demand_names or columns.resources):
        check_range(columns.demand[:, index], lines, name, AMOUNT, problems)
    if not len(columns.ids) and not problems.total:
        problems.add(0, "", "no rows", "at least one request")
    if columns.requests is not None:
        columns.requests.scales = columns.tables["scale"].values
        instances.check(columns.requests, columns.admission, lines, problems)
        members.check(columns, problems)
    _settle(columns, problems)
    problems.raise_if_any()
    made = _expand(columns)
    _sort_by_admission(columns)
    columns.let_go()
    return Workload(
        ids=columns.ids,
        admission=columns.admission,
        duration=columns.duration,
        demand=columns.demand,
        service_class=columns.service_class,
        job=columns.job,
        anti_affinity=columns.anti_affinity,
        term=columns.term,
        resources=columns.resources,
        classes=classes,
        terms=columns.terms,
        request=columns.request,
        requests=made,
        **columns.further,
    )


def _settle(columns: WorkloadColumns, problems: Problems) -> None:
    """Checks the further columns of the file, and makes of them what a workload has; of what says nothing, nothing."""
    codes, numbers, tables, lines = columns.codes, columns.numbers, columns.tables, columns.lines
    together = {
        ("placement", "placements"): said_together(("marks", "rules", "preferences"), codes, tables, Placement),
        ("budget", "budgets"): (
            affinity_text.budgets(codes["budget"], tables["budget"].values, lines, problems)
            if "budget" in codes
            else None
        ),
        ("access", "accesses"): access.accesses(len(columns.ids), codes, numbers, tables),
        ("label", "labels"): said_together(LABEL_COLUMNS, codes, tables, Label),
    }
    for fields, said in together.items():
        columns.further |= {} if said is None else dict(zip(fields, said, strict=True))
    of_texts = {"resize": "resizings", "lost": "losses", "unready": "spells"}
    known = {name: (codes[name], tables[name].values) for name in of_texts if name in codes}
    if "resize" in known:
        occasions.check_resizings(*known["resize"], columns.resources, columns.admission, lines, problems)
    if "lost" in known:
        begun, lasts = columns.admission, columns.duration
        occasions.check_losses(*known["lost"], begun, lasts, columns.requests, lines, problems)
    for name, said in known.items():
        if said[0].any() or (name == "lost" and (columns.admission < 0.0).any()):
            columns.further |= dict(zip((name, of_texts[name]), said, strict=True))
    if "grace" in numbers:
        check_range(numbers["grace"], lines, "grace", SECONDS, problems)
        if numbers["grace"].any():
            columns.further["grace"] = numbers["grace"]
    access.check(numbers, lines, problems)
    limit = access.limits(numbers, columns.limits, columns.demand, lines, problems)
    columns.further |= {} if limit is None else {"limit": limit}
    columns.codes, columns.numbers = {}, {}


def _change(columns: WorkloadColumns, change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    """Every column that has an entry for each row, one at a time: a month of a cell does not fit twice."""
    for name in COLUMNS:
        setattr(columns, name, change(getattr(columns, name)))
    for name in OPTIONAL:
        if name in columns.further:
            columns.further[name] = change(columns.further[name])


def _expand(columns: WorkloadColumns) -> Requests | None:
    """A row for each instance; ``None``, and nothing is done, where every row is a plain request of its own."""
    if columns.requests is None or columns.requests.is_plain():
        return None
    found = instances.expand(columns.requests, columns.ids, columns.admission)
    columns.request, columns.requests = found.request, None
    _change(columns, lambda values: values[found.row])
    columns.admission = found.admission
    return found.requests


def _sort_by_admission(columns: WorkloadColumns) -> None:
    """In order of admission; rows of one instant stay in theirs."""
    if bool((columns.admission[1:] >= columns.admission[:-1]).all()):
        return
    order = np.argsort(columns.admission, kind="stable")
    _change(columns, lambda values: _ordered(values, order))
    if columns.request is not None:
        columns.request = _ordered(columns.request, order)


def _ordered(values: NDArray[Any], order: Integers) -> NDArray[Any]:
    """``values[order]``, which rests where they do."""
    made = resting.room_beside(values)(values.shape, values.dtype)
    for at in range(0, len(order), resting.PART):
        made[at : at + resting.PART] = values[order[at : at + resting.PART]]
        resting.let_go(made)
    return made


def to_hosts(
    ids: Integers,
    names: Sequence[str],
    capacity: Floats,
    attributes: Sequence[dict[str, str]],
    resources: tuple[str, ...],
    lines: Integers | None,
    problems: Problems,
    capacity_names: Sequence[str] = (),
) -> Hosts:
    """The columns as hosts; raises :class:`InputError` for every broken value."""
    check_unique(ids, lines, "id", problems)
    for index, name in enumerate(capacity_names or resources):
        check_range(capacity[:, index], lines, name, AMOUNT, problems)
    seen: set[str] = set()
    for row, name in enumerate(names):
        if not name or name in seen:
            line = row + 1 if lines is None else int(lines[row])
            problems.add(line, "name", name or "nothing", "a name that no other host has")
        seen.add(name)
    if not len(ids) and not problems.total:
        problems.add(0, "", "no rows", "at least one host")
    problems.raise_if_any()
    return Hosts(ids=ids, names=tuple(names), capacity=capacity, attributes=tuple(attributes), resources=resources)


def check_range(
    values: Floats, lines: Integers | None, column: str, expected: str, problems: Problems, least: float = 0.0
) -> None:
    """Every value finite, ``least`` or more and at most :data:`LARGEST` (NaN fails both comparisons)."""
    wrong = ~((values >= least) & (values <= LARGEST))
    problems.add_rows(wrong, lines, column, values, expected)  # type: ignore[arg-type]
    resting.let_go(values)


def check_unique(ids: Integers, lines: Integers | None, column: str, problems: Problems) -> None:
    """No negative number, and none twice: of equal ones all but the first are problems."""
    wrong = ids < 0
    if not bool((ids[1:] > ids[:-1]).all()):
        order = np.argsort(ids, kind="stable")
        ranked = ids[order]
        repeated = np.zeros(len(ids), dtype=np.bool_)
        repeated[order[1:]] = ranked[1:] == ranked[:-1]
        wrong |= repeated
    problems.add_rows(wrong, lines, column, ids, NUMBER)  # type: ignore[arg-type]
