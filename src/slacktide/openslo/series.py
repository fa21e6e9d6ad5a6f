"""Names of the series that say what workloads got, and how they are asked for in PromQL."""

from __future__ import annotations

from collections.abc import Mapping

WORKLOAD, CLASS = "slacktide_workload", "slacktide_class"
"""Prefixes: for each workload, with labels namespace, kind, name and class; and for each class, with the last one."""
GOOD, LOST = "good_seconds_total", "lost_seconds_total"
"""Counters of seconds. Lost ones have the label cause: cluster, workload or operator."""
UNLISTED = "slacktide_class_workloads_unlisted"
"""A gauge by class: how many workloads have no series of their own."""
CLUSTER = "cluster"
"""The cause that counts against a promise, unless the class counts everything."""
BUDGET = "budget_seconds"
"""Gauges: seconds that a promise lets be lost in its window."""
CLASS_WINDOW = "slacktide_class_window_seconds"
"""A gauge by class: the seconds of that window."""
TOTAL = "seconds_total"
"""The counter of all seconds, good and lost: Pyrra takes one selector, no sum. A sum that a rule records would not do:
it jumps where two leaders' series are there for a moment."""
EVERYTHING = "everything"
"""What a class says in ``counts`` that counts all causes."""


def selector(**labels: str) -> str:
    """``{class="gold",cause="cluster"}``; ``class_`` stands for class. Nothing where there are no labels."""
    found = [f'{key.rstrip("_")}="{_quoted(value)}"' for key, value in labels.items() if value]
    return "{" + ",".join(found) + "}" if found else ""


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def cause_of(spec: Mapping[str, object]) -> str:
    """The cause whose losses count against the promise of a class with this ``spec``; empty: all."""
    return "" if spec.get("counts") == EVERYTHING else CLUSTER
