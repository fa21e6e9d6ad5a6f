"""Azure public dataset, V1 (2017) and V2 (2019): vmtable.csv(.gz), without a header.

Times are seconds, CPU cores, memory GB. V2 gives both as buckets, of which the largest are open (``>24``, ``>64``).
"""

from __future__ import annotations

from functools import partial

import polars as pl

from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import LONGEST, Field, only_source, spooled

COLUMNS = (
    *("vm_id", "subscription_id", "deployment_id", "vm_created", "vm_deleted", "max_cpu", "avg_cpu", "p95_max_cpu"),
    *("vm_category", "vm_core_count", "vm_memory"),
)
FIELDS = (
    Field("vm_id"),
    Field("subscription_id"),
    Field("deployment_id"),
    Field("vm_created", "whole", least=0, most=LONGEST),
    Field("vm_deleted", "whole", needed=False, least=0, most=LONGEST),
    Field("vm_category"),
    Field("vm_core_count", "bucket"),
    Field("vm_memory", "bucket"),
)
REASONS = {
    "machines that lasted less than the five minutes by which the table counts": pl.col("vm_deleted")
    <= pl.col("vm_created")
}


def read(job: Job) -> Converted:
    """VMs as requests; hosts, which the trace does not have, of one size."""
    path = only_source(job.sources, "vmtable.csv or vmtable.csv.gz")
    open_ended = {"vm_core_count": float(job.values["cores_above"]), "vm_memory": float(job.values["memory_above"])}
    table = pl.scan_parquet(spooled(job, "vmtable", [path], FIELDS, COLUMNS))
    table = table.with_columns(_amount(name, above) for name, above in open_ended.items())
    table, repeated, notes = output.told_apart(table, ["vm_id"], "VM")
    table, alive = output.still_there(table, "vm_deleted", job, "VM")
    notes += [*alive, *output.start(job, None), "the trace has no hosts: all are of one size"]
    kept, dropped = output.drop(table, REASONS)
    rows = kept.select(
        "vm_id",
        pl.col("vm_created").cast(pl.Float64).alias("admission"),
        (pl.col("vm_deleted") - pl.col("vm_created")).cast(pl.Float64).alias("duration"),
        pl.col("vm_core_count").alias("cpu"),
        pl.col("vm_memory").alias("memory"),
        job.classes.of(kept, "vm_category"),
        (pl.col("deployment_id").rank("dense") - 1).cast(pl.Int64).alias("job"),
        pl.col("subscription_id").alias("user"),
    )
    hosts = partial(output.uniform_hosts, job, {"cpu": "host_cores", "memory": "host_memory"})
    return output.converted(job, rows, ("vm_id",), hosts, repeated | dropped, [path], notes)


def _amount(name: str, above: float) -> pl.Expr:
    text = pl.col(name)
    return pl.when(text.str.starts_with(">")).then(above).otherwise(text.cast(pl.Float64, strict=False)).alias(name)


TRACE = Trace(
    "azure-vm",
    "Azure public dataset V1 or V2: vmtable.csv(.gz)",
    "vm_category",
    "Interactive=gold,Unknown=silver,Delay-insensitive=bronze",
    (
        Parameter("cores_above", 32.0, "cores of a VM in the open bucket (V2: >24)", least=1),
        Parameter("memory_above", 128.0, "GB of a VM in the open bucket (V2: >64)", least=1),
        output.last("alive"),
        Parameter("hosts", 0, "how many hosts; 0: as many as the peak demand takes"),
        Parameter("host_cores", 64.0, "cores of a host", least=1),
        Parameter("host_memory", 512.0, "GB of a host", least=1),
    ),
    read,
)
