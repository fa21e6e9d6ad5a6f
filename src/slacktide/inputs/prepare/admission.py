"""Offline admission: the part of a workload that a set of hosts could carry.

A workload may come piece by piece: who is active is all that is carried on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.inputs.activity import Spans, spans
from slacktide.inputs.rows import align, select
from slacktide.inputs.statistics import Homes
from slacktide.model import Hosts, Workload

FIRST_REDUCTION = 0.2
"""At the first instant the limit is so much lower, as all that stands then comes at once."""
SLACK = 1e-9
"""Relative: by so much rounding may exceed the limit."""
NO_HOST, TOO_LARGE = 1, 2
"""Verdicts beside those of the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """How many requests were refused for which reason.

    no_host        no host satisfies the constraints of one of its instances
    too_large      an instance is larger than every host that satisfies its constraints
    over_limit     the sum of active demand would have exceeded the limit of the resource (the first that did)
    at_first       of these: at the first instant
    """

    no_host: int
    too_large: int
    over_limit: dict[str, int]
    at_first: int

    @property
    def refused(self) -> int:
        """All that were not admitted."""
        return self.no_host + self.too_large + sum(self.over_limit.values())


def first_limit_of(limit: float, first_limit: float | None) -> float:
    """The limit at the first instant: ``first_limit``, or where that is None 0.2 less than ``limit``.

    Raises :class:`ConfigError` for limits that are none.
    """
    for name, value in (("limit", limit), ("first limit", limit if first_limit is None else first_limit)):
        if not 0 < value <= 1000:
            raise ConfigError(f"{name}: found {value:g}, expected a part of the capacity, above 0 and at most 1000")
    if first_limit is not None:
        return first_limit
    if limit <= FIRST_REDUCTION:
        raise ConfigError(
            f"limit: found {limit:g}, expected more than {FIRST_REDUCTION:g}, by which it is lower at the first "
            "instant, or a first limit of its own"
        )
    return limit - FIRST_REDUCTION


@dataclass(frozen=True, slots=True)
class _Claims:
    """What each request holds from when on (n), and what is given back when (m)."""

    start: NDArray[np.float64]
    amount: NDArray[np.float64]
    release_time: NDArray[np.float64]
    release_of: NDArray[np.int64]
    release: NDArray[np.float64]


def _claims(workload: Workload, found: Spans, request: NDArray[np.int64], count: int) -> _Claims:
    runs = found.end > found.start  # what lasts no time, or less than seconds can tell apart, holds nothing
    demand = workload.demand if runs.all() else np.where(runs[:, None], workload.demand, 0.0)
    if workload.requests is None:
        return _Claims(found.start, demand, found.end, request, demand)
    start, last, amount = np.full(count, np.inf), np.zeros(count), np.zeros((count, len(workload.resources)))
    np.minimum.at(start, request, workload.admission)
    np.maximum.at(last, request, found.end)
    np.add.at(amount, request, demand)
    later = np.zeros(count, np.bool_)
    later[request[found.start > start[request]]] = True
    own = ~later[request]  # instances that begin with their request give back what they hold when they end
    staggered = np.flatnonzero(later)
    amount[staggered] = _most_at_once(demand, found, request, staggered)
    return _Claims(
        start,
        amount,
        np.concatenate([found.end[own], last[staggered]]),
        np.concatenate([request[own], staggered]),
        np.concatenate([demand[own], amount[staggered]]),
    )


def _most_at_once(
    demand: NDArray[np.float64], found: Spans, request: NDArray[np.int64], numbers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The peak demand of each of these requests by itself, shape (len(numbers), resources)."""
    most = np.zeros((len(numbers), demand.shape[1]))
    order = np.argsort(request, kind="stable")
    bounds = np.searchsorted(request[order], [numbers, numbers + 1])
    for place, (low, high) in enumerate(bounds.T.tolist()):
        rows = order[low:high]
        times = np.concatenate([found.end[rows], found.start[rows]])
        change = np.concatenate([-demand[rows], demand[rows]])
        by_time = np.argsort(times, kind="stable")
        most[place] = np.maximum(np.cumsum(change[by_time], axis=0).max(axis=0), 0.0)
    return most


class AdmissionInPieces:
    """Admits requests in their order while the sum over active ones stays within ``limit`` of the hosts' capacity.

    ``limit`` is a part of the aggregate capacity, for every resource; at the first instant of the workload it is
    ``first_limit`` (None: 0.2 less). A request is active on one infinite host (:func:`spans`): it holds its demand from
    its admission until it completes. One of several instances is admitted whole or refused whole; where not all of
    them begin at once, the most it ever demands at once is held from its admission to its end.

    Pieces are in order of admission: every row a request of its own, or all in one piece. Iterate over it once: it
    gives the admitted rows of each piece that has some, and raises :class:`ConfigError` in the end where none had. Then
    ``admitted`` and ``refused`` say how many requests. Pieces and ``hosts`` need not have the same resources: they are
    aligned as :func:`slacktide.inputs.rows.align` does it, with the files' names. Raises :class:`ConfigError` for
    limits that are none.
    """

    def __init__(
        self,
        pieces: Iterable[Workload],
        hosts: Hosts,
        *,
        limit: float = 1.0,
        first_limit: float | None = None,
        workload_file: str = "workload",
        hosts_file: str = "hosts",
    ) -> None:
        self._pieces, self._hosts, self._files = pieces, hosts, (workload_file, hosts_file)
        self._limit, self._first_limit = limit, first_limit_of(limit, first_limit)
        self.admitted = 0
        self.refused = Refusals(no_host=0, too_large=0, over_limit={}, at_first=0)

    def __iter__(self) -> Iterator[Workload]:
        active: _Active | None = None
        count = 0
        for piece in self._pieces:
            requests, machines = align(piece, self._hosts, workload_file=self._files[0], hosts_file=self._files[1])
            if active is None:
                active = _Active(requests, machines, self._limit, self._first_limit)
            rows, refused = active.admit(requests)
            self.refused = _sum(self.refused, refused)
            own = len(piece) if piece.requests is None else len(piece.requests)
            self.admitted += own - refused.refused
            count += own
            if len(rows):
                yield select(requests, rows)
        if not self.admitted:
            raise ConfigError(f"limit: found {self._limit:g}, expected one that admits a request; none of {count} was")


def _sum(one: Refusals, other: Refusals) -> Refusals:
    return Refusals(
        no_host=one.no_host + other.no_host,
        too_large=one.too_large + other.too_large,
        over_limit={name: one.over_limit.get(name, 0) + number for name, number in other.over_limit.items()},
        at_first=one.at_first + other.at_first,
    )


class _Active:
    """The sum of what is active, and when how much of it is given back: what was admitted and has not ended."""

    def __init__(self, first: Workload, hosts: Hosts, limit: float, first_limit: float) -> None:
        total = hosts.capacity.sum(axis=0) * (1 + SLACK)
        self._limits = first_limit * total, limit * total
        self._homes = Homes(first.terms, hosts)
        self._first = float(first.admission.min(initial=np.inf))
        self._used = np.zeros(len(total))
        self._end, self._demand = np.zeros(0), np.zeros((0, len(total)))

    def admit(self, piece: Workload) -> tuple[NDArray[np.int64], Refusals]:
        """The rows of the piece that are admitted, and how many requests are refused why."""
        from slacktide.kernels import offline_admission as kernel  # here: no other preparation needs what is compiled

        request = np.arange(len(piece)) if piece.request is None else piece.request.astype(np.int64)
        count = len(piece) if piece.requests is None else len(piece.requests)
        verdict = np.zeros(count, np.int8)
        nowhere, large = self._homes.missing(piece)
        verdict[request[large]] = TOO_LARGE
        verdict[request[nowhere]] = NO_HOST
        claims = _claims(piece, spans(piece), request, count)
        order = np.argsort(claims.start, kind="stable")  # requests may be listed in another order than admitted
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        # Those of earlier pieces first: releases of one instant stay in the order of the rows.
        end = np.concatenate([self._end, claims.release_time])
        release = np.concatenate([self._demand, claims.release])
        whose = np.concatenate([np.full(len(self._end), -1), place[claims.release_of]])
        last = float(claims.start.max(initial=-np.inf))
        due = np.flatnonzero(end <= last)
        ordered = verdict[order]
        kernel.within_limits(
            claims.start[order],
            claims.amount[order],
            end,
            whose,
            release,
            due[np.argsort(end[due], kind="stable")],
            self._first,
            *self._limits,
            self._used,
            ordered,
        )
        verdict = ordered[place]
        admitted = verdict == kernel.ADMITTED
        kept = np.concatenate([np.ones(len(self._end), np.bool_), admitted[claims.release_of]])
        later = (end > last) & np.isfinite(end) & kept
        self._end, self._demand = end[later], release[later]
        refused = Refusals(
            no_host=int(np.count_nonzero(verdict == NO_HOST)),
            too_large=int(np.count_nonzero(verdict == TOO_LARGE)),
            over_limit={
                name: int(np.count_nonzero(verdict == kernel.OVER_LIMIT + index))
                for index, name in enumerate(piece.resources)
            },
            at_first=int(np.count_nonzero((verdict >= kernel.OVER_LIMIT) & (claims.start == self._first))),
        )
        return np.flatnonzero(admitted[request]), refused
