"""A table with columns of one's own as a workload: CSV, Parquet, or a frame, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.inputs.columns import header
from slacktide.inputs.columns.cells import Floats
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.formats import tables
from slacktide.inputs.formats.csv_files import CsvFile
from slacktide.inputs.formats.frames import ArrowStream, Frame
from slacktide.inputs.formats.parquet_files import ParquetFile
from slacktide.inputs.mapped import values
from slacktide.inputs.mapped.mapping import TIMED, Column, Columns, said, settled, units_of
from slacktide.inputs.validation import to_workload
from slacktide.model import ServiceClass, Workload, arrow

NOTHING = ("\\N", "NULL", "null", "None", "<null>")
"""What databases write where there is nothing."""
AFTER = "an instant after the admission; empty: it never completes"
WORDS = ("class", "name", "namespace", "owner", "kind", "approach")
"""Columns of ours that are texts whatever the table has."""
NUMBERED = ("job", "request")
"""Columns of ours that are numbers and may be texts of the table; equal texts get equal numbers."""
BESIDE_IDS = 2**40
"""From here on such numbers count: rows that name no job have one of their own, which is called by their id."""
DIGITS = 6
"""Behind the point of seconds: microseconds, which are also what is left of Unix time in a float."""


@dataclass(slots=True)
class _Found:
    """What is found out on the way."""

    absolute: bool | None = None
    text_ids: bool | None = None
    rows: int = 0
    at_once: int = 0
    endless: int = 0
    hashes: list[NDArray[np.uint64]] = field(default_factory=list)
    lines: list[NDArray[np.int64]] = field(default_factory=list)
    numbers: dict[str, dict[str, int] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mapped:
    """A workload, when its second 0 was (empty: nobody knows), and what to tell of it."""

    workload: Workload
    epoch: str
    notes: tuple[str, ...]


class Table:
    """A table that is open, with its mapping settled; a ``tables.TableFile`` of our columns.

    Raises :class:`ConfigError` for a mapping that does not fit, :class:`InputError` for a file that cannot be read.
    """

    def __init__(self, source: Path | str | ArrowStream, columns: str | Mapping[str, str] | Path) -> None:
        asked = said(columns)
        if isinstance(source, Path | str):
            path = Path(source)
            if path.suffix.lower() not in (".csv", ".parquet"):
                raise ConfigError(f"--columns: found {path.name}, expected a name ending in .csv or .parquet")
            self._file: CsvFile | ParquetFile | Frame = (
                CsvFile(path) if path.suffix.lower() == ".csv" else ParquetFile(path)
            )
        else:
            self._file = Frame(source, "workload")
        self.problems, self.rows = self._file.problems, self._file.rows
        self.name = self.problems.file
        self.numbered_by_line = self._file.numbered_by_line
        twice = {name for name in self._file.names if self._file.names.count(name) > 1}
        if twice:
            raise ConfigError(f"{self.name}: found the column {sorted(twice)[0]!r} twice, expected every one once")
        self.columns = self._with_units(settled(asked, self._file.names, self.name))
        self._found = _Found()
        ours = [one.ours for one in self.columns.columns if one.ours != "end"]
        self.names = [*ours, *(["duration"] if "duration" not in ours else [])]
        if self._names_rows:
            self.names.append("name")

    @property
    def _names_rows(self) -> bool:
        """Whether texts of ids are to be names, should they be texts."""
        return "name" in header.WORKLOAD_OPTIONAL and self.columns.of("name") is None

    @property
    def arrow(self) -> Any:
        """The table, where it is in memory."""
        return self._file.table if isinstance(self._file, Frame) else None

    def describe(self) -> list[str]:
        """The mapping, for people, and what stays behind."""
        guessed = f" (guessed: {', '.join(self.columns.guessed)})" if self.columns.guessed else ""
        lines = [f"columns of {self.name}: {self.columns}{guessed}"]
        if self.columns.behind:
            lines.append(f"{self.name}: these columns stay behind: {', '.join(self.columns.behind)}")
        if self.columns.of("end") is None and self.columns.of("duration") is None:
            lines.append(f"{self.name}: no column says when a request ended: none ever completes")
        return lines

    def _with_units(self, columns: Columns) -> Columns:
        """Times that are guessed, and have 13 digits or more, are milliseconds or less: the first row shows it."""
        unknown = [one for one in columns.columns if one.ours in ("admission", "end") and one.ours in columns.guessed
                   and not one.unit]  # fmt: skip
        if not unknown:
            return columns
        first = self._first([one.source for one in unknown])
        sized = {one.ours: replace(one, unit=_unit_of(first.get(one.source))) for one in unknown}
        return replace(columns, columns=tuple(sized.get(one.ours, one) for one in columns.columns))

    def _first(self, names: list[str]) -> dict[str, float]:
        """The first number of each of these columns within the first rows; the file is opened for it once more."""
        again = self._file if isinstance(self._file, Frame) else type(self._file)(Path(self.name))
        found: dict[str, float] = {}
        again.names = names
        for batch in again.batches():
            for name, column in self._theirs(batch).items():
                cells = values.times(column, "")
                good = cells.values[~np.isnan(cells.values)]
                if len(good) and not cells.instants:
                    found[name] = float(good[0])
            break
        return found

    def read(self, classes: tuple[ServiceClass, ...], *, rests: bool = False) -> Mapped:
        """The workload, in order of admission. Raises :class:`InputError` with every broken value."""
        columns = tables.read_columns(self, classes, rests)
        self._check_ids()
        epoch = ""
        if self._found.absolute and len(columns.ids):
            first = float(columns.admission.min())
            columns.admission[:] = np.round(columns.admission - first, DIGITS)
            epoch = datetime.fromtimestamp(first, UTC).isoformat()
        return Mapped(to_workload(columns, classes, self.problems), epoch, tuple(self._notes(epoch)))

    def _notes(self, epoch: str) -> Iterator[str]:
        if epoch:
            yield f"second 0 is the first admission, {epoch} (simulation.epoch)"
        if self._found.at_once:
            yield f"left out, as they ended when they began: {self._found.at_once:,} rows"
        if self._found.endless:
            yield f"without an end, so that they never complete: {self._found.endless:,} rows"
        if self._found.text_ids:
            names = "their texts are the names" if self._names_rows else "their texts stay behind"
            yield f"ids are no numbers: rows are numbered from 0, {names}"

    def batches(self) -> Iterator[ColumnBatch]:
        """Some rows at a time, by our columns."""
        self._file.names = list(dict.fromkeys(one.source for one in self.columns.columns if not one.constant))
        for batch in self._file.batches():
            yield self._batch(self._theirs(batch), batch.lines)

    def _theirs(self, batch: ColumnBatch) -> Mapping[str, Any]:
        """The table's own columns; of texts of a CSV file, what databases write for nothing is empty."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.numbered_by_line:
            return batch.columns
        nothing = pa.array(NOTHING)
        return {name: pc.if_else(pc.is_in(one, value_set=nothing), None, one) for name, one in batch.columns.items()}

    def _batch(self, theirs: Mapping[str, Any], lines: NDArray[np.int64]) -> ColumnBatch:
        import pyarrow as pa

        given = {
            one.ours: pa.array([one.source] * len(lines)) if one.constant else theirs[one.source]
            for one in self.columns.columns
        }
        ours: dict[str, Any] = {}
        times = {
            one.ours: self._times(one, given[one.ours], lines) for one in self.columns.columns if one.ours in TIMED
        }
        ours["admission"] = pa.array(times["admission"], from_pandas=True)
        length = self._lengths(times, given, lines)
        ours["duration"] = pa.array(length, from_pandas=True)
        for one in self.columns.columns:
            if one.ours in TIMED:
                continue
            if units_of(one.ours):
                cells = values.amounts(given[one.ours], one.unit)
                self._refuse(cells.wrong, lines, one, given[one.ours], values.AMOUNTS)
                ours[one.ours] = pa.array(np.where(cells.wrong, 1.0, cells.values), from_pandas=True)
            elif one.ours == "id":
                ours |= self._ids(given["id"], lines)
            elif one.ours in NUMBERED:
                ours[one.ours] = self._numbered(one.ours, given[one.ours])
            else:
                ours[one.ours] = values.words(given[one.ours]) if one.ours in WORDS else values.plain(given[one.ours])
        if self._names_rows and "name" not in ours:
            ours["name"] = pa.nulls(len(lines), pa.string())
        self._found.rows += len(lines)
        lived = ~(length == 0.0)
        if lived.all():
            return ColumnBatch(ours, lines, self.problems)
        self._found.at_once += int(np.count_nonzero(~lived))
        kept = pa.array(lived)
        return ColumnBatch({name: one.filter(kept) for name, one in ours.items()}, lines[lived], self.problems)

    def _times(self, one: Column, column: Any, lines: NDArray[np.int64]) -> Floats:
        cells = values.times(column, one.unit)
        self._refuse(cells.wrong, lines, one, column, values.TIMES)
        good = cells.values[~np.isnan(cells.values)]
        if one.ours == "admission" and self._found.absolute is None and len(good):
            self._found.absolute = cells.instants or bool(good.min() > values.LONG_AGO)
        return np.where(cells.wrong, 1.0, cells.values) if one.ours == "admission" else cells.values

    def _lengths(self, times: Mapping[str, Floats], given: Mapping[str, Any], lines: NDArray[np.int64]) -> Floats:
        """Of each row its duration; NaN where it never completes."""
        begin = times["admission"]
        length = times.get("duration")
        if length is None:
            length = np.round(times["end"] - begin, DIGITS) if "end" in times else np.full(len(lines), np.nan)
            wrong = length < 0.0
            if wrong.any():
                column = next(one for one in self.columns.columns if one.ours == "end")
                self._refuse(wrong, lines, column, given["end"], AFTER)
                length = np.where(wrong, 1.0, length)
        if "end" in times or "duration" in times:
            self._found.endless += int(np.count_nonzero(np.isnan(length)))
        return length

    def _refuse(self, wrong: NDArray[np.bool_], lines: NDArray[np.int64], one: Column, column: Any, right: str) -> None:
        if not wrong.any():
            return
        shown = {row: str(column[row].as_py()) for row in np.flatnonzero(wrong).tolist()}
        called = one.ours if one.ours == one.source or one.constant else f"{one.ours} ({one.source})"
        self.problems.add_rows(wrong, lines, called, shown, right)

    def _ids(self, column: Any, lines: NDArray[np.int64]) -> dict[str, Any]:
        """Ids that are whole numbers as they are; else rows are numbered, and texts are names."""
        import pyarrow as pa

        if not self._found.text_ids:
            numbers = values.whole(column)
            if numbers is not None and not self._found.text_ids:
                self._found.text_ids = False
                return {"id": pa.array(numbers)}
            if self._found.text_ids is False:
                return {"id": values.words(column)}  # among numbers: whoever reads the batch says what is wrong
            self._found.text_ids = True
        texts = values.words(column)
        empty = arrow.empty_cells(texts)
        self.problems.add_rows(empty, lines, "id", ["nothing"] * len(lines), "a text or a number")
        digests = [blake2b((one or f"\0{line}").encode(), digest_size=8).digest()
                   for one, line in zip(texts.to_pylist(), lines.tolist(), strict=True)]  # fmt: skip
        self._found.hashes.append(np.frombuffer(b"".join(digests), np.uint64))
        self._found.lines.append(lines)
        numbers = np.arange(self._found.rows, self._found.rows + len(lines))
        return {"id": pa.array(numbers), **({"name": texts} if self._names_rows else {})}

    def _check_ids(self) -> None:
        """Texts of ids are compared by 64 bits of theirs: two of 10 million are alike once in 300,000 such tables."""
        if not self._found.hashes:
            return
        hashes, lines = np.concatenate(self._found.hashes), np.concatenate(self._found.lines)
        order = np.argsort(hashes, kind="stable")
        same = np.zeros(len(hashes), np.bool_)
        same[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
        if same.any():
            of = dict(zip(order[1:].tolist(), order[:-1].tolist(), strict=True))
            shown = {row: f"the id of line {lines[of[row]]} again" for row in np.flatnonzero(same).tolist()}
            self.problems.add_rows(same, lines, "id", shown, "every id once")

    def _numbered(self, ours: str, column: Any) -> Any:
        import pyarrow as pa

        if ours not in self._found.numbers:  # the first rows decide
            filled = column.drop_null()
            self._found.numbers[ours] = None if values.whole(filled) is not None else {}
        known = self._found.numbers[ours]
        texts = values.words(column)
        if known is None:
            return texts if values.whole(column.drop_null()) is None else column.cast(pa.int64())
        numbers = [None if one is None else known.setdefault(one, BESIDE_IDS + len(known)) for one in texts.to_pylist()]
        return pa.array(numbers, pa.int64())


def _unit_of(first: float | None) -> str:
    """The unit of a Unix time of so many digits."""
    if first is None or first <= 1e11:
        return ""
    return "ms" if first <= 1e14 else "us" if first <= 1e17 else "ns"
