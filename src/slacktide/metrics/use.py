"""What hosts' time went into: use of capacity, waste, and the work of the scheduler (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from slacktide.metrics.columns import class_codes, numbers, parts, ratio
from slacktide.model import ServiceClass, arrow

WASTE = ("running", "startup", "discarded", "wasted_startup", "preemptions", "starts")
"""What :func:`waste` needs of requests.parquet beside the class."""
COUNTED = ("passes", "operations", "placements", "preemptions")


def waste(requests: pa.Table, classes: Sequence[ServiceClass]) -> pa.Table:
    """Time on hosts that came to nothing, per class and in all (last row, class ``all``).

    Columns ``class``, ``requests``, ``starts``, ``preemptions``; instance-seconds ``running`` (useful, kept),
    ``startup``, ``wasted_startup`` (of that, what a preemption or failure made useless), ``discarded`` (running time
    that was lost again); ``waste`` = (wasted_startup + discarded) / (running + startup + discarded), the share of all
    time on hosts, null where there was none. ``requests`` is requests.parquet with class and :data:`WASTE`.
    """
    size = len(classes)
    count = np.zeros(size)
    sums = {name: np.zeros(size) for name in WASTE}
    for part in parts(requests):
        code = class_codes(part, classes)
        count += np.bincount(code, minlength=size)
        for name in WASTE:
            sums[name] += np.bincount(code, numbers(part, name), size)
    whole = {name: np.append(values, values.sum()) for name, values in {"requests": count, **sums}.items()}
    on_hosts = whole["running"] + whole["startup"] + whole["discarded"]
    return arrow.table(
        {
            "class": [*(one.name for one in classes), "all"],
            **{name: whole[name].astype(np.int64) for name in ("requests", "starts", "preemptions")},
            **{name: whole[name] for name in ("running", "startup", "wasted_startup", "discarded")},
            "waste": arrow.nullable(ratio(whole["wasted_startup"] + whole["discarded"], on_hosts)),
        }
    )


def utilisation(intervals: pa.Table, progress: pa.Table) -> pa.Table:
    """How much of the capacity was allocated, and asked for, at the end of each interval.

    ``intervals`` and ``progress`` are intervals.parquet and progress.parquet of one run. Columns ``time`` (s),
    ``resource``, ``allocated`` and ``demanded`` (sums over classes), ``capacity`` (of the hosts that are up),
    ``utilisation`` = allocated / capacity, ``pressure`` = demanded / capacity (above 1: more than there is). Null where
    there is no capacity. Raises ValueError where progress has no row of the end of an interval.
    """
    times, which = np.unique(arrow.as_numpy(intervals["time"]), return_inverse=True)
    progress = progress.filter(pa.array(np.isin(arrow.as_numpy(progress["time"]), times)))
    if len(times) != progress.num_rows:
        raise ValueError("time: intervals and progress differ, expected two tables of one run")
    made: list[pa.Table] = []
    for name in (one.removeprefix("capacity_") for one in progress.column_names if one.startswith("capacity_")):
        used, wanted = (
            np.bincount(which, numbers(intervals, f"{what}_{name}"), len(times)) for what in ("allocated", "demanded")
        )
        capacity = numbers(progress, f"capacity_{name}")
        columns = {"time": times, "resource": [name] * len(times)}
        columns |= {"allocated": used, "demanded": wanted, "capacity": capacity}
        columns |= {
            "utilisation": arrow.nullable(ratio(used, capacity)),
            "pressure": arrow.nullable(ratio(wanted, capacity)),
        }
        made.append(arrow.table(columns))
    return pa.concat_tables(made)


def work(progress: pa.Table) -> pa.Table:
    """The longest queue of each step, and what the scheduler did within it.

    Columns ``time`` (s), ``queue`` (instances waiting), ``passes``, ``operations``, ``placements``, ``preemptions``:
    the differences of progress.parquet's sums from one row to the next.
    """
    steps = {name: np.diff(arrow.as_numpy(progress[name]), prepend=0) for name in COUNTED}
    return arrow.table({"time": progress["time"], "queue": progress["longest_queue"], **steps})
