"""Intervals by contention class (da Silva et al. 2020, section 5.2): what the fairness figure shows."""

from __future__ import annotations

from typing import Any

from slacktide.metrics.confidence import bootstrap
from slacktide.metrics.contention import FAIRNESS, by_level, contention_levels
from slacktide.reporting.figure import Rows, Scene
from slacktide.reporting.gather import INTERVALS, Member, table_of, told

COLUMNS = ("time", "class", *FAIRNESS)


def by_contention(found: list[Member], scene: Scene) -> tuple[Rows, str]:
    """level, class, policy, metric, mean, low, high (95 %), rows (intervals), runs; and why there are none."""
    import pyarrow as pa

    found = [one for one in found if one.over_time]
    if not found:
        return [], "No contention classes: they follow from what happens in intervals, and runs have none."
    reference = {one.place: one for one in found if one.run.policy == scene.reference and one.policy == "priority"}
    if not reference:
        return [], (
            "No contention classes: they follow from what the priority policy can do in an interval, and no run with "
            "policy.name = priority has finished."
        )
    levels = {}
    for place, one in reference.items():
        table = table_of(one, INTERVALS, COLUMNS)
        with told(one, INTERVALS):
            levels[place] = contention_levels(table, one.classes)
    observed: list[Any] = []
    for member in found:
        if member.place in levels:
            table = table_of(member, INTERVALS, COLUMNS)
            with told(member, INTERVALS):
                rows = by_level(table, levels[member.place])
            for name, value in (("workload", member.run.workload), ("policy", member.run.policy)):
                rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
            seeds = pa.array([member.replicate] * rows.num_rows, pa.int64())
            rows = rows.append_column("seed", seeds)
            observed.append(rows.set_column(1, "class", rows["class"].cast(pa.string())))
    means = bootstrap(pa.concat_tables(observed), ("level", "class", "policy"), FAIRNESS)
    return means.to_pylist(), ""
