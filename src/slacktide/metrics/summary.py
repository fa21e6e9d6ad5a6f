"""Per service class and over all: availability, fulfilment and deficit (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.model import ServiceClass
from slacktide.model.resting import PART, let_go
from slacktide.qos.availability import ACCOUNTINGS, availability, fulfilled

Columns = Mapping[str, NDArray[Any]]
"""Columns of shape (n,), one row per request, all times in seconds: ``running``, ``pending``, ``startup_first``,
``startup_restarts``, ``discarded``, ``wasted_startup``, and the number of ``preemptions``. Where there are
``availability_restart``, ``_always`` and ``_never`` (``qos.per_request``), these are the availabilities; without them
they follow from the times."""
TIMES = ("running", "pending", "startup_first", "startup_restarts", "discarded")


@dataclass(frozen=True, slots=True)
class Availability:
    """Of a group of requests, 0 to 1; NaN where the group is empty. ``p05`` is the 5 % quantile, interpolated."""

    mean: float
    min: float
    p05: float


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """What one service class was promised and what it got.

    availability    for each accounting
    fulfilment      for each accounting the share of requests that reached the SLO; NaN where there are none
    deficit_mean    mean of ``slo - A`` over the requests that missed it, in the accounting of decisions; else 0
    preemptions     how often one of them was preempted
    wasted_startup  seconds of start-up that ended in a preemption or failure before they were over
    """

    name: str
    slo: float
    requests: int
    availability: Mapping[Accounting, Availability]
    fulfilment: Mapping[Accounting, float]
    deficit_mean: float
    preemptions: int
    wasted_startup: float


def achieved(columns: Columns, accounting: Accounting) -> NDArray[np.float64]:
    """Availability of every request, shape (n,), the caller's own to change.

    Worked out in parts, so that 25 million need no copies of all columns.
    """
    known = columns.get(f"availability_{accounting}")
    if known is not None:
        return known.copy()
    count = len(columns["running"])
    result = np.empty(count)
    for at in range(0, count, PART):
        part = slice(at, at + PART)
        result[part] = availability(accounting, *(columns[name][part] for name in TIMES))
        let_go(*(columns[name] for name in TIMES))
    return result


def per_class(
    columns: Columns, service_class: NDArray[np.int16], classes: Sequence[ServiceClass], accounting: Accounting
) -> list[ClassSummary]:
    """One summary for each of ``classes``, in their order, also for those without a request.

    ``service_class`` has shape (n,) and indexes ``classes``; ``accounting`` is the one decisions used.
    """
    described: list[dict[Accounting, Availability]] = [{} for _ in classes]
    kept: list[dict[Accounting, float]] = [{} for _ in classes]
    deficits = [0.0 for _ in classes]
    for which in ACCOUNTINGS:
        everyone = achieved(columns, which)
        for i, one in enumerate(classes):
            mine = everyone[service_class == i]
            met = fulfilled(mine, one.slo)
            kept[i][which] = float(met.mean()) if len(met) else float("nan")
            if which == accounting and not met.all():
                deficits[i] = float((one.slo - mine[~met]).mean())
            described[i][which] = describe(mine)
    summaries = []
    for i, one in enumerate(classes):
        rows = service_class == i
        preemptions, wasted = (
            int(_of(columns["preemptions"], rows).sum()),
            float(_of(columns["wasted_startup"], rows).sum()),
        )
        count = int(np.count_nonzero(rows))
        summaries.append(
            ClassSummary(one.name, one.slo, count, described[i], kept[i], deficits[i], preemptions, wasted)
        )
    return summaries


def _of(values: NDArray[Any], rows: NDArray[np.bool_]) -> NDArray[Any]:
    """``values[rows]``, part by part."""
    found = [values[:0]]
    for at in range(0, len(values), PART):
        part = slice(at, at + PART)
        found.append(values[part][rows[part]])
        let_go(values)
    return np.concatenate(found)


def over_all(columns: Columns) -> dict[Accounting, Availability]:
    """Availability of all requests together, for each accounting."""
    return {one: describe(achieved(columns, one)) for one in ACCOUNTINGS}


def describe(achieved: NDArray[np.float64]) -> Availability:
    """Of availabilities, shape (n,), that nobody needs afterwards: their order changes."""
    if not len(achieved):
        return Availability(float("nan"), float("nan"), float("nan"))
    return Availability(
        float(achieved.mean()), float(achieved.min()), float(np.quantile(achieved, 0.05, overwrite_input=True))
    )
