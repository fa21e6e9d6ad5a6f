"""How each class fares in every interval of a run (da Silva et al. 2020, before figure 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.model import ServiceClass, Workload
from slacktide.qos.availability import fulfilled
from slacktide.sim import Snapshot


def gini(values: NDArray[np.float64]) -> float:
    """The Gini coefficient of ``values``, shape (n,), none negative; 0: all alike, near 1: one has everything.

    Half the mean difference of all pairs over the mean (da Silva et al. 2020, section 4.3.1)::

        G = sum_i sum_j |x_i - x_j| / (2 n^2 mean(x)) = 2 sum_i i x_(i) / (n sum(x)) - (n + 1) / n

    with ``x_(1) <= ... <= x_(n)``; at most ``1 - 1 / n``. 0 where all are 0, NaN of nothing. O(n log n).
    """
    count = len(values)
    if not count:
        return float("nan")
    lowest, highest = float(values.min()), float(values.max())
    if lowest == highest:
        return 0.0
    ordered = np.sort(values)
    weighted = float(np.dot(np.arange(1.0, count + 1.0), ordered))
    return max(0.0, 2.0 * weighted / (count * float(ordered.sum())) - (count + 1.0) / count)


Columns = dict[str, NDArray[Any]]
PER_CLASS = ("active", "availability_mean", "availability_min", "availability_gini", "fulfilment")
COUNTERS = ("queue", "longest_queue", "passes", "operations", "placements", "preemptions")


def currently(
    availability: NDArray[np.float64], service_class: NDArray[np.int16], classes: Sequence[ServiceClass]
) -> Columns:
    """What the active requests of each class have so far, columns of shape (classes,).

    ``availability`` (k,), 0 to 1, of each request (docs/semantics.md, at the interval's end or its own), and its
    ``service_class``, index into ``classes``.

    active             requests
    availability_mean, availability_min, availability_gini
                       of theirs; :func:`slacktide.metrics.intervals.gini`
    fulfilment         share of them at or above the SLO: ``A >= slo - 1e-9``

    NaN where nobody is active.
    """
    rows: list[tuple[float, ...]] = []
    for code, one in enumerate(classes):
        mine = availability[service_class == code]
        if not len(mine):
            rows.append((0.0, *[float("nan")] * 4))
            continue
        met = float(fulfilled(mine, one.slo).mean())
        rows.append((float(len(mine)), float(mine.mean()), float(mine.min()), gini(mine), met))
    table = np.array(rows).reshape(-1, len(PER_CLASS))
    columns: Columns = {name: table[:, place] for place, name in enumerate(PER_CLASS)}
    columns["active"] = columns["active"].astype(np.int64)
    return columns


class IntervalRecorder:
    """Takes the snapshots of a run of ``workload`` (``sim.run(..., observe=recorder)``) and makes tables of them."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._intervals: list[Columns] = []
        self._progress: list[tuple[float, ...]] = []

    def __call__(self, now: Snapshot) -> None:
        work, count = self._workload, len(self._workload.classes)
        codes, running = work.service_class[now.row].astype(np.int64), now.running
        columns: Columns = {"time": np.full(count, now.time), "class": np.arange(count)}
        columns |= currently(now.availability, now.service_class, work.classes)
        columns["waiting"] = np.bincount(codes[~running], minlength=count)
        columns["running"] = np.bincount(codes[running], minlength=count)
        for place, name in enumerate(work.resources):
            demand = work.demand[now.row, place] if now.demand is None else now.demand[:, place]
            columns[f"allocated_{name}"] = np.bincount(codes[running], demand[running], count)
            columns[f"demanded_{name}"] = np.bincount(codes, demand, count)
        self._intervals.append(columns)
        self._progress += [
            (step.time, *(getattr(step, name) for name in COUNTERS), *step.capacity.tolist()) for step in now.steps
        ]

    def intervals(self) -> Columns:
        """A row per interval and class, in this order; docs/results.md has the columns. ``class`` is its index."""
        work = self._workload
        amounts = [f"{what}_{name}" for what in ("allocated", "demanded") for name in work.resources]
        names = ("time", "class", "active", "waiting", "running", *PER_CLASS[1:], *amounts)
        whole = ("class", "active", "waiting", "running")
        empty = {name: np.zeros(0, np.int64 if name in whole else np.float64) for name in names}
        return {name: np.concatenate([empty[name], *(one[name] for one in self._intervals)]) for name in names}

    def progress(self) -> Columns:
        """Ten rows per interval: docs/results.md has the columns."""
        names = ("time", *COUNTERS, *(f"capacity_{name}" for name in self._workload.resources))
        table = np.array(self._progress).reshape(-1, len(names))
        columns: Columns = {name: table[:, place] for place, name in enumerate(names)}
        return columns | {name: columns[name].astype(np.int64) for name in COUNTERS}
