"""The same preparations for a workload that comes piece by piece: equal rows, in the memory of a few pieces.

Pieces are in order of admission, one behind the other, and every row is a request of its own
(:mod:`slacktide.inputs.pieces`); then a row needs nothing of others but what these functions carry on. Pieces of
results may be shorter than those given, and none is empty. Settings are refused before the first piece is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.prepare.activity import spans
from slacktide.inputs.prepare.changes import check_window, drawn, nothing_in_window, touches_window, window
from slacktide.inputs.prepare.peak import Peak
from slacktide.inputs.rows import select
from slacktide.model import Workload


def thin_pieces(pieces: Iterable[Workload], count: int, share: float, seed: int) -> Iterator[Workload]:
    """What :func:`thin` keeps; ``count`` is how many rows all pieces have. Needs 5 bytes for each of these."""
    kept = drawn(count, share, seed)

    def chosen() -> Iterator[Workload]:
        done = 0
        for piece in pieces:
            rows = np.flatnonzero(kept[done : done + len(piece)])
            done += len(piece)
            if len(rows):
                yield select(piece, rows)

    return chosen()


def window_pieces(
    pieces: Iterable[Workload], start: float, end: float, *, keep_running: bool = True
) -> Iterator[Workload]:
    """What :func:`window` cuts out; nothing is asked for that comes after the window."""
    check_window(start, end)

    def cut() -> Iterator[Workload]:
        found = False
        for piece in pieces:
            if piece.admission[0] >= end:
                break
            if touches_window(piece, start, end, keep_running=keep_running):
                found = True
                yield window(piece, start, end, keep_running=keep_running)
        if not found:
            raise nothing_in_window(start, end)

    return cut()


def peak_of_pieces(pieces: Iterable[Workload]) -> Peak:
    """What :func:`peak` finds, to the last digit: sums are made in the same order. Holds who is active."""
    sweep: _Sweep | None = None
    for piece in pieces:
        sweep = sweep or _Sweep(piece.resources)
        sweep.add(piece)
    if sweep is None:
        raise ValueError("pieces: found none, expected at least one")
    return sweep.end()


class _Sweep:
    """The sum of active demand up to the admission of the last row, and its peaks before that instant."""

    def __init__(self, resources: tuple[str, ...]) -> None:
        count = len(resources)
        self._resources = resources
        self._ending, self._demand = np.zeros(0), np.zeros((0, count))
        self._active, self._now = np.zeros(count), -np.inf
        self._amount, self._time = np.full(count, -np.inf), np.zeros(count)
        self._any = False

    def add(self, piece: Workload) -> None:
        """Moves on to the admission of the piece's last row; what ends later is kept for later."""
        found = spans(piece)
        rows = np.flatnonzero(found.end > found.start)
        finite = rows[np.isfinite(found.end[rows])]
        self._any |= len(rows) > 0
        self._ending = np.concatenate([self._ending, found.end[finite]])
        self._demand = np.concatenate([self._demand, piece.demand[finite]])
        self._advance(float(piece.admission[-1]), found.start[rows], piece.demand[rows])

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
