"""Files of Erlang terms, one a line, as published with the papers.

::

    workload   {time,task,job,duration,cpu,ram,priority,anti_affinity,[{"key","op","value"},...]}.
    hosts      {id,"name",cpu,ram,[{"key","value"},...]}.
    delays     {seconds}.

A workload is read by one regular expression over the whole file and one
conversion of all its numbers; only when some line does not fit is the file read
again, slowly, by :mod:`slacktide.inputs.formats.erlang_exact`, which knows more of the
syntax and says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import fail
from slacktide.inputs.columns.cells import Distinct
from slacktide.inputs.columns.workload import WorkloadColumns
from slacktide.inputs.formats import erlang_exact
from slacktide.inputs.formats.erlang_exact import DEFAULT_PRIORITIES, DEMAND_NAMES, FIELD_NAMES, RESOURCES
from slacktide.inputs.problems import Problems, decode, read_bytes
from slacktide.inputs.validation import SECONDS, check_range, to_hosts, to_workload
from slacktide.model import Hosts, ServiceClass, Workload

_NUMBER = rb"[0-9]{1,15}(?:\.[0-9]{1,15}(?:[eE][-+]?[0-9]{1,2})?)?"
_WHOLE = rb"[0-9]{1,15}"  # up to 15 digits are exact in float64, in which all columns are converted together
_ROW = re.compile(
    rb"^\{("
    + b",".join([_NUMBER, _WHOLE, _WHOLE, _NUMBER, _NUMBER, _NUMBER, _WHOLE, rb"[01]"])
    + rb"),\[([^\\\n]*)\]\}\.$",
    re.MULTILINE,
)


def read_workload(
    path: Path, classes: tuple[ServiceClass, ...], priorities: Sequence[tuple[int, str]] = DEFAULT_PRIORITIES
) -> Workload:
    """A workload of Erlang terms; raises :class:`InputError`.

    ``priorities``: pairs of lowest priority and class name, highest first.
    """
    data = read_bytes(path)
    problems = Problems(str(path))
    columns = _fast(data, classes, priorities)
    if columns is None:
        columns = erlang_exact.workload_columns(decode(path, data), classes, priorities, problems)
    return to_workload(columns, classes, problems)


def _fast(
    data: bytes, classes: tuple[ServiceClass, ...], priorities: Sequence[tuple[int, str]]
) -> WorkloadColumns | None:
    """The columns when every line is in the usual form, else ``None``."""
    if not data.isascii() or b"\0" in data:
        return None
    rows = _ROW.findall(data)
    if len(rows) != data.count(b"\n") + (not data.endswith(b"\n")):
        return None
    numbers, lists = zip(*rows, strict=True)
    table = np.fromstring(b",".join(numbers), dtype=np.float64, sep=",").reshape(len(rows), 8)
    terms = Distinct(erlang_exact.parse_term)
    indices = {one.name: index for index, one in enumerate(classes)}
    try:
        known = {text: terms.number(text.decode()) for text in dict.fromkeys(lists)}
        service_class = _classes(table[:, 6], indices, priorities)
    except (ValueError, KeyError):
        return None
    return WorkloadColumns(
        ids=table[:, 1].astype(np.int64),
        admission=table[:, 0].copy(),
        duration=table[:, 3].copy(),
        demand=table[:, 4:6].copy(),
        service_class=service_class,
        job=table[:, 2].astype(np.int64),
        anti_affinity=table[:, 7] == 1,
        term=np.fromiter(map(known.__getitem__, lists), np.int32, len(lists)),
        resources=RESOURCES,
        terms=terms.values,
        names=FIELD_NAMES,
        demand_names=DEMAND_NAMES,
    )


def _classes(
    priority: NDArray[np.float64], indices: dict[str, int], priorities: Sequence[tuple[int, str]]
) -> NDArray[np.int16]:
    """Raises :class:`KeyError` for a class that is not known, :class:`ValueError` for a priority below all bounds."""
    found = np.full(len(priority), -1, dtype=np.int16)
    for lowest, name in priorities:
        chosen = (found < 0) & (priority >= lowest)
        if chosen.any():
            found[chosen] = indices[name]
    if (found < 0).any():
        raise ValueError("a priority below every bound")
    return found


def read_hosts(path: Path) -> Hosts:
    """Hosts of Erlang terms; raises :class:`InputError`."""
    problems = Problems(str(path))
    rows = erlang_exact.host_rows(decode(path, read_bytes(path)), problems)
    return to_hosts(
        ids=np.array([row[0] for row in rows.rows], dtype=np.int64),
        names=[row[1] for row in rows.rows],
        capacity=np.array([row[2:4] for row in rows.rows], dtype=np.float64).reshape(len(rows.rows), 2),
        attributes=[row[4] for row in rows.rows],
        resources=RESOURCES,
        lines=np.array(rows.lines, dtype=np.int64),
        problems=problems,
        capacity_names=DEMAND_NAMES,
    )


def read_delays(path: Path) -> NDArray[np.float64]:
    """Delays of Erlang terms ``{seconds}.``; raises :class:`InputError`."""
    problems = Problems(str(path))
    found, lines = erlang_exact.delay_rows(decode(path, read_bytes(path)), problems)
    values = np.array(found, dtype=np.float64)
    check_range(values, np.array(lines, dtype=np.int64), "seconds", SECONDS, problems)
    problems.raise_if_any()
    if not len(values):
        raise fail(path, "at least one delay", value="no rows")
    return values
