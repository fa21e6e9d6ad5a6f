"""Google cluster-data 2011, version 2: task_events, task_constraints, machine_events, machine_attributes (CSV, gzip).

Columns as the schema that comes with the trace numbers them. Times are microseconds, CPU and memory shares of the
biggest machine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import polars as pl

from slacktide.inputs.traces import events, output
from slacktide.inputs.traces.api import Trace
from slacktide.inputs.traces.tables import Advance, Field, read_csv

TABLES = {"task_events": True, "task_constraints": False, "machine_events": False, "machine_attributes": False}
CODES = events.Codes(schedule=1, ends=(2, 3, 4, 5, 6))
START = 1304290200.0
"""Unix time of second 0: the trace begins at second 600, on 2011-05-01 at 19:00 EDT."""

COLUMNS = {
    "task_events": (
        *("time", "missing", "job", "task", "machine", "type", "user", "scheduling_class", "priority"),
        *("cpu", "memory", "disk", "different_machine"),
    ),
    "task_constraints": ("time", "job", "task", "operator", "name", "value"),
    "machine_events": ("time", "machine", "type", "platform", "cpu", "memory"),
    "machine_attributes": ("time", "machine", "name", "value", "deleted"),
}
FIELDS = {
    "task_events": (
        Field("time", "whole", least=0, most=2**63),
        Field("job", "whole", least=0),
        Field("task", "whole", least=0),
        Field("type", "whole", least=0, most=8),
        Field("user", needed=False),
        Field("priority", "whole", least=0),
        Field("cpu", "number", needed=False, least=0),
        Field("memory", "number", needed=False, least=0),
        Field("different_machine", "flag", needed=False),
    ),
    "task_constraints": (
        Field("time", "whole", least=0, most=2**63),
        Field("job", "whole", least=0),
        Field("task", "whole", least=0),
        Field("operator", "whole", least=0, most=3),
        Field("name"),
        Field("value", needed=False),
    ),
    "machine_events": (
        Field("time", "whole", least=0, most=2**63),
        Field("machine", "whole", least=0),
        Field("type", "whole", least=0, most=2),
        Field("platform", needed=False),
        Field("cpu", "number", needed=False, least=0),
        Field("memory", "number", needed=False, least=0),
    ),
    "machine_attributes": (
        Field("time", "whole", least=0, most=2**63),
        Field("machine", "whole", least=0),
        Field("name"),
        Field("value", needed=False),
        Field("deleted", "flag"),
    ),
}
OPERATORS = {0: "==", 1: "/=", 2: "<", 3: ">"}


def _read(table: str, path: Path, advance: Advance) -> Iterator[pl.DataFrame]:
    return read_csv(path, COLUMNS[table], FIELDS[table], advance)


def _tasks(tables: events.Scans) -> tuple[pl.LazyFrame, dict[str, int]]:
    keep = ["priority", "user", "cpu", "memory", "different_machine"]
    rows = events.lifetimes(tables["task_events"], CODES, keep)
    return _with_constraints(rows, tables["task_constraints"]) if "task_constraints" in tables else (rows, {})


def _with_constraints(rows: pl.LazyFrame, table: pl.LazyFrame) -> tuple[pl.LazyFrame, dict[str, int]]:
    """The rows with the constraints that each task had first."""
    first = table.group_by("job", "task").agg(pl.col("time").min())
    own = table.join(first, on=["job", "task", "time"], how="semi")
    kept, dropped = output.drop(
        own.unique(["job", "task", "operator", "name", "value"]),
        {"constraints that an attribute is empty or has any value": pl.col("value").is_null()},
    )
    texts = events.constraint_texts(kept, "operator", OPERATORS)
    return rows.join(texts, on=["job", "task"], how="left"), dropped


def _finished(tasks: pl.LazyFrame, tables: Mapping[str, Path]) -> pl.LazyFrame:  # noqa: ARG001  # rows say it all
    return tasks.with_columns(pl.col("different_machine").fill_null(value=False).alias("anti_affinity"))


VERSION = events.Version(
    tables=TABLES,
    of_jobs=("task_events", "task_constraints"),
    suffixes=(".csv", ".csv.gz"),
    add=0,
    remove=1,
    read=_read,
    tasks=_tasks,
    finished=_finished,
    reasons=events.REASONS,
    start=START,
)
TRACE = Trace(
    "google2011",
    "Google cluster-data 2011, version 2: folders task_events, task_constraints, machine_events, machine_attributes",
    "priority",
    "9-=gold,2-8=silver,0-1=bronze",
    (),
    partial(events.convert, version=VERSION),
)
