"""What a workload or hosts can be given as, and how it is read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from slacktide.api.generating import Generated
from slacktide.errors import ConfigError
from slacktide.experiment import grid
from slacktide.experiment.grid import FromFile
from slacktide.inputs import align, read_hosts, read_workload, write_hosts, write_workload
from slacktide.inputs.formats.frames import ArrowStream, hosts_frame, workload_frame
from slacktide.inputs.formats.tables import hosts_of, workload_of
from slacktide.inputs.generators.api import settled
from slacktide.inputs.generators.registry import GENERATORS
from slacktide.inputs.grouping import grouped
from slacktide.inputs.problems import check_readable
from slacktide.model import DEFAULT_CLASSES, Hosts, ServiceClass, Workload

Source: TypeAlias = str | os.PathLike[str] | ArrowStream | Generated
"""A path, a frame (polars, pandas, Arrow, whatever has Arrow's C stream), or what ``generate`` returned."""


@dataclass(slots=True)
class Origin:
    """What was read, for a manifest: files, and Arrow tables in memory by what they were for."""

    files: list[Path] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)

    def digests(self) -> dict[str, str]:
        """SHA-256 of each table, as Arrow writes it."""
        import pyarrow as pa

        found = {}
        for what, table in self.tables.items():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            found[f"{what} in memory"] = hashlib.sha256(sink.getvalue()).hexdigest()
        return found


def inputs_of(
    workload: Source,
    hosts: Source | None,
    classes: tuple[ServiceClass, ...],
    grouping: dict[str, str] | None,
    origin: Origin,
) -> tuple[Workload, Hosts]:
    """Both, of the same resources. Raises :class:`InputError` with every broken value."""
    given = hosts_given(workload, hosts)
    requests = grouped(_workload(workload, classes, origin), grouping)
    names = [_name(one, what) for one, what in ((workload, "workload"), (given, "hosts"))]
    return align(requests, _hosts(given, origin), workload_file=names[0], hosts_file=names[1])


def hosts_given(workload: object, hosts: Source | None) -> Source:
    """The hosts, where there are none those that were generated with the workload. Raises :class:`ConfigError`."""
    if hosts is not None:
        return hosts
    if not isinstance(workload, Generated):
        raise ConfigError("hosts: found none, expected them: only what generate() returned brings its own")
    return workload


def classes_of(workload: Source, classes: tuple[ServiceClass, ...]) -> tuple[ServiceClass, ...]:
    """The service classes of a run: a generator's own where settings say nothing of them."""
    return workload.classes if isinstance(workload, Generated) and classes == DEFAULT_CLASSES else classes


def _workload(source: Source, classes: tuple[ServiceClass, ...], origin: Origin) -> Workload:
    if isinstance(source, str | os.PathLike):
        origin.files.append(Path(source))
        return read_workload(Path(source), classes=classes, rests=True)
    opened = workload_frame(source.tables[0] if isinstance(source, Generated) else _frame(source, "workload"))
    origin.tables["workload"] = opened.table
    return workload_of(opened, classes)


def _hosts(source: Source, origin: Origin) -> Hosts:
    if isinstance(source, str | os.PathLike):
        origin.files.append(Path(source))
        return read_hosts(Path(source))
    opened = hosts_frame(source.tables[1] if isinstance(source, Generated) else _frame(source, "hosts"))
    origin.tables["hosts"] = opened.table
    found = hosts_of(opened)
    return replace(found, network=source.network) if isinstance(source, Generated) else found


def _frame(source: object, what: str) -> ArrowStream:
    """A frame; polars' lazy ones are collected."""
    collect = getattr(source, "collect", None)
    found = collect() if callable(collect) and not isinstance(source, ArrowStream) else source
    if not isinstance(found, ArrowStream):
        raise ConfigError(
            f"{what}: found {type(source).__name__}, expected a path, a frame (polars, pandas, Arrow) or what "
            "generate() returned"
        )
    return found


def grid_origin(source: Source, folder: Path, what: str, classes: Sequence[ServiceClass]) -> FromFile | grid.Generated:
    """Where many runs find it: a path as it is, a generator by its name, a frame in a file of ``folder``.

    That file is named by its content, so that equal frames are equal inputs. Raises :class:`InputError` for what is
    broken in a frame.
    """
    if isinstance(source, Generated):
        parameters = settled(source.generator, GENERATORS[source.generator].parameters, source.parameters)
        return grid.Generated(source.generator, parameters, source.seed)
    if isinstance(source, str | os.PathLike):
        check_readable(Path(source))
        return FromFile(Path(source).resolve())
    origin = Origin()
    aside = folder / f".given-{os.getpid()}.parquet"
    if what == "workload":
        write_workload(_workload(source, tuple(classes), origin), aside)
    else:
        write_hosts(_hosts(source, origin), aside)
    content = hashlib.sha256(aside.read_bytes()).hexdigest()
    return FromFile(aside.replace(folder / f"given-{content}.parquet").resolve())


def _name(source: Source, what: str) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else what
