"""Alibaba's cluster of 2018 (cluster-trace-v2018): CSV files without headers of batch tasks, containers and machines.

CPU is in hundredths of a core (here: cores), memory in per cent of the largest machine; -1 and 101 are invalid values.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from slacktide.errors import fail
from slacktide.for_people import counted
from slacktide.inputs.columns.instances import MOST
from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import LONGEST, Field, find, spooled
from slacktide.model import Hosts

SUFFIXES = (".csv", ".csv.gz")
TASK_COLUMNS = (
    *("task_name", "instance_num", "job_name", "task_type", "status", "start_time", "end_time", "plan_cpu", "plan_mem"),
)
TASKS = (
    Field("task_name"),
    Field("instance_num", "whole", needed=False, least=0),
    Field("job_name"),
    Field("status"),
    Field("start_time", "whole", needed=False, least=0, most=LONGEST),
    Field("end_time", "whole", needed=False, least=0, most=LONGEST),
    Field("plan_cpu", "number", needed=False, least=-1),
    Field("plan_mem", "number", needed=False, least=-1),
)
CONTAINER_COLUMNS = (
    *("container_id", "machine_id", "time_stamp", "app_du", "status", "cpu_request", "cpu_limit", "mem_size"),
)
CONTAINERS = (
    Field("container_id"),
    Field("time_stamp", "whole", least=0, most=LONGEST),
    Field("app_du", needed=False),
    Field("status", needed=False),
    Field("cpu_request", "number", needed=False, least=-1),
    Field("mem_size", "number", needed=False, least=-1),
)
MACHINE_COLUMNS = (
    *("machine_id", "time_stamp", "failure_domain_1", "failure_domain_2", "cpu_num", "mem_size", "status"),
)
MACHINES = (
    Field("machine_id"),
    Field("time_stamp", "whole", least=0, most=LONGEST),
    Field("failure_domain_1", needed=False),
    Field("cpu_num", "number", needed=False, least=0),
    Field("mem_size", "number", needed=False, least=-1),
)
TABLES = {
    "batch_task": (TASK_COLUMNS, TASKS),
    "container_meta": (CONTAINER_COLUMNS, CONTAINERS),
    "machine_meta": (MACHINE_COLUMNS, MACHINES),
}
"""By name all columns, as the files have no header, and those that are read."""
NEVER_RAN = ("Waiting", "Ready")
GOING_ON = (*NEVER_RAN, "Running")
"""Statuses of tasks that have no end yet."""
STOPPED = "stopped"
_DEMAND_UNKNOWN = pl.any_horizontal(
    pl.col("cpu").is_null(), pl.col("cpu") < 0, pl.col("memory").is_null(), pl.col("memory") < 0, pl.col("memory") > 100
)
TASK_REASONS = {
    "tasks that start later than asked for": pl.col("later"),
    "tasks of jobs that were not drawn": ~pl.col("drawn"),
    "tasks that never ran": pl.col("status").is_in(NEVER_RAN) | pl.col("start_time").is_null(),
    "tasks of no instance": pl.col("instance_num").is_null() | (pl.col("instance_num") < 1),
    "tasks that are over, of which nobody knows when they ended": pl.col("lost"),
    "tasks that ended before they began, so that nobody knows how long they ran": pl.col("end_time")
    < pl.col("start_time"),
    "tasks that ran for less than a second, by which the table counts": pl.col("end_time") == pl.col("start_time"),
    "tasks of an unknown demand (empty, -1 or 101)": _DEMAND_UNKNOWN,
}
CONTAINER_REASONS = {
    "containers of groups that were not drawn": ~pl.col("drawn"),
    "containers that stopped when they began": pl.col("end") <= pl.col("begin"),
    "containers of an unknown demand (empty, -1 or 101)": _DEMAND_UNKNOWN,
}


def read(job: Job) -> Converted:
    """Tasks as batch requests, containers as services; machines as hosts where the table is there."""
    files = find(job.sources, dict.fromkeys(TABLES, False), SUFFIXES)
    if not files["batch_task"] and not files["container_meta"]:
        places = ", ".join(map(str, job.sources))
        raise fail(places, "a file batch_task.csv or container_meta.csv, as the archives of the trace hold")
    parts: list[pl.LazyFrame] = []
    dropped: dict[str, int] = {}
    notes: list[str] = []
    for name, read_table in (("batch_task", _tasks), ("container_meta", _containers)):
        if files[name]:
            rows, of_these, said = read_table(_spooled(name, files[name], job), job)
            parts.append(rows)
            dropped |= of_these
            notes += said
    kept = pl.concat(parts, how="diagonal")
    rows = kept.with_columns(job.classes.of(kept, "what", "what it is"))
    notes += output.start(job, None)
    hosts = partial(_hosts, files["machine_meta"], job, notes)
    read = [path for paths in files.values() for path in paths]
    return output.converted(job, rows, ("what", "job", "apart"), hosts, dropped, read, notes)


def _spooled(name: str, paths: list[Path], job: Job) -> pl.LazyFrame:
    columns, fields = TABLES[name]
    return pl.scan_parquet(spooled(job, name, paths, fields, columns))


def _tasks(table: pl.LazyFrame, job: Job) -> tuple[pl.LazyFrame, dict[str, int], list[str]]:
    ended = pl.when(pl.col("end_time") > 0).then("end_time")  # 0 where there is none
    table = table.with_columns(ended.alias("end_time"))
    table = table.with_columns((pl.col("end_time").is_null() & ~pl.col("status").is_in(GOING_ON)).alias("lost"))
    table, repeated, notes = output.told_apart(table, ["job_name", "task_name"], "task")
    once = job.scratch / "tasks.parquet"  # 14 million rows are compared with each other once, and not for each question
    table.sink_parquet(once)
    table, alive = output.still_there(pl.scan_parquet(once), "end_time", job, "task")
    notes += alive
    until = float(job.values["until"])
    table = table.with_columns(
        (pl.col("plan_cpu") / 100).alias("cpu"),
        pl.col("plan_mem").alias("memory"),
        ((pl.col("start_time") >= until) if until else pl.lit(value=False)).alias("later"),
        _drawn("job_name", table, job).alias("drawn"),
    )
    kept, dropped = output.drop(table, TASK_REASONS)
    facts = kept.select(pl.col("end_time").is_null().sum(), pl.len(), pl.col("instance_num").sum()).collect()
    endless, numbers, instances = facts.row(0)
    if instances > MOST:
        notes.append(
            f"{instances:,} instances, of which a run takes {MOST:,}: --set share=0.01 draws jobs, --set until=3600 "
            "takes those of the first hour"
        )
    if endless:
        notes.append(f"{counted(endless, 'task')} without an end: they never complete")
    notes.append(
        f"{counted(numbers, 'task')}: admission is the start, as the table has no submission; all instances of "
        "a task run as long as the task did"
    )
    rows = kept.select(
        pl.col("start_time").cast(pl.Float64).alias("admission"),
        (pl.col("end_time") - pl.col("start_time")).cast(pl.Float64).alias("duration"),
        "cpu",
        "memory",
        output.numbered("job_name", kept, "j_").alias("job"),
        *output.at_once("instance_num"),
        pl.lit("task").alias("what"),
        pl.col("task_name").alias("apart"),
    )
    return rows, {f"{why} (batch_task)": number for why, number in repeated.items()} | dropped, notes


def _containers(table: pl.LazyFrame, job: Job) -> tuple[pl.LazyFrame, dict[str, int], list[str]]:
    """A container has a row for each thing that happened to it; only a stop at the end is an end."""
    lives = (
        table.sort("container_id", "time_stamp", maintain_order=True)
        .group_by("container_id", maintain_order=True)
        .agg(
            pl.col("time_stamp").first().alias("begin"),
            pl.when(pl.col("status").last() == STOPPED).then(pl.col("time_stamp").last()).alias("end"),
            pl.col("app_du").drop_nulls().first(),
            (pl.col("cpu_request").max() / 100).alias("cpu"),
            pl.col("mem_size").filter(pl.col("mem_size").is_between(0, 100)).max().alias("memory"),
            (pl.struct("cpu_request", "mem_size").n_unique() > 1).alias("resized"),
        )
    )
    lives = lives.with_columns(_drawn("app_du", lives, job).alias("drawn"))
    kept, dropped = output.drop(lives, CONTAINER_REASONS)
    counts = kept.select(pl.len(), pl.col("end").is_null().sum(), pl.col("resized").sum()).collect()
    number, endless, resized = counts.row(0)
    notes = [f"{counted(number, 'container')}, {endless:,} of them without a stop at the end: there for good"]
    if resized:
        notes.append(f"{counted(resized, 'container')} whose demand changes: the largest is taken")
    rows = kept.select(
        pl.col("begin").cast(pl.Float64).alias("admission"),
        (pl.col("end") - pl.col("begin")).cast(pl.Float64).alias("duration"),
        "cpu",
        "memory",
        (output.numbered("app_du", kept, "app_") + BESIDE_JOBS).alias("job"),
        pl.lit("service").alias("kind"),
        pl.lit("container").alias("what"),
        pl.col("container_id").alias("apart"),
    )
    return rows, dropped, notes


def _drawn(column: str, rows: pl.LazyFrame, job: Job) -> pl.Expr:
    """Whether a row is of a job (or group) that the share takes, whole; rows without a name are of one."""
    share = float(job.values["share"])
    if share >= 1:
        return pl.lit(value=True)
    names = rows.select(column).unique().sort(column).collect()[column]
    drawn = np.random.default_rng(job.seed).random(len(names)) < share
    return pl.col(column).is_in(names.filter(pl.Series(drawn)).implode(), nulls_equal=True)


BESIDE_JOBS = 2**40
"""Added to the numbers of application groups, which are no jobs of batch tasks."""


def _hosts(paths: list[Path], job: Job, notes: list[str]) -> Hosts:
    if not paths:
        notes.append("no machine_meta: all hosts are of one size")
        return output.uniform_hosts(job, {"cpu": "host_cores", "memory": "host_memory"})
    table = _spooled("machine_meta", paths, job).collect()
    known = table.filter((pl.col("cpu_num") > 0) & pl.col("mem_size").is_between(0, 100, closed="right"))
    first = known.sort("time_stamp", maintain_order=True).unique("machine_id", keep="first", maintain_order=True)
    if not first.height:
        raise fail(", ".join(map(str, paths)), "at least one machine with cpu_num and mem_size")
    if unknown := table["machine_id"].n_unique() - first.height:
        notes.append(f"{counted(unknown, 'machine')} of an unknown capacity: left out")
    capacity = {"cpu": first["cpu_num"], "memory": first["mem_size"]}
    return output.listed_hosts(paths[0], first["machine_id"].to_list(), capacity, domain=first["failure_domain_1"])


TRACE = Trace(
    "alibaba2018",
    "Alibaba cluster-trace-v2018: batch_task.csv, container_meta.csv, machine_meta.csv",
    "container or task",
    "container=gold,task=bronze",
    (
        output.last("ended"),  # who still runs has no end
        Parameter("share", 1.0, "part of the jobs, and of the containers' groups, drawn with --seed", most=1),
        Parameter("until", 0.0, "seconds: leave out tasks that start then or later; 0: none"),
        Parameter("hosts", 0, "without machine_meta: how many hosts; 0: as many as the peak demand takes"),
        Parameter("host_cores", 96.0, "without machine_meta: cores of a host", least=1),
        Parameter("host_memory", 100.0, "without machine_meta: per cent of the largest machine's memory", least=1),
    ),
    read,
)
