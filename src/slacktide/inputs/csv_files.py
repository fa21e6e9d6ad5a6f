"""Workloads, hosts and host events as CSV with a header (docs/formats.md lists the columns)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs import cells, header, requests, resizes
from slacktide.inputs.access_columns import EXPECTED as ACCESS
from slacktide.inputs.access_columns import LIMIT, NUMBERS, AccessColumns, AccessTables, parse_limit
from slacktide.inputs.neighbour_columns import EXPECTED, Distinct, NeighbourColumns, NeighbourTables
from slacktide.inputs.pieces import COLUMNS
from slacktide.inputs.problems import Problems, read_text
from slacktide.inputs.rules import AMOUNT, DURATION, NUMBER, SECONDS, WorkloadColumns, to_hosts, to_workload
from slacktide.inputs.terms import (
    EXPECTED_ATTRIBUTES,
    EXPECTED_CONSTRAINTS,
    TermTable,
    parse_attributes,
    parse_term,
)
from slacktide.model import Hosts, Resizing, ServiceClass, Workload

TABLE_ROWS = 65_536  # rows held as text at once: as objects they take ten times the space of their numbers


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file by column; every cell is text without blanks around it."""

    columns: dict[str, Sequence[str]]
    lines: list[int]

    def get(self, name: str) -> Sequence[str]:
        """The column, or empty cells where the file does not have it."""
        return self.columns[name] if name in self.columns else [""] * len(self.lines)


def read_table(
    path: Path, required: Sequence[str], optional: Sequence[str], problems: Problems, resources: bool = True
) -> Table:
    """The whole file as text. Raises :class:`InputError` for a bad header; broken rows go to ``problems``."""
    tables = list(read_tables(path, required, optional, problems, resources))
    names = tables[0].columns
    return Table(
        {name: [cell for table in tables for cell in table.columns[name]] for name in names},
        [line for table in tables for line in table.lines],
    )


def read_tables(
    path: Path, required: Sequence[str], optional: Sequence[str], problems: Problems, resources: bool = True
) -> Iterator[Table]:
    """The file as text, some rows at a time (at least one table, perhaps empty), as :func:`read_table` reads it."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True, skipinitialspace=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    names: list[str] = []
    line = 1
    try:
        for row in reader:
            start, line = line, reader.line_num + 1
            if not any(row):
                continue
            if not names:
                names = [name.strip() for name in row]
                header.check_header(names, required, optional, problems, resources)
            elif len(row) != len(names):
                problems.add(start, "", f"{len(row)} fields", f"{len(names)} fields, as the header has")
            else:
                rows.append(row)
                lines.append(start)
            if len(rows) == TABLE_ROWS:
                yield _table(names, rows, lines)
                rows, lines = [], []
    except csv.Error as error:
        # Behind a broken quotation nothing can be told apart: this is the last problem reported.
        problems.add(line, "", str(error), "CSV: commas between fields, double quotes around fields with commas")
    if not names:
        header.check_header(names, required, optional, problems, resources)
    yield _table(names, rows, lines)


def _table(names: list[str], rows: list[list[str]], lines: list[int]) -> Table:
    by_column = zip(*rows, strict=True) if rows else ([] for _ in names)
    return Table(
        {name: [cell.strip() for cell in column] for name, column in zip(names, by_column, strict=True)}, lines
    )


def read_workload(path: Path, classes: tuple[ServiceClass, ...]) -> Workload:
    """A workload from CSV; raises :class:`InputError`."""
    problems = Problems(str(path))
    terms = TermTable()
    scales = requests.ScaleTable()
    neighbours, accesses, changes = NeighbourTables(), AccessTables(), resizes.table()
    parts = [
        _columns(table, classes, terms, scales, neighbours, accesses, changes, problems)
        for table in read_tables(path, header.WORKLOAD_REQUIRED, header.WORKLOAD_OPTIONAL, problems)
    ]
    whole = parts[0]
    for name in (*COLUMNS, "lines"):
        setattr(whole, name, np.concatenate([getattr(part, name) for part in parts]))
    whole.terms = terms.terms
    given = [part.requests for part in parts if part.requests is not None]
    if given:
        whole.requests = requests.RequestColumns.together(given, scales.scales)
    resized = [part.resize for part in parts if part.resize is not None]
    if resized:
        whole.resize, whole.resizings = np.concatenate(resized), tuple(changes.values)
    asked = [part.neighbours for part in parts if part.neighbours is not None]
    if asked:
        whole.neighbours = NeighbourColumns.together(asked)
    told = [part.accessing for part in parts if part.accessing is not None]
    if told:
        whole.accessing = AccessColumns.together(told)
    return to_workload(whole, classes, problems)


def _columns(
    table: Table,
    classes: tuple[ServiceClass, ...],
    terms: TermTable,
    scales: requests.ScaleTable,
    neighbours: NeighbourTables,
    accesses: AccessTables,
    changes: Distinct[Resizing],
    problems: Problems,
) -> WorkloadColumns:
    lines = table.lines
    amounts = header.demand_columns(list(table.columns))
    ids = cells.integers(table.get("id"), lines, "id", NUMBER, problems)
    admission = cells.floats(table.get("admission"), lines, "admission", SECONDS, problems)
    duration = cells.floats(table.get("duration"), lines, "duration", DURATION, problems, cells.parse_duration)
    demand = [cells.floats(table.get(name), lines, name, AMOUNT, problems) for name in amounts]
    service_class = cells.class_indices(table.get("class"), lines, "class", classes, problems)
    jobs = [job or str(number) for job, number in zip(table.get("job"), ids.tolist(), strict=True)]
    texts = table.get("constraints")
    numbers = cells.coded(
        texts, lines, "constraints", EXPECTED_CONSTRAINTS, problems, lambda text: terms.number(parse_term(text)), 0
    )
    return WorkloadColumns(
        ids=ids,
        admission=admission,
        duration=duration,
        demand=np.stack(demand, axis=1),
        service_class=service_class,
        job=cells.integers(jobs, lines, "job", "a whole number", problems),
        anti_affinity=cells.flags(table.get("anti_affinity"), lines, "anti_affinity", problems),
        term=np.array(numbers, dtype=np.int32),
        resources=header.resource_names(amounts),
        terms=(),
        lines=np.array(lines, dtype=np.int64),
        demand_names=amounts,
        requests=_requests(table, scales, problems),
        neighbours=_neighbours(table, neighbours, problems),
        resize=_resize(table, changes, problems),
        accessing=_accesses(table, accesses, problems),
    )


def _resize(table: Table, changes: Distinct[Resizing], problems: Problems) -> NDArray[np.int32] | None:
    """The column of changes of demand, or ``None`` where the file has none."""
    if resizes.COLUMN not in table.columns:
        return None
    texts = table.columns[resizes.COLUMN]
    codes = cells.coded(texts, table.lines, resizes.COLUMN, resizes.EXPECTED, problems, changes.number, 0)
    return np.array(codes, dtype=np.int32)


def _accesses(table: Table, tables: AccessTables, problems: Problems) -> AccessColumns | None:
    """The columns about limits, users, images and data, or ``None`` where the file has none of them."""
    limited = header.limit_columns(list(table.columns))
    if not limited and not any(name in table.columns for name in header.ACCESS_COLUMNS):
        return None
    found = AccessColumns.empty_cells(len(table.lines), len(limited), tables, limited)
    for name, expected in ACCESS.items():
        if name in table.columns:
            texts, number = table.columns[name], getattr(tables, name).number
            getattr(found, name)[:] = cells.coded(texts, table.lines, name, expected, problems, number, 0)
    for name, (expected, parse) in NUMBERS.items():
        if name in table.columns:
            getattr(found, name)[:] = cells.floats(table.columns[name], table.lines, name, expected, problems, parse)
    for r, name in enumerate(limited):
        if name in table.columns:
            texts = table.columns[name]
            found.limit[:, r] = cells.floats(texts, table.lines, name, LIMIT, problems, parse_limit)
    return found


def _neighbours(table: Table, tables: NeighbourTables, problems: Problems) -> NeighbourColumns | None:
    """The columns about neighbours and budgets, or ``None`` where the file has none of them."""
    if not any(name in table.columns for name in EXPECTED):
        return None
    found = NeighbourColumns.empty_cells(len(table.lines), tables)
    for name, expected in EXPECTED.items():
        if name in table.columns:
            texts, number = table.columns[name], getattr(tables, name).number
            getattr(found, name)[:] = cells.coded(texts, table.lines, name, expected, problems, number, 0)
    return found


def _requests(table: Table, scales: requests.ScaleTable, problems: Problems) -> requests.RequestColumns | None:
    """The columns of requests, or ``None`` where the file has none of them."""
    if not any(name in table.columns for name in header.REQUEST_COLUMNS):
        return None
    found = requests.RequestColumns.empty_cells(len(table.lines))

    def fill(name: str, expected: str | Callable[[str], str], parse: Callable[[str], int], spare: int) -> None:
        if name in table.columns:
            texts = table.columns[name]
            getattr(found, name)[:] = cells.coded(texts, table.lines, name, expected, problems, parse, spare)

    fill("kind", requests.expected_kind, requests.parse_kind, -1)
    for name in ("instances", "completions", "parallelism"):
        fill(name, requests.COUNT, requests.parse_count, 0)
    fill("approach", requests.expected_approach, requests.parse_approach, -1)
    fill("scale", requests.SCALE, lambda text: scales.number(requests.parse_scale(text)), 0)
    return found


def read_hosts(path: Path) -> Hosts:
    """Hosts from CSV; raises :class:`InputError`."""
    problems = Problems(str(path))
    table = read_table(path, header.HOSTS_REQUIRED, header.HOSTS_OPTIONAL, problems)
    lines = table.lines
    amounts = header.demand_columns(list(table.columns))
    capacity = [cells.floats(table.get(name), lines, name, AMOUNT, problems) for name in amounts]
    nothing: dict[str, str] = {}
    attributes = cells.coded(
        table.get("attributes"),
        lines,
        "attributes",
        EXPECTED_ATTRIBUTES,
        problems,
        parse_attributes,
        nothing,
    )
    return to_hosts(
        ids=cells.integers(table.get("id"), lines, "id", NUMBER, problems),
        names=table.get("name"),
        capacity=np.stack(capacity, axis=1),
        attributes=attributes,
        resources=header.resource_names(amounts),
        lines=np.array(lines, dtype=np.int64),
        problems=problems,
        capacity_names=amounts,
    )
