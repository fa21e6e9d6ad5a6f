"""Offline admission: who gets in while the sum of what is active stays within a limit."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.runtime.compiling import entry

ADMITTED, OVER_LIMIT = 0, 3


@entry
def within_limits(
    start: NDArray[np.float64],
    claim: Annotated[NDArray[np.float64], 2],
    release_time: NDArray[np.float64],
    release_of: NDArray[np.int64],
    release: Annotated[NDArray[np.float64], 2],
    order: NDArray[np.int64],
    first: float,
    first_limit: NDArray[np.float64],
    limit: NDArray[np.float64],
    used: NDArray[np.float64],
    verdict: NDArray[np.int8],
) -> None:
    """Sets ``verdict`` of those that are ADMITTED so far and have no room to OVER_LIMIT plus the index of a resource.

    start         float64 (n,)    when each asks, seconds, non-decreasing
    claim         float64 (n, r)  what it holds from then on
    release_time  float64 (m,)    when something of it is given back, after its start; inf: never
    release_of    int64 (m,)      whose; -1: of one admitted by an earlier call
    release       float64 (m, r)  how much
    order         int64 (m,)      the releases by time
    first         float64         the first instant
    first_limit   float64 (r,)    the most that may be held then
    limit         float64 (r,)    the most at later ones
    used          float64 (r,)    in: what is held before the first asks; out: after the last has
    verdict       int8 (n,)       in: ADMITTED, or why it is out of the question; out: with those who found no room

    Releases come before claims of the same instant; those after the last start are not looked at. So a long list may
    be given in pieces. O((n + m) r).
    """
    resources = claim.shape[1]
    done = 0
    for row in range(len(start)):
        while done < len(order) and release_time[order[done]] <= start[row]:
            given = order[done]
            done += 1
            whose = release_of[given]
            if whose < 0 or verdict[whose] == ADMITTED:
                for index in range(resources):
                    used[index] -= release[given, index]
        if verdict[row] != ADMITTED:
            continue
        most = first_limit if start[row] == first else limit
        for index in range(resources):
            if claim[row, index] > 0 and used[index] + claim[row, index] > most[index]:
                verdict[row] = OVER_LIMIT + index
                break
        if verdict[row] == ADMITTED:
            for index in range(resources):
                used[index] += claim[row, index]
