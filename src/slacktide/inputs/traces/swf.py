"""Standard Workload Format: a line per job of 18 numbers, -1 for unknown; header and comments begin with ``;``.

Times are seconds, memory KiB per processor (here: GiB). A job of p processors becomes a batch request of p instances
of one processor each, or one instance of p processors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl

from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.problems import Problems
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import LONGEST, Field, batches_of_lines, checked, only_source, spool
from slacktide.model import Hosts

NAMES = (
    *("job_number", "submit_time", "wait_time", "run_time", "allocated_processors", "average_cpu_time", "used_memory"),
    *("requested_processors", "requested_time", "requested_memory", "status", "user_id", "group_id", "executable"),
    *("queue", "partition", "preceding_job", "think_time"),
)
INSTANCES = 100_000_000
"""Of one request at the most (docs/formats.md)."""
USED = (
    Field("job_number", "whole", least=0),
    *(Field(name, "number", least=-1, most=LONGEST) for name in ("submit_time", "wait_time", "run_time")),
    *(Field(f"{name}_processors", "whole", least=-1, most=INSTANCES) for name in ("allocated", "requested")),
    *(Field(f"{name}_memory", "number", least=-1) for name in ("used", "requested")),
    *(Field(name, "whole", least=-1) for name in ("status", "user_id", "group_id", "queue", "partition")),
)
GIB = 2.0**20
"""KiB in a GiB."""
LATEST = 253402300800
"""Unix time of the year 10000, which no log reaches."""
BRIEF = 0.25
"""Seconds that a job of run time 0 runs: times are rounded, so it ran for less than half a second."""
CANCELLED = 5
"""The status of jobs that were cancelled: with a run time of 0, before they ran."""
PARTS = (2, 3, 4)
"""Statuses of lines that are no jobs but what one did between two checkpoints; a line of status 0 or 1 sums it up."""
_SHORT = pl.col("run_time") == 0
_CANCELLED = _SHORT & (pl.col("status") == CANCELLED)
REASONS = {
    "lines of parts of jobs that were checkpointed": pl.col("part") & pl.col("summed_up"),
    "lines of parts of jobs for which no line sums them up": pl.col("part"),
    "jobs that did not run, or for an unknown time": (pl.col("run_time") < 0) | _CANCELLED,
    "jobs with an unknown number of processors": pl.col("processors") < 1,
}


def read(job: Job) -> Converted:
    """Jobs as batch requests; hosts from the header's MaxNodes and MaxProcs."""
    path = only_source(job.sources, "a log in the Standard Workload Format")
    header: dict[str, str] = {}
    spooled = job.scratch / "jobs.parquet"
    spool(_frames(path, header, job), spooled, [path], "at least one job")
    lines, repeated, notes = _jobs(pl.scan_parquet(spooled))
    lines, alive = output.still_there(lines, "end", job, "job")
    notes += [*alive, *_start(header, job)]
    jobs = lines.with_columns(
        processors=pl.when(pl.col("requested_processors") > 0)
        .then("requested_processors")
        .otherwise("allocated_processors"),
        kib=pl.when(pl.col("requested_memory") > 0)
        .then("requested_memory")
        .otherwise(pl.max_horizontal(pl.col("used_memory"), pl.lit(0.0))),
    )
    kept, dropped = output.drop(jobs, REASONS)
    by = str(job.values["by"])
    alone = job.values["shape"] == "one"
    each = pl.col("processors") if alone else pl.lit(1)
    rows = kept.select(
        "job_number",
        pl.col("submit_time").alias("admission"),
        pl.when(pl.col("end").is_not_null()).then(pl.when(_SHORT).then(BRIEF).otherwise("run_time")).alias("duration"),
        each.cast(pl.Float64).alias("cpu"),
        (each * pl.col("kib") / GIB).alias("memory"),
        job.classes.of(kept, by),
        pl.when(pl.col("user_id") > 0).then("user_id").alias("user"),
        *(() if alone else output.at_once("processors")),
    )
    unsaid = {
        f"of run time 0, less than half a second: {BRIEF:g} s are taken": _SHORT,
        "of unknown memory: none is demanded": pl.col("kib") <= 0,
        "of unknown user: they have none": pl.col("user_id") <= 0,
        f"of unknown {by}: their class is what --map says of -1": pl.col(by) < 0,
    }
    notes += output.remarks(kept, "job", unsaid)
    hosts = partial(_hosts, header, job, rows, notes)
    return output.converted(job, rows, ("job_number",), hosts, repeated | dropped, [path], notes)


def _jobs(lines: pl.LazyFrame) -> tuple[pl.LazyFrame, dict[str, int], list[str]]:
    """The lines, each told whether it is a part of a job, without those that are there a second time."""
    marked = lines.with_columns(part=pl.col("status").is_in(PARTS))
    whole, parts = marked.filter(~pl.col("part")), marked.filter("part")
    once, repeated, notes = output.told_apart(whole, ["job_number"], "job number")
    summed_up = once.select("job_number").unique().with_columns(summed_up=pl.lit(value=True))
    told = pl.concat([once, parts]).join(summed_up, on="job_number", how="left")
    ran = pl.when(~pl.col("part") & (pl.col("run_time") >= 0)).then("run_time")
    told = told.with_columns(end=pl.col("submit_time") + pl.max_horizontal(pl.col("wait_time"), pl.lit(0.0)) + ran)
    return told.with_columns(pl.col("summed_up").fill_null(value=False)), repeated, notes


def _frames(path: Path, header: dict[str, str], job: Job) -> Iterator[pl.DataFrame]:
    for before, lines in batches_of_lines(path, lambda part: job.tell("jobs", part)):
        yield _rows(path, [line.decode("utf-8", "replace") for line in lines], before, header)


def _rows(path: Path, texts: list[str], before: int, header: dict[str, str]) -> pl.DataFrame:
    """The jobs among the lines, checked; remarks ``; Name: value`` go to ``header``."""
    problems = Problems(str(path))
    lines, cells = [], []
    for number, text in enumerate(texts, before + 1):
        stripped = text.strip()
        if stripped.startswith(";"):
            if found := re.fullmatch(r";\s*(\w+)\s*:\s*(.*)", stripped):
                header.setdefault(found[1], found[2].strip())
            continue
        parts = stripped.split()
        if parts and len(parts) != len(NAMES):
            problems.add(number, "", stripped, f"{len(NAMES)} numbers, found {len(parts)}")
        elif parts:
            lines.append(number)
            cells.append(parts)
    rows = pl.DataFrame(cells, schema=dict.fromkeys(NAMES, pl.String), orient="row")
    jobs = checked(rows, USED, lines, problems)
    for place in jobs.select((pl.col("submit_time") < 0) & ~pl.col("status").is_in(PARTS)).to_series().arg_true():
        problems.add(lines[place], "submit_time", cells[place][1], "a number, 0 or more: only parts of a job have none")
    problems.raise_if_any()
    return jobs


def _hosts(header: dict[str, str], job: Job, rows: pl.LazyFrame, notes: list[str]) -> Hosts:
    """MaxNodes hosts that have MaxProcs processors together, as equal as can be, unless parameters say otherwise."""
    processors, nodes = (_count(header.get(name, "")) for name in ("MaxProcs", "MaxNodes"))
    if processors and nodes > processors:
        notes.append(f"MaxNodes is {nodes:,}, more than MaxProcs: {processors:,} hosts have a processor each")
        nodes = processors
    count = int(job.values["hosts"]) or nodes or processors
    own = float(job.values["host_cores"])
    each, more = divmod(processors, count) if processors and count and not own else (0, 0)
    cores = own or max(each, 1)
    memory = float(job.values["host_memory"])
    if not memory:
        most = float(rows.select(pl.col("memory").max()).collect().item())
        memory = max(most * (1.0 if job.values["shape"] == "one" else cores + (more > 0)), 1.0)
        notes.append(f"the log says nothing of hosts' memory: each has {memory:g} GiB, enough for the largest jobs")
    hosts = output.uniform_hosts(job, {"cpu": cores, "memory": memory}, count)
    if more:
        hosts.capacity[:more, 0] += 1.0
        notes.append(f"{processors:,} processors on {count:,} hosts: {more:,} of them have one more than the others")
    return hosts


def _start(header: dict[str, str], job: Job) -> list[str]:
    """When the log began, and in which time zone its users live."""
    unix = _count(header.get("UnixStartTime", ""))
    notes = output.start(job, float(unix) if 0 < unix < LATEST else None)
    said = [f"{name}: {header[name]}" for name in ("StartTime", "TimeZoneString", "TimeZone") if header.get(name)]
    return [*notes, f"the log says {', '.join(said)}"] if said else notes


def _count(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0


TRACE = Trace(
    "swf",
    "Standard Workload Format: a log of 18 columns, .swf or .swf.gz",
    "queue",
    "0=gold,1=silver,*=bronze",
    (
        Parameter(
            "by", "queue", "the column that --map is about", choices=("queue", "partition", "group_id", "user_id")
        ),
        Parameter(
            "shape", "instances", "a job as instances of one processor, or one of all", choices=("instances", "one")
        ),
        output.last("ended"),  # a log is written of jobs that ended
        Parameter("hosts", 0, "how many hosts; 0: MaxNodes of the header, else as many as the peak demand takes"),
        Parameter("host_cores", 0.0, "processors of a host; 0: all have MaxProcs together"),
        Parameter("host_memory", 0.0, "GiB of a host; 0: enough for the largest jobs"),
    ),
    read,
)
