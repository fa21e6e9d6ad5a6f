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


class Asked(NamedTuple):
    """What a row of a file asks for beyond one instance; parallelism 0 is no limit."""

    number: int
    batch: bool
    approach: str
    parallelism: int
    scale: tuple[tuple[float, int], ...]


def asked_of(workload: Workload) -> list[Asked] | None:
    """The requests of a workload, or ``None`` where every row is one of its own."""
    requests = workload.requests
    if requests is None or workload.request is None:
        assert requests is None
        assert workload.request is None
        return None
    assert workload.ids.tolist() == [int(requests.ids[number]) for number in workload.request]
    events = list(zip(requests.scale_request, requests.scale_time, requests.scale_replicas, strict=True))
    return [
        Asked(
            int(requests.ids[number]),
            bool(requests.batch[number]),
            ("independent", "concurrent", "aggregated")[requests.approach[number]],
            int(requests.parallelism[number]),
            tuple((float(time), int(replicas)) for owner, time, replicas in events if owner == number),
        )
        for number in range(len(requests))
    ]


def csv_rows(text: str) -> list[Row]:
    """Instances of a CSV file, in order of admission; constraints of plain words only."""
    return _in_order(_csv_cells(text))


def csv_asked(text: str) -> list[Asked] | None:
    """Requests of a CSV file, in its order, or ``None`` where every one is a plain instance."""
    return _asked(_csv_cells(text))


def parquet_rows(path: Path) -> list[Row]:
    """Instances of a Parquet file, in order of admission."""
    return _in_order(_parquet_cells(path))


def parquet_asked(path: Path) -> list[Asked] | None:
    """Requests of a Parquet file, as :func:`csv_asked`."""
    return _asked(_parquet_cells(path))


def _csv_cells(text: str) -> list[dict[str, str]]:
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), skipinitialspace=True)
    lines = [[cell.strip() for cell in line] for line in reader if any(line)]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def _parquet_cells(path: Path) -> list[dict[str, str]]:
    import pyarrow.parquet as pq

    return [
        {name: "" if value is None else str(value) for name, value in row.items()}
        for row in pq.read_table(path).to_pylist()
    ]


def _in_order(rows: list[dict[str, str]]) -> list[Row]:
    instances = [one for cell in rows for one in _instances(cell)]
    return sorted(instances, key=lambda row: row.admission)


def _instances(cell: dict[str, str]) -> Iterator[Row]:
    """The instances of a row: those of its admission, then those that come by scale events."""
    row = Row(
        int(cell["id"]),
        float(cell["admission"]),
        float(cell["duration"] or "inf"),
        tuple(float(cell[name]) for name in ("cpu", "memory", *(key for key in cell if key.startswith("resource:")))),
        cell["class"],
        int(cell.get("job") or cell["id"]),
        cell.get("anti_affinity", "").lower() in ("true", "1"),
        _constraints(cell.get("constraints", "")),
    )
    have = int(cell.get("completions" if cell.get("kind") == "batch" else "instances") or 1)
    for _ in range(have):
        yield row
    for time, replicas in _scale(cell):
        for _ in range(have, replicas):
            yield row._replace(admission=time)
        have = replicas


def _scale(cell: dict[str, str]) -> tuple[tuple[float, int], ...]:
    parts = [part.partition("=") for part in cell.get("scale", "").split(";") if part.strip()]
    return tuple((float(time.strip(' "')), int(count.strip(' "'))) for time, _, count in parts)


def _asked(rows: list[dict[str, str]]) -> list[Asked] | None:
    found = []
    plain = True
    for cell in rows:
        batch = cell.get("kind") == "batch"
        approach = cell.get("approach") or ("aggregated" if batch else "independent")
        at_once = int(cell.get("parallelism") or 1) if batch else 0
        limited = batch and at_once < int(cell.get("completions") or 1)
        found.append(Asked(int(cell["id"]), batch, approach, at_once if limited else 0, _scale(cell)))
        alone = int(cell.get("instances") or 1) == 1
        plain = plain and not batch and approach == "independent" and alone and not _scale(cell)
    return None if plain else found


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
