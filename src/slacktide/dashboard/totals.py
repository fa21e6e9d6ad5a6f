"""Classes at a glance: how many promises of each stand how, and what is left of its budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slacktide.dashboard.view import ClassRow
from slacktide.engine.ledger.slo_status import STATES
from slacktide.qos.standing import budget_left


class Promise(NamedTuple):
    """A class: its name, promise, rank and margin (seconds)."""

    name: str
    promised: float
    rank: int
    margin: float


class Totals(NamedTuple):
    """Columns over workloads, shape (workloads,). ``lifetime`` in instance seconds; ``delivered`` NaN: not known."""

    cls: NDArray[np.int64]
    state: NDArray[np.int64]
    promised: NDArray[np.float64]
    delivered: NDArray[np.float64]
    lifetime: NDArray[np.float64]
    running: NDArray[np.int64]
    waiting: NDArray[np.int64]
    preempted: NDArray[np.int64]

    @classmethod
    def empty(cls) -> Totals:
        """Of no workloads."""
        kinds = (np.int64, np.int64, np.float64, np.float64, np.float64, np.int64, np.int64, np.int64)
        columns: list[Any] = [np.zeros(0, kind) for kind in kinds]
        return cls(*columns)

    @classmethod
    def joined(cls, parts: Sequence[Totals]) -> Totals:
        """All of these, one after the other."""
        if not parts:
            return cls.empty()
        columns: list[Any] = [np.concatenate(same) for same in zip(*parts, strict=True)]
        return cls(*columns)


def class_rows(promises: Iterable[Promise], found: Totals) -> list[ClassRow]:
    """A row for each class; the budget is that of all its workloads together, by their lifetimes. O(workloads)."""
    rows = []
    known = ~np.isnan(found.delivered)
    for number, one in enumerate(promises):
        mine = found.cls == number
        counts = tuple(np.bincount(found.state[mine], minlength=len(STATES)).tolist())
        columns = (found.running, found.waiting, found.preempted)
        running, waiting, preempted = (int(column[mine].sum()) for column in columns)
        judged = mine & known
        left = _left(found, judged) if found.lifetime[judged].any() else None
        rows.append(ClassRow(
            number, one.name, one.promised, one.rank, one.margin, counts, left, running, waiting, preempted
        ))  # fmt: skip
    return rows


def _left(found: Totals, rows: NDArray[np.bool_]) -> float:
    def mean(values: Any) -> float:
        return float(np.average(values[rows], weights=found.lifetime[rows]))

    return budget_left(mean(found.promised), mean(found.delivered))
