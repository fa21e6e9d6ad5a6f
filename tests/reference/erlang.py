"""The published Erlang-term files of validation 1, read with as little code as possible."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import numpy as np

from slacktide.model import DEFAULT_CLASSES, NO_CONSTRAINT, Constraint, Hosts, Term, Workload

DATA = Path(os.environ.get("SLACKTIDE_DATA", Path(__file__).parents[3] / "shared" / "data"))
"""Where the published files are; not part of the project."""


def terms(path: Path) -> list[Any]:
    """One term a line, tuples and lists nested."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [ast.literal_eval(line.rstrip(".").replace("{", "(").replace("}", ",)")) for line in lines if line]


def read_workload(path: Path) -> Workload:
    """Fields: admission, id, job, duration, cpu, memory, priority, anti-affinity, constraints."""
    rows = sorted(terms(path), key=lambda row: row[0])
    found = [Term(tuple(Constraint(*constraint) for constraint in row[8])) for row in rows]
    distinct = list(dict.fromkeys([NO_CONSTRAINT, *found]))
    index = {term: i for i, term in enumerate(distinct)}
    return Workload(
        ids=np.array([row[1] for row in rows], np.int64),
        admission=np.array([row[0] for row in rows], np.float64),
        duration=np.array([row[3] for row in rows], np.float64),
        demand=np.array([row[4:6] for row in rows], np.float64),
        service_class=np.array([0 if row[6] > 8 else 1 if row[6] >= 2 else 2 for row in rows], np.int16),
        job=np.array([row[2] for row in rows], np.int64),
        anti_affinity=np.array([row[7] != 0 for row in rows], np.bool_),
        term=np.array([index[term] for term in found], np.int32),
        classes=DEFAULT_CLASSES,
        terms=tuple(distinct),
    )


def read_hosts(path: Path) -> Hosts:
    """Fields: id, name, cpu, memory, attributes."""
    rows = terms(path)
    return Hosts(
        ids=np.array([row[0] for row in rows], np.int64),
        names=tuple(row[1] for row in rows),
        capacity=np.array([row[2:4] for row in rows], np.float64),
        attributes=tuple(dict(row[4]) for row in rows),
    )


def read_delays(path: Path) -> list[float]:
    """One start-up delay (s) a line."""
    return [float(row[0]) for row in terms(path)]
