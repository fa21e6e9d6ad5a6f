"""Readings of workloads that share nothing with slacktide.inputs: row by row, in plain Python.

They take more than the readers do (values out of range, for one): whatever a
reader accepts they must understand, and the same way.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from slacktide.model import Workload


class Row(NamedTuple):
    """One request."""

    number: int
    admission: float
    duration: float
    demand: tuple[float, ...]
    service_class: str
    job: int
    anti_affinity: bool
    constraints: tuple[tuple[str, str, str], ...]


def rows_of(workload: Workload) -> list[Row]:
    """The requests of a workload as rows."""
    return [
        Row(
            int(workload.ids[row]),
            float(workload.admission[row]),
            float(workload.duration[row]),
            tuple(workload.demand[row].tolist()),
            workload.classes[workload.service_class[row]].name,
            int(workload.job[row]),
            bool(workload.anti_affinity[row]),
            tuple((one.key, one.op, one.value) for one in workload.terms[workload.term[row]].constraints),
        )
        for row in range(len(workload))
    ]


def erlang_rows(text: str) -> list[Row]:
    """Requests of a file of Erlang terms, in order of admission."""
    found = []
    tokens = _tokens(text)
    for token in tokens:
        assert token == "{", token
        (time, task, job, duration, cpu, ram, priority, apart, constraints) = _sequence(tokens, "}")
        assert next(tokens) == "."
        level = int(priority)
        name = "gold" if level > 8 else "silver" if level >= 2 else "bronze"
        demand = (float(cpu), float(ram))
        terms = tuple((key, op, value) for key, op, value in constraints)
        flag = {"0": False, "1": True, "false": False, "true": True}[apart]
        found.append(Row(int(task), float(time), float(duration), demand, name, int(job), flag, terms))
    return sorted(found, key=lambda row: row.admission)


def _tokens(text: str) -> Iterator[str]:
    """Punctuation, words, and strings without their quotes, one character at a time."""
    position = 0
    at_line_start = True
    while position < len(text):
        character = text[position]
        if character == "%" and at_line_start:
            position = (text + "\n").index("\n", position)
        elif character.isspace():
            at_line_start = at_line_start or character == "\n"
            position += 1
        elif character == '"':
            word = ""
            position += 1
            while text[position] != '"':
                if text[position] == "\\":
                    position += 1
                    word += {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(text[position], text[position])
                else:
                    word += text[position]
                position += 1
            position += 1
            yield word
        elif character in "{}[],":
            at_line_start = False
            position += 1
            yield character
        else:
            end = position
            while end < len(text) and not text[end].isspace() and text[end] not in '{}[],"':
                end += 1
            yield text[position:end]
            position = end


def _sequence(tokens: Iterator[str], end: str) -> list[Any]:
    found: list[Any] = []
    for token in tokens:
        if token == end:
            return found
        if token == "{":
            found.append(_sequence(tokens, "}"))
        elif token == "[":
            found.append(_sequence(tokens, "]"))
        elif token != ",":
            found.append(token)
    raise AssertionError("the file ends inside a term")


def csv_rows(text: str) -> list[Row]:
    """Requests of a CSV file, in order of admission; constraints of plain words only."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), skipinitialspace=True)
    lines = [[cell.strip() for cell in line] for line in reader if any(line)]
    header = lines[0]
    further = sorted((name for name in header if name.startswith("resource:")), key=header.index)
    found = []
    for line in lines[1:]:
        cell = dict(zip(header, line, strict=True))
        found.append(
            Row(
                int(cell["id"]),
                float(cell["admission"]),
                float(cell["duration"] or "inf"),
                tuple(float(cell[name]) for name in ("cpu", "memory", *further)),
                cell["class"],
                int(cell.get("job") or cell["id"]),
                cell.get("anti_affinity", "").lower() in ("true", "1"),
                _constraints(cell.get("constraints", "")),
            )
        )
    return sorted(found, key=lambda row: row.admission)


def parquet_rows(path: Path) -> list[Row]:
    """Requests of a Parquet file, in order of admission."""
    import pyarrow.parquet as pq

    found = []
    for cell in pq.read_table(path).to_pylist():
        further = [name for name in cell if name.startswith("resource:")]
        found.append(
            Row(
                cell["id"],
                float(cell["admission"]),
                float("inf") if cell["duration"] is None else float(cell["duration"]),
                tuple(float(cell[name]) for name in ("cpu", "memory", *further)),
                cell["class"],
                cell["id"] if cell.get("job") is None else cell["job"],
                bool(cell.get("anti_affinity")),
                _constraints(cell.get("constraints") or ""),
            )
        )
    return sorted(found, key=lambda row: row.admission)


def _constraints(text: str) -> tuple[tuple[str, str, str], ...]:
    found = []
    for piece in text.split(";"):
        if not piece.strip():
            continue
        # The operator stands where one begins first, and is none that begins inside another one.
        places = [(piece.index(op), op) for op in ("==", "/=", "<", ">") if op in piece]
        place, op = min(places)
        found.append((piece[:place].strip(), op, piece[place + len(op) :].strip()))
    return tuple(found)
