"""Azure Functions, the two weeks of 2021: a CSV with a row for each invocation."""

from __future__ import annotations

from functools import partial

import polars as pl

from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import LONGEST, Field, only_source, spooled

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
    path = only_source(job.sources, "the invocations of 2021, AzureFunctionsInvocationTraceForTwoWeeksJan2021.txt")
    # Equal rows may be two invocations: the trace has no numbers that would tell them apart.
    kept, dropped = output.drop(pl.scan_parquet(spooled(job, "invocations", [path], FIELDS)), REASONS)
    kept = kept.with_columns((pl.col("end_timestamp") - pl.col("duration")).alias("begin"))
    early = {"that began before the trace: at 0, for what is left": pl.col("begin") < 0}
    notes = [*output.start(job, None), *output.remarks(kept, "invocation", early)]
    notes.append("the trace has neither demands nor hosts: parameters say them")
    begin = pl.max_horizontal(pl.col("begin").round(DIGITS), pl.lit(0.0))
    rows = kept.select(
        "func",
        "end_timestamp",
        begin.alias("admission"),
        pl.when(pl.col("begin") < 0).then("end_timestamp").otherwise("duration").alias("duration"),
        pl.lit(float(job.values["cores"])).alias("cpu"),
        pl.lit(float(job.values["memory"])).alias("memory"),
        job.classes.of(kept, "app"),
        (pl.col("app").rank("dense") - 1).cast(pl.Int64).alias("job"),
        pl.col("app").alias("user"),
        pl.lit("batch").alias("kind"),
    )
    hosts = partial(output.uniform_hosts, job, {"cpu": "host_cores", "memory": "host_memory"})
    return output.converted(job, rows, ("end_timestamp", "func"), hosts, dropped, [path], notes)


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
