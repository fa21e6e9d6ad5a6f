"""Parquet files, batch by batch (docs/formats.md lists the columns)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slacktide.errors import fail
from slacktide.inputs.columns import header
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.columns.texts import TEXTS as TEXT_COLUMNS
from slacktide.inputs.problems import Problems, check_readable

BATCH_ROWS = 65_536
BUFFER = 1 << 16
"""Bytes of a column that are read at a time."""
GROUPED_ROWS = 262_144
"""Row groups are read together until they have so many rows: small ones make no small batches."""


class ParquetFile:
    """A Parquet file with ``rows``; raises :class:`InputError` where it is none, or has other columns or types.

    Without ``required`` any columns will do, and ``names`` may be set to those that are to be read.
    """

    numbered_by_line = False

    def __init__(self, path: Path, required: Sequence[str] = (), optional: Sequence[str] = ()) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pa.set_memory_pool(pa.system_memory_pool())  # gives back what it needed for a batch; the default keeps it
        self.path = path
        self.problems = Problems(str(path))
        self._errors: tuple[type[Exception], ...] = (pa.ArrowException, OSError, ValueError, OverflowError)
        check_readable(path)
        try:
            schema = pq.read_schema(path)
        except self._errors as error:
            raise self._unreadable(error) from error
        self._columns: list[str] = list(schema.names)
        self.names, texts = self._columns, []
        if required:
            names = header.check_header(self._columns, required, optional, self.problems)
            check_types([schema.field(name) for name in names], self.problems)
            self.names = [name for name in names if name not in header.UNREAD_COLUMNS]
            texts = [name for name in names if name in TEXTS]
        try:
            # With a buffer, and nothing read ahead, a row group's columns are not in memory all at once.
            self._file = pq.ParquetFile(
                path, read_dictionary=texts, page_checksum_verification=True, pre_buffer=False, buffer_size=BUFFER
            )
            self.rows = int(self._file.metadata.num_rows)
        except self._errors as error:
            raise self._unreadable(error) from error
        if not 0 <= self.rows < 2**31:
            raise fail(path, "fewer than 2^31 rows", value=str(self.rows))

    def batches(self) -> Iterator[ColumnBatch]:
        """Some rows at a time, numbered from 1."""
        chosen = None if len(self.names) == len(self._columns) else self.names
        batches = self._batches(chosen)
        row = 0
        while True:
            try:
                batch = next(batches, None)
                if batch is not None:
                    batch.validate(full=True)
            except self._errors as error:
                raise self._unreadable(error) from error
            if batch is None:
                break
            begin, row = row, row + batch.num_rows
            if row > self.rows:
                raise fail(self.path, f"{self.rows} rows, as its footer says", value="more rows")
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            yield ColumnBatch(columns, np.arange(begin + 1, row + 1), self.problems)
        if row != self.rows:
            raise fail(self.path, f"{self.rows} rows, as its footer says", value=f"{row} rows")

    def _batches(self, columns: list[str] | None) -> Iterator[Any]:
        """Some row groups at a time: Arrow keeps the pages of all that it was asked for until it has read the last."""
        groups: list[int] = []
        rows, metadata = 0, self._file.metadata
        for number in range(metadata.num_row_groups):
            groups.append(number)
            rows += metadata.row_group(number).num_rows
            if rows >= GROUPED_ROWS or number == metadata.num_row_groups - 1:
                yield from self._file.iter_batches(
                    batch_size=BATCH_ROWS, row_groups=groups, use_threads=False, columns=columns
                )
                groups, rows = [], 0

    def _unreadable(self, error: Exception) -> Exception:
        text = str(error).strip().split("\n")[0]
        return fail(self.path, "a complete Parquet file", value=text or type(error).__name__)


WHOLE = ("id", "job", "instances", "completions", "parallelism", *header.MEMBER_COLUMNS)
FLAGS = ("anti_affinity",)
TEXTS = ("class", "name", "attributes", "kind", "approach", *TEXT_COLUMNS)


def check_types(fields: Iterable[Any], problems: Problems) -> None:
    """Raises :class:`InputError` for every column of an Arrow schema that holds another type than it may."""
    import pyarrow.types as kinds

    for field in fields:
        if field.name in header.UNREAD_COLUMNS:
            continue
        if field.name in WHOLE:
            good, expected = kinds.is_integer(field.type) and str(field.type) != "uint64", "whole numbers (int64)"
        elif field.name in FLAGS:
            good, expected = kinds.is_boolean(field.type), "booleans"
        elif field.name in TEXTS:
            plain = field.type.value_type if kinds.is_dictionary(field.type) else field.type
            good, expected = kinds.is_string(plain) or kinds.is_large_string(plain), "text (string)"
            good |= field.name in header.LABEL_COLUMNS and kinds.is_integer(field.type)
        else:
            number = kinds.is_integer(field.type) or kinds.is_floating(field.type)
            good, expected = number, "numbers (double)"
        if not good:
            problems.add(0, field.name, f"a column of {field.type}", expected)
    problems.raise_if_any()
