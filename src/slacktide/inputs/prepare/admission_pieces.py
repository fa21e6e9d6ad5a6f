"""Offline admission of a workload that comes piece by piece: who is active is all that is carried on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from slacktide.inputs.align import align
from slacktide.inputs.prepare.activity import spans
from slacktide.inputs.prepare.admission import (
    NO_HOST,
    SLACK,
    TOO_LARGE,
    Refusals,
    first_limit_of,
    none_admitted,
    refusals,
)
from slacktide.inputs.rows import select
from slacktide.inputs.statistics import Homes
from slacktide.model import Hosts, Workload


class AdmissionInPieces:
    """What :func:`admit` does, for pieces in order of admission in which every row is a request of its own.

    Iterate over it once: it gives the admitted rows of each piece that has some, and raises :class:`ConfigError` in
    the end where none had. Then ``admitted`` and ``refused`` say how many. Pieces and ``hosts`` need not have the
    same resources: they are aligned as :func:`slacktide.inputs.align` does it, with the files' names.
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
            self.admitted += len(rows)
            count += len(piece)
            if len(rows):
                yield select(requests, rows)
        if not self.admitted:
            raise none_admitted(self._limit, count)


def _sum(one: Refusals, other: Refusals) -> Refusals:
    return Refusals(
        no_host=one.no_host + other.no_host,
        too_large=one.too_large + other.too_large,
        over_limit={name: one.over_limit.get(name, 0) + number for name, number in other.over_limit.items()},
        at_first=one.at_first + other.at_first,
    )


class _Active:
    """The sum of what is active, and when how much of it is given back: admitted rows that have not ended."""

    def __init__(self, first: Workload, hosts: Hosts, limit: float, first_limit: float) -> None:
        total = hosts.capacity.sum(axis=0) * (1 + SLACK)
        self._limits = first_limit * total, limit * total
        self._homes = Homes(first.terms, hosts)
        self._first = float(first.admission[0])
        self._used = np.zeros(len(total))
        self._end, self._demand = np.zeros(0), np.zeros((0, len(total)))

    def admit(self, piece: Workload) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Refusals]:
        """The rows of the piece that are admitted, and how many are refused why."""
        from slacktide.kernels import offline_admission as kernel  # here: no other preparation needs what is compiled

        found = spans(piece)
        runs = found.end > found.start  # what lasts no time, or less than seconds can tell apart, holds nothing
        demand = piece.demand if runs.all() else np.where(runs[:, None], piece.demand, 0.0)
        verdict = np.zeros(len(piece), np.int8)
        nowhere, large = self._homes.missing(piece)
        verdict[large], verdict[nowhere] = TOO_LARGE, NO_HOST
        # Those of earlier pieces first: releases of one instant stay in the order of the rows.
        end = np.concatenate([self._end, found.end])
        release = np.concatenate([self._demand, demand])
        whose = np.concatenate([np.full(len(self._end), -1), np.arange(len(piece))])
        last = float(piece.admission[-1])
        due = np.flatnonzero(end <= last)
        kernel.within_limits(
            found.start,
            demand,
            end,
            whose,
            release,
            due[np.argsort(end[due], kind="stable")],
            self._first,
            *self._limits,
            self._used,
            verdict,
        )
        admitted = verdict == kernel.ADMITTED
        later = (end > last) & np.isfinite(end) & np.concatenate([np.ones(len(self._end), np.bool_), admitted])
        self._end, self._demand = end[later], release[later]
        refused = Refusals(**refusals(verdict, found.start == self._first, piece.resources))
        return np.flatnonzero(admitted), refused
