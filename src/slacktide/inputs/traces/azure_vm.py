"""Azure public dataset, V1 (2017) and V2 (2019): vmtable.csv(.gz), without a header.

Times are seconds, CPU cores, memory GB. V2 gives both as buckets, of which the largest are open (``>24``, ``>64``).
"""

from __future__ import annotations

import polars as pl

from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.traces import output, sources
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import LONGEST, Field, read_csv, spool

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
    path = sources.one(job.sources, "vmtable.csv or vmtable.csv.gz")
    spooled = job.scratch / "vm.parquet"
    open_ended = {"vm_core_count": float(job.values["cores_above"]), "vm_memory": float(job.values["memory_above"])}
    spool(
        (
            frame.with_columns(_amount(name, above) for name, above in open_ended.items())
            for frame in read_csv(path, COLUMNS, FIELDS, lambda part: job.tell("vmtable", part))
        ),
        spooled,
        [path],
    )
    table, repeated, notes = output.told_apart(pl.scan_parquet(spooled), ["vm_id"], "VM")
    table, alive = output.still_there(table, "vm_deleted", job, "VM")
    notes += [*alive, *output.start(job, None)]
    kept, dropped = output.drop(table, REASONS)
    dropped = repeated | dropped
    job.classes.check(kept, "vm_category", "vm_category")
    rows = kept.select(
        "vm_id",
        pl.col("vm_created").cast(pl.Float64).alias("admission"),
        (pl.col("vm_deleted") - pl.col("vm_created")).cast(pl.Float64).alias("duration"),
        pl.col("vm_core_count").alias("cpu"),
        pl.col("vm_memory").alias("memory"),
        job.classes.classes_of("vm_category").alias("class"),
        (pl.col("deployment_id").rank("dense") - 1).cast(pl.Int64).alias("job"),
        pl.col("subscription_id").alias("user"),
    )
    count = output.write_requests(rows, job, ("vm_id",))
    capacity = {"cpu": float(job.values["host_cores"]), "memory": float(job.values["host_memory"])}
    hosts = output.uniform_hosts(job, int(job.values["hosts"]), capacity)
    notes += ["the trace has no hosts: all are of one size", *output.said_of_size(hosts, job)]
    return Converted(count, output.write_machines(hosts, job), dropped, [path], notes)


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
