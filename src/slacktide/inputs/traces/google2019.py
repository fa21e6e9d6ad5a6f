"""Google cluster-data 2019, version 3: instance_events, collection_events, machine_events, machine_attributes.

Either as published, a JSON object a line (``.json.gz``), or as CSV with a header, in which ``resource_request.cpus``
may be called ``resource_request_cpus``. Numbers may be written as texts. Times are microseconds, CPU and memory
shares of the biggest machine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from slacktide.inputs.traces import events, output
from slacktide.inputs.traces.api import Trace
from slacktide.inputs.traces.tables import Advance, Field, header_of, is_empty, read_csv, read_json

TABLES = {"instance_events": True, "collection_events": False, "machine_events": False, "machine_attributes": False}
CODES = events.Codes(schedule=3, ends=(4, 5, 6, 7, 8))
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
ZEROS = dict.fromkeys(("type", "task", "time", "priority", "collection_type"), 0) | {"deleted": False}


def _tasks(tables: events.Scans) -> tuple[pl.LazyFrame, dict[str, int]]:
    keep = ["priority", "cpu", "memory", "constraint", "collection_type"]
    return _with_constraints(events.lifetimes(tables["instance_events"], CODES, keep))


def _read(table: str, path: Path, advance: Advance) -> Iterator[pl.DataFrame]:
    reads = read_json if path.name.endswith((".json", ".json.gz")) else _from_csv
    for frame in reads(path, FIELDS[table], advance):
        renamed = frame.rename({old: new for old, new in SHORT.items() if old in frame.columns})
        yield renamed.with_columns(pl.col(name).fill_null(zero) for name, zero in ZEROS.items() if name in renamed)


def _from_csv(path: Path, fields: Sequence[Field], advance: Advance) -> Iterator[pl.DataFrame]:
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
    for frame in read_csv(path, None, there, advance):
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


def _finished(tasks: pl.LazyFrame, tables: Mapping[str, Path]) -> pl.LazyFrame:
    """With what the events of collections say of users and of instances on one machine."""
    if "collection_events" not in tables:
        return tasks
    users = (
        pl.scan_parquet(tables["collection_events"])
        .group_by("job")
        .agg(pl.col("user").max(), (pl.col("max_per_machine") == 1).any().alias("anti_affinity"))
    )
    return tasks.join(users, on="job", how="left").with_columns(pl.col("anti_affinity").fill_null(value=False))


VERSION = events.Version(
    tables=TABLES,
    of_jobs=("instance_events",),
    suffixes=(".json", ".json.gz", ".csv", ".csv.gz"),
    add=1,
    remove=2,
    read=_read,
    tasks=_tasks,
    finished=_finished,
    reasons={"instances of alloc sets": pl.col("collection_type") == ALLOC_SET} | events.REASONS,
)
TRACE = Trace(
    "google2019",
    "Google cluster-data 2019, version 3: instance_events, collection_events, machine_events, machine_attributes",
    "priority",
    "120-=gold,100-119=silver,0-99=bronze",
    (),
    partial(events.convert, version=VERSION),
)
