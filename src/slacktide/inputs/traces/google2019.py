"""Google cluster-data 2019, version 3: instance_events, collection_events, machine_events, machine_attributes.

Either as published, a JSON object a line (``.json.gz``), or as CSV with a header, in which ``resource_request.cpus``
may be called ``resource_request_cpus``. Numbers may be written as texts. Times are microseconds, CPU and memory
shares of the biggest machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from slacktide.inputs.traces import events, output, sources
from slacktide.inputs.traces.api import Converted, Job, Trace
from slacktide.inputs.traces.tables import Field, header_of, is_empty, read_csv, read_json

SUFFIXES = (".json", ".json.gz", ".csv", ".csv.gz")
TABLES = {"instance_events": True, "collection_events": False, "machine_events": False, "machine_attributes": False}
CODES = events.Codes(schedule=3, ends=(4, 5, 6, 7, 8))
ADD, REMOVE = 1, 2
ALLOC_SET = 1
# Relation: 0 equal, 1 differs, 2 less, 3 greater; 4 to 7 (at most, at least, present, absent) a file cannot say.
OPERATORS = {"0": "==", "1": "/=", "2": "<", "3": ">"}

FIELDS = {
    "instance_events": (
        Field("time", "whole", least=0, most=2**63),
        Field("type", "whole", needed=False, least=0, most=10),
        Field("collection_id", "whole"),
        Field("instance_index", "whole", needed=False, least=0),
        Field("collection_type", "whole", needed=False, least=0, most=1),
        Field("priority", "whole", needed=False, least=0),
        Field("resource_request.cpus", "number", needed=False, least=0),
        Field("resource_request.memory", "number", needed=False, least=0),
        Field("constraint", needed=False),
    ),
    "collection_events": (
        Field("collection_id", "whole"),
        Field("user", needed=False),
        Field("max_per_machine", "whole", needed=False, least=0),
    ),
    "machine_events": (
        Field("time", "whole", needed=False, least=0, most=2**63),
        Field("machine_id", "whole"),
        Field("type", "whole", least=0, most=3),
        Field("switch_id", needed=False),
        Field("capacity.cpus", "number", needed=False, least=0),
        Field("capacity.memory", "number", needed=False, least=0),
        Field("platform_id", needed=False),
    ),
    "machine_attributes": (
        Field("time", "whole", needed=False, least=0, most=2**63),
        Field("machine_id", "whole"),
        Field("name"),
        Field("value", needed=False),
        Field("deleted", "flag", needed=False),
    ),
}
SHORT = {
    "collection_id": "job",
    "instance_index": "task",
    "machine_id": "machine",
    "resource_request.cpus": "cpu",
    "resource_request.memory": "memory",
    "capacity.cpus": "cpu",
    "capacity.memory": "memory",
    "platform_id": "platform",
    "switch_id": "switch",
}
# What the format leaves out where it is 0 or false.
ZEROS = ("type", "task", "time", "priority", "collection_type")


def read(job: Job) -> Converted:
    """The trace's tasks as requests, its machines as hosts."""
    files = sources.find(job.sources, TABLES, SUFFIXES)
    read = [path for paths in files.values() for path in paths]
    spooled = {name: _spooled(job, name, paths) for name, paths in files.items() if paths}
    tables = {name: path for name, path in spooled.items() if path is not None}
    of_jobs = {"instance_events": tables["instance_events"]}
    tasks, said = events.in_buckets(job, of_jobs, "instance_events", _tasks)
    reasons = {"instances of alloc sets": pl.col("collection_type") == ALLOC_SET} | events.REASONS
    kept, dropped = output.drop(tasks, reasons)
    dropped |= said
    job.classes.check(kept, "priority", "priority")
    notes = [*output.start(job, None), *events.said_of_runs(kept)]
    notes += [f"the files of {name} have no rows" for name in spooled if name not in tables]
    rows = kept.with_columns(job.classes.classes_of("priority").alias("class"))
    if "collection_events" in tables:
        users = (
            pl.scan_parquet(tables["collection_events"])
            .group_by("job")
            .agg(pl.col("user").max(), (pl.col("max_per_machine") == 1).any().alias("anti_affinity"))
        )
        rows = rows.join(users, on="job", how="left").with_columns(pl.col("anti_affinity").fill_null(value=False))
    count = output.write_requests(rows, job, ("job", "task"))
    if "machine_events" not in tables:
        return Converted(count, 0, dropped, read, notes)
    attributes = None
    if "machine_attributes" in tables:
        attributes = pl.read_parquet(tables["machine_attributes"]).with_columns(
            pl.col("deleted").fill_null(value=False)
        )
    found = events.machines(pl.read_parquet(tables["machine_events"]), attributes, ADD, REMOVE)
    hosts = output.write_machines(found.hosts, job)
    notes += output.said_of_size(found.hosts, job)
    output.write_host_events(found.events, job.folder)
    return Converted(count, hosts, dropped | found.dropped, read, notes)


def _tasks(tables: events.Scans) -> tuple[pl.LazyFrame, dict[str, int]]:
    keep = ["priority", "cpu", "memory", "constraint", "collection_type"]
    return _with_constraints(events.lifetimes(tables["instance_events"], CODES, keep))


def _spooled(job: Job, table: str, paths: Sequence[Path]) -> Path | None:
    def read(path: Path, advance: Callable[[float], None]) -> Iterator[pl.DataFrame]:
        if path.name.endswith((".json", ".json.gz")):
            found = read_json(path, FIELDS[table], advance)
        else:
            found = _from_csv(path, FIELDS[table], advance)
        for frame in found:
            renamed = frame.rename({old: new for old, new in SHORT.items() if old in frame.columns})
            yield renamed.with_columns(pl.col(name).fill_null(0) for name in ZEROS if name in renamed.columns)

    return events.spooled(job, table, paths, read, needed=TABLES[table])


def _from_csv(path: Path, fields: Sequence[Field], advance: object) -> Iterator[pl.DataFrame]:
    """A CSV export: nested columns under either spelling, those that are not there empty."""
    if is_empty(path):
        return
    having = header_of(path)
    named = {field.name: field.name.replace(".", "_") for field in fields if field.name not in having}
    there = [
        replace(field, name=named.get(field.name, field.name))
        for field in fields
        if field.needed or named.get(field.name, field.name) in having
    ]
    back = {new: old for old, new in named.items()}
    for frame in read_csv(path, None, there, advance):  # type: ignore[arg-type]
        found = frame.rename({name: back[name] for name in frame.columns if name in back})
        missing = [field for field in fields if field.name not in found.columns]
        yield found.with_columns(pl.lit(None, _DTYPES[field.kind]).alias(field.name) for field in missing).select(
            field.name for field in fields
        )


_DTYPES = {"text": pl.String, "whole": pl.Int64, "number": pl.Float64, "flag": pl.Boolean}


def _with_constraints(rows: pl.LazyFrame) -> tuple[pl.LazyFrame, dict[str, int]]:
    """``constraint``, objects as JSON separated by commas, as constraints of docs/formats.md."""
    parts = pl.List(pl.Struct({"name": pl.String, "value": pl.String, "relation": pl.String}))
    listed = (
        rows.filter(pl.col("constraint").is_not_null() & (pl.col("constraint") != ""))
        .select("job", "task", pl.format("[{}]", "constraint").str.json_decode(parts).alias("one"))
        .explode("one")
        .unnest("one")
        .with_columns(pl.col("relation").fill_null("0"))
    )
    kept, dropped = output.drop(
        listed,
        {
            "constraints with other relations than ==, /=, < and >": ~pl.col("relation").is_in(list(OPERATORS)),
            "constraints that an attribute is empty or has any value": pl.col("value").is_null()
            | (pl.col("value") == ""),
        },
    )
    texts = events.constraint_texts(kept, "relation", OPERATORS)
    return rows.join(texts, on=["job", "task"], how="left"), dropped


TRACE = Trace(
    "google2019",
    "Google cluster-data 2019, version 3: instance_events, collection_events, machine_events, machine_attributes",
    "priority",
    "120-=gold,100-119=silver,0-99=bronze",
    (),
    read,
)
