"""Life stories of tasks and machines in Google's traces (both versions), as requests and hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job
from slacktide.inputs.traces.output import ENDLESS
from slacktide.inputs.traces.tables import Advance, find, spool
from slacktide.model import Hosts

MICROSECONDS = 1e6
AFTER_THE_END = 2**63 - 1
"""The time of what happened after the trace ended; 0 is the time of what happened before it began."""
BUCKET = 10_000_000
"""Rows of events whose tasks are put together at once: they take about 2 GB."""

Scans = Mapping[str, pl.LazyFrame]


@dataclass(frozen=True, slots=True)
class Codes:
    """The numbers of the events that count."""

    schedule: int
    ends: tuple[int, ...]


def lifetimes(events: pl.LazyFrame, codes: Codes, keep: Sequence[str]) -> pl.LazyFrame:
    """A row per ``job`` and ``task`` from its events (``time`` in microseconds, ``type``, ``row``: their order in the
    files, which decides where times are equal).

    ``admission`` is its first event; ``duration`` the length of its last run, from its last SCHEDULE to the first end
    after that: earlier runs were evicted or failed, and it began anew. Null: it still ran at the end of the trace.
    ``scheduled`` tells whether it ever ran, ``again`` whether more than once, ``cut`` whether a later event ended it
    once more, while it waited to run again. Of the columns ``keep``, which events may change, the largest value
    is taken. All of it is grouped aggregations that need no order of rows, so it streams.
    """
    time, row, of_schedule = pl.col("time"), pl.col("row"), pl.col("type") == codes.schedule
    told = events.filter(time < AFTER_THE_END)
    last = (
        told.filter(of_schedule)
        .group_by("job", "task")
        .agg(time.max().alias("started"), (time.n_unique() > 1).alias("again"))
    )
    schedules = told.filter(of_schedule).join(last, on=["job", "task"])
    placed = schedules.filter(time == pl.col("started")).group_by("job", "task").agg(row.max().alias("started_row"))
    runs = last.join(placed, on=["job", "task"])
    ends = told.filter(pl.col("type").is_in(codes.ends)).join(runs, on=["job", "task"])
    after = (time > pl.col("started")) | ((time == pl.col("started")) & (row > pl.col("started_row")))
    ended = (
        ends.filter(after)
        .group_by("job", "task")
        .agg(time.min().alias("ended"), (time.max() > time.min()).alias("cut"))
    )
    found = told.group_by("job", "task").agg(time.min().alias("first"), pl.col(keep).max())
    return (
        found.join(runs, on=["job", "task"], how="left")
        .join(ended, on=["job", "task"], how="left")
        .select(
            *("job", "task", *keep),
            (pl.col("first") / MICROSECONDS).alias("admission"),
            ((pl.col("ended") - pl.col("started")) / MICROSECONDS).alias("duration"),
            pl.col("started").is_not_null().alias("scheduled"),
            pl.col("again").fill_null(value=False),
            pl.col("cut").fill_null(value=False),
        )
    )


RUNS = {
    "ran more than once: the duration is that of the last run": pl.col("again"),
    "ended once more, while waiting to run again: the duration is that of the run before": pl.col("cut"),
}
"""What is to be said of tasks that ran more than once, and of those that something ended while they waited."""


def in_buckets(
    job: Job, tables: Mapping[str, Path], first: str, make: Callable[[Scans], tuple[pl.LazyFrame, Mapping[str, int]]]
) -> tuple[pl.LazyFrame, dict[str, int]]:
    """What ``make`` makes of the tables, whose rows belong to a ``job``, some jobs at a time; and its counts, summed.

    ``first`` is the table whose size says how many jobs are taken at once.
    """
    size = int(pl.scan_parquet(tables[first]).select(pl.len()).collect().item())
    buckets = max(-(-size // BUCKET), 1)
    counts: Counter[str] = Counter()
    made = []
    for number in range(buckets):
        own = pl.col("job").abs() % buckets == number
        rows, said = make({name: pl.scan_parquet(path).filter(own) for name, path in tables.items()})
        made.append(job.scratch / f"bucket-{number}.parquet")
        rows.sink_parquet(made[-1])
        counts.update(said)
        job.tell("putting tasks together", (number + 1) / buckets)
    return pl.scan_parquet(made), dict(counts)


REASONS = {
    "tasks that never ran": ~pl.col("scheduled"),
    "tasks that ran for no time": pl.col("duration") <= 0,
    "tasks without a request of CPU or memory": pl.col("cpu").is_null() | pl.col("memory").is_null(),
    "tasks with times beyond 1e15 s": (pl.col("admission") > ENDLESS) | (pl.col("duration") > ENDLESS),
}
"""Why tasks are left out."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the trace.

    tables    which there are, and whether there must be files of each; the first holds events of tasks
    of_jobs   those whose rows belong to a job
    read      a file of a table; tells how much of it has been read
    tasks     tasks from tables of some jobs, and what was left out
    finished  the columns of requests, from tasks and the other tables
    start     Unix time of second 0; None: nobody knows
    """

    tables: Mapping[str, bool]
    of_jobs: Sequence[str]
    suffixes: Sequence[str]
    add: int
    remove: int
    read: Callable[[str, Path, Advance], Iterable[pl.DataFrame]]
    tasks: Callable[[Scans], tuple[pl.LazyFrame, dict[str, int]]]
    finished: Callable[[pl.LazyFrame, Mapping[str, Path]], pl.LazyFrame]
    reasons: Mapping[str, pl.Expr]
    start: float | None = None


def convert(job: Job, version: Version) -> Converted:
    """The trace's tasks as requests, its machines as hosts."""
    files = find(job.sources, version.tables, version.suffixes)
    read = [path for paths in files.values() for path in paths]
    spooled = {name: _spooled(job, version, name, paths) for name, paths in files.items() if paths}
    tables = {name: path for name, path in spooled.items() if path is not None}
    of_jobs = {name: tables[name] for name in version.of_jobs if name in tables}
    tasks, said = in_buckets(job, of_jobs, version.of_jobs[0], version.tasks)
    kept, dropped = output.drop(tasks, version.reasons)
    dropped |= said
    notes = [*output.start(job, version.start), *output.remarks(kept, "task", RUNS)]
    notes += [f"the files of {name} have no rows" for name in spooled if name not in tables]
    rows = version.finished(kept.with_columns(job.classes.of(kept, "priority")), tables)
    if "machine_events" not in tables:
        return Converted(output.write_requests(rows, job, ("job", "task")), 0, dropped, read, notes)
    attributes = pl.read_parquet(tables["machine_attributes"]) if "machine_attributes" in tables else None
    found = machines(pl.read_parquet(tables["machine_events"]), attributes, version.add, version.remove)
    output.write_host_events(found.events, job.folder)
    return output.converted(job, rows, ("job", "task"), lambda: found.hosts, dropped | found.dropped, read, notes)


def _spooled(job: Job, version: Version, table: str, paths: Sequence[Path]) -> Path | None:
    """All shards of a table, checked and typed, in one Parquet file, with their ``row``; None of one without rows,
    if it is not needed."""

    def frames() -> Iterator[pl.DataFrame]:
        rows = 0
        for number, path in enumerate(paths):

            def advance(part: float, number: int = number) -> None:
                job.tell(table, (number + part) / len(paths))

            for frame in version.read(table, path, advance):
                yield frame.with_columns(pl.int_range(rows, rows + frame.height, dtype=pl.Int64).alias("row"))
                rows += frame.height

    path = job.scratch / f"{table}.parquet"
    return path if spool(frames(), path, paths, needed=version.tables[table]) else None


def constraint_texts(rows: pl.LazyFrame, operator: str, operators: Mapping[Any, str]) -> pl.LazyFrame:
    """By job and task, ``constraints`` as docs/formats.md has them, from ``name``, ``value`` and an operator's code."""
    sign = pl.col(operator).replace_strict(operators, return_dtype=pl.String)
    text = pl.concat_str(_quoted("name"), pl.lit(" "), sign, pl.lit(" "), _quoted("value"))
    grouped = rows.select("job", "task", text=text).group_by("job", "task")
    return grouped.agg(pl.col("text").unique().sort().str.join("; ").alias("constraints"))


def _quoted(column: str) -> pl.Expr:
    escaped = pl.col(column).str.replace_all("\\", "\\\\", literal=True).str.replace_all('"', '\\"', literal=True)
    return pl.concat_str(pl.lit('"'), escaped, pl.lit('"'))


@dataclass(frozen=True, slots=True)
class Machines:
    """Hosts, when they came and went, and how many machines had no capacity."""

    hosts: Hosts
    events: list[tuple[float, str, str]]
    dropped: dict[str, int]


def machines(events: pl.DataFrame, attributes: pl.DataFrame | None, add: int, remove: int) -> Machines:
    """Hosts from machine events: ``time``, ``machine``, ``type``, ``cpu``, ``memory`` and further columns.

    A machine has the first capacity that an event gives, and the columns ``platform`` and ``switch``, where there are,
    as attributes, with the first values of ``attributes`` (time, machine, name, value, deleted). One that comes after
    the beginning is failed until then; removals are failures, later additions repairs.
    """
    ordered = events.sort("time", "machine", maintain_order=True)
    extra = [name for name in ("platform", "switch") if name in events.columns]
    first = (
        ordered.group_by("machine", maintain_order=True)
        .agg(pl.col("cpu", "memory", *extra).drop_nulls().first())
        .sort("machine")
    )
    whole = first.filter(pl.col("cpu").is_not_null() & pl.col("memory").is_not_null())
    given = _first_attributes(attributes)
    rows = whole.to_dicts()
    hosts = Hosts(
        ids=np.array([row["machine"] for row in rows], np.int64),
        names=tuple(str(row["machine"]) for row in rows),
        capacity=np.array([[row["cpu"], row["memory"]] for row in rows], np.float64).reshape(-1, 2),
        attributes=tuple(
            {name: row[name] for name in extra if row[name]} | given.get(row["machine"], {}) for row in rows
        ),
    )
    known = set(whole["machine"].to_list())
    return Machines(
        hosts,
        _comings_and_goings(ordered.filter(pl.col("machine").is_in(known)), add, remove),
        {"machines without a capacity": first.height - whole.height},
    )


def _first_attributes(attributes: pl.DataFrame | None) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = {}
    if attributes is None:
        return found
    first = (
        attributes.sort("time", maintain_order=True)
        .unique(["machine", "name"], keep="first", maintain_order=True)
        .filter(pl.col("deleted").not_() & pl.col("value").is_not_null())
        .sort("machine", "name")
    )
    for machine, name, value in first.select("machine", "name", "value").iter_rows():
        found.setdefault(machine, {})[name] = value
    return found


def _comings_and_goings(ordered: pl.DataFrame, add: int, remove: int) -> list[tuple[float, str, str]]:
    found: list[tuple[float, str, str]] = []
    up: dict[int, bool] = {}
    for row in ordered.select("time", "machine", "type").iter_rows():
        time, machine, kind = row[0] / MICROSECONDS, row[1], row[2]
        name = str(machine)
        if kind == add and not up.get(machine, False):
            if time > 0 and machine not in up:
                found.append((0.0, name, "fail"))
            if time > 0:
                found.append((time, name, "repair"))
            up[machine] = True
        elif kind == remove and up.get(machine, True):
            found.append((time, name, "fail"))
            up[machine] = False
    return found
