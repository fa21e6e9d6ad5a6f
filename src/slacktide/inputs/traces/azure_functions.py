"""Azure Functions, the two weeks of 2021: a CSV with a row for each invocation."""

from __future__ import annotations

import polars as pl

from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.traces import output, sources
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import LONGEST, Field, read_csv, spool

FIELDS = (
    Field("app"),
    Field("func"),
    Field("end_timestamp", "number", least=0, most=LONGEST),
    Field("duration", "number", least=0, most=LONGEST),
)
REASONS = {
    "invocations of no time": pl.col("duration") <= 0,
    "invocations that were over when the trace began": pl.col("end_timestamp") <= 0,
}
DIGITS = 6


def read(job: Job) -> Converted:
    """Invocations as batch requests of one instance; hosts, which the trace does not have, of one size."""
    path = sources.one(job.sources, "the invocations of 2021, AzureFunctionsInvocationTraceForTwoWeeksJan2021.txt")
    spooled = job.scratch / "invocations.parquet"
    spool(read_csv(path, None, FIELDS, lambda part: job.tell("invocations", part)), spooled, [path])
    # Equal rows may be two invocations: the trace has no numbers that would tell them apart.
    kept, dropped = output.drop(pl.scan_parquet(spooled), REASONS)
    kept = kept.with_columns((pl.col("end_timestamp") - pl.col("duration")).alias("begin"))
    early = kept.select((pl.col("begin") < 0).sum()).collect().item()
    notes = output.start(job, None)
    if early:
        notes.append(f"{output.counted(early, 'invocation')} that began before the trace: at 0, for what is left")
    job.classes.check(kept, "app", "app")
    begin = pl.max_horizontal(pl.col("begin").round(DIGITS), pl.lit(0.0))
    rows = kept.select(
        "func",
        "end_timestamp",
        begin.alias("admission"),
        pl.when(pl.col("begin") < 0).then("end_timestamp").otherwise("duration").alias("duration"),
        pl.lit(float(job.values["cores"])).alias("cpu"),
        pl.lit(float(job.values["memory"])).alias("memory"),
        job.classes.classes_of("app").alias("class"),
        (pl.col("app").rank("dense") - 1).cast(pl.Int64).alias("job"),
        pl.col("app").alias("user"),
        pl.lit("batch").alias("kind"),
    )
    count = output.write_requests(rows, job, ("end_timestamp", "func"))
    capacity = {"cpu": float(job.values["host_cores"]), "memory": float(job.values["host_memory"])}
    hosts = output.uniform_hosts(job, int(job.values["hosts"]), capacity)
    notes += ["the trace has neither demands nor hosts: parameters say them", *output.said_of_size(hosts, job)]
    return Converted(count, output.write_machines(hosts, job), dropped, [path], notes)


TRACE = Trace(
    "azure-functions",
    "Azure Functions 2021: invocations with their end and duration",
    "app",
    "*=silver",
    (
        Parameter("cores", 1.0, "CPU of an invocation"),
        Parameter("memory", 0.25, "memory of an invocation, GiB"),
        Parameter("hosts", 0, "how many hosts; 0: as many as the peak demand takes"),
        Parameter("host_cores", 64.0, "cores of a host", least=1),
        Parameter("host_memory", 256.0, "GiB of a host", least=1),
    ),
    read,
)
