"""Microsoft's Philly (2017): cluster_job_log, a JSON list of jobs with their attempts, and cluster_machine_list.

GPUs are all that is known of what jobs ask for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from slacktide.errors import InputError, fail
from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.problems import Problems, read_text
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import Field, find, header_of, read_csv, spool
from slacktide.model import Hosts

SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("jobid", "vc", "user", "status", "submitted_time", "start_time", "end_time"), pl.String),
    **dict.fromkeys(("attempts", "servers", "gpus", "most", "line"), pl.Int64),
}
PIECE = 20_000
STATUSES = ("Pass", "Killed", "Failed")
TIMES = ("submitted_time", "start_time", "end_time")
REASONS = {
    "jobs of an unknown submission": pl.col("submitted_time").is_null(),
    "jobs that were never scheduled": pl.col("attempts") == 0,
    "jobs whose last attempt has no start": pl.col("start_time").is_null(),
    "jobs that ran for less than a second, by which the log counts": pl.col("end_time") <= pl.col("start_time"),
    "jobs whose last attempt names no GPU": pl.col("gpus") < 1,
}
UNEVEN = "with more GPUs on one server than on another: each instance has as many as the largest"
ODD = {
    "attempted more than once: the duration is that of the last attempt": pl.col("attempts") > 1,
    UNEVEN: pl.col("most") * pl.col("servers") != pl.col("gpus"),
    "without an end: they still ran": pl.col("end_time").is_null(),
    "of a status that the documentation does not name": (~pl.col("status").is_in(STATUSES)).fill_null(value=True),
}


def read(job: Job) -> Converted:
    """Jobs as batch requests: an instance for each server of the last attempt, or for each GPU."""
    zone = output.zone_of(str(job.values["zone"]))
    tables = {"cluster_job_log": True, "cluster_machine_list": False}
    files = find(job.sources, tables, (*tables, ".json", ".csv"), most=1)
    (log,) = files["cluster_job_log"]
    spooled = job.scratch / "jobs.parquet"
    spool(_frames(log, job), spooled, [log], "at least one job")
    table, repeated, notes = output.told_apart(pl.scan_parquet(spooled).drop("line"), ["jobid"], "job")
    table = table.with_columns(output.seconds_of(name, zone, log, spooled) for name in TIMES)
    first = table.select(pl.col("submitted_time").min()).collect().item()
    table = table.with_columns(pl.col(name) - (first or 0.0) for name in TIMES)
    table, alive = output.still_there(table, "end_time", job, "job")
    kept, dropped = output.drop(table, REASONS)
    by_server = job.values["shape"] == "servers"
    odd = {what: holds for what, holds in ODD.items() if by_server or what != UNEVEN}
    notes += [*alive, *output.start(job, first), *output.remarks(kept, "job", odd)]
    count, each = ("servers", pl.col("most")) if by_server else ("gpus", pl.lit(1))
    rows = kept.select(
        "jobid",
        pl.col("submitted_time").alias("admission"),
        (pl.col("end_time") - pl.col("start_time")).alias("duration"),
        (each * float(job.values["cores_per_gpu"])).alias("cpu"),
        (each * float(job.values["memory_per_gpu"])).alias("memory"),
        each.cast(pl.Float64).alias("resource:gpu"),
        job.classes.of(kept, "vc"),
        "user",
        *output.at_once(count),
    )
    machines = files["cluster_machine_list"]
    hosts = partial(_hosts, machines, job)
    return output.converted(job, rows, ("jobid",), hosts, repeated | dropped, [log, *machines], notes)


def _frames(path: Path, job: Job) -> Iterator[pl.DataFrame]:
    every = _rows(path, job)
    while rows := list(islice(every, PIECE)):
        yield pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _rows(path: Path, job: Job) -> Iterator[tuple[Any, ...]]:
    """The jobs, one after the other: of the whole log there is only the text in memory."""
    text = read_text(path)
    decoder = json.JSONDecoder()
    problems = Problems(str(path))
    at, line = _blank(text, 0), 1
    if text[at : at + 1] != "[":
        raise fail(path, "a list of jobs in [ ]", line=1, value=text[at : at + 20] or "nothing")
    at = _blank(text, at + 1)
    before = 0
    job.tell("cluster_job_log", 0.0)
    while text[at : at + 1] not in ("]", ""):
        line += text.count("\n", before, at)
        before = at
        try:
            one, at = decoder.raw_decode(text, at)
        except ValueError as error:
            raise fail(path, "a JSON object of a job", line=line, value=text[at : at + 40].strip()) from error
        row = _row(one, line, problems)
        if row is not None:
            yield row
        at = _blank(text, at)
        if text[at : at + 1] == ",":
            at = _blank(text, at + 1)
        job.tell("cluster_job_log", at / len(text))
    problems.raise_if_any()
    if not text[at:].strip():
        raise fail(path, "a list of jobs in [ ]; the file seems to be cut", line=line + text.count("\n", before))


def _blank(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def _row(one: Any, line: int, problems: Problems) -> tuple[Any, ...] | None:
    """A job: what its last attempt says, and how many attempts there were."""
    attempts = one.get("attempts") if isinstance(one, dict) else None
    if not isinstance(attempts, list) or not all(isinstance(each, dict) for each in attempts):
        problems.add(line, "attempts", str(attempts)[:40], "a job with its list of attempts")
        return None
    if not isinstance(one.get("jobid"), str):
        problems.add(line, "jobid", str(one.get("jobid")), "a text")
        return None
    last = attempts[-1] if attempts else {}
    detail = last.get("detail") or []
    try:
        sizes = [len(each["gpus"]) for each in detail if each["gpus"]]
    except (TypeError, KeyError):
        problems.add(line, "detail", str(detail)[:40], "servers with lists of gpus")
        return None
    times = [_text(one.get("submitted_time")), _text(last.get("start_time")), _text(last.get("end_time"))]
    names = [one["jobid"], *(_text(one.get(key)) for key in ("vc", "user", "status"))]
    return (*names, *times, len(attempts), len(sizes), sum(sizes), max(sizes, default=0), line)


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _hosts(paths: list[Path], job: Job) -> Hosts:
    each = {"cpu": float(job.values["cores_per_gpu"]), "memory": float(job.values["memory_per_gpu"]), "gpu": 1.0}
    if not paths:
        gpus = float(job.values["host_gpus"])
        return output.uniform_hosts(job, {name: gpus * amount for name, amount in each.items()}, 0)
    path = paths[0]
    names = [name.strip() for name in header_of(path)]
    if len(names) != 3 or names[0] != "machineId":
        raise fail(path, "the columns machineId, number of GPUs, single GPU mem", line=1, value=", ".join(names)[:200])
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    aside = job.scratch / "machines.csv"
    aside.write_text("\n".join(["machineId,gpus,gpu_memory", *lines[1:]]) + "\n", encoding="utf-8")
    fields = (Field("machineId"), Field("gpus", "whole", least=0), Field("gpu_memory", needed=False))
    try:
        table = pl.concat(list(read_csv(aside, None, fields)))
    except InputError as error:
        raise fail(
            path, "machines with a whole number of GPUs", value=str(error).partition("machines.csv")[2]
        ) from error
    capacity = {name: table["gpus"] * amount for name, amount in each.items()}
    return output.listed_hosts(path, table["machineId"].to_list(), capacity, gpu_memory=table["gpu_memory"])


TRACE = Trace(
    "philly",
    "Microsoft Philly 2017: cluster_job_log and cluster_machine_list",
    "vc",
    "*=silver",
    (
        Parameter(
            "shape", "servers", "a job as instances of one server each, or of one GPU", choices=("servers", "gpus")
        ),
        output.last("ended"),  # who still ran has no end
        Parameter("zone", "America/Los_Angeles", "time zone of its clock: that of the tables of utilization"),
        Parameter("cores_per_gpu", 0.0, "CPU that an instance asks for with each GPU, and that hosts have"),
        Parameter("memory_per_gpu", 0.0, "the same of memory"),
        Parameter("host_gpus", 8.0, "without cluster_machine_list: GPUs of a host", least=1),
    ),
    read,
)
