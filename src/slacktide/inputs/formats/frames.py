"""Tables in memory: frames of polars or pandas, Arrow tables, whatever offers Arrow's C stream (docs/python.md).

Columns are those of files (docs/formats.md). Rows are counted from 0 in errors, as frames count them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

import numpy as np

from slacktide.errors import fail
from slacktide.inputs.columns import header
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.formats.parquet_files import BATCH_ROWS, FLAGS, TEXTS, WHOLE, check_types
from slacktide.inputs.problems import Problems

PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
TIMES = ("admission", "duration")
"""Columns whose cells may be lengths of time instead of seconds."""
INDEX = "__index_level_"
"""How pandas calls, in Arrow, an index that has no name: no column of ours."""


@runtime_checkable
class ArrowStream(Protocol):
    """A table that Arrow's PyCapsule interface hands over: DataFrames of polars and pandas, Arrow's own tables, ..."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


@dataclass(frozen=True, slots=True)
class OwnColumns:
    """What a workload has that changes no decision: rows by ``ids``, ``texts`` where ids are texts (each at its
    number), and further columns."""

    ids: Any = None
    texts: Any = None
    further: Any = None

    def beside(self, other: OwnColumns) -> OwnColumns:
        """Both."""
        import pyarrow as pa

        if self.ids is None or other.ids is None:
            return self if other.ids is None else other
        ids = pa.chunked_array([*pa.chunked_array(self.ids).chunks, *pa.chunked_array(other.ids).chunks])
        texts = None if self.texts is None or other.texts is None else pa.concat_arrays([self.texts, other.texts])
        return OwnColumns(ids, texts, pa.concat_tables([self.further, other.further], promote_options="default"))

    def number(self, given: object) -> object:
        """The number of a text that is an id."""
        return (
            self.texts.to_pylist().index(given) if self.texts is not None and given in self.texts.to_pylist() else given
        )

    def told(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of a table of results with texts in place of numbers, and, by ``id``, what goes through to it."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = dict(columns)
        if self.ids is None:
            return found
        if "id" in found:
            place = pc.index_in(pa.array(found["id"]), value_set=self.ids.cast(pa.int64()))
            own = {name: self.further[name].take(place) for name in self.further.column_names if name not in found}
            found |= own if place.null_count < len(place) else {}
        for name in ("id", "request", "by") if self.texts is not None else ():
            if name in found:
                found[name] = self.texts.take(pa.array(found[name]))
        return found


class Frame:
    """A table in memory as a file of named columns (``tables.TableFile``); ``name`` is for errors: what it is for.

    Of a workload ``own`` is what goes through to results, and ``epoch`` when second 0 was, where admissions say it.
    Without ``required`` any columns will do, and ``names`` may be set to those that are to be read. Raises
    :class:`InputError` where columns are missing, unknown, or of other types.
    """

    numbered_by_line = False

    def __init__(
        self, frame: ArrowStream, name: str, required: Sequence[str] = (), optional: Sequence[str] = ()
    ) -> None:
        self.problems = Problems(name, frame=True)
        self.own, self.epoch, workload = OwnColumns(), "", required == header.WORKLOAD_REQUIRED
        if not required:
            self.table = _table(frame, name)
            self.names, self.rows = list(self.table.column_names), int(self.table.num_rows)
            return
        self.table = table_of(_with_index(frame, name, (*required, *optional)), name)
        if workload:
            self.table, texts = _numbered(self.table)
            self.table, self.epoch = _since_the_first(self.table)
        found = self.table.column_names
        self.names = header.check_header(found, required, optional, self.problems, stay=not workload)
        if workload:
            further = self.table.select([one for one in found if one not in self.names])
            self.own = OwnColumns(self.table["id"], texts, further) if further.num_columns or texts else self.own
        self.table = self.table.select(self.names)
        check_types(self.table.schema, self.problems)
        self.rows = int(self.table.num_rows)
        if self.rows >= 2**31:
            raise fail(name, "fewer than 2^31 rows", value=str(self.rows))

    def batches(self) -> Iterator[ColumnBatch]:
        """Some rows at a time, numbered from 1."""
        row = 0
        for batch in self.table.select(self.names).to_batches(max_chunksize=BATCH_ROWS):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            begin, row = row, row + batch.num_rows
            yield ColumnBatch(columns, np.arange(begin + 1, row + 1), self.problems)


def workload_frame(frame: ArrowStream, name: str = "workload") -> Frame:
    """A frame with the columns of a workload; raises :class:`InputError`."""
    return Frame(frame, name, header.WORKLOAD_REQUIRED, header.WORKLOAD_OPTIONAL)


def hosts_frame(frame: ArrowStream, name: str = "hosts") -> Frame:
    """A frame with the columns of hosts; raises :class:`InputError`."""
    return Frame(frame, name, header.HOSTS_REQUIRED, header.HOSTS_OPTIONAL)


def _with_index(frame: Any, name: str, names: Sequence[str]) -> Any:
    """A frame of pandas whose index is called as one of our columns, with that as a column."""
    index = list(getattr(getattr(frame, "index", None), "names", ()))
    ours = [one for one in index if one in names and one not in frame.columns] if hasattr(frame, "reset_index") else []
    twice = next((one for one in ours if index.count(one) > 1), None)
    if twice is not None:
        raise fail(name, "an index whose names differ", value=f"{twice} twice in the index")
    return frame.reset_index(level=ours) if ours else frame


def _table(frame: ArrowStream, name: str) -> Any:
    """The frame as an Arrow table."""
    import pyarrow as pa

    try:
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:  # such as objects of several types in one column
        told = str(error).strip().split("\n")[0]
        raise fail(name, "a table whose columns have one type each", value=told or type(error).__name__) from error


def table_of(frame: ArrowStream, name: str) -> Any:
    """The frame as an Arrow table with the types that Parquet files have, wherever nothing is lost by that."""
    import pyarrow as pa

    table = _table(frame, name)
    table = table.drop_columns([one for one in table.column_names if one.startswith(INDEX)])
    for place, field in enumerate(table.schema):
        if pa.types.is_duration(field.type) and field.name in TIMES:
            table = table.set_column(place, field.name, _seconds(table.column(place), field.type.unit))
            continue
        wanted = _wanted(field.name, field.type)
        if wanted is not None:
            try:
                column = table.column(place).cast(wanted)
            except pa.ArrowInvalid:  # the check of types names the column
                continue
            table = table.set_column(place, field.name, column)
    return table.combine_chunks() if table.num_rows else table


def _numbered(table: Any) -> tuple[Any, Any]:
    """With numbers for ids that are texts; the texts by their number, or None."""
    import pyarrow as pa
    import pyarrow.types as kinds

    kind = table.schema.field("id").type if table.column_names.count("id") == 1 else pa.null()
    plain = kind.value_type if kinds.is_dictionary(kind) else kind
    if not (kinds.is_string(plain) or kinds.is_large_string(plain)):
        return table, None
    codes = table["id"].cast(pa.large_string()).combine_chunks().dictionary_encode()
    codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    return table.set_column(table.column_names.index("id"), "id", codes.indices.cast(pa.int64())), codes.dictionary


def _since_the_first(table: Any) -> tuple[Any, str]:
    """With seconds since the first admission where admissions are instants, and when that was."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = table.schema.field("admission").type if table.column_names.count("admission") == 1 else pa.null()
    if not pa.types.is_timestamp(kind) or table["admission"].null_count == table.num_rows:
        return table, ""
    instants = pc.divide(table["admission"].cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64()), 1e6)
    first = pc.min(instants).as_py()
    seconds = pc.subtract(instants, first)
    epoch = datetime.fromtimestamp(first, UTC).isoformat()
    return table.set_column(table.column_names.index("admission"), "admission", seconds), epoch


def _seconds(column: Any, unit: str) -> Any:
    """Lengths of time as numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.divide(column.cast(pa.int64()).cast(pa.float64(), safe=False), PER_SECOND[unit])


def _wanted(name: str, kind: Any) -> Any:
    """The type that a column of another one is cast to without loss; None: it stays, and is checked."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_dictionary(kind):
        return pa.dictionary(pa.int32(), pa.large_string()) if kinds.is_string_view(kind.value_type) else None
    if kinds.is_string_view(kind):
        return pa.large_string()
    if kinds.is_null(kind):  # every cell is empty, so that the frame knows no type
        by_name = (
            dict.fromkeys(WHOLE, pa.int64()) | dict.fromkeys(FLAGS, pa.bool_()) | dict.fromkeys(TEXTS, pa.string())
        )
        return by_name.get(name, pa.float64())
    if kinds.is_decimal(kind) and name not in TEXTS and name not in FLAGS:  # what is 0.5 to a data base
        return pa.int64() if name in WHOLE else pa.float64()
    if name in WHOLE and (kinds.is_floating(kind) or kinds.is_uint64(kind)):
        return pa.int64()  # pandas makes such floats where a cell is empty
    return None
