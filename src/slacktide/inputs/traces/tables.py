"""Tables of a trace: their files, and their rows batch by batch, every cell checked and typed.

What is broken is named with file and line.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from slacktide.errors import fail
from slacktide.inputs.columns.cells import parse_float, parse_integer
from slacktide.inputs.columns.column_batch import ColumnBatch, numbers, stripped
from slacktide.inputs.problems import Problems, check_readable
from slacktide.inputs.traces.api import Job

BLOCK = 1 << 24
"""Bytes of a CSV batch, uncompressed."""
START = 1 << 16
"""Bytes by which it is found out that a file is no text."""
LINES = 100_000
"""Rows of a JSON batch."""

FLAGS = (("true", "1"), ("false", "0"))
BOUNDLESS = 1e18
LONGEST = 1e15
"""Seconds; a workload holds no more (docs/formats.md)."""

Advance = Callable[[float], None]
"""Told which part of a file (0 to 1) is read."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column that is read.

    kind    ``text``, ``whole`` (int64), ``number`` (float64, finite), ``flag``, or ``bucket``: a text that is a
            number or ``>`` and one
    needed  whether an empty cell is a mistake; otherwise it is null
    least, most  of numbers
    """

    name: str
    kind: str = "text"
    needed: bool = True
    least: float | None = None
    most: float = BOUNDLESS

    @property
    def expected(self) -> str:
        """What a cell may hold, for a message."""
        if self.kind == "text":
            return "a word"
        if self.kind == "flag":
            return "true or false"
        if self.kind == "bucket":
            return "a number such as 4, or an open bucket such as >24"
        said = "a whole number" if self.kind == "whole" else "a number"
        if self.least is None:
            return said
        return f"{said}, {self.least:g} or more" + (f" and at most {self.most:g}" if self.most < BOUNDLESS else "")

    def typed(self, texts: Any) -> Any:
        """The column (Arrow, stripped) as an array of the field's type; null for what is empty and what is broken."""
        import pyarrow.compute as pc

        if self.kind == "text":
            return texts
        if self.kind == "bucket":
            return pc.if_else(pc.match_substring_regex(texts, r"^>?\d+(\.\d+)?$"), texts, None)
        if self.kind == "flag":
            lowered = pc.utf8_lower(texts)
            true, false = (pc.or_(pc.equal(lowered, word), pc.equal(lowered, digit)) for word, digit in FLAGS)
            return pc.if_else(pc.or_(true, false), true, None)
        whole = self.kind == "whole"
        found = numbers(texts, parse_integer if whole else parse_float, whole=whole)
        values = np.asarray(found.fill_null(0))
        good = (values <= self.most) & (values >= (-self.most if self.least is None else self.least))
        return found if good.all() else pc.if_else(good, found, None)


def find(
    sources: Sequence[Path], tables: Mapping[str, bool], suffixes: Sequence[str], most: int | None = None
) -> dict[str, list[Path]]:
    """The files of each table, by name: a file belongs to a table if its name, or its folder's, begins with it.

    ``tables`` says of each whether there must be one, ``most`` how many there may be. Folders are searched through; in
    them files with other names or suffixes are passed over, while a source that is such a file is an error. Raises
    :class:`InputError`.
    """
    found: dict[str, list[Path]] = {name: [] for name in tables}
    for source in sources:
        for path in _files(source, suffixes):
            table = _table(path, tables)
            if table is not None:
                found[table].append(path)
            elif path == source:
                raise fail(path, f"a name that begins with {' or '.join(tables)}", value=path.name)
    for name, needed in tables.items():
        if needed and not found[name]:
            places = ", ".join(map(str, sources))
            raise fail(places, f"a file {name}*{' or '.join(suffixes)}, or a folder {name} with such files")
        found[name] = sorted(dict.fromkeys(found[name]))
        if most is not None and len(found[name]) > most:
            places, value = ", ".join(map(str, sources)), f"{len(found[name])} files"
            raise fail(places, f"one file of {name}: name it, or its own folder", value=value)
    return found


def only_source(sources: Sequence[Path], what: str) -> Path:
    """The only source, which must be a file. Raises :class:`InputError`."""
    if len(sources) != 1:
        raise fail(", ".join(map(str, sources)), f"one file: {what}", value=f"{len(sources)} sources")
    check_readable(sources[0])
    return sources[0]


def _files(source: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    if not source.is_dir():
        check_readable(source)
        yield source
        return
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.name.endswith(tuple(suffixes)):
            yield path


def _table(path: Path, tables: Mapping[str, bool]) -> str | None:
    for text in (path.name, path.parent.name):
        for name in sorted(tables, key=len, reverse=True):
            if text.replace("-", "_").startswith(name):
                return name
    return None


def read_csv(
    path: Path, columns: Sequence[str] | None, fields: Sequence[Field], advance: Advance = lambda _part: None
) -> Iterator[pl.DataFrame]:
    """The fields of a CSV file (``.gz`` or not), some rows at a time.

    ``columns`` names the columns of a file without a header; ``None``: its first line does. Raises
    :class:`InputError` at the end of the first batch in which something is broken. A file without a byte has no rows.
    """
    import pyarrow as pa
    import pyarrow.csv as pc

    if is_empty(path):
        return
    _check_text(path)
    names = list(columns) if columns is not None else _header(path, fields)
    short: list[Any] = []

    def note(row: Any) -> str:
        short.append(row)
        return "skip"

    raw = pa.OSFile(str(path))
    size = max(raw.size(), 1)
    line = 1 if columns is None else 0
    problems = Problems(str(path))
    try:
        plain = pa.CompressedInputStream(raw, "gzip") if path.suffix == ".gz" else raw
        reader = pc.open_csv(
            plain,
            read_options=pc.ReadOptions(column_names=names, skip_rows=line, use_threads=False, block_size=BLOCK),
            parse_options=pc.ParseOptions(invalid_row_handler=note, ignore_empty_lines=False),
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=[field.name for field in fields],
                strings_can_be_null=False,
            ),
        )
        for batch in reader:
            _note_short(short, len(names), problems)
            problems.raise_if_any()
            yield checked(batch, fields, range(line + 1, line + 1 + batch.num_rows), problems)
            line += batch.num_rows + len(short)
            short.clear()
            advance(raw.tell() / size)
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        problems.raise_if_any()
        text = str(error).strip().split("\n")[0]
        raise fail(path, "a complete CSV file", line=0, value=text or type(error).__name__) from error
    finally:
        raw.close()
    _note_short(short, len(names), problems)
    problems.raise_if_any()


def read_json(path: Path, fields: Sequence[Field], advance: Advance = lambda _part: None) -> Iterator[pl.DataFrame]:
    """The fields of a file with a JSON object a line (``.gz`` or not), some rows at a time.

    A field ``a.b`` is the member ``b`` of the object ``a``; the field ``constraint`` is a list of objects ``name``,
    ``value`` and ``relation``, made a text as JSON. Members that are missing are empty cells. Raises as
    :func:`read_csv`.
    """
    schema = _json_schema(fields)
    for before, lines in batches_of_lines(path, advance):
        rows = _json_rows(path, lines, schema, before)
        problems = Problems(str(path))
        yield checked(_flattened(rows, fields), fields, range(before + 1, before + 1 + len(lines)), problems)


def batches_of_lines(path: Path, advance: Advance) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of a file (``.gz`` or not), some at a time, each time with how many stand before them."""
    check_readable(path)
    size = max(path.stat().st_size, 1)
    before = 0
    with path.open("rb") as raw, contextlib.ExitStack() as stack:
        opened: Iterator[bytes] = stack.enter_context(gzip.open(raw)) if path.suffix == ".gz" else raw
        while True:
            try:
                lines = list(islice(opened, LINES))
            except (OSError, EOFError, zlib.error) as error:
                raise fail(path, "a complete gzip file", value=str(error)) from error
            if not lines:
                return
            yield before, lines
            before += len(lines)
            advance(raw.tell() / size)


def spool(
    frames: Iterable[pl.DataFrame],
    path: Path,
    sources: Sequence[Path],
    expected: str = "at least one row",
    *,
    needed: bool = True,
) -> bool:
    """Writes frames of one schema behind each other into a Parquet file, and says whether there were any.

    Raises :class:`InputError` naming the sources and what is ``expected`` where there are none and some are needed.
    """
    import pyarrow.parquet as pq

    writer = None
    try:
        for frame in frames:
            table = frame.to_arrow()
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    if writer is None and needed:
        raise fail(", ".join(map(str, sources[:3])), expected, value="none")
    return writer is not None


def spooled(
    job: Job, name: str, paths: Sequence[Path], fields: Sequence[Field], columns: Sequence[str] | None = None
) -> Path:
    """CSV files behind each other as one Parquet file; ``columns`` as of :func:`read_csv`."""
    path = job.scratch / f"{name}.parquet"
    frames = (frame for one in paths for frame in read_csv(one, columns, fields, lambda part: job.tell(name, part)))
    spool(frames, path, paths)
    return path


def is_empty(path: Path) -> bool:
    """Whether a file has no byte, unpacked: an empty shard of a table."""
    return not _beginning(path, 1)


def header_of(path: Path) -> list[str]:
    """The names in the first line of a CSV file, or :class:`InputError`."""
    first = re.split("[\r\n]", _beginning(path).decode("utf-8-sig", "replace"), maxsplit=1)[0]
    return [name.strip().strip('"') for name in first.split(",")]


def _beginning(path: Path, size: int = START) -> bytes:
    """The first bytes of a file, unpacked."""
    check_readable(path)
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise fail(path, "a complete CSV file", value=str(error)) from error


def _check_text(path: Path) -> None:
    """Refuses what is no text at all: of that the CSV reader could not even say which row is broken."""
    beginning = _beginning(path)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning)  # the last letter may be cut in two
    except UnicodeDecodeError as error:
        line = beginning.count(b"\n", 0, error.start) + 1
        shown = beginning[error.start : error.start + 20]
        raise fail(path, "text in UTF-8", line=line, value=repr(shown)) from error


def _header(path: Path, fields: Sequence[Field]) -> list[str]:
    """The names in the first line, with every field among them, or :class:`InputError` is raised."""
    names = header_of(path)
    problems = Problems(str(path))
    for field in fields:
        if field.name not in names:
            problems.add(1, field.name, "", f"this column; here: {', '.join(names)[:200]}")
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.add(1, name, "the column twice", "every column once")
    problems.raise_if_any()
    return names


def _note_short(rows: Sequence[Any], columns: int, problems: Problems) -> None:
    for row in rows:
        if row.text.strip() or row.actual_columns > 1:
            problems.add(row.number or 0, "", row.text, f"{columns} cells, found {row.actual_columns}")


def checked(rows: Any, fields: Sequence[Field], lines: Sequence[int], problems: Problems) -> pl.DataFrame:
    """Rows of texts (Arrow's or Polars') in the fields' types; ``lines`` says where each stands.

    Raises :class:`InputError` with what is broken in them and what ``problems`` holds already.
    """
    if isinstance(rows, pl.DataFrame):
        rows = {field.name: rows[field.name].to_arrow(compat_level=pl.CompatLevel.oldest()) for field in fields}
    batch = ColumnBatch({field.name: rows[field.name] for field in fields}, lines, problems)
    typed = {}
    for field in fields:
        texts = stripped(rows[field.name])
        typed[field.name] = found = field.typed(texts)
        if found.null_count:
            missing = np.asarray(found.is_null())
            wrong = missing if field.needed else missing & np.asarray(texts.is_valid())
            batch.refuse(wrong, field.name, field.expected)
    problems.raise_if_any()
    return pl.DataFrame(typed)


def _json_schema(fields: Sequence[Field]) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    nested: dict[str, list[pl.Field]] = {}
    for field in fields:
        outer, dot, inner = field.name.partition(".")
        if dot:
            nested.setdefault(outer, []).append(pl.Field(inner, pl.String))
        elif field.name == "constraint":
            parts = [pl.Field(name, pl.String) for name in ("name", "value", "relation")]
            schema[outer] = pl.List(pl.Struct(parts))
        else:
            schema[outer] = pl.String
    return schema | {name: pl.Struct(parts) for name, parts in nested.items()}


def _json_rows(path: Path, lines: Sequence[bytes], schema: dict[str, Any], before: int) -> pl.DataFrame:
    filled = [line for line in lines if line.strip()]
    if len(filled) == len(lines):
        try:
            found = pl.read_ndjson(b"".join(lines), schema=schema)
        except pl.exceptions.PolarsError:
            found = None
        if found is not None and found.height == len(lines):
            return found
    for place, text in enumerate(lines):  # the slow reading, to say which line it is
        try:
            good = isinstance(json.loads(text), dict)
        except ValueError:
            good = False
        if not good:
            shown = text.decode("utf-8", "replace").strip() or "an empty line"
            raise fail(path, "a JSON object", line=before + place + 1, value=shown)
    raise fail(path, "JSON objects with plain values", line=before + 1, value=lines[0].decode("utf-8", "replace"))


def _flattened(rows: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    columns = []
    for field in fields:
        outer, dot, inner = field.name.partition(".")
        if dot:
            columns.append(pl.col(outer).struct.field(inner).alias(field.name))
        elif field.name == "constraint":
            columns.append(pl.col(outer).list.eval(pl.element().struct.json_encode()).list.join(",").alias(field.name))
        else:
            columns.append(pl.col(outer))
    return rows.select(columns)
