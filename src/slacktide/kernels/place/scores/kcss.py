"""KCSS (Menouer 2021): TOPSIS over the states that hosts would be in with the instance.

Five criteria of equal weight: utilisation of CPU and memory (more is better: it packs),
running containers, power and image transfer time (less is better). Chosen where the
source or the data leave it open: no disk, as hosts have none here; containers are a
load; power is the usual straight line from half of the peak when idle to the peak when
busy, and peaks are proportional to the CPU.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.place.scores import delay_aware
from slacktide.kernels.runtime.compiling import addressed, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State

UNIT = 2.0**20
CRITERIA = 5
IDLE = 0.5  # power of an idle host as a part of its peak


@leaf
def utilisation(tb: State, h: int, shape: int, r: int) -> float:
    """Part of resource ``r`` of host ``h`` that is taken with the instance; 0 where the host has none; O(1)."""
    capacity = views.capacity(tb)[h, r]
    if capacity == 0:
        return 0.0
    return (capacity - (views.free(tb)[h, r] - views.demand(tb)[shape, r])) / capacity


@kernel
def criteria(tb: State, h: int, shape: int, out: NDArray[np.float64]) -> None:
    """The five criteria of host ``h`` into ``out``, costs negative; O(1)."""
    cpu = utilisation(tb, h, shape, whole(0))
    out[0], out[1] = cpu, utilisation(tb, h, shape, whole(1))
    out[2] = -(views.hosts(tb)[h]["count"] + 1.0)
    out[3] = -(views.capacity(tb)[h, 0] * views.rules(tb)["cpu_unit"] * (IDLE + (1.0 - IDLE) * cpu))
    out[4] = -delay_aware.image_delay(tb, h, shape)


@kernel
def span(tb: State, shape: int, out: NDArray[np.float64]) -> None:
    """Of each criterion over the hosts to choose from its Euclidean length, largest and smallest: rows of ``out``."""
    mine = np.empty(CRITERIA)
    out[0], out[1], out[2] = 0.0, -np.inf, np.inf
    for h in range(len(views.hosts(tb))):
        if views.points(tb)[h] == NOWHERE:
            continue
        criteria(tb, h, shape, mine)
        for c in range(CRITERIA):
            out[0, c] += mine[c] * mine[c]
            out[1, c], out[2, c] = max(out[1, c], mine[c]), min(out[2, c], mine[c])
    for c in range(CRITERIA):
        out[0, c] = np.sqrt(out[0, c]) if out[0, c] > 0.0 else 1.0


@kernel
def closeness(mine: NDArray[np.float64], spans: NDArray[np.float64]) -> float:
    """Distance from the worst over the sum of those from worst and best, 0 to 1; all alike: 0; O(1)."""
    top, bottom = 0.0, 0.0
    for c in range(CRITERIA):
        top += ((mine[c] - spans[1, c]) / spans[0, c]) ** 2
        bottom += ((mine[c] - spans[2, c]) / spans[0, c]) ** 2
    both = np.sqrt(top) + np.sqrt(bottom)
    return np.sqrt(bottom) / both if both > 0.0 else 0.0


@addressed
def score(tb: State, h: int, shape: int) -> int:
    """Where hosts are not compared with each other: the fuller of CPU and memory together; O(1)."""
    return whole(np.rint((utilisation(tb, h, shape, whole(0)) + utilisation(tb, h, shape, whole(1))) * UNIT))


@addressed
def choose(tb: State, shape: int) -> int:
    """The host closest to the best state of those whose points are not NOWHERE, or -1; O(hosts)."""
    spans, mine = np.empty((3, CRITERIA)), np.empty(CRITERIA)
    span(tb, shape, spans)
    host, best = NOBODY, whole(NOWHERE)
    for h in range(len(views.hosts(tb))):
        if views.points(tb)[h] == NOWHERE:
            continue
        criteria(tb, h, shape, mine)
        value = whole(np.rint(closeness(mine, spans) * UNIT))
        if value > best or (value == best and views.hosts(tb)[h]["tie"] > views.hosts(tb)[host]["tie"]):
            host, best = whole(h), value
    return host


CALLED = {"score": score, "choose": choose}
