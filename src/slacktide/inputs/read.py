"""Reading: the suffix of a file says its format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns import header
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.formats import erlang, tables
from slacktide.inputs.formats.csv_files import CsvFile
from slacktide.inputs.formats.erlang_exact import DEFAULT_PRIORITIES
from slacktide.inputs.problems import Problems, check_readable, fail, read_text
from slacktide.inputs.validation import SECONDS, check_range
from slacktide.model import DEFAULT_CLASSES, Hosts, ServiceClass, Workload

SUFFIXES = (".erl", ".csv", ".parquet")
EVENT_KINDS = ("fail", "drain", "repair")
"""The position of a word is its kind: 0 = fail, 1 = drain, 2 = repair."""


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


def read_host_events(path: Path | str, hosts: Hosts) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int8]]:
    """Failures, drains and repairs from CSV: times (seconds), rows in ``hosts``, kinds (:data:`EVENT_KINDS`).

    Three arrays of shape (n,), in order of time; equal times keep the file's order. A host
    is given by its name or, where no host has that name, by its id.
    Raises :class:`InputError` with every broken value.
    """
    file = CsvFile(Path(path), header.EVENTS_REQUIRED, (), resources=False)
    rows = {str(number): row for row, number in enumerate(hosts.ids.tolist())}
    rows |= {name: row for row, name in enumerate(hosts.names)}
    times, found, kinds = [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros(0, np.int8)]
    for batch in file.batches():
        times.append(batch.floats("time", SECONDS))
        found.append(batch.coded("host", lambda text: expected_name(text, hosts.names), rows.__getitem__))
        events = batch.coded("event", lambda text: expected_name(text, EVENT_KINDS), EVENT_KINDS.index)
        kinds.append(events.astype(np.int8))
        check_range(times[-1], batch.lines, "time", SECONDS, file.problems)
    file.problems.raise_if_any()
    order = np.argsort(np.concatenate(times), kind="stable")
    return np.concatenate(times)[order], np.concatenate(found)[order], np.concatenate(kinds)[order]


def _suffix(path: Path) -> Literal[".erl", ".csv", ".parquet"]:
    for suffix in SUFFIXES:
        if path.suffix.lower() == suffix:
            return suffix  # type: ignore[return-value]
    check_readable(path)
    raise fail(path, f"a name ending in {', '.join(SUFFIXES)}", value=path.suffix or path.name)
