"""The slow reading of Erlang terms, a line at a time: it accepts whatever the fast one does, and explains the rest.

Beyond the published form it knows blanks between tokens, empty lines, comments
(``%``), UTF-8 and escapes in strings, and ``true`` and ``false``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from slacktide.inputs.columns import cells
from slacktide.inputs.columns.cells import Distinct
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.columns.workload import WorkloadColumns
from slacktide.inputs.problems import Problems
from slacktide.inputs.validation import AMOUNT, DURATION, NUMBER, SINCE
from slacktide.model import Constraint, ServiceClass, Term
from slacktide.model.constraint import OPERATORS

T = TypeVar("T")

DEFAULT_PRIORITIES: tuple[tuple[int, str], ...] = ((9, "gold"), (2, "silver"), (0, "bronze"))
"""Above 8 gold, 2 to 8 silver, below 2 bronze."""

RESOURCES = ("cpu", "memory")
DEMAND_NAMES = ("cpu", "ram")
FIELD_NAMES = ("task", "time", "duration")

_WORKLOAD_FIELDS = ("time", "task", "job", "duration", "cpu", "ram", "priority", "anti_affinity")
_WORKLOAD_FORM = '{time,task,job,duration,cpu,ram,priority,anti_affinity,[{"key","op","value"},...]}.'
_HOST_FORM = '{id,"name",cpu,ram,[{"key","value"},...]}.'
_CONSTRAINT_LIST = f'constraints {{"key","op","value"}}, op one of {" ".join(OPERATORS)}'
_ATTRIBUTE_LIST = 'attributes {"key","value"}, every key once'

_STRING = r'\s*("(?:[^"\\]|\\.)*")\s*'
_WORKLOAD = re.compile(r"\{([^\[\]{}\"]*),\s*\[(.*)\]\s*\}\s*\.")
_HOST = re.compile(rf"\{{([^,\"]*),{_STRING},([^,\"]*),([^,\"]*),\s*\[(.*)\]\s*\}}\s*\.")
_DELAY = re.compile(r"\{([^{}]*)\}\s*\.")
_TRIPLE = re.compile(rf"\s*\{{{_STRING},{_STRING},{_STRING}\}}\s*")
_PAIR = re.compile(rf"\s*\{{{_STRING},{_STRING}\}}\s*")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?)?")


class HostRow(NamedTuple):
    """One host as it stands in the file."""

    number: int
    name: str
    cpu: float
    memory: float
    attributes: dict[str, str]


class HostRows(NamedTuple):
    """The hosts of a file and their lines."""

    rows: list[HostRow]
    lines: list[int]


def workload_columns(
    text: str, classes: tuple[ServiceClass, ...], priorities: Sequence[tuple[int, str]], problems: Problems
) -> WorkloadColumns:
    """The columns of a workload; lines that are none go to ``problems``."""
    heads: list[list[str]] = []
    lists: list[str] = []
    lines: list[int] = []
    for line, row in _lines(text):
        match = _WORKLOAD.fullmatch(row)
        fields = match[1].split(",") if match else []
        if match is None or len(fields) != len(_WORKLOAD_FIELDS):
            problems.add(line, "", row, _WORKLOAD_FORM)
            continue
        heads.append([field.strip() for field in fields])
        lists.append(match[2].strip())
        lines.append(line)
    by_field = list(zip(*heads, strict=True)) if heads else [()] * len(_WORKLOAD_FIELDS)
    batch = ColumnBatch.of_texts(
        dict(zip(_WORKLOAD_FIELDS, by_field, strict=True)) | {"constraints": lists}, lines, problems
    )
    terms = Distinct(parse_term)

    def class_of(text: str) -> int:
        return _class_index(text, classes, priorities)

    demand = [batch.floats(name, AMOUNT, parse=_parse_number) for name in DEMAND_NAMES]
    return WorkloadColumns(
        ids=batch.integers("task", NUMBER),
        admission=batch.floats("time", SINCE, parse=_parse_number),
        duration=batch.floats("duration", DURATION, parse=_parse_number),
        demand=np.stack(demand, axis=1),
        service_class=batch.coded("priority", _expected_priority(classes, priorities), class_of).astype(np.int16),
        job=batch.integers("job", "a whole number"),
        anti_affinity=batch.flags("anti_affinity", "0 or 1", _flag),
        term=batch.coded("constraints", _CONSTRAINT_LIST, terms.number).astype(np.int32),
        resources=RESOURCES,
        terms=terms.values,
        lines=batch.lines,
        names=FIELD_NAMES,
        demand_names=DEMAND_NAMES,
    )


def parse_term(text: str) -> Term:
    """The term of a list ``{"key","op","value"},...`` (without its brackets). Raises :class:`ValueError`."""
    found = []
    for key, operator, value in _items(text, _TRIPLE):
        if operator not in OPERATORS:
            raise ValueError(f"operator {operator!r}")
        found.append(Constraint(key, operator, value))
    return Term(tuple(found))


def host_rows(text: str, problems: Problems) -> HostRows:
    """The rows of a host file; lines that are none go to ``problems``."""
    found = HostRows([], [])
    for line, row in _lines(text):
        match = _HOST.fullmatch(row)
        if match is None:
            problems.add(line, "", row, _HOST_FORM)
            continue
        number, name, cpu, ram, attributes = match.groups()
        spare = 2**62 + line  # not another host's number, which would be reported too
        found.rows.append(
            HostRow(
                _cell(cells.parse_integer, number, spare, line, "id", NUMBER, problems),
                _cell(_string, name, f"\0{line}", line, "name", "a string", problems),
                _cell(_parse_number, cpu, 1.0, line, "cpu", AMOUNT, problems),
                _cell(_parse_number, ram, 1.0, line, "ram", AMOUNT, problems),
                _cell(_attributes, attributes, {}, line, "attributes", _ATTRIBUTE_LIST, problems),
            )
        )
        found.lines.append(line)
    return found


def delay_rows(text: str, problems: Problems) -> tuple[list[float], list[int]]:
    """Delays and their lines; lines that are none go to ``problems``."""
    found: list[float] = []
    lines: list[int] = []
    for line, row in _lines(text):
        match = _DELAY.fullmatch(row)
        try:
            found.append(_parse_number(match[1].strip() if match else ""))
            lines.append(line)
        except ValueError:
            problems.add(line, "seconds", row, "{seconds}.")
    return found, lines


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number; not ``splitlines``, which also splits at characters that may stand in strings."""
    for line, row in enumerate(text.split("\n"), 1):
        term = row.strip()
        if term and not term.startswith("%"):
            yield line, term


def _cell(
    parse: Callable[[str], T], text: str, spare: T, line: int, column: str, expected: str, problems: Problems
) -> T:
    try:
        return parse(text.strip())
    except ValueError:
        problems.add(line, column, text.strip() or "nothing", expected)
        return spare


def _items(text: str, item: re.Pattern[str]) -> Iterator[list[str]]:
    """The strings of every item of a comma-separated list. Raises :class:`ValueError`."""
    position = 0
    while text[position:].strip():
        match = item.match(text, position)
        if match is None:
            raise ValueError(text[position:])
        yield [_string(word) for word in match.groups()]
        position = match.end()
        if position == len(text):
            return
        if text[position] != "," or not text[position + 1 :].strip():
            raise ValueError(text[position:])
        position += 1


def _attributes(text: str) -> dict[str, str]:
    pairs = [(key, value) for key, value in _items(text, _PAIR)]
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _string(text: str) -> str:
    """The content of a quoted string; Erlang's escapes that JSON has too are understood."""
    if not (len(text) >= 2 and text.startswith('"') and text.endswith('"')):
        raise ValueError(text)
    return str(json.loads(text, strict=False)) if "\\" in text else text[1:-1]


def _parse_number(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(text)
    return cells.parse_float(text)


def _flag(text: str) -> bool:
    return {"0": False, "1": True, "false": False, "true": True}[text]


def _class_index(text: str, classes: Sequence[ServiceClass], priorities: Sequence[tuple[int, str]]) -> int:
    """Raises :class:`ValueError` where there is no such class."""
    number = cells.parse_integer(text)
    for lowest, name in priorities:
        if number >= lowest:
            return [one.name for one in classes].index(name)
    raise ValueError(text)


def _expected_priority(classes: Sequence[ServiceClass], priorities: Sequence[tuple[int, str]]) -> str:
    names = {one.name for one in classes}
    bounds = [f"{lowest} for {name}" for lowest, name in priorities if name in names]
    return "a whole number, at least " + ", ".join(bounds) if bounds else "a priority that belongs to a class"
