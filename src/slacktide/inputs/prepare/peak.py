"""The most a workload demands at once on one infinite host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.prepare.activity import spans
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
    found = spans(workload)
    runs = found.end > found.start
    rows = np.flatnonzero(runs)
    ending = rows[np.isfinite(found.end[rows])]
    times = np.concatenate([found.end[ending], found.start[rows]])
    order = np.argsort(times, kind="stable")  # ends stand first, so they come first where times are equal
    times = times[order]
    # Of an instant the sum after its last event counts; those before it are no state of the cluster.
    last = np.append(np.diff(times) > 0, True) if len(times) else np.zeros(0, np.bool_)
    amount, time = np.zeros(len(workload.resources)), np.zeros(len(workload.resources))
    for index in range(len(workload.resources)):
        demand = workload.demand[:, index]
        active = np.cumsum(np.concatenate([-demand[ending], demand[rows]])[order])[last]
        if len(active):
            place = int(np.argmax(active))
            amount[index], time[index] = active[place], times[last][place]
    return Peak(workload.resources, amount, time)
