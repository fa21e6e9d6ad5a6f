"""Workloads and hosts from the columns of a file, CSV or Parquet, or of a frame (docs/formats.md lists the columns).

A file is read batch by batch into arrays of the final size: 25 million rows need their 1.4 GB and one batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from slacktide.inputs.columns import access, header, instances, members
from slacktide.inputs.columns.cells import Distinct, Integers, expected_class
from slacktide.inputs.columns.column_batch import ColumnBatch, is_text
from slacktide.inputs.columns.terms import EXPECTED_ATTRIBUTES, EXPECTED_CONSTRAINTS, parse_attributes
from slacktide.inputs.columns.texts import TEXTS, Tables
from slacktide.inputs.columns.workload import WorkloadColumns
from slacktide.inputs.formats import broker_csv
from slacktide.inputs.formats.csv_files import CsvFile
from slacktide.inputs.formats.parquet_files import ParquetFile
from slacktide.inputs.problems import Problems
from slacktide.inputs.validation import AMOUNT, DURATION, NUMBER, SECONDS, SINCE, to_hosts, to_workload
from slacktide.model import Hosts, ServiceClass, Workload
from slacktide.model.resting import LEAST, Room, ordinary, resting

NUMBERS = {
    "grace": (SECONDS, 0.0),
    "data": (access.DATA, access.AMOUNTS["data"]),
    "deadline": (access.DEADLINE, access.AMOUNTS["deadline"]),
}
"""By further column of numbers, beside those of limits: what its cells may hold, and what an empty one means."""
ELSEWHERE = ("constraints", "scale")
"""Columns of texts that have a place of their own among the columns of a workload."""


class TableFile(Protocol):
    """A file of named columns; ``rows`` is how many there are at most, ``numbered_by_line`` whether rows have lines."""

    problems: Problems
    names: list[str]
    rows: int
    numbered_by_line: bool

    def batches(self) -> Iterator[ColumnBatch]:
        """The rows in order, some at a time."""


def read_workload(path: Path, classes: tuple[ServiceClass, ...], rests: bool = False) -> Workload:
    """A workload from CSV or Parquet, its columns in files where it ``rests``; raises :class:`InputError`."""
    return workload_of(opened(path, classes), classes, rests)


def workload_of(file: TableFile, classes: tuple[ServiceClass, ...], rests: bool = False) -> Workload:
    """As :func:`read_workload`, from what is opened already."""
    return to_workload(read_columns(file, classes, rests), classes, file.problems)


def read_columns(file: TableFile, classes: tuple[ServiceClass, ...], rests: bool = False) -> WorkloadColumns:
    """All rows of a workload, not yet checked; what cannot be read is among the file's problems."""
    columns = empty_columns(file, file.rows, Tables(), resting if rests and file.rows >= LEAST else ordinary)
    count = 0
    for batch in file.batches():
        fill(columns, slice(count, count + len(batch)), batch, classes)
        count += len(batch)
        columns.let_go()
    columns.cut(count)
    return columns


def fill(columns: WorkloadColumns, rows: slice, batch: ColumnBatch, classes: tuple[ServiceClass, ...]) -> None:
    """Copies all columns of a batch to their place."""
    _fill(columns, rows, batch, classes)
    if columns.requests is not None:
        _fill_requests(columns.requests, rows, batch, columns.tables["scale"])
        if columns.requests.member is not None:
            columns.requests.member[rows] = members.read(batch, columns.ids[rows])
    for name, codes in columns.codes.items():
        codes[rows] = batch.coded(name, TEXTS[name].expected, columns.tables[name].number)
    for name, values in columns.numbers.items():
        expected, empty = NUMBERS.get(name, (access.LIMIT, np.nan))
        values[rows] = found = batch.floats(name, expected, empty)
        batch.refuse(np.isnan(found) & batch.filled(name), name, expected)


def read_hosts(path: Path) -> Hosts:
    """Hosts from CSV or Parquet; raises :class:`InputError`."""
    return hosts_of(_opened(path, header.HOSTS_REQUIRED, header.HOSTS_OPTIONAL))


def hosts_of(file: TableFile) -> Hosts:
    """As :func:`read_hosts`, from what is opened already."""
    amounts = header.demand_columns(file.names)
    listed: list[dict[str, str]] = [{}]

    def number(text: str) -> int:
        listed.append(parse_attributes(text))
        return len(listed) - 1

    lines, ids, capacity = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros((0, len(amounts)))]
    names: list[str] = []
    attributes: list[dict[str, str]] = []
    for batch in file.batches():
        lines.append(batch.lines)
        capacity.append(np.stack([batch.floats(name, AMOUNT) for name in amounts], axis=1))
        names += batch.texts("name")
        codes = (
            batch.coded("attributes", EXPECTED_ATTRIBUTES, number).tolist()
            if "attributes" in batch
            else [0] * len(batch)
        )
        attributes += [listed[code] for code in codes]
        ids.append(batch.integers("id", NUMBER))
    return to_hosts(
        np.concatenate(ids),
        names,
        np.concatenate(capacity),
        attributes,
        header.resource_names(amounts),
        np.concatenate(lines),
        file.problems,
        amounts,
    )


def opened(path: Path, classes: tuple[ServiceClass, ...], of_csv: type[CsvFile] = CsvFile) -> TableFile:
    """A workload's file, also one of the papers' broker; raises :class:`InputError` for other columns."""
    if path.suffix.lower() == ".csv" and broker_csv.recognises(path):
        return broker_csv.BrokerFile(path, broker_csv.Naming.of(classes))
    return _opened(path, header.WORKLOAD_REQUIRED, header.WORKLOAD_OPTIONAL, of_csv)


def _opened(
    path: Path, required: tuple[str, ...], optional: tuple[str, ...], of_csv: type[CsvFile] = CsvFile
) -> TableFile:
    return (of_csv if path.suffix.lower() == ".csv" else ParquetFile)(path, required, optional)


def empty_columns(file: TableFile, count: int, tables: Tables, room: Room = ordinary) -> WorkloadColumns:
    """Room for ``count`` rows, with the columns that the file has."""
    names, limits = file.names, header.limit_columns(file.names)
    amounts = header.demand_columns(names)
    of_requests = any(name in names for name in (*header.REQUEST_COLUMNS, *header.MEMBER_COLUMNS))
    members = any(name in names for name in header.MEMBER_COLUMNS)
    return WorkloadColumns(
        ids=room(count, np.int64),
        admission=room(count, np.float64),
        duration=room(count, np.float64),
        demand=room((count, len(amounts)), np.float64),
        service_class=room(count, np.int16),
        job=room(count, np.int64),
        anti_affinity=room(count, np.bool_),
        term=room(count, np.int32),
        resources=header.resource_names(amounts),
        terms=tables["constraints"].values,  # so far
        lines=np.empty(count, np.int64) if file.numbered_by_line else None,
        demand_names=amounts,
        requests=instances.RequestColumns.empty_cells(count, members=members) if of_requests else None,
        codes={name: np.zeros(count, np.int32) for name in TEXTS if name in names and name not in ELSEWHERE},
        numbers={name: np.zeros(count) for name in (*NUMBERS, *limits) if name in names},
        tables=tables,
        limits=limits,
    )


def _fill(columns: WorkloadColumns, rows: slice, batch: ColumnBatch, classes: tuple[ServiceClass, ...]) -> None:
    """Copies the columns that every workload has to their place."""
    if columns.lines is not None:
        columns.lines[rows] = batch.lines
    columns.ids[rows] = batch.integers("id", NUMBER)
    columns.admission[rows] = batch.floats("admission", SINCE)
    columns.duration[rows] = batch.floats("duration", DURATION, empty=np.inf)
    for index, name in enumerate(columns.demand_names):
        columns.demand[rows, index] = batch.floats(name, AMOUNT)
    known = {one.name: index for index, one in enumerate(classes)}
    columns.service_class[rows] = batch.coded(
        "class", lambda text: expected_class(text, list(known)), known.__getitem__
    )
    if "constraints" in batch:
        columns.term[rows] = batch.coded("constraints", EXPECTED_CONSTRAINTS, columns.tables["constraints"].number)
    columns.job[rows] = columns.ids[rows]
    if "job" in batch:
        given = batch.filled("job")
        columns.job[rows][given] = batch.integers("job", "a whole number", empty=0)[given]
    if "anti_affinity" in batch:
        columns.anti_affinity[rows] = batch.flags("anti_affinity")


def _fill_requests(
    columns: instances.RequestColumns, rows: slice, batch: ColumnBatch, scales: Distinct[instances.Scale]
) -> None:
    """Copies the columns of requests, as far as the file has them, to their place."""
    if "kind" in batch:
        columns.kind[rows] = batch.coded("kind", instances.expected_kind, instances.parse_kind, spare=-1)
    for name in ("instances", "completions", "parallelism"):
        if name in batch:
            getattr(columns, name)[rows] = _counts(batch, name)
    if "approach" in batch:
        columns.approach[rows] = batch.coded(
            "approach", instances.expected_approach, instances.parse_approach, spare=-1
        )
    if "scale" in batch:
        columns.scale[rows] = batch.coded("scale", instances.SCALE, scales.number)


def _counts(batch: ColumnBatch, name: str) -> Integers:
    """A column of counts; 0 for empty and broken cells."""
    if is_text(batch.columns[name]):
        return batch.coded(name, instances.COUNT, instances.parse_count)
    found = batch.integers(name, instances.COUNT, empty=0)
    wrong = ((found < 1) | (found > instances.MOST)) & batch.filled(name)
    batch.refuse(wrong, name, instances.COUNT)
    found[wrong] = 0
    return found
