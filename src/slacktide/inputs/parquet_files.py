"""Workloads and hosts as Parquet (docs/formats.md lists the columns).

Read batch by batch into arrays of the final size: 25 million rows need their
1.4 GB and one batch. pyarrow is imported on use; it takes longer to start
than a small workload takes to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs import cells, header, requests, resizes
from slacktide.inputs.access_columns import EXPECTED as ACCESS
from slacktide.inputs.access_columns import LIMIT, NUMBERS, AccessColumns, AccessTables
from slacktide.inputs.neighbour_columns import EXPECTED, NeighbourColumns, NeighbourTables
from slacktide.inputs.problems import Problems, check_readable, fail
from slacktide.inputs.rules import AMOUNT, DURATION, NUMBER, SECONDS, WorkloadColumns, to_hosts, to_workload
from slacktide.inputs.terms import (
    EXPECTED_ATTRIBUTES,
    EXPECTED_CONSTRAINTS,
    TermTable,
    parse_attributes,
    parse_term,
)
from slacktide.model import Hosts, ServiceClass, Workload

BATCH_ROWS = 65_536
_GOOD = 1.0  # stands in for a missing value, which is reported once as missing and not again as out of range


class _Reader:
    """One Parquet file: its batches, and its values as numpy arrays."""

    def __init__(self, path: Path, required: Sequence[str], optional: Sequence[str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pa.set_memory_pool(pa.system_memory_pool())  # gives back what it needed for a batch; the default keeps it
        self.path = path
        self.problems = Problems(str(path))
        self.row = 0
        self._errors: tuple[type[Exception], ...] = (pa.ArrowException, OSError, ValueError, OverflowError)
        check_readable(path)
        try:
            schema = pq.read_schema(path)
        except self._errors as error:
            raise self._unreadable(error) from error
        self.names: list[str] = list(schema.names)
        header.check_header(self.names, required, optional, self.problems)
        self._check_types(schema)
        texts = [name for name in self.names if name in _TEXTS]
        try:
            self._file = pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True)
            self.rows = int(self._file.metadata.num_rows)
        except self._errors as error:
            raise self._unreadable(error) from error
        if not 0 <= self.rows < 2**31:
            raise fail(path, "fewer than 2^31 rows", value=str(self.rows))

    def batches(self) -> Any:
        """Record batches in the order of the file; ``self.row`` is the first row of the current one."""
        read = [name for name in self.names if name not in header.UNREAD_COLUMNS]
        chosen = None if len(read) == len(self.names) else read
        batches = self._file.iter_batches(batch_size=BATCH_ROWS, use_threads=False, columns=chosen)
        while True:
            try:
                batch = next(batches, None)
                if batch is not None:
                    batch.validate(full=True)
            except self._errors as error:
                raise self._unreadable(error) from error
            if batch is None:
                break
            if self.row + batch.num_rows > self.rows:
                raise fail(self.path, f"{self.rows} rows, as its footer says", value="more rows")
            yield batch
            self.row += batch.num_rows
        if self.row != self.rows:
            raise fail(self.path, f"{self.rows} rows, as its footer says", value=f"{self.row} rows")

    def numbers(self, batch: Any, name: str, expected: str, missing: float | None = None) -> NDArray[Any]:
        """A column of numbers; nulls are ``missing``, or problems where that is ``None``."""
        column = batch.column(name)
        if column.null_count:
            nulls = np.asarray(column.is_null())
            if missing is None:
                lines = np.arange(self.row + 1, self.row + 1 + len(nulls))
                self.problems.add_rows(nulls, lines, name, ["nothing"] * len(nulls), expected)
            column = column.fill_null(_placeholder(column.type, missing))
        return np.asarray(column)

    def ids(self, batch: Any) -> NDArray[np.int64]:
        """The column ``id``; stand-ins for nulls differ, else they would be reported as given twice too."""
        found = np.array(self.numbers(batch, "id", NUMBER), dtype=np.int64)
        nulls = np.flatnonzero(np.asarray(batch.column("id").is_null()))
        found[nulls] = 2**62 + self.row + nulls
        return found

    def coded(
        self,
        batch: Any,
        name: str,
        expected: str | Callable[[str], str],
        parse: Callable[[str], int],
        missing: int | None,
        spare: int = 0,
    ) -> NDArray[np.int64]:
        """A column of text with few distinct values, each turned into a number once; ``spare`` for broken ones."""
        column = batch.column(name)
        texts = [None if text is None else str(text) for text in column.dictionary.to_pylist()]
        used = np.unique(np.asarray(column.indices.drop_null()))
        found = np.full(len(texts) + 1, spare, dtype=np.int64)
        found[-1] = missing or 0
        codes = np.asarray(column.indices.fill_null(len(texts)))
        wrong: dict[int, str] = {}
        for code in used.tolist():
            text = texts[code] or ""
            try:
                found[code] = parse(text)
            except (ValueError, KeyError):
                wrong[code] = expected if isinstance(expected, str) else expected(text)
        if missing is None and column.null_count:
            wrong[len(texts)] = expected if isinstance(expected, str) else expected("")
            texts = [*texts, "nothing"]
        for code, right in wrong.items():
            lines = np.arange(self.row + 1, self.row + 1 + len(codes))
            self.problems.add_rows(codes == code, lines, name, [texts[code] or "nothing"] * len(codes), right)
        return np.asarray(found[codes], dtype=np.int64)

    def counts(self, batch: Any, name: str) -> NDArray[np.int64]:
        """A column of counts; 0 stands for nulls, and for what is none and reported."""
        found = np.array(self.numbers(batch, name, requests.COUNT, missing=0), dtype=np.int64)
        wrong = ((found < 1) | (found > requests.MOST)) & np.asarray(batch.column(name).is_valid())
        lines = np.arange(self.row + 1, self.row + 1 + len(found))
        self.problems.add_rows(wrong, lines, name, found.tolist() if wrong.any() else (), requests.COUNT)
        found[wrong] = 0
        return found

    def _check_types(self, schema: Any) -> None:
        import pyarrow.types as kinds

        for field in schema:
            if field.name in header.UNREAD_COLUMNS:
                continue
            if field.name in _WHOLE:
                good, expected = kinds.is_integer(field.type) and str(field.type) != "uint64", "whole numbers (int64)"
            elif field.name in _FLAGS:
                good, expected = kinds.is_boolean(field.type), "booleans"
            elif field.name in _TEXTS:
                plain = field.type.value_type if kinds.is_dictionary(field.type) else field.type
                good, expected = kinds.is_string(plain) or kinds.is_large_string(plain), "text (string)"
            else:
                number = kinds.is_integer(field.type) or kinds.is_floating(field.type)
                good, expected = number, "numbers (double)"
            if not good:
                self.problems.add(0, field.name, f"a column of {field.type}", expected)
        self.problems.raise_if_any()

    def _unreadable(self, error: Exception) -> Exception:
        text = str(error).strip().split("\n")[0]
        return fail(self.path, "a complete Parquet file", value=text or type(error).__name__)


_WHOLE = ("id", "job", "instances", "completions", "parallelism")
_FLAGS = ("anti_affinity",)
_TEXTS = (
    *("class", "constraints", "name", "attributes", "kind", "approach", "scale"),
    *(*header.RESIZE_COLUMNS, *header.NEIGHBOUR_COLUMNS, *ACCESS),
)


def _placeholder(kind: Any, missing: float | None) -> Any:
    import pyarrow as pa

    value = _GOOD if missing is None else missing
    if pa.types.is_boolean(kind):
        return bool(missing)
    if pa.types.is_integer(kind):
        # An integer column cannot say 'never'; the caller fills its infinities in afterwards.
        return pa.scalar(int(value) if np.isfinite(value) else 0, type=kind)
    return pa.scalar(value, type=kind)


def read_workload(path: Path, classes: tuple[ServiceClass, ...]) -> Workload:
    """A workload from Parquet; raises :class:`InputError`."""
    reader = _Reader(path, header.WORKLOAD_REQUIRED, header.WORKLOAD_OPTIONAL)
    amounts = header.demand_columns(reader.names)
    count = reader.rows
    columns = WorkloadColumns(
        ids=np.empty(count, np.int64),
        admission=np.empty(count),
        duration=np.empty(count),
        demand=np.empty((count, len(amounts))),
        service_class=np.empty(count, np.int16),
        job=np.empty(count, np.int64),
        anti_affinity=np.zeros(count, np.bool_),
        term=np.zeros(count, np.int32),
        resources=header.resource_names(amounts),
        terms=(),
        demand_names=amounts,
    )
    terms, scales = TermTable(), requests.ScaleTable()
    if any(name in reader.names for name in header.REQUEST_COLUMNS):
        columns.requests = requests.RequestColumns.empty_cells(count)
    if any(name in reader.names for name in header.NEIGHBOUR_COLUMNS):
        columns.neighbours = NeighbourColumns.empty_cells(count, NeighbourTables())
    changes = resizes.table()
    if resizes.COLUMN in reader.names:
        columns.resize = np.zeros(count, np.int32)
    limited = header.limit_columns(reader.names)
    if limited or any(name in reader.names for name in header.ACCESS_COLUMNS):
        columns.accessing = AccessColumns.empty_cells(count, len(limited), AccessTables(), limited)
    for batch in reader.batches():
        _fill(columns, batch, reader, classes, terms)
        if columns.requests is not None:
            _fill_requests(columns.requests, batch, reader, scales)
        if columns.neighbours is not None:
            _fill_neighbours(columns.neighbours, batch, reader)
        if columns.resize is not None:
            rows = slice(reader.row, reader.row + batch.num_rows)
            columns.resize[rows] = reader.coded(batch, resizes.COLUMN, resizes.EXPECTED, changes.number, 0)
        if columns.accessing is not None:
            _fill_accesses(columns.accessing, batch, reader)
    columns.resizings = tuple(changes.values)
    columns.terms = terms.terms
    if columns.requests is not None:
        columns.requests.scales = scales.scales
    return to_workload(columns, classes, reader.problems)


def _fill(
    columns: WorkloadColumns, batch: Any, reader: _Reader, classes: tuple[ServiceClass, ...], terms: TermTable
) -> None:
    """Copy one batch to its place in the columns."""
    rows = slice(reader.row, reader.row + batch.num_rows)
    names = {one.name: index for index, one in enumerate(classes)}
    columns.ids[rows] = reader.ids(batch)
    columns.admission[rows] = reader.numbers(batch, "admission", SECONDS)
    duration = columns.duration[rows]
    duration[:] = reader.numbers(batch, "duration", DURATION, missing=np.inf)
    duration[np.asarray(batch.column("duration").is_null())] = np.inf
    for index, name in enumerate(columns.demand_names):
        columns.demand[rows, index] = reader.numbers(batch, name, AMOUNT)
    columns.service_class[rows] = reader.coded(
        batch, "class", lambda text: cells.expected_name(text, list(names)), names.__getitem__, None
    )
    columns.job[rows] = columns.ids[rows]
    if "job" in reader.names:
        given = np.asarray(batch.column("job").is_valid())
        columns.job[rows][given] = reader.numbers(batch, "job", "a whole number", missing=0)[given]
    if "anti_affinity" in reader.names:
        columns.anti_affinity[rows] = reader.numbers(batch, "anti_affinity", "true or false", missing=0)
    if "constraints" in reader.names:
        columns.term[rows] = reader.coded(
            batch, "constraints", EXPECTED_CONSTRAINTS, lambda text: terms.number(parse_term(text)), 0
        )


def _fill_requests(columns: requests.RequestColumns, batch: Any, reader: _Reader, scales: requests.ScaleTable) -> None:
    """Copy one batch of the columns of requests, as far as the file has them, to its place."""
    rows = slice(reader.row, reader.row + batch.num_rows)
    names = reader.names
    if "kind" in names:
        columns.kind[rows] = reader.coded(
            batch, "kind", requests.expected_kind, requests.parse_kind, requests.SERVICE, spare=-1
        )
    for name in ("instances", "completions", "parallelism"):
        if name in names:
            getattr(columns, name)[rows] = reader.counts(batch, name)
    if "approach" in names:
        columns.approach[rows] = reader.coded(
            batch, "approach", requests.expected_approach, requests.parse_approach, -1, spare=-1
        )
    if "scale" in names:
        columns.scale[rows] = reader.coded(
            batch, "scale", requests.SCALE, lambda text: scales.number(requests.parse_scale(text)), 0
        )


def _fill_neighbours(columns: NeighbourColumns, batch: Any, reader: _Reader) -> None:
    """Copy one batch of the columns about neighbours and budgets, as far as the file has them, to its place."""
    rows = slice(reader.row, reader.row + batch.num_rows)
    for name, expected in EXPECTED.items():
        if name in reader.names:
            number = getattr(columns.tables, name).number
            getattr(columns, name)[rows] = reader.coded(batch, name, expected, number, 0)


def _fill_accesses(columns: AccessColumns, batch: Any, reader: _Reader) -> None:
    """Copy one batch of the columns about limits, users, images and data, as far as the file has them, to its place."""
    rows = slice(reader.row, reader.row + batch.num_rows)
    for name, expected in ACCESS.items():
        if name in reader.names:
            getattr(columns, name)[rows] = reader.coded(batch, name, expected, getattr(columns.tables, name).number, 0)
    for name, missing in (("data", 0.0), ("deadline", np.inf)):
        if name in reader.names:
            numbers = getattr(columns, name)[rows]
            numbers[:] = reader.numbers(batch, name, NUMBERS[name][0], missing=missing)
            numbers[np.asarray(batch.column(name).is_null())] = missing
    for r, name in enumerate(columns.limited):
        if name in reader.names:
            limits = columns.limit[rows, r]
            limits[:] = reader.numbers(batch, name, LIMIT, missing=1.0)
            wrong = np.isnan(limits)
            lines = np.arange(reader.row + 1, reader.row + 1 + len(limits))
            reader.problems.add_rows(wrong, lines, name, ["nan"] * len(limits), LIMIT)
            limits[np.asarray(batch.column(name).is_null())] = np.nan


def read_hosts(path: Path) -> Hosts:
    """Hosts from Parquet; raises :class:`InputError`."""
    reader = _Reader(path, header.HOSTS_REQUIRED, header.HOSTS_OPTIONAL)
    amounts = header.demand_columns(reader.names)
    ids = np.empty(reader.rows, np.int64)
    capacity = np.empty((reader.rows, len(amounts)))
    names: list[str] = []
    attributes: list[dict[str, str]] = []
    for batch in reader.batches():
        rows = slice(reader.row, reader.row + batch.num_rows)
        ids[rows] = reader.ids(batch)
        for index, name in enumerate(amounts):
            capacity[rows, index] = reader.numbers(batch, name, AMOUNT)
        names += [text or "" for text in batch.column("name").to_pylist()]
        texts = batch.column("attributes").to_pylist() if "attributes" in reader.names else [""] * batch.num_rows
        lines = range(reader.row + 1, reader.row + 1 + batch.num_rows)
        nothing: dict[str, str] = {}
        attributes += cells.coded(
            [text or "" for text in texts],
            lines,
            "attributes",
            EXPECTED_ATTRIBUTES,
            reader.problems,
            parse_attributes,
            nothing,
        )
    resources = header.resource_names(amounts)
    return to_hosts(ids, names, capacity, attributes, resources, None, reader.problems, amounts)
