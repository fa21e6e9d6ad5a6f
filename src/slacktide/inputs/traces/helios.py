"""SenseTime's Helios (2020): cluster_log.csv of one of its clusters, and cluster_gpu_number.csv, with headers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl

from slacktide.errors import fail
from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.swf import INSTANCES
from slacktide.inputs.traces.tables import Field, find, header_of, read_csv, spooled
from slacktide.model import Hosts

SUFFIXES = (".csv", ".csv.gz")
JOBS = (
    Field("job_id"),
    Field("user", needed=False),
    Field("vc", needed=False),
    Field("gpu_num", "number", needed=False, least=0),
    Field("cpu_num", "number", needed=False, least=0),
    Field("node_num", "number", needed=False, least=0, most=INSTANCES),
    Field("state"),
    Field("submit_time", needed=False),
    Field("start_time", needed=False),
    Field("end_time", needed=False),
)
STATES = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")
"""Those that the documentation names; SUSPENDED "happens only once", and its authors leave it out."""
SUSPENDED = "SUSPENDED"
TIMES = ("submit_time", "start_time", "end_time")
REASONS = {
    "jobs that were suspended": pl.col("state") == SUSPENDED,
    "jobs of an unknown submission": pl.col("submit_time").is_null(),
    "jobs that never started": pl.col("start_time").is_null(),
    "jobs that ran for less than a second, by which the log counts": pl.col("end_time") <= pl.col("start_time"),
    "jobs of no node": pl.col("node_num").is_null() | (pl.col("node_num") < 1),
    "jobs of an unknown demand": pl.col("gpu_num").is_null() | pl.col("cpu_num").is_null(),
}
ODD = {
    "of a state that the documentation does not name": ~pl.col("state").is_in(STATES),
    "whose GPUs do not divide by their nodes: each node has the same part": pl.col("gpu_num") % pl.col("node_num") != 0,
    "without an end: they never complete": pl.col("end_time").is_null(),
}


def read(job: Job) -> Converted:
    """Jobs as batch requests of as many instances as nodes."""
    zone = output.zone_of(str(job.values["zone"]))
    files = find(job.sources, {"cluster_log": True, "cluster_gpu_number": False}, SUFFIXES, most=1)
    (log,) = files["cluster_log"]
    jobs = spooled(job, "cluster_log", [log], JOBS)
    table, repeated, notes = output.told_apart(pl.scan_parquet(jobs), ["job_id"], "job")
    table = table.with_columns(output.seconds_of(name, zone, log, jobs) for name in TIMES)
    first = table.select(pl.col("submit_time").min()).collect().item()
    table = table.with_columns(pl.col(name) - (first or 0.0) for name in TIMES)
    table, alive = output.still_there(table, "end_time", job, "job")
    kept, dropped = output.drop(table, REASONS)
    notes += [*alive, *output.start(job, first), *output.remarks(kept, "job", ODD)]
    notes.append("the log says nothing of memory: none is demanded")
    rows = kept.select(
        "job_id",
        pl.col("submit_time").alias("admission"),
        (pl.col("end_time") - pl.col("start_time")).alias("duration"),
        (pl.col("cpu_num") / pl.col("node_num")).alias("cpu"),
        pl.lit(0.0).alias("memory"),
        (pl.col("gpu_num") / pl.col("node_num")).alias("resource:gpu"),
        job.classes.of(kept, "vc"),
        "user",
        *output.at_once("node_num"),
    )
    numbers = files["cluster_gpu_number"]
    hosts = partial(_hosts, numbers, job, notes)
    return output.converted(job, rows, ("job_id",), hosts, repeated | dropped, [log, *numbers], notes)


def _hosts(paths: list[Path], job: Job, notes: list[str]) -> Hosts:
    """As many as the cluster had GPUs for, on the day on which it had most."""
    gpus, count = float(job.values["host_gpus"]), int(job.values["hosts"])
    if not count and paths:
        names = header_of(paths[0])
        if "total" not in names:
            raise fail(paths[0], "the columns date and total", line=1, value=", ".join(names)[:200])
        fields = (Field("date"), Field("total", "number", needed=False, least=0))
        totals = pl.concat(list(read_csv(paths[0], None, fields)))["total"].drop_nulls()
        if not len(totals):
            raise fail(paths[0], "at least one day with a total")
        most = max(totals.to_list())
        count = max(round(most / gpus), 1)
        notes.append(f"{most:,.0f} GPUs on the day on which there were most: {count:,} hosts")
    return output.uniform_hosts(job, {"cpu": "host_cores", "memory": 0.0, "gpu": gpus}, count)


TRACE = Trace(
    "helios",
    "SenseTime Helios 2020: cluster_log.csv and cluster_gpu_number.csv of one cluster",
    "vc",
    "*=silver",
    (
        output.last("ended"),
        Parameter("zone", "UTC", "time zone of its clock, which the documentation does not name"),
        Parameter("hosts", 0, "how many hosts; 0: those of cluster_gpu_number, else as many as the peak demand takes"),
        Parameter("host_gpus", 8.0, "GPUs of a host", least=1),
        Parameter("host_cores", 48.0, "cores of a host", least=1),
    ),
    read,
)
