"""What a workload and its hosts look like, in numbers; fast on millions of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.activity import Spans, spans
from slacktide.inputs.columns.cells import row_codes
from slacktide.model import APPROACHES, NO_NEIGHBOURS, Hosts, Term, Workload
from slacktide.model.matching import matching_hosts
from slacktide.model.placement import RuleKind
from slacktide.model.request_events import lost_in

QUANTILES = {"min": 0.0, "p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}

Summary = dict[str, float]


def describe_workload(workload: Workload) -> dict[str, Any]:
    """Counts, shares (0 to 1) and quantiles of a workload, ready for JSON.

    ``requests``, ``instances`` (rows), ``first``/``last`` admission (s), ``standing`` (requests that are there at the
    first instant, from 0 on), ``before`` (:class:`Before`, where any was there before the run), ``instants``, ``jobs``,
    ``job_size``, ``anti_affinity`` and ``constrained`` (shares of requests), ``terms``, ``distinct_demands``,
    ``most_frequent_demand`` (its share), ``never_complete`` (share), ``duration``
    (finite ones, s), ``demand`` by resource, and ``classes``: the same by class where it makes sense.
    Shares, quantiles and ``job_size`` are over instances. Where there are requests of several instances,
    ``kinds`` lists for each kind and approach that occurs the number of requests and of instances, quantiles
    of the instances of a request, and the number of scale events; ``in_turn`` is :func:`in_turn`. Where some have to
    do with their neighbours, or have budgets, ``neighbours`` counts instances with marks, with rules of each kind, with
    preferences and in budgets, and distinct ``placements`` and ``budgets`` that occur.
    """
    constrained = np.array([bool(term.constraints) for term in workload.terms], dtype=np.bool_)[workload.term]
    sizes = np.unique(workload.job, return_counts=True)[1]
    popularity = np.bincount(row_codes(workload.demand.T, len(workload)))
    count = max(len(workload), 1)
    standing = np.asarray(workload.admission <= workload.admission[:1].max(initial=0.0))
    before = past_of(workload)
    return {
        "requests": _requests(workload, np.ones(len(workload), np.bool_)),
        "instances": len(workload),
        "resources": list(workload.resources),
        "first": float(workload.admission[0]) if len(workload) else None,
        "last": float(workload.admission[-1]) if len(workload) else None,
        "standing": _requests(workload, standing),
        **({} if before is None else {"before": asdict(before)}),
        "instants": int(np.count_nonzero(np.diff(workload.admission))) + bool(len(workload)),
        "jobs": len(sizes),
        "job_size": _quantiles(sizes),
        "anti_affinity": float(workload.anti_affinity.sum() / count),
        "constrained": float(constrained.sum() / count),
        "terms": len(np.unique(workload.term)),
        "distinct_demands": int(np.count_nonzero(popularity)),
        "most_frequent_demand": float(popularity.max(initial=0) / count),
        **_rows_summary(workload, np.ones(len(workload), np.bool_)),
        "classes": {
            one.name: {
                "slo": one.slo,
                **_class_summary(workload, np.asarray(workload.service_class == index), standing, constrained),
            }
            for index, one in enumerate(workload.classes)
        },
        **({} if workload.requests is None else {"kinds": _kinds(workload), "in_turn": in_turn(workload)}),
        **({} if workload.placement is workload.budget is None else {"neighbours": _neighbours(workload)}),
    }


@dataclass(frozen=True, slots=True)
class Before:
    """Requests that were there before the run: how many, for how long the oldest one, seconds that all of them lost."""

    requests: int
    oldest: float
    lost: float


def past_of(workload: Workload) -> Before | None:
    """Who was there before the run; None: nobody."""
    if workload.lost is None:
        return None
    rows = workload.admission < 0.0
    lost = np.array([lost_in(one) for one in workload.losses])[workload.lost[rows]]
    return Before(_requests(workload, rows), float(-workload.admission[0]), float(lost.sum()))


def in_turn(workload: Workload) -> int:
    """How many batch requests run several instances one after the other, as they do if nothing is said."""
    requests, request = workload.requests, workload.request
    if requests is None or request is None:
        return 0
    several = np.bincount(request, minlength=len(requests)) > 1
    return int(np.count_nonzero(requests.batch & several & (requests.parallelism == 1)))


def _neighbours(workload: Workload) -> dict[str, int]:
    placement = np.zeros(len(workload), np.int32) if workload.placement is None else workload.placement
    budget = np.full(len(workload), -1, np.int32) if workload.budget is None else workload.budget
    rows = np.bincount(placement, minlength=len(workload.placements)).tolist()
    made = list(zip(workload.placements, rows, strict=True))
    kinds = {kind: sum(n for one, n in made if any(r.kind == kind for r in one.rules)) for kind in get_args(RuleKind)}
    return {
        "placements": sum(n > 0 for one, n in made if one != NO_NEIGHBOURS),
        "marks": sum(n for one, n in made if one.marks),
        **kinds,
        "preferences": sum(n for one, n in made if one.preferences),
        "budgets": len(np.unique(budget[budget >= 0])),
        "in_budgets": int(np.count_nonzero(budget >= 0)),
    }


def _kinds(workload: Workload) -> list[dict[str, Any]]:
    requests, request = workload.requests, workload.request
    if requests is None or request is None:
        return []
    sizes = np.bincount(request, minlength=len(requests))
    found = []
    for kind, batch in (("service", False), ("batch", True)):
        for number, approach in enumerate(APPROACHES):
            of_them = (requests.batch == batch) & (requests.approach == number)
            if of_them.any():
                found.append(
                    {
                        "kind": kind,
                        "approach": approach,
                        "requests": int(of_them.sum()),
                        "instances": int(sizes[of_them].sum()),
                        "size": _quantiles(sizes[of_them]),
                        "scale_events": int(of_them[requests.scale_request].sum()),
                    }
                )
    return found


def _requests(workload: Workload, rows: NDArray[np.bool_]) -> int:
    """How many requests have one of these rows."""
    if workload.request is None:
        return int(np.count_nonzero(rows))
    return len(np.unique(workload.request[rows]))


def describe_hosts(hosts: Hosts) -> dict[str, Any]:
    """Number, total and distinct capacities (most frequent first), and for each attribute its spread, for JSON."""
    shapes, counts = np.unique(hosts.capacity, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    keys = sorted({key for one in hosts.attributes for key in one})
    attributes = {}
    for key in keys:
        values = [one[key] for one in hosts.attributes if key in one]
        attributes[key] = {"hosts": len(values), "values": len(set(values))}
    return {
        "hosts": len(hosts),
        "resources": list(hosts.resources),
        "capacity": dict(zip(hosts.resources, hosts.capacity.sum(axis=0).tolist(), strict=True)),
        "shapes": [{"capacity": shapes[row].tolist(), "hosts": int(counts[row])} for row in order],
        "attributes": attributes,
    }


def _most(active: Spans, demand: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The most that is active at an instant between two edges, shape (edges - 1,)."""
    at, change = np.concatenate([active.end, active.start]), np.concatenate([-demand, demand])
    order = np.argsort(at, kind="stable")  # who ends makes room for who begins in that instant
    at, level = at[order], np.cumsum(change[order])
    last = np.append(at[1:] != at[:-1], True) if len(at) else np.zeros(0, np.bool_)
    at, level = at[last], np.append(0.0, level[last])
    first, until = np.searchsorted(at, edges[:-1], "right"), np.searchsorted(at, edges[1:], "left")
    until[-1] = np.searchsorted(at, edges[-1], "right")
    return np.array([level[a : max(a, b) + 1].max() for a, b in zip(first, until, strict=True)])


def demand_over_time(workload: Workload, hosts: Hosts, bins: int = 60) -> dict[str, NDArray[np.float64]]:
    """Mean and largest active demand in equal spans of time, if nobody waited: see :func:`spans`.

    Columns of shape (bins,): ``start`` and ``end`` (s; from the first admission from 0 on to the last, or to the
    last completion where all are admitted at once), and for each resource ``RESOURCE:CLASS``,
    ``RESOURCE:all``, ``RESOURCE:most`` and ``RESOURCE:capacity``. Both must have the same resources (see
    :func:`align`). Raises :class:`ValueError` for fewer than one bin or different resources.
    """
    if bins < 1:
        raise ValueError(f"bins: found {bins}, expected at least 1")
    if workload.resources != hosts.resources:
        raise ValueError(f"resources differ: {workload.resources} and {hosts.resources}; align them first")
    active = spans(workload)
    first, last = _span(workload.admission, active.end)
    edges = np.linspace(first, last, bins + 1)
    columns = {"start": edges[:-1], "end": edges[1:]}
    for index, resource in enumerate(workload.resources):
        total = np.zeros(bins)
        for number, one in enumerate(workload.classes):
            rows = np.flatnonzero(workload.service_class == number)
            demand = workload.demand[rows, index]
            started = _begun(active.start[rows], demand, edges)
            columns[f"{resource}:{one.name}"] = there = started - _begun(active.end[rows], demand, edges)
            total += there
        columns[f"{resource}:all"] = total
        columns[f"{resource}:most"] = _most(active, workload.demand[:, index], edges)
        columns[f"{resource}:capacity"] = np.full(bins, hosts.capacity[:, index].sum())
    return columns


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """Requests that can never run.

    terms      each term that no host satisfies, with the number of requests that have an instance with it
    too_large  ids of requests (of other terms) larger than every host that satisfies their term
    called     what these are called, "" each where nothing is said
    """

    terms: tuple[tuple[Term, int], ...]
    too_large: NDArray[np.int64]
    called: tuple[str, ...]


def unsatisfiable(workload: Workload, hosts: Hosts) -> Unsatisfiable:
    """Requests that no host can ever take. Both must have the same resources (see :func:`align`)."""
    nowhere, large = homeless(workload, hosts)
    carried = _carried(workload)
    hopeless = np.zeros(len(workload.terms), dtype=np.bool_)
    hopeless[workload.term[nowhere]] = True
    terms = [(workload.terms[row], int(carried[row])) for row in np.flatnonzero(hopeless)]
    ids = workload.ids
    if workload.requests is not None and workload.request is not None:
        numbers, first = np.unique(workload.request[large], return_index=True)
        ids, large = workload.requests.ids[numbers], large[first]
    else:
        ids = ids[large]
    called = [""] * len(large) if workload.label is None else [str(workload.labels[n]) for n in workload.label[large]]
    return Unsatisfiable(tuple(terms), ids, tuple(called))


def homeless(workload: Workload, hosts: Hosts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows whose term no host satisfies, and rows (of other terms) larger than every host that satisfies theirs.

    Both must have the same resources (see :func:`align`), or :class:`ValueError` is raised.
    """
    return Homes(workload.terms, hosts).missing(workload)


class Homes:
    """What hosts can take, for workloads that have these terms."""

    def __init__(self, terms: Sequence[Term], hosts: Hosts) -> None:
        self._hosts = hosts
        self._matching = matching_hosts(terms, hosts)
        self._hopeless = np.logical_not(np.asarray(self._matching.any(axis=1)))
        self._shapes, shape = np.unique(hosts.capacity, axis=0, return_inverse=True)
        self._shape = shape.reshape(-1)

    def missing(self, workload: Workload) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of the workload what :func:`homeless` says."""
        hosts, hopeless = self._hosts, self._hopeless
        if workload.resources != hosts.resources:
            raise ValueError(f"resources differ: {workload.resources} and {hosts.resources}; align them first")
        # Almost all requests fit on the smallest host there is; only the others are compared with each shape.
        large = ~(workload.demand <= hosts.capacity.min(axis=0)).all(axis=1)
        suspects = np.flatnonzero(large & ~hopeless[workload.term])
        fits = np.zeros(len(suspects), dtype=np.bool_)
        for number, capacity in enumerate(self._shapes if len(suspects) else ()):
            on_shape = np.asarray(self._matching[:, self._shape == number].any(axis=1))
            fits |= on_shape[workload.term[suspects]] & np.all(workload.demand[suspects] <= capacity, axis=1)
        return np.flatnonzero(hopeless[workload.term]), suspects[np.logical_not(fits)]


def _carried(workload: Workload) -> NDArray[np.int64]:
    """How many requests have an instance with each of the terms."""
    if workload.request is None:
        return np.bincount(workload.term, minlength=len(workload.terms))
    pairs = np.unique(workload.request.astype(np.int64) * len(workload.terms) + workload.term)
    return np.bincount(pairs % len(workload.terms), minlength=len(workload.terms))


def _class_summary(
    workload: Workload, rows: NDArray[np.bool_], standing: NDArray[np.bool_], constrained: NDArray[np.bool_]
) -> dict[str, Any]:
    return {
        "requests": _requests(workload, rows),
        "instances": int(np.count_nonzero(rows)),
        "standing": _requests(workload, rows & standing),
        "constrained": _share(constrained[rows]),
        "anti_affinity": _share(workload.anti_affinity[rows]),
        **_rows_summary(workload, rows),
    }


def _rows_summary(workload: Workload, rows: NDArray[np.bool_]) -> dict[str, Any]:
    duration = workload.duration[rows]
    finite = np.isfinite(duration)
    return {
        "never_complete": 1.0 - _share(finite) if len(duration) else 0.0,
        "duration": _quantiles(duration[finite]),
        "demand": {name: _quantiles(workload.demand[rows, index]) for index, name in enumerate(workload.resources)},
    }


def _quantiles(values: NDArray[Any]) -> Summary | None:
    """``None`` where there is nothing to describe."""
    if not len(values):
        return None
    found = np.quantile(values, list(QUANTILES.values()))
    return {"mean": float(values.mean()), **dict(zip(QUANTILES, found.tolist(), strict=True))}


def _share(flags: NDArray[np.bool_]) -> float:
    return float(flags.mean()) if len(flags) else 0.0


def _span(admission: NDArray[np.float64], ends: NDArray[np.float64]) -> tuple[float, float]:
    if not len(admission):
        return 0.0, 1.0
    first, last = max(float(admission[0]), 0.0), float(admission[-1])
    if last > first:
        return first, last
    finite = ends[np.isfinite(ends)]
    return first, float(finite.max()) if len(finite) else first + 1.0


def _begun(times: NDArray[np.float64], demand: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over each bin of the total demand whose time has come."""
    bins = len(edges) - 1
    width = edges[1] - edges[0]
    place = np.floor((np.clip(times, edges[0], edges[-1] + width) - edges[0]) / width).astype(np.int64)
    inside = place < bins
    place, demand = place[inside], demand[inside]
    amount = np.bincount(place, demand, bins)
    # In its own bin a request counts for the part of the bin that is left after its time.
    left = np.clip((edges[place + 1] - times[inside]) / width, 0.0, 1.0)
    before = np.concatenate([[0.0], np.cumsum(amount)[:-1]])
    return np.asarray(before + np.bincount(place, demand * left, bins), dtype=np.float64)
