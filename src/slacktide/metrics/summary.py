"""Per service class, and of requests of several instances per class, kind and approach: what was promised and got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.model import APPROACHES, ServiceClass, Workload
from slacktide.model.resting import PART, let_go, room_beside
from slacktide.model.workload import KINDS
from slacktide.qos.availability import ACCOUNTINGS, availability, fulfilled
from slacktide.qos.windows import judged

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
    times = [columns[name] for name in TIMES]
    count = len(times[0])
    result = room_beside(*times)(count, np.float64)
    for at in range(0, count, PART):
        part = slice(at, at + PART)
        result[part] = availability(accounting, *(values[part] for values in times))
        let_go(result, *times)
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
        by_windows = _judged(everyone, columns) if which == accounting and "worst_window" in columns else everyone
        for i, one in enumerate(classes):
            mine = _of(everyone, service_class, i)
            counted = mine if one.window is None or by_windows is everyone else _of(by_windows, service_class, i)
            met = fulfilled(counted, one.slo)
            kept[i][which] = float(met.mean()) if len(met) else float("nan")
            if which == accounting and not met.all():
                deficits[i] = float((one.slo - counted[~met]).mean())
            described[i][which] = describe(mine)
    summaries = []
    for i, one in enumerate(classes):
        preemptions = _of(columns["preemptions"], service_class, i)
        wasted = _of(columns["wasted_startup"], service_class, i)
        summaries.append(
            ClassSummary(
                name=one.name,
                slo=one.slo,
                requests=len(preemptions),
                availability=described[i],
                fulfilment=kept[i],
                deficit_mean=deficits[i],
                preemptions=int(preemptions.sum()),
                wasted_startup=float(wasted.sum()),
            )
        )
    return summaries


def _judged(everyone: NDArray[np.float64], columns: Columns) -> NDArray[np.float64]:
    """:func:`.judged` of all, part by part."""
    result = room_beside(everyone)(len(everyone), np.float64)
    for at in range(0, len(everyone), PART):
        part = slice(at, at + PART)
        result[part] = judged(everyone[part], columns, part)
        let_go(result, everyone, columns["worst_window"])
    return result


def _of(values: NDArray[Any], service_class: NDArray[np.int16], i: int) -> NDArray[Any]:
    """``values[service_class == i]``, part by part."""
    found = np.empty(np.count_nonzero(service_class == i), values.dtype)
    till = 0
    for at in range(0, len(values), PART):
        some = values[at : at + PART][service_class[at : at + PART] == i]
        found[till : till + len(some)] = some
        till += len(some)
        let_go(values, service_class)
    return found


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


@dataclass(frozen=True, slots=True)
class ApproachSummary:
    """What the requests of one service class, kind and approach were promised and what they got.

    service_class  its name
    kind           service or batch
    approach       independent, concurrent or aggregated
    requests       at least 1
    instances      admitted, over all of them
    availability   for each accounting
    fulfilment     for each accounting the share of requests that reached the SLO
    """

    service_class: str
    kind: str
    approach: str
    slo: float
    requests: int
    instances: int
    availability: Mapping[Accounting, Availability]
    fulfilment: Mapping[Accounting, float]


def per_approach(columns: Columns, workload: Workload, accounting: Accounting) -> list[ApproachSummary]:
    """A summary for each class, kind and approach that occurs, in this order; empty where every row is a request.

    ``columns`` are those of ``qos.per_request``, shape (k,) each. In the ``accounting`` of decisions promises over
    windows are judged by their worst one.
    """
    if workload.requests is None:
        return []
    codes = workload.service_class[columns["first"]].astype(np.int64)
    batch, approach = workload.requests.batch[columns["row"]], workload.requests.approach[columns["row"]]
    group = (codes * len(KINDS) + batch) * len(APPROACHES) + approach
    everyone = {one: achieved(columns, one) for one in ACCOUNTINGS}
    counted = everyone | {accounting: judged(everyone[accounting], columns, slice(None))}
    summaries = []
    for which in np.unique(group).tolist():
        rest, how = divmod(which, len(APPROACHES))
        code, kind = divmod(rest, len(KINDS))
        rows = np.flatnonzero(group == which)
        mine = {one: values[rows] for one, values in everyone.items()}
        promised = workload.classes[code]
        met = {one: float(fulfilled(values[rows], promised.slo).mean()) for one, values in counted.items()}
        got = {one: describe(values) for one, values in mine.items()}
        instances = int(columns["count"][rows].sum())
        summaries.append(
            ApproachSummary(promised.name, KINDS[kind], APPROACHES[how], promised.slo, len(rows), instances, got, met)
        )
    return summaries
