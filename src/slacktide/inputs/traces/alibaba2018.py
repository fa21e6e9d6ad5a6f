"""Alibaba's cluster of 2018 (cluster-trace-v2018): CSV files without headers of batch tasks, containers and machines.

CPU is in hundredths of a core (here: cores), memory in per cent of the largest machine; -1 and 101 are invalid values.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from slacktide.errors import fail
from slacktide.inputs.columns.instances import MOST
from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.problems import Problems
from slacktide.inputs.traces import output, sources
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import LONGEST, Field, read_csv, spool
from slacktide.inputs.validation import to_hosts
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
    tables = ("batch_task", "container_meta", "machine_meta")
    files = sources.find(job.sources, dict.fromkeys(tables, False), SUFFIXES)
    if not files["batch_task"] and not files["container_meta"]:
        places = ", ".join(map(str, job.sources))
        raise fail(places, "a file batch_task.csv or container_meta.csv, as the archives of the trace hold")
    parts: list[pl.LazyFrame] = []
    dropped: dict[str, int] = {}
    notes: list[str] = []
    if files["batch_task"]:
        rows, of_tasks, said = _tasks(files["batch_task"], job)
        parts.append(rows)
        dropped |= of_tasks
        notes += said
    if files["container_meta"]:
        rows, of_containers, said = _containers(files["container_meta"], job)
        parts.append(rows)
        dropped |= of_containers
        notes += said
    kept = pl.concat(parts, how="diagonal")
    job.classes.check(kept, "what", "what it is")
    rows = kept.with_columns(job.classes.classes_of("what").alias("class"))
    notes += output.start(job, None)
    count = output.write_requests(rows, job, ("what", "job", "apart"))
    hosts, more = _hosts(files["machine_meta"], job)
    notes += [*more, *output.said_of_size(hosts, job)]
    read = [path for paths in files.values() for path in paths]
    return Converted(count, output.write_machines(hosts, job), dropped, read, notes)


def _spooled(paths: list[Path], columns: tuple[str, ...], fields: tuple[Field, ...], job: Job, name: str) -> Path:
    path = job.scratch / f"{name}.parquet"
    frames = (frame for one in paths for frame in read_csv(one, columns, fields, lambda part: job.tell(name, part)))
    spool(frames, path, paths)
    return path


def _tasks(paths: list[Path], job: Job) -> tuple[pl.LazyFrame, dict[str, int], list[str]]:
    table = pl.scan_parquet(_spooled(paths, TASK_COLUMNS, TASKS, job, "batch_task"))
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
        notes.append(f"{output.counted(endless, 'task')} without an end: they never complete")
    notes.append(
        f"{output.counted(numbers, 'task')}: admission is the start, as the table has no submission; all instances of "
        "a task run as long as the task did"
    )
    rows = kept.select(
        pl.col("start_time").cast(pl.Float64).alias("admission"),
        (pl.col("end_time") - pl.col("start_time")).cast(pl.Float64).alias("duration"),
        "cpu",
        "memory",
        output.numbered("job_name", kept, "j_").alias("job"),
        pl.lit("batch").alias("kind"),
        pl.col("instance_num").alias("completions"),
        pl.col("instance_num").alias("parallelism"),
        pl.lit("task").alias("what"),
        pl.col("task_name").alias("apart"),
    )
    return rows, {f"{why} (batch_task)": number for why, number in repeated.items()} | dropped, notes


def _containers(paths: list[Path], job: Job) -> tuple[pl.LazyFrame, dict[str, int], list[str]]:
    """A container has a row for each thing that happened to it; only a stop at the end is an end."""
    table = pl.scan_parquet(_spooled(paths, CONTAINER_COLUMNS, CONTAINERS, job, "container_meta"))
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
    notes = [f"{output.counted(number, 'container')}, {endless:,} of them without a stop at the end: there for good"]
    if resized:
        notes.append(f"{output.counted(resized, 'container')} whose demand changes: the largest is taken")
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


def _hosts(paths: list[Path], job: Job) -> tuple[Hosts, list[str]]:
    capacity = {"cpu": float(job.values["host_cores"]), "memory": float(job.values["host_memory"])}
    if not paths:
        hosts = output.uniform_hosts(job, int(job.values["hosts"]), capacity)
        return hosts, ["no machine_meta: all hosts are of one size"]
    table = pl.read_parquet(_spooled(paths, MACHINE_COLUMNS, MACHINES, job, "machine_meta"))
    known = table.filter((pl.col("cpu_num") > 0) & pl.col("mem_size").is_between(0, 100, closed="right"))
    first = known.sort("time_stamp", maintain_order=True).unique("machine_id", keep="first", maintain_order=True)
    if not first.height:
        raise fail(", ".join(map(str, paths)), "at least one machine with cpu_num and mem_size")
    unknown = table["machine_id"].n_unique() - first.height
    ids = np.arange(1, first.height + 1, dtype=np.int64)
    hosts = to_hosts(
        ids,
        first["machine_id"].to_list(),
        first.select("cpu_num", "mem_size").to_numpy().astype(np.float64),
        [{"domain": one} if one else {} for one in first["failure_domain_1"].to_list()],
        ("cpu", "memory"),
        ids,
        Problems(str(paths[0])),
    )
    return hosts, [f"{output.counted(unknown, 'machine')} of an unknown capacity: left out"] if unknown else []


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
