"""Lines over time of several runs together: means over replicates at equal instants."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from slacktide.metrics.use import COUNTED, work
from slacktide.reporting.figure import Rows
from slacktide.reporting.gather import PROGRESS, Member, check_numbers, table_of, told
from slacktide.reporting.reduce import SERIES_POINTS

SHOWN = ("queue", "operations", "preemptions")


def progress(found: list[Member]) -> Rows:
    """workload, hosts, policy, time (s), queue (waiting), operations and preemptions (in the interval), runs.

    Means over replicates; longer runs have neighbouring intervals put together, of which the longest queue is kept.
    """
    sums: dict[tuple[Any, ...], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for member in filter(lambda one: one.over_time, found):
        names = (member.run.workload, member.run.hosts, member.run.policy)
        table = table_of(member, PROGRESS, ("time", "longest_queue", *COUNTED))
        with told(member, PROGRESS):
            if not table.num_rows:
                raise ValueError("no interval")
            check_numbers(table, table.column_names)
            rows = _intervals(work(table).to_pydict())
        for row in rows:
            one = sums[(*names, row[0])]
            for place, value in enumerate(row[1:]):
                one[place] += value
            one[3] += 1
    keys = ("workload", "hosts", "policy", "time")
    return [
        {
            **dict(zip(keys, key, strict=True)),
            **{name: value / one[3] for name, value in zip(SHOWN, one, strict=False)},
            "runs": int(one[3]),
        }
        for key, one in sums.items()
    ]


def _intervals(table: dict[str, list[Any]]) -> list[tuple[float, ...]]:
    """Of one run: time, queue, operations and preemptions of each interval, or of so many of them together."""
    count = len(table["time"])
    each = max(1, -(-count // SERIES_POINTS))
    parts = [slice(start, min(start + each, count)) for start in range(0, count, each)]
    return [
        (
            float(table["time"][part][-1]),
            float(max(table["queue"][part])),
            float(sum(table["operations"][part])),
            float(sum(table["preemptions"][part])),
        )
        for part in parts
    ]


def capacities(found: list[Member], resources: tuple[str, ...]) -> Rows:
    """workload, hosts, resource, capacity: the largest of the first finished run."""
    rows, seen = [], set()
    for member in found:
        names = (member.run.workload, member.run.hosts)
        if names in seen or not member.over_time:
            continue
        seen.add(names)
        table = table_of(member, PROGRESS, [f"capacity_{one}" for one in resources])
        for one in resources:
            most = max(table[f"capacity_{one}"].to_pylist(), default=0.0)
            rows.append({"workload": names[0], "hosts": names[1], "resource": one, "capacity": float(most)})
    return rows
