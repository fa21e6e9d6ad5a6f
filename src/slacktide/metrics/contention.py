"""How contended each interval was, and how fair policies were then (da Silva et al. 2020, figure 9 and
the text before it, behind section 5.2; Farias's thesis, section 6.3).

``intervals`` is intervals.parquet of a run with ``--intervals 600`` (docs/results.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from slacktide.metrics.columns import class_codes, codes, numbers
from slacktide.model import ServiceClass, arrow

LEVELS = ("none", "low", "medium", "high")
WHOLE = 1.0 - 1e-9
"""From here on an availability is 100 %."""
FAIRNESS = ("availability_min", "fulfilment", "availability_gini")
"""The three metrics of figure 9 (thesis: figure 6.4)."""


def contention_levels(intervals: pa.Table, classes: Sequence[ServiceClass]) -> pa.Table:
    """The contention class of each interval, from the run under the priority policy.

    none    every active request of every class has an availability of 100 %
    low     all SLOs are met, and all classes but the least important are at 100 %
    medium  some request of the least important class misses its SLO, and all other classes are at 100 %
    high    the rest: a more important class has a request below 100 %

    'At the least important' counts all classes of the largest rank. 100 % means a minimum of at least 1 - 1e-9; a class
    without an active request is at 100 %. In the accounting ``always`` every start-up counts as waiting, so that there
    are hardly any intervals but high ones: classify by a run in the accounting ``restart`` or ``never``. Columns
    ``time`` (s, in order) and ``level``.
    """
    code = class_codes(intervals, classes)
    last = max(one.rank for one in classes)
    least = np.array([one.rank == last for one in classes])[code]
    lowest, met = numbers(intervals, "availability_min"), numbers(intervals, "fulfilment")
    below = lowest < WHOLE  # false for null
    times, which = np.unique(arrow.as_numpy(intervals["time"]), return_inverse=True)
    level = np.zeros(len(times), np.int64)
    np.maximum.at(level, which[below & least], 1)
    np.maximum.at(level, which[least & (met < 1.0)], 2)
    np.maximum.at(level, which[below & ~least], 3)
    return arrow.table({"time": times, "level": arrow.texts(LEVELS).take(arrow.column(level))})


def by_level(intervals: pa.Table, levels: pa.Table) -> pa.Table:
    """``intervals`` of any policy's run with a column ``level``, from :func:`contention_levels` of the priority run.

    Intervals of which nothing is known there are left out.
    """
    times, found = arrow.as_numpy(levels["time"]), codes(levels, LEVELS, "level")
    order = np.argsort(times)
    mine = arrow.as_numpy(intervals["time"])
    place = np.searchsorted(times, mine, sorter=order)
    known = place < len(times)
    known[known] = times[order[place[known]]] == mine[known]
    words = arrow.texts(LEVELS).take(arrow.column(found[order[place[known]]]))
    return intervals.filter(arrow.column(known)).append_column("level", words)


def shares_of_levels(levels: pa.Table) -> pa.Table:
    """How many intervals are of each level: columns ``level``, ``intervals``, ``share``, a row for each of the four."""
    count = np.bincount(codes(levels, LEVELS, "level"), minlength=len(LEVELS))
    return arrow.table({"level": list(LEVELS), "intervals": count, "share": count / max(int(count.sum()), 1)})
