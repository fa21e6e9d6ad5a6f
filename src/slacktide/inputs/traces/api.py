"""What a reader of traces is: a name, how its priorities become classes, parameters, and a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slacktide.inputs.generators.api import Parameter, Value
from slacktide.inputs.traces.mapping import ClassMap

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
