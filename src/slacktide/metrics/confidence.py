"""Means with confidence intervals, by bootstrap over workloads and seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slacktide.metrics.columns import numbers
from slacktide.metrics.contention import FAIRNESS
from slacktide.model import arrow

RUN = ("workload", "seed")
"""Columns that say which run a row is of."""


def bootstrap(
    observations: pa.Table,
    by: Sequence[str] = ("level", "class"),
    metrics: Sequence[str] = FAIRNESS,
    *,
    share: float = 0.95,
    repetitions: int = 2000,
    seed: int = 0,
) -> pa.Table:
    """The mean of each metric within each group, and an interval for it at the level ``share``.

    ``observations`` are rows of several runs, such as :func:`slacktide.metrics.contention.by_level` of each with
    columns ``workload`` and ``seed`` (any type) appended; null values do not count. The mean is over all rows of a
    group. Rows of one run are not independent of each other, nor are runs of one workload; so what is drawn again, with
    replacement, is workloads, and for each one drawn as many of its seeds as it has (a nested bootstrap). The interval
    lies between the quantiles ``(1 - share) / 2`` and ``(1 + share) / 2`` of the means of ``repetitions`` such draws
    (those that hold no row of the group do not count). Where all is of a single run there is nothing to draw from: no
    interval. Equal ``seed``, equal result.

    Columns: ``by``, ``metric``, ``mean``, ``low``, ``high``, ``rows``, ``runs`` that have a row; groups in order of
    their first row, only those with a row.
    """
    if not 0.0 < share < 1.0 or repetitions < 1:
        raise ValueError(f"share, repetitions: found {share:g}, {repetitions}, expected within 0 to 1, and at least 1")
    tree = _Runs(observations)
    keys, group = _groups(observations, by)
    drawn = tree.draw(repetitions, np.random.default_rng(seed))
    found: list[dict[str, object]] = []
    for metric in metrics:
        values = numbers(observations, metric)
        there = ~np.isnan(values)
        place = group[there] * tree.count + tree.run[there]
        shape = (len(keys), tree.count)
        sums = np.bincount(place, values[there], shape[0] * shape[1]).reshape(shape)
        counts = np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)
        for number, key in enumerate(keys):
            rows = int(counts[number].sum())
            if not rows:
                continue
            low, high = _interval(sums[number], counts[number], drawn, share) if tree.count > 1 else (np.nan, np.nan)
            mean = float(sums[number].sum() / rows)
            runs = int(np.count_nonzero(counts[number]))
            numbers_found = {"mean": mean, "low": low, "high": high, "rows": rows, "runs": runs}
            found.append({**dict(zip(by, key, strict=True)), "metric": metric, **numbers_found})
    return _as_table(found, by)


def _as_table(found: Sequence[dict[str, object]], by: Sequence[str]) -> pa.Table:
    columns: dict[str, pa.Array] = {name: arrow.column([one[name] for one in found]) for name in (*by, "metric")}
    for name in ("mean", "low", "high"):
        columns[name] = arrow.nullable(np.array([one[name] for one in found], dtype=np.float64))
    for name in ("rows", "runs"):
        columns[name] = arrow.column(np.array([one[name] for one in found], np.int64))
    return arrow.table(columns)


def _groups(table: pa.Table, by: Sequence[str]) -> tuple[list[tuple[object, ...]], NDArray[np.int64]]:
    """The distinct values of these columns, in order of their first row, and each row's place among them."""
    code = np.zeros(table.num_rows, dtype=np.int64)
    for name in by:
        column = table[name].combine_chunks()
        words = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        _, code = np.unique(code * len(words.dictionary) + arrow.as_numpy(words.indices), return_inverse=True)
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    keys = [tuple(row.values()) for row in table.select(list(by)).take(arrow.column(first[order])).to_pylist()]
    return keys, place[group]


class _Runs:
    """Which run each row is of, and which runs each workload has."""

    def __init__(self, table: pa.Table) -> None:
        keys, self.run = _groups(table, RUN)
        self.count = len(keys)
        of: dict[object, list[int]] = {}
        for number, (workload, _) in enumerate(keys):
            of.setdefault(workload, []).append(number)
        self._of = [np.array(runs) for runs in of.values()]

    def draw(self, repetitions: int, random: np.random.Generator) -> NDArray[np.float64]:
        """How often each run was drawn, shape (repetitions, runs)."""
        workloads = random.integers(len(self._of), size=(repetitions, len(self._of))) if self._of else np.zeros((0, 0))
        times = np.zeros((repetitions, self.count))
        for at in range(workloads.shape[1]):
            for number, runs in enumerate(self._of):
                here = np.flatnonzero(workloads[:, at] == number)
                chosen = runs[random.integers(len(runs), size=(len(here), len(runs)))]
                np.add.at(times, (here[:, None], chosen), 1.0)
        return times


def _interval(
    sums: NDArray[np.float64], counts: NDArray[np.int64], drawn: NDArray[np.float64], share: float
) -> tuple[float, float]:
    rows = drawn @ counts
    means = (drawn @ sums)[rows > 0] / rows[rows > 0]
    low, high = np.quantile(means, [(1.0 - share) / 2.0, (1.0 + share) / 2.0])
    return float(low), float(high)
