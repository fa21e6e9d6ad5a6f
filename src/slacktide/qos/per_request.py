"""From columns per instance to columns per request (docs/semantics.md, Requests of several instances)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.model import Workload
from slacktide.model.workload import CONCURRENT, INDEPENDENT, Requests
from slacktide.qos.availability import ACCOUNTINGS, TIMES, availability

Columns = dict[str, NDArray[Any]]

COUNTS = ("preemptions", "starts")


def per_request(
    workload: Workload,
    instances: Mapping[str, NDArray[Any]],
    together: NDArray[np.float64],
    windows: NDArray[np.float64] | None = None,
) -> Columns:
    """Columns of shape (k,), a place for each request with an admitted instance, in the order of ``workload.requests``.

    ``instances``: columns of shape (i,), a place for each admitted instance, in any order: ``row`` in the workload,
    ``completed`` and ``removed`` (seconds, NaN: not), :data:`TIMES`, ``wasted_startup``, ``preemptions``, ``starts``,
    ``hosts_used``. ``together``: shape (len(workload.requests), 3), seconds of e of concurrent requests, one column for
    each of ``ACCOUNTINGS``. ``windows``: shape (len(workload.requests),), the worst window of those that are measured
    together. Raises ValueError where every row of the workload is a request of its own.

    row           int64, index into ``workload.requests``
    first         int64, first of its rows in the workload that was admitted
    count         int64, admitted instances
    completed     seconds, the last completion, where every instance completed or was removed and at least one
                  completed; of a batch request all its rows must have. NaN: not
    hosts_used    int64, as of its only instance; -1, unknown, where there are several (they may share hosts)
    duration      seconds, the longest that an admitted instance asks for; inf: endless
    cpu_seconds   sum of CPU times duration over these; inf where one is endless
    demand        shape (k, resources), sum over these
    availability_restart, availability_always, availability_never
                  by its approach: independent, and a service of one instance in all, the least of its instances';
                  aggregated the sum of e over the sum of lifetimes; concurrent ``together`` over the latter

    worst_window  where instances have it: of those that are measured one by one the least of theirs, else ``windows``

    :data:`TIMES`, ``wasted_startup`` (seconds) and :data:`COUNTS` (int64) are sums over the instances.
    """
    requests = workload.requests
    if requests is None or workload.request is None:
        raise ValueError("workload.requests: found none, expected requests, because there is nothing to sum up")
    whose = workload.request[instances["row"]]
    size = len(requests)
    count = np.bincount(whose, minlength=size)
    there = np.flatnonzero(count)
    rows_of = np.bincount(workload.request, minlength=size)
    first = np.full(size, len(workload), dtype=np.int64)
    np.minimum.at(first, whose, instances["row"])
    columns: Columns = {"row": there, "first": first[there], "count": count[there]}
    for name in (*TIMES, "wasted_startup", *COUNTS):
        sums = np.bincount(whose, weights=instances[name], minlength=size)[there]  # of nothing it is whole numbers
        columns[name] = sums.astype(np.int64 if name in COUNTS else np.float64, copy=False)
    columns["hosts_used"] = np.where(columns["count"] > 1, -1, _only(whose, instances["hosts_used"], size)[there])
    columns["completed"] = _completed(requests, whose, instances, count, rows_of)[there]
    columns |= _asked(workload, instances["row"], whose, there, size)
    least = least_counts(requests.approach[there], requests.batch[there], rows_of[there] == 1)
    owners = np.zeros(size, dtype=np.int64)
    owners[there] = np.arange(len(there))
    concurrent = (requests.approach[there] == CONCURRENT) & ~least
    summed = Summed({name: columns[name] for name in TIMES}, owners[whose], instances, least, concurrent)
    for number, accounting in enumerate(ACCOUNTINGS):
        columns[f"availability_{accounting}"] = summed.availability(accounting, together[there[concurrent], number])
    if "worst_window" in instances:
        columns["worst_window"] = _worst_window(instances["worst_window"], owners[whose], least)
        if windows is not None:
            columns["worst_window"][~least] = windows[there[~least]]
    return columns


def _worst_window(
    worst: NDArray[np.float64], owners: NDArray[np.int64], least: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Of each request whose instances are measured one by one the least of theirs; NaN: not known."""
    lowest = np.full(len(least), np.inf)
    np.fmin.at(lowest, owners, worst)
    lowest[~least | np.isinf(lowest)] = np.nan
    return lowest


def measured_together(workload: Workload) -> NDArray[np.bool_]:
    """Of each row whether its request is measured as a whole, shape (n,), not by the least of its instances; empty
    where every row is a request."""
    requests = workload.requests
    if requests is None or workload.request is None:
        return np.zeros(0, np.bool_)
    sizes = np.bincount(workload.request, minlength=len(requests))
    return np.asarray(~least_counts(requests.approach, requests.batch, sizes == 1)[workload.request])


def instance_numbers(workload: Workload) -> NDArray[np.int64]:
    """The number of each row among those of its request, from 0, shape (n,); all 0 where every row is a request."""
    if workload.request is None:
        return np.zeros(len(workload), dtype=np.int64)
    order = np.argsort(workload.request, kind="stable")
    of = workload.request[order]
    begins = np.flatnonzero(np.diff(of, prepend=-1))
    numbers = np.empty(len(of), dtype=np.int64)
    numbers[order] = np.arange(len(of)) - np.repeat(begins, np.diff(begins, append=len(of)))
    return numbers


def _only(whose: NDArray[np.int32], values: NDArray[Any], size: int) -> NDArray[np.int64]:
    """For each request a value of one of its instances; that of the only one where there is one."""
    found = np.zeros(size, dtype=np.int64)
    found[whose] = values
    return found


def _completed(
    requests: Requests,
    whose: NDArray[np.int32],
    instances: Mapping[str, NDArray[Any]],
    count: NDArray[np.int64],
    rows_of: NDArray[np.int64],
) -> NDArray[np.float64]:
    """When each request completed, shape (m,); NaN: not."""
    finished = np.flatnonzero(~np.isnan(instances["completed"]))
    last = np.full(len(requests), -np.inf)
    np.maximum.at(last, whose[finished], instances["completed"][finished])
    unfinished = np.isnan(instances["completed"]) & np.isnan(instances["removed"])
    gone = count - np.bincount(whose[unfinished], minlength=len(requests))
    # Rows that a batch request has not admitted yet are work to do; those of a service may never be asked for.
    expected = np.where(requests.batch, rows_of, count)
    last[(gone < expected) | np.isneginf(last)] = np.nan
    return last


def _asked(
    workload: Workload, rows: NDArray[np.int64], whose: NDArray[np.int32], there: NDArray[np.int64], size: int
) -> Columns:
    """What the admitted instances of each request asked for."""
    longest = np.zeros(size)
    np.maximum.at(longest, whose, workload.duration[rows])
    endless = np.isinf(longest)
    cpu = workload.resources.index("cpu")
    finite = np.where(endless[whose], 0.0, workload.duration[rows])
    work = np.bincount(whose, weights=workload.demand[rows, cpu] * finite, minlength=size)
    demand = [np.bincount(whose, weights=column[rows], minlength=size)[there] for column in workload.demand.T]
    return {
        "duration": longest[there],
        "cpu_seconds": np.where(endless, np.inf, work)[there],
        "demand": np.stack(demand, axis=1).astype(np.float64, copy=False),
    }


def least_counts(approach: NDArray[np.int8], batch: NDArray[np.bool_], alone: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which requests have the least of their instances' availabilities, shape (k,): the independent ones, and services
    that are ``alone``, of one instance in all."""
    return np.asarray((approach == INDEPENDENT) | (alone & ~batch), dtype=np.bool_)


def sums_over(owners: NDArray[np.int64], times: Mapping[str, NDArray[Any]], size: int) -> Columns:
    """:data:`TIMES` summed over the instances of each of ``size`` requests; ``owners``, (i,): each instance's."""
    sums = {name: np.bincount(owners, weights=times[name], minlength=size) for name in TIMES}
    return {name: values.astype(np.float64, copy=False) for name, values in sums.items()}  # of nothing: whole numbers


@dataclass(frozen=True, slots=True)
class Summed:
    """What k requests and their i instances have had, seconds.

    sums        :data:`TIMES`, (k,) each, over the instances
    owners      (i,), the request of each instance
    times       :data:`TIMES`, (i,) each, of each instance
    least       (k,), whose availability is the least of their instances' (:func:`least_counts`)
    concurrent  (k,), whose instances count only while all are up; none of them among ``least``
    """

    sums: Columns
    owners: NDArray[np.int64]
    times: Mapping[str, NDArray[Any]]
    least: NDArray[np.bool_]
    concurrent: NDArray[np.bool_]

    def availability(self, accounting: Accounting, together: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each request, shape (k,): least of the instances', ``together`` over lifetimes, or sum of e over these.

        ``together``: e of the concurrent requests in this accounting, one after the other.
        """
        achieved = availability(accounting, *(self.sums[name] for name in TIMES))
        mine = np.flatnonzero(self.least[self.owners])
        lowest = np.ones(len(self.least))
        own = availability(accounting, *(self.times[name][mine] for name in TIMES))
        np.minimum.at(lowest, self.owners[mine], own)
        achieved[self.least] = lowest[self.least]
        lifetime = np.add.reduce([self.sums[name][self.concurrent] for name in TIMES])
        part = np.divide(together, lifetime, out=np.ones_like(lifetime), where=lifetime > 0.0)
        achieved[self.concurrent] = part
        return achieved
