"""The most a workload demands at once on one infinite host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.activity import spans
from slacktide.model import Workload


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest total demand for each resource, in the workload's unit, and the second at which it is first reached.

    Arrays of shape (len(resources),). Peaks of different resources may lie at different instants.
    """

    resources: tuple[str, ...]
    amount: NDArray[np.float64]
    time: NDArray[np.float64]

    def of(self, resource: str) -> float:
        """The peak of one resource."""
        return float(self.amount[self.resources.index(resource)])


def peak(workload: Workload) -> Peak:
    """The peak demand for each resource: a sweep over what begins and ends, ends before beginnings at one instant.

    O(n log n) for n instances.
    """
    sweep = _Sweep(workload.resources)
    if len(workload):
        sweep.add(workload)
    return sweep.end()


def peak_of_pieces(pieces: Iterable[Workload]) -> Peak:
    """What :func:`peak` finds, to the last digit, of pieces in order of admission. Holds who is active."""
    sweep: _Sweep | None = None
    for piece in pieces:
        sweep = sweep or _Sweep(piece.resources)
        sweep.add(piece)
    if sweep is None:
        raise ValueError("pieces: found none, expected at least one")
    return sweep.end()


class _Sweep:
    """The sum of active demand up to the beginning of the last row, and its peaks before that instant."""

    def __init__(self, resources: tuple[str, ...]) -> None:
        count = len(resources)
        self._resources = resources
        self._ending, self._demand = np.zeros(0), np.zeros((0, count))
        self._active, self._now = np.zeros(count), -np.inf
        self._amount, self._time = np.full(count, -np.inf), np.zeros(count)
        self._any = False

    def add(self, piece: Workload) -> None:
        """Moves on to the beginning of the piece's last row; what ends later is kept for later."""
        found = spans(piece)
        rows = np.flatnonzero(found.end > found.start)
        finite = rows[np.isfinite(found.end[rows])]
        self._any |= len(rows) > 0
        self._ending = np.concatenate([self._ending, found.end[finite]])
        self._demand = np.concatenate([self._demand, piece.demand[finite]])
        until = max(float(piece.admission[-1]), float(found.start.max()))  # some begin when others have ended
        self._advance(until, found.start[rows], piece.demand[rows])

    def end(self) -> Peak:
        """The peaks, once all rows have been added."""
        self._advance(np.inf, np.zeros(0), self._demand[:0])
        self._advance(np.inf, np.array([np.inf]), np.zeros((1, len(self._resources))))  # the last instant counts, too
        amount = self._amount if self._any else np.zeros(len(self._resources))
        return Peak(self._resources, amount, self._time)

    def _advance(self, until: float, starts: NDArray[np.float64], demand: NDArray[np.float64]) -> None:
        due = self._ending <= until
        times = np.concatenate([self._ending[due], starts])
        order = np.argsort(times, kind="stable")  # ends stand first, so they come first where times are equal
        changes = np.concatenate([-self._demand[due], demand])[order]
        sums = np.cumsum(np.concatenate([self._active[None], changes]), axis=0)
        times = np.append(self._now, times[order])
        # Of an instant the sum after its last event counts; that of the last instant may still change.
        over = np.flatnonzero(times[1:] > times[:-1])
        over = over[np.isfinite(times[over])]
        for index in range(len(self._resources) if len(over) else 0):
            active = sums[over, index]
            place = int(np.argmax(active))
            if active[place] > self._amount[index]:
                self._amount[index], self._time[index] = active[place], times[over][place]
        self._active, self._now = sums[-1], float(times[-1])
        self._ending, self._demand = self._ending[~due], self._demand[~due]
