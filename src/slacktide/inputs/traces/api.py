"""What a reader of traces is: a name, how its priorities become classes, parameters, and a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_class
from slacktide.inputs.generators.api import Parameter, Value

_RANGE = re.compile(r"(-?\d+)(?:(-)(-?\d+)?)?")
EXPECTED = "rules such as 9-=gold,2-8=silver,0-1=bronze or LS=gold,*=bronze"


@dataclass(frozen=True, slots=True)
class ClassMap:
    """From a trace's priorities or QoS classes to service classes: each rule is what it is about, and a class's name.

    Written as ``9-=gold,2-8=silver,0-1=bronze`` or ``LS=gold,*=bronze``. The first rule that holds decides. ``9`` is
    that number, ``2-8`` from 2 to 8, ``9-`` 9 and above; anything else is a word that must be equal; ``*`` holds
    always.
    """

    rules: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str, names: Sequence[str]) -> ClassMap:
        """The rules written as ``text``; ``names`` are those of the classes there are. Raises :class:`ConfigError`."""
        rules = []
        for piece in text.split(","):
            left, equals, name = (part.strip() for part in piece.rpartition("="))
            if not (left and equals and name):
                raise ConfigError(f"--map: found {piece.strip()!r}, expected {EXPECTED}")
            if name not in names:
                raise ConfigError(f"--map: class: found {name!r}, expected {expected_class(name, names)}")
            rules.append((left, name))
        return cls(tuple(rules))

    def __str__(self) -> str:
        return ",".join(f"{left}={name}" for left, name in self.rules)

    def classes_of(self, column: str) -> pl.Expr:
        """The name of the class for each value of a column of texts or whole numbers, null where no rule holds."""
        text = pl.col(column).cast(pl.String)
        number = text.cast(pl.Int64, strict=False)
        found = pl.lit(None, pl.String)
        for left, name in reversed(self.rules):
            span = _RANGE.fullmatch(left)
            if left == "*":
                holds = pl.lit(value=True)
            elif span is None:
                holds = text == left
            elif span[2] is None:
                holds = number == int(span[1])
            elif span[3] is None:
                holds = number >= int(span[1])
            else:
                holds = number.is_between(int(span[1]), int(span[3]))
            found = pl.when(holds.fill_null(value=False)).then(pl.lit(name)).otherwise(found)
        return found

    def of(self, rows: pl.LazyFrame, column: str, called: str = "") -> pl.Expr:
        """The column ``class`` of these rows, whose ``column``, also ``called`` so, decides it.

        Raises :class:`ConfigError` naming values of the column for which no rule holds.
        """
        left_out = (
            rows.filter(self.classes_of(column).is_null())
            .group_by(column)
            .len()
            .sort("len", column, descending=[True, False])
            .head(3)
            .collect()
        )
        if left_out.height:
            values = ", ".join(f"{value} ({count} times)" for value, count in left_out.iter_rows())
            raise ConfigError(
                f"--map: no rule for {called or column} {values}; found {str(self)!r}, expected one for each, "
                "or *=CLASS at the end"
            )
        return self.classes_of(column).alias("class")


Tell = Callable[[str, float], None]
"""Told what is being read and which part of it (0 to 1) is done."""


@dataclass(frozen=True, slots=True)
class Job:
    """One conversion.

    sources  files, or folders that hold them
    folder   where workload.parquet and hosts.parquet go
    scratch  a folder for what is needed until then
    classes  from priorities or QoS classes of the trace to service classes
    values   the reader's parameters
    seed     of what is drawn
    tell     progress
    """

    sources: tuple[Path, ...]
    folder: Path
    scratch: Path
    classes: ClassMap
    values: Mapping[str, Value]
    seed: int = 0
    tell: Tell = field(default=lambda _what, _part: None)


@dataclass(frozen=True, slots=True)
class Converted:
    """What a conversion found.

    requests  rows of workload.parquet
    hosts     rows of hosts.parquet; 0: the trace has none
    dropped   how many of the trace's rows, tasks or machines were left out, by reason; reasons with 0 included
    files     those that were read
    notes     what else there is to say, a line each
    """

    requests: int
    hosts: int
    dropped: Mapping[str, int]
    files: Sequence[Path]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """A format of traces.

    priority  the column that decides the service class, in the words of the trace
    mapping   how it does unless told otherwise, as ``--map`` takes it
    """

    name: str
    summary: str
    priority: str
    mapping: str
    parameters: tuple[Parameter, ...]
    read: Callable[[Job], Converted]
