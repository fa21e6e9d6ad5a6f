"""Workloads and hosts from the columns of a file, CSV or Parquet, or of a frame (docs/formats.md lists the columns).

A file is read batch by batch into arrays of the final size: 25 million rows need their 1.4 GB and one batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from slacktide.inputs.columns import access, affinity, header, instances, losses, members, resizes, unreadiness
from slacktide.inputs.columns.access import AccessColumns, AccessTables
from slacktide.inputs.columns.affinity import AffinityColumns, AffinityTables
from slacktide.inputs.columns.cells import Distinct, Integers, expected_name
from slacktide.inputs.columns.column_batch import ColumnBatch, is_text
from slacktide.inputs.columns.terms import EXPECTED_ATTRIBUTES, EXPECTED_CONSTRAINTS, parse_attributes, parse_term
from slacktide.inputs.columns.workload import WorkloadColumns
from slacktide.inputs.formats.csv_files import CsvFile
from slacktide.inputs.formats.parquet_files import ParquetFile
from slacktide.inputs.problems import Problems
from slacktide.inputs.validation import AMOUNT, DURATION, NUMBER, SECONDS, to_hosts, to_workload
from slacktide.model import Hosts, Past, Resizing, ServiceClass, Term, Unreadiness, Workload
from slacktide.model.resting import LEAST, Room, ordinary, resting


class TableFile(Protocol):
    """A file of named columns; ``rows`` is how many there are at most, ``numbered_by_line`` whether rows have lines."""

    problems: Problems
    names: list[str]
    rows: int
    numbered_by_line: bool

    def batches(self) -> Iterator[ColumnBatch]:
        """The rows in order, some at a time."""


@dataclass(slots=True)
class Tables:
    """What the cells of one file say."""

    terms: Distinct[Term] = field(default_factory=lambda: Distinct(parse_term))
    scales: Distinct[instances.Scale] = field(default_factory=lambda: Distinct(instances.parse_scale))
    resizings: Distinct[Resizing] = field(default_factory=lambda: Distinct(resizes.parse))
    spells: Distinct[Unreadiness] = field(default_factory=lambda: Distinct(unreadiness.parse))
    losses: Distinct[Past] = field(default_factory=lambda: Distinct(losses.parse))
    affinity: AffinityTables = field(default_factory=AffinityTables)
    access: AccessTables = field(default_factory=AccessTables)


def read_workload(path: Path, classes: tuple[ServiceClass, ...], rests: bool = False) -> Workload:
    """A workload from CSV or Parquet, its columns in files where it ``rests``; raises :class:`InputError`."""
    return workload_of(opened(path), classes, rests)


def workload_of(file: TableFile, classes: tuple[ServiceClass, ...], rests: bool = False) -> Workload:
    """As :func:`read_workload`, from what is opened already."""
    tables = Tables()
    columns = empty_columns(file, file.rows, tables, resting if rests and file.rows >= LEAST else ordinary)
    count = 0
    for batch in file.batches():
        fill(columns, slice(count, count + len(batch)), batch, classes, tables)
        count += len(batch)
        columns.let_go()
    columns.cut(count)
    name_values(columns, tables)
    return to_workload(columns, classes, file.problems)


def fill(
    columns: WorkloadColumns, rows: slice, batch: ColumnBatch, classes: tuple[ServiceClass, ...], tables: Tables
) -> None:
    """Copies all columns of a batch to their place."""
    _fill(columns, rows, batch, classes, tables)
    if columns.requests is not None:
        _fill_requests(columns.requests, rows, batch, tables.scales)
        if columns.requests.member is not None:
            columns.requests.member[rows] = members.read(batch, columns.ids[rows])
    if columns.affinity is not None:
        for name, expected in affinity.EXPECTED.items():
            if name in batch:
                number = getattr(columns.affinity.tables, name).number
                getattr(columns.affinity, name)[rows] = batch.coded(name, expected, number)
    if columns.resize is not None:
        columns.resize[rows] = batch.coded(resizes.COLUMN, resizes.EXPECTED, tables.resizings.number)
    if columns.lost is not None:
        columns.lost[rows] = batch.coded(losses.COLUMN, losses.EXPECTED, tables.losses.number)
    if columns.unready is not None:
        columns.unready[rows] = batch.coded(unreadiness.COLUMN, unreadiness.EXPECTED, tables.spells.number)
    if columns.grace is not None:
        columns.grace[rows] = batch.floats("grace", SECONDS, empty=0.0)
    if columns.access_cells is not None:
        _fill_accesses(columns.access_cells, rows, batch)


def name_values(columns: WorkloadColumns, tables: Tables) -> None:
    """Says what the numbers in the columns stand for, once all rows have been filled in."""
    columns.terms, columns.resizings = tables.terms.values, tables.resizings.values
    columns.losses, columns.spells = tables.losses.values, tables.spells.values
    if columns.requests is not None:
        columns.requests.scales = tables.scales.values


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


def opened(path: Path, of_csv: type[CsvFile] = CsvFile) -> TableFile:
    """A workload's file; raises :class:`InputError` where its columns are not those of one."""
    return _opened(path, header.WORKLOAD_REQUIRED, header.WORKLOAD_OPTIONAL, of_csv)


def _opened(
    path: Path, required: tuple[str, ...], optional: tuple[str, ...], of_csv: type[CsvFile] = CsvFile
) -> TableFile:
    return (of_csv if path.suffix.lower() == ".csv" else ParquetFile)(path, required, optional)


def empty_columns(file: TableFile, count: int, tables: Tables, room: Room = ordinary) -> WorkloadColumns:
    """Room for ``count`` rows, with the columns that the file has."""
    names = file.names
    amounts, limited = header.demand_columns(names), header.limit_columns(names)

    def has(some: tuple[str, ...]) -> bool:
        return any(name in names for name in some)

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
        terms=(),
        lines=np.empty(count, np.int64) if file.numbered_by_line else None,
        demand_names=amounts,
        requests=instances.RequestColumns.empty_cells(count, members=has(header.MEMBER_COLUMNS))
        if has((*header.REQUEST_COLUMNS, *header.MEMBER_COLUMNS))
        else None,
        affinity=AffinityColumns.empty_cells(count, tables.affinity) if has(header.AFFINITY_COLUMNS) else None,
        resize=np.zeros(count, np.int32) if has(header.RESIZE_COLUMNS) else None,
        lost=np.zeros(count, np.int32) if has(header.PAST_COLUMNS) else None,
        unready=np.zeros(count, np.int32) if has(header.UNREADY_COLUMNS) else None,
        grace=np.zeros(count) if has(header.GRACE_COLUMNS) else None,
        access_cells=AccessColumns.empty_cells(count, len(limited), tables.access, limited)
        if limited or has(header.ACCESS_COLUMNS)
        else None,
    )


def _fill(
    columns: WorkloadColumns, rows: slice, batch: ColumnBatch, classes: tuple[ServiceClass, ...], tables: Tables
) -> None:
    """Copies the columns that every workload has to their place."""
    if columns.lines is not None:
        columns.lines[rows] = batch.lines
    columns.ids[rows] = batch.integers("id", NUMBER)
    columns.admission[rows] = batch.floats("admission", SECONDS)
    columns.duration[rows] = batch.floats("duration", DURATION, empty=np.inf)
    for index, name in enumerate(columns.demand_names):
        columns.demand[rows, index] = batch.floats(name, AMOUNT)
    known = {one.name: index for index, one in enumerate(classes)}
    columns.service_class[rows] = batch.coded("class", lambda text: expected_name(text, list(known)), known.__getitem__)
    if "constraints" in batch:
        columns.term[rows] = batch.coded("constraints", EXPECTED_CONSTRAINTS, tables.terms.number)
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


def _fill_accesses(columns: AccessColumns, rows: slice, batch: ColumnBatch) -> None:
    """Copies the columns about limits, users, images and data, as far as the file has them, to their place."""
    for name, expected in access.EXPECTED.items():
        if name in batch:
            getattr(columns, name)[rows] = batch.coded(name, expected, getattr(columns.tables, name).number)
    for name, (expected, empty) in access.NUMBERS.items():
        if name in batch:
            getattr(columns, name)[rows] = batch.floats(name, expected, empty)
    for r, name in enumerate(columns.limited):
        if name in batch:
            limits = batch.floats(name, access.LIMIT, np.nan)
            columns.limit[rows, r] = limits
            batch.refuse(np.isnan(limits) & batch.filled(name), name, access.LIMIT)
