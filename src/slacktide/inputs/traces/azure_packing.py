"""Azure Traces for Packing 2020: an SQLite file with the tables ``vm`` and ``vmType``.

Times are days; CPU, memory, hdd, ssd and nic shares of a machine of one type.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from slacktide.errors import ConfigError, fail
from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.problems import Problems
from slacktide.inputs.traces import output
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import LONGEST, only_source, spool

DAY = 86_400.0
BATCH = 100_000
RESOURCES = ("core", "memory", "hdd", "ssd", "nic")
VM = ("vmId", "tenantId", "vmTypeId", "priority", "starttime", "endtime")
TYPE = ("vmTypeId", "machineId", *RESOURCES)
REASONS = {
    "requests of types that the machine does not offer": pl.col("core").is_null(),
    "requests that were over before the trace began": pl.col("endtime") <= 0,
    "requests that lasted no time": pl.col("endtime") <= pl.col("starttime"),
}


def read(job: Job) -> Converted:
    """VM requests as requests on machines of one type."""
    path = only_source(job.sources, "the SQLite database")
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise fail(path, "an SQLite database", value=str(error)) from error
    try:
        machine = _machine(connection, path, str(job.values["machine"]))
        types = _types(connection, path, machine)
        _spool(connection, path, job)
    except sqlite3.DatabaseError as error:
        raise fail(path, "an SQLite database with the tables vm and vmType", value=str(error)) from error
    finally:
        connection.close()
    told, repeated, notes = output.told_apart(pl.scan_parquet(job.scratch / "vm.parquet"), ["vmId"], "VM")
    told, alive = output.still_there(told, "endtime", job, "VM")
    notes += [*alive, *output.start(job, None), f"machines of type {machine}"]
    kept, dropped = output.drop(told.join(types.lazy(), on="vmTypeId", how="left"), REASONS)
    begun = pl.max_horizontal(pl.col("starttime"), pl.lit(0.0))
    rows = kept.select(
        "vmId",
        (begun * DAY).alias("admission"),
        ((pl.col("endtime") - begun) * DAY).alias("duration"),
        pl.col("core").alias("cpu"),
        "memory",
        *(pl.col(name).alias(f"resource:{name}") for name in RESOURCES[2:]),
        job.classes.of(kept, "priority"),
        pl.col("tenantId").alias("job"),
        pl.col("tenantId").alias("user"),
    )
    capacity = dict.fromkeys(("cpu", "memory", *RESOURCES[2:]), 1.0)
    hosts = partial(output.uniform_hosts, job, capacity, attributes={"machine": machine})
    return output.converted(job, rows, ("vmId",), hosts, repeated | dropped, [path], notes)


def _machine(connection: sqlite3.Connection, path: Path, wanted: str) -> str:
    """The machine type: the one asked for, else the one that offers the types of most requests."""
    offered = connection.execute(
        "SELECT t.machineId, COUNT(v.vmId) FROM vmType t LEFT JOIN vm v ON v.vmTypeId = t.vmTypeId "
        "GROUP BY t.machineId ORDER BY COUNT(v.vmId) DESC, t.machineId"
    ).fetchall()
    if not offered:
        raise fail(path, "at least one row in the table vmType", value="none")
    names = [str(name) for name, _ in offered]
    if wanted and wanted not in names:
        raise ConfigError(f"machine: found {wanted!r}, expected one of {', '.join(names[:20])}")
    return wanted or names[0]


def _types(connection: sqlite3.Connection, path: Path, machine: str) -> pl.DataFrame:
    """What each VM type takes of the machine; a resource that is not given takes nothing."""
    problems = Problems(f"{path}: vmType")
    found: dict[int, list[float]] = {}
    for row in connection.execute(f"SELECT rowid, {', '.join(TYPE)} FROM vmType ORDER BY rowid"):
        if str(row[2]) != machine:
            continue
        amounts = [_amount(row[0], name, value, problems) for name, value in zip(RESOURCES, row[3:], strict=True)]
        if found.setdefault(row[1], amounts) != amounts:
            problems.add(row[0], "vmTypeId", str(row[1]), "one row for a type and a machine, or equal ones")
    problems.raise_if_any()
    schema = {"vmTypeId": pl.Int64, **dict.fromkeys(RESOURCES, pl.Float64)}
    return pl.DataFrame([(name, *amounts) for name, amounts in found.items()], schema=schema, orient="row")


def _amount(line: int, name: str, value: Any, problems: Problems) -> float:
    if value is None:
        return 0.0
    if isinstance(value, int | float) and 0 <= value <= 1e6:
        return float(value)
    problems.add(line, name, str(value), "a share of a machine, 0 or more")
    return 0.0


def _spool(connection: sqlite3.Connection, path: Path, job: Job) -> None:
    """The table ``vm``, checked, as Parquet."""
    total = max(int(connection.execute("SELECT COUNT(*) FROM vm").fetchone()[0]), 1)
    cursor = connection.execute(f"SELECT rowid, {', '.join(VM)} FROM vm ORDER BY rowid")
    kinds = (pl.Int64, pl.Int64, pl.Int64, pl.Int64, pl.Float64, pl.Float64)

    def frames() -> Any:
        done = 0
        while rows := cursor.fetchmany(BATCH):
            problems = Problems(f"{path}: vm")
            for row in rows:
                _check(row, problems)
            problems.raise_if_any()
            yield pl.DataFrame([row[1:] for row in rows], schema=dict(zip(VM, kinds, strict=True)), orient="row")
            done += len(rows)
            job.tell("vm", done / total)

    spool(frames(), job.scratch / "vm.parquet", [path], "at least one row in the table vm")


def _check(row: tuple[Any, ...], problems: Problems) -> None:
    line, numbers, (start, end) = row[0], row[1:5], row[5:]
    for name, value in zip(VM, numbers, strict=False):
        if not isinstance(value, int):
            problems.add(line, name, "nothing" if value is None else str(value), "a whole number")
    if not _is_time(start):
        problems.add(line, "starttime", "nothing" if start is None else str(start), "days, a number")
    if end is not None and not _is_time(end):
        problems.add(line, "endtime", str(end), "days, a number, or nothing: still alive")


def _is_time(days: Any) -> bool:
    """Not so for infinity, which an SQLite number may be."""
    return isinstance(days, int | float) and abs(days) * DAY <= LONGEST


TRACE = Trace(
    "azure-packing",
    "Azure Traces for Packing 2020: the SQLite database with tables vm and vmType",
    "priority",
    "0=gold,1=bronze",
    (
        Parameter("machine", "", "the type of all hosts (machineId); none: the one that offers most requests' types"),
        output.last("ended"),  # no end says: still there
        Parameter("hosts", 0, "how many hosts; 0: as many as the peak demand takes"),
    ),
    read,
)
