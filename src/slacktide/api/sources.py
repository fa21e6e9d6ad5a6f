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
from slacktide.inputs import align, group_by_job, read_hosts, read_workload, write_hosts, write_workload
from slacktide.inputs.formats.frames import ArrowStream, hosts_frame, workload_frame
from slacktide.inputs.formats.tables import hosts_of, workload_of
from slacktide.inputs.generators.api import settled
from slacktide.inputs.generators.registry import GENERATORS
from slacktide.inputs.problems import check_readable
from slacktide.model import DEFAULT_CLASSES, Hosts, ServiceClass, Workload

Source: TypeAlias = str | os.PathLike[str] | ArrowStream | Generated
"""A path, a frame (polars, pandas, Arrow, whatever has Arrow's C stream), or what ``generate`` returned."""


@dataclass(slots=True)
class Origin:
    """What was read, for a manifest: files, and Arrow tables in memory by what they were for."""

    files: list[Path] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)

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
