"""Reading: the suffix of a file says its format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs import cells, csv_files, erlang, header, parquet_files
from slacktide.inputs.erlang_exact import DEFAULT_PRIORITIES
from slacktide.inputs.problems import Problems, check_readable, fail, read_text
from slacktide.inputs.rules import SECONDS, check_range
from slacktide.model import DEFAULT_CLASSES, Hosts, ServiceClass, Workload

SUFFIXES = (".erl", ".csv", ".parquet")
EVENT_KINDS = ("fail", "drain", "repair")
"""The position of a word is its kind: 0 = fail, 1 = drain, 2 = repair."""


def read_workload(
    path: Path | str,
    *,
    classes: Sequence[ServiceClass] = DEFAULT_CLASSES,
    priorities: Sequence[tuple[int, str]] = DEFAULT_PRIORITIES,
) -> Workload:
    """A workload from ``.erl``, ``.csv`` or ``.parquet`` (docs/formats.md), in order of admission.

    ``classes`` are the service classes its rows may name. ``priorities`` belong to
    ``.erl``: pairs of lowest priority and class name, highest first.

    Raises :class:`InputError` with every broken value: file, line, column, value, what was expected.
    """
    path = Path(path)
    kind = _suffix(path)
    try:
        if kind == ".erl":
            return erlang.read_workload(path, tuple(classes), priorities)
        if kind == ".csv":
            return csv_files.read_workload(path, tuple(classes))
        return parquet_files.read_workload(path, tuple(classes))
    except MemoryError as error:
        raise fail(path, "a file that fits into memory", value=f"{path.stat().st_size} bytes") from error


def read_hosts(path: Path | str) -> Hosts:
    """Hosts from ``.erl``, ``.csv`` or ``.parquet`` (docs/formats.md), in the order of the file.

    Raises :class:`InputError` with every broken value.
    """
    path = Path(path)
    kind = _suffix(path)
    try:
        if kind == ".erl":
            return erlang.read_hosts(path)
        return csv_files.read_hosts(path) if kind == ".csv" else parquet_files.read_hosts(path)
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
    lines = [line for line, _ in rows]
    values = cells.floats([row for _, row in rows], lines, "seconds", SECONDS, problems)
    check_range(values, np.array(lines, dtype=np.int64), "seconds", SECONDS, problems)
    problems.raise_if_any()
    return values


def read_host_events(path: Path | str, hosts: Hosts) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int8]]:
    """Failures, drains and repairs from CSV: times (seconds), rows in ``hosts``, kinds (:data:`EVENT_KINDS`).

    Three arrays of shape (n,), in order of time; equal times keep the file's order. A host
    is given by its name or, where no host has that name, by its id.
    Raises :class:`InputError` with every broken value.
    """
    path = Path(path)
    problems = Problems(str(path))
    table = csv_files.read_table(path, header.EVENTS_REQUIRED, (), problems, resources=False)
    lines = table.lines
    times = cells.floats(table.get("time"), lines, "time", SECONDS, problems)
    rows = {str(number): row for row, number in enumerate(hosts.ids.tolist())}
    rows |= {name: row for row, name in enumerate(hosts.names)}
    found = cells.coded(
        table.get("host"),
        lines,
        "host",
        lambda text: cells.expected_name(text, hosts.names),
        problems,
        rows.__getitem__,
        0,
    )
    kinds = cells.coded(
        table.get("event"),
        lines,
        "event",
        lambda text: cells.expected_name(text, EVENT_KINDS),
        problems,
        EVENT_KINDS.index,
        0,
    )
    check_range(times, np.array(lines, dtype=np.int64), "time", SECONDS, problems)
    problems.raise_if_any()
    order = np.argsort(times, kind="stable")
    return times[order], np.array(found, dtype=np.int64)[order], np.array(kinds, dtype=np.int8)[order]


def _suffix(path: Path) -> Literal[".erl", ".csv", ".parquet"]:
    for suffix in SUFFIXES:
        if path.suffix.lower() == suffix:
            return suffix  # type: ignore[return-value]
    check_readable(path)
    raise fail(path, f"a name ending in {', '.join(SUFFIXES)}", value=path.suffix or path.name)
