"""Alibaba's spot GPUs of 2026 (cluster-trace-v2026-spot-gpu): job_info_df.csv and node_info_df.csv, with headers.

CPU in cores and GPUs for each worker; the trace says nothing of memory.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from slacktide.inputs.columns.terms import format_term
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.swf import INSTANCES
from slacktide.inputs.traces.tables import LONGEST, Field, find, spooled
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
    files = find(job.sources, {"job_info": True, "node_info": True}, SUFFIXES, most=1)
    table = pl.scan_parquet(spooled(job, "job_info", files["job_info"], JOBS))
    table, repeated, notes = output.told_apart(table, ["job_name"], "job")
    table = table.with_columns((pl.col("submit_time") + pl.col("duration")).alias("end"))
    kept, dropped = output.drop(table, REASONS)
    kept, alive = output.still_there(kept, "end", job, "job")
    notes += [*alive, *output.start(job, None), "the trace says nothing of memory: none is demanded"]
    nodes = pl.read_parquet(spooled(job, "node_info", files["node_info"], NODES))
    there = kept.select((~pl.col("gpu_model").is_in(nodes["gpu_model"].drop_nulls().implode())).alias("lost"))
    notes += output.remarks(there, "job", {"asking for a model that no node has": pl.col("lost")})
    rows = kept.select(
        "job_name",
        pl.col("submit_time").alias("admission"),
        pl.when(pl.col("end").is_not_null()).then("duration").alias("duration"),
        pl.col("cpu_request").alias("cpu"),
        pl.lit(0.0).alias("memory"),
        pl.col("gpu_request").alias("resource:gpu"),
        job.classes.of(kept, "job_type"),
        _constraints(kept).alias("constraints"),
        pl.col("organization").alias("user"),
        *output.at_once("worker_num"),
    )
    read = [*files["job_info"], *files["node_info"]]
    return output.converted(job, rows, ("job_name",), lambda: _hosts(read[1], nodes), repeated | dropped, read, notes)


def _constraints(rows: pl.LazyFrame) -> pl.Expr:
    """The model that a job asks for."""
    models = rows.select("gpu_model").unique().collect()["gpu_model"].drop_nulls().to_list()
    terms = {model: format_term(Term((Constraint("model", "==", model),))) for model in models}
    return pl.col("gpu_model").replace_strict(terms, default=None, return_dtype=pl.String)


def _hosts(path: Path, nodes: pl.DataFrame) -> Hosts:
    names = [f"node-{name}" for name in nodes["node_name"]]
    capacity = {"cpu": nodes["cpu_num"], "memory": 0.0, "gpu": nodes["gpu_capacity_num"]}
    return output.listed_hosts(path, names, capacity, model=nodes["gpu_model"])


TRACE = Trace(
    "alibaba-spot",
    "Alibaba cluster-trace-v2026-spot-gpu: job_info_df.csv and node_info_df.csv",
    "job_type",
    "HP=gold,Spot=bronze",
    (output.last("alive"),),
    read,
)
