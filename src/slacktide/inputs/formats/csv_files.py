"""CSV files with a header, row by row as text (docs/formats.md lists the columns)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from slacktide.inputs.columns import header
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.problems import Problems, check_readable, decode, read_bytes

BATCH_ROWS = 4_096
"""Held as text at once: of a row that is ten times a row of numbers, and Python's collector goes through it all."""


class CsvFile:
    """A CSV file; ``rows`` says how many it has at most. Raises :class:`InputError` for a bad header.

    Without ``required`` any header will do, and ``names`` may be set to those of its columns that are to be read.
    """

    numbered_by_line = True

    def __init__(
        self, path: Path, required: Sequence[str] = (), optional: Sequence[str] = (), resources: bool = True
    ) -> None:
        self.problems = Problems(str(path))
        self.rows, text = self._open(path)
        self._content = self._read(text)
        self._columns = [name.strip() for name in next(self._content, (1, []))[1]]
        self.names = self._columns
        if required:
            self.names = header.check_header(self._columns, required, optional, self.problems, resources)

    def _open(self, path: Path) -> tuple[int, Iterable[str]]:
        """The most rows that there can be, and the lines."""
        data = read_bytes(path)
        decode(path, data)
        rows = data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n") + 1
        return rows, io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")

    def batches(self) -> Iterator[ColumnBatch]:
        """Some rows at a time, every cell without blanks around it."""
        width = len(self._columns)
        read = [(name, place) for place, name in enumerate(self._columns) if name in self.names]
        while chunk := list(islice(self._content, BATCH_ROWS)):
            for line, row in chunk:
                if len(row) != width:
                    self.problems.add(line, "", f"{len(row)} fields", f"{width} fields, as the header has")
            good = [one for one in chunk if len(one[1]) == width]
            cells = {name: [row[place].strip() for _, row in good] for name, place in read}
            yield ColumnBatch.of_texts(cells, [line for line, _ in good], self.problems)

    def _read(self, text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        """Rows that are not blank, each with the line on which it begins."""
        reader = csv.reader(text, strict=True, skipinitialspace=True)
        line = 1
        try:
            for row in reader:
                start, line = line, reader.line_num + 1
                if any(row):
                    yield start, row
        except csv.Error as error:
            # Behind a broken quotation nothing can be told apart: this is the last problem reported.
            expected = "CSV: commas between fields, double quotes around fields with commas"
            self.problems.add(line, "", str(error), expected)


class StreamedCsvFile(CsvFile):
    """A CSV file that is never in memory whole; ``rows`` is 0, as nobody has counted them.

    What is no text in UTF-8 is found out on the way: ``batches`` raises :class:`UnicodeError` or :class:`OSError`.
    """

    def _open(self, path: Path) -> tuple[int, Iterable[str]]:
        check_readable(path)
        return 0, self._lines(path)

    def _lines(self, path: Path) -> Iterator[str]:
        with path.open(encoding="utf-8-sig", newline="") as text:
            for line in text:
                if "\0" in line:
                    raise UnicodeError("a NUL character")
                yield line
