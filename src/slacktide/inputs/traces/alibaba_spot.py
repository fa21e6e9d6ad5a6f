"""Alibaba's spot GPUs of 2026 (cluster-trace-v2026-spot-gpu): job_info_df.csv and node_info_df.csv, with headers.

CPU in cores and GPUs for each worker; the trace says nothing of memory.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from slacktide.errors import fail
from slacktide.inputs.columns.terms import format_term
from slacktide.inputs.problems import Problems
from slacktide.inputs.traces import output, sources
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.swf import INSTANCES
from slacktide.inputs.traces.tables import LONGEST, Field, read_csv, spool
from slacktide.inputs.validation import to_hosts
from slacktide.model import Constraint, Hosts, Term

SUFFIXES = (".csv", ".csv.gz")
JOBS = (
    Field("job_name"),
    Field("organization", needed=False),
    Field("gpu_model", needed=False),
    Field("cpu_request", "number", needed=False, least=0),
    Field("gpu_request", "number", needed=False, least=0),
    Field("worker_num", "number", needed=False, least=0, most=INSTANCES),
    Field("submit_time", "number", least=0, most=LONGEST),
    Field("duration", "number", needed=False, least=0, most=LONGEST),
    Field("job_type"),
)
NODES = (
    Field("node_name"),
    Field("gpu_model", needed=False),
    Field("gpu_capacity_num", "number", least=0),
    Field("cpu_num", "number", least=0),
)
REASONS = {
    "jobs of an unknown duration": pl.col("duration").is_null(),
    "jobs that lasted no time": pl.col("duration") <= 0,
    "jobs of no worker": pl.col("worker_num").is_null() | (pl.col("worker_num") < 1),
    "jobs of an unknown demand": pl.col("cpu_request").is_null() | pl.col("gpu_request").is_null(),
}


def read(job: Job) -> Converted:
    """Jobs as batch requests of so many workers; nodes as hosts."""
    files = sources.find(job.sources, {"job_info": True, "node_info": True}, SUFFIXES)
    for name, paths in files.items():
        if len(paths) != 1:
            raise fail(", ".join(map(str, job.sources)), f"one file of {name}", value=f"{len(paths)} files")
    (jobs_file,), (nodes_file,) = files["job_info"], files["node_info"]
    table = pl.scan_parquet(_spooled(jobs_file, JOBS, job))
    table, repeated, notes = output.told_apart(table, ["job_name"], "job")
    table = table.with_columns((pl.col("submit_time") + pl.col("duration")).alias("end"))
    kept, dropped = output.drop(table, REASONS)
    kept, alive = output.still_there(kept, "end", job, "job")
    notes += [*alive, *output.start(job, None), "the trace says nothing of memory: none is demanded"]
    job.classes.check(kept, "job_type", "job_type")
    hosts = _hosts(nodes_file, job)
    rows = kept.select(
        "job_name",
        pl.col("submit_time").alias("admission"),
        pl.when(pl.col("end").is_not_null()).then("duration").alias("duration"),
        pl.col("cpu_request").alias("cpu"),
        pl.lit(0.0).alias("memory"),
        pl.col("gpu_request").alias("resource:gpu"),
        job.classes.classes_of("job_type").alias("class"),
        _constraints(kept).alias("constraints"),
        pl.col("organization").alias("user"),
        pl.lit("batch").alias("kind"),
        pl.col("worker_num").cast(pl.Int64).alias("completions"),
        pl.col("worker_num").cast(pl.Int64).alias("parallelism"),
    )
    count = output.write_requests(rows, job, ("job_name",))
    notes += _without_nodes(kept, hosts) + output.said_of_size(hosts, job)
    dropped = repeated | dropped
    return Converted(count, output.write_machines(hosts, job), dropped, [jobs_file, nodes_file], notes)


def _spooled(path: Path, fields: tuple[Field, ...], job: Job) -> Path:
    spooled = job.scratch / f"{path.stem}.parquet"
    spool(read_csv(path, None, fields, lambda part: job.tell(path.name, part)), spooled, [path])
    return spooled


def _constraints(rows: pl.LazyFrame) -> pl.Expr:
    """The model that a job asks for."""
    models = rows.select("gpu_model").unique().collect()["gpu_model"].drop_nulls().to_list()
    terms = {model: format_term(Term((Constraint("model", "==", model),))) for model in models}
    return pl.col("gpu_model").replace_strict(terms, default=None, return_dtype=pl.String)


def _without_nodes(rows: pl.LazyFrame, hosts: Hosts) -> list[str]:
    there = sorted({one["model"] for one in hosts.attributes if "model" in one})
    lost = rows.select((pl.col("gpu_model").is_not_null() & ~pl.col("gpu_model").is_in(there)).sum()).collect().item()
    return [f"{output.counted(lost, 'job')} asking for a model that no node has"] if lost else []


def _hosts(path: Path, job: Job) -> Hosts:
    rows = pl.read_parquet(_spooled(path, NODES, job)).to_dicts()
    ids = np.arange(1, len(rows) + 1, dtype=np.int64)
    return to_hosts(
        ids,
        [f"node-{row['node_name']}" for row in rows],
        np.array([[row["cpu_num"], 0.0, row["gpu_capacity_num"]] for row in rows], np.float64),
        [{"model": row["gpu_model"]} if row["gpu_model"] else {} for row in rows],
        ("cpu", "memory", "gpu"),
        ids + 1,  # the first line is the header
        Problems(str(path)),
    )


TRACE = Trace(
    "alibaba-spot",
    "Alibaba cluster-trace-v2026-spot-gpu: job_info_df.csv and node_info_df.csv",
    "job_type",
    "HP=gold,Spot=bronze",
    (output.last("alive"),),
    read,
)
