"""What a workload asks for over time, on one infinite host (da Silva et al. 2020, section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slacktide.inputs.activity import spans
from slacktide.metrics.columns import PART
from slacktide.model import Workload, arrow


def demand_at(workload: Workload, times: Sequence[float] | NDArray[np.float64]) -> pa.Table:
    """Demand of each class at the given instants if nobody ever waited and no start took time; exact there.

    An instance asks for its demand at ``t`` where it would run then on a host of infinite capacity: see
    :func:`slacktide.inputs.activity.spans`.
    ``times``: seconds, in any order. Columns ``time`` (in order), ``class``, ``instances``, and ``demand_<resource>``
    in the hosts' unit; a row per instant and class. O(n log times), in parts, so that a month needs no copy.
    """
    instants = np.sort(np.asarray(times, np.float64))
    count, size = len(instants), len(workload.classes)
    resources = workload.resources
    changes = np.zeros((1 + len(resources), size * (count + 1)))  # instances, then resources
    active = None if workload.requests is None else spans(workload)
    for start in range(0, len(workload), PART):
        rows = slice(start, start + PART)
        demand = workload.demand[rows]
        if active is None:  # so that a month needs no copy
            begins, ends = workload.admission[rows], workload.admission[rows] + workload.duration[rows]
        else:
            begins, ends = active.start[rows], active.end[rows]
        code = workload.service_class[rows].astype(np.int64) * (count + 1)
        # It is there from the first instant not before its beginning to the last before its end.
        for sign, place in ((1.0, np.searchsorted(instants, begins)), (-1.0, np.searchsorted(instants, ends))):
            changes[0] += sign * np.bincount(code + place, minlength=changes.shape[1])
            for number in range(len(resources)):
                changes[1 + number] += sign * np.bincount(code + place, demand[:, number], changes.shape[1])
    there = np.cumsum(changes.reshape(-1, size, count + 1), axis=2)[:, :, :count]
    by_time = np.maximum(there.transpose(0, 2, 1).reshape(len(changes), -1), 0.0)  # sums of floats may end below 0
    return arrow.table(
        {
            "time": np.repeat(instants, size),
            "class": np.tile([one.name for one in workload.classes], count),
            "instances": np.rint(by_time[0]).astype(np.int64),
            **{f"demand_{name}": by_time[1 + number] for number, name in enumerate(resources)},
        }
    )
