"""When each instance would run on one infinite host: nobody waits, nothing has to start up."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.model import Requests, Workload
from slacktide.model.request_events import lost_in


@dataclass(frozen=True, slots=True)
class Spans:
    """From when to when each row of a workload runs, seconds, shape (n,); ``end`` is inf where it never completes.

    A row that a scale event removes before it could run has ``end == start``.
    """

    start: NDArray[np.float64]
    end: NDArray[np.float64]


def spans(workload: Workload) -> Spans:
    """The spans of a workload on one infinite host.

    A row runs from its admission for its duration, and for what it lost before the run. Of a batch request with a
    parallelism the next row begins when one completes. Where a scale event asks for fewer instances than run, the
    latest admitted end (docs/semantics.md, 'Life').
    """
    start, end = workload.admission.copy(), workload.admission + workload.duration
    if workload.lost is not None:
        end += np.array([lost_in(one) for one in workload.losses])[workload.lost]
    requests, request = workload.requests, workload.request
    if requests is None or request is None:
        return Spans(start, end)
    removed_from = _lowered(requests)
    special = removed_from | (requests.batch & (requests.parallelism > 0))
    if special.any():
        rows = np.flatnonzero(special[request])
        rows = rows[np.argsort(request[rows], kind="stable")]
        bounds = np.flatnonzero(np.diff(request[rows], prepend=-1))
        for own in np.split(rows, bounds[1:]):
            number = int(request[own[0]])
            if requests.batch[number]:
                _one_after_the_other(own, int(requests.parallelism[number]), workload.duration, start, end)
            else:
                events = requests.scale_request == number
                _remove(own, requests.scale_time[events], requests.scale_replicas[events], start, end)
    return Spans(start, end)


def _lowered(requests: Requests) -> NDArray[np.bool_]:
    """Whether a request has scale events at all: any may remove instances."""
    found = np.zeros(len(requests), np.bool_)
    found[requests.scale_request] = True
    return found


def _one_after_the_other(
    rows: NDArray[np.int64],
    parallelism: int,
    duration: NDArray[np.float64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
) -> None:
    """Rows beyond the first ``parallelism`` begin when an earlier one ends."""
    ends: list[float] = []
    for place, row in enumerate(rows.tolist()):
        if place >= parallelism:
            start[row] = max(start[row], heapq.heappop(ends))
            end[row] = start[row] + duration[row]
        heapq.heappush(ends, float(end[row]))


def _remove(
    rows: NDArray[np.int64],
    times: NDArray[np.float64],
    replicas: NDArray[np.int64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
) -> None:
    """At each scale event the latest admitted of more instances than it asks for end; ``rows`` are of one request."""
    for time, count in zip(times.tolist(), replicas.tolist(), strict=True):
        live = rows[(start[rows] <= time) & (end[rows] > time)]
        if len(live) > count:
            latest_first = live[np.lexsort((-live, -start[live]))]
            end[latest_first[: len(live) - count]] = time
