"""Reading: the suffix of a file says its format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import fail
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.formats import erlang, tables
from slacktide.inputs.formats.erlang_exact import DEFAULT_PRIORITIES
from slacktide.inputs.problems import Problems, check_readable, read_text
from slacktide.inputs.validation import SECONDS, check_range
from slacktide.model import DEFAULT_CLASSES, Hosts, ServiceClass, Workload

SUFFIXES = (".erl", ".csv", ".parquet")


def read_workload(
    path: Path | str,
    *,
    classes: Sequence[ServiceClass] = DEFAULT_CLASSES,
    priorities: Sequence[tuple[int, str]] = DEFAULT_PRIORITIES,
    rests: bool = False,
) -> Workload:
    """A workload from ``.erl``, ``.csv`` or ``.parquet`` (docs/formats.md), in order of admission.

    ``classes`` are the service classes its rows may name. ``priorities`` belong to
    ``.erl``: pairs of lowest priority and class name, highest first. With ``rests`` the columns of a large ``.csv`` or
    ``.parquet`` rest in temporary files while nobody looks at them, and those of its runs do (``model.resting``).

    Raises :class:`InputError` with every broken value: file, line, column, value, what was expected.
    """
    path = Path(path)
    kind = _suffix(path)
    try:
        if kind == ".erl":
            return erlang.read_workload(path, tuple(classes), priorities)
        return tables.read_workload(path, tuple(classes), rests)
    except MemoryError as error:
        raise fail(path, "a file that fits into memory", value=f"{path.stat().st_size} bytes") from error


def read_hosts(path: Path | str) -> Hosts:
    """Hosts from ``.erl``, ``.csv`` or ``.parquet`` (docs/formats.md), in the order of the file.

    Raises :class:`InputError` with every broken value.
    """
    path = Path(path)
    kind = _suffix(path)
    try:
        return erlang.read_hosts(path) if kind == ".erl" else tables.read_hosts(path)
    except MemoryError as error:
        raise fail(path, "a file that fits into memory", value=f"{path.stat().st_size} bytes") from error


def read_delays(path: Path | str) -> NDArray[np.float64]:
    """Measured delays in seconds, shape (n,), n >= 1: ``{9}.`` a line in ``.erl``, else a number a line.

    A first line ``seconds`` is taken for a header. Raises :class:`InputError` for every line that is not a
    finite number, 0 or more.
    """
    path = Path(path)
    if path.suffix.lower() == ".erl":
        return erlang.read_delays(path)
    rows = [(line, row.strip()) for line, row in enumerate(read_text(path).split("\n"), 1) if row.strip()]
    if rows and rows[0][1].strip('"').lower() == "seconds":
        del rows[0]
    if not rows:
        raise fail(path, "at least one delay", value="no rows")
    problems = Problems(str(path))
    batch = ColumnBatch.of_texts({"seconds": [row for _, row in rows]}, [line for line, _ in rows], problems)
    values = batch.floats("seconds", SECONDS)
    check_range(values, batch.lines, "seconds", SECONDS, problems)
    problems.raise_if_any()
    return values


def _suffix(path: Path) -> Literal[".erl", ".csv", ".parquet"]:
    for suffix in SUFFIXES:
        if path.suffix.lower() == suffix:
            return suffix  # type: ignore[return-value]
    check_readable(path)
    raise fail(path, f"a name ending in {', '.join(SUFFIXES)}", value=path.suffix or path.name)
