"""What a workload or hosts can be given as, and how it is read; ``slacktide.generate``."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias

import numpy as np

from slacktide.api.configuring import folder_at, in_python, whole_number
from slacktide.api.drawing import frame_of
from slacktide.errors import ConfigError, InputWarning
from slacktide.experiment import grid
from slacktide.experiment.grid import FromFile
from slacktide.experiment.prepare import kept_in
from slacktide.inputs import align, read_hosts, read_workload, write_hosts, write_workload
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.formats.frames import ArrowStream, OwnColumns, hosts_frame, workload_frame
from slacktide.inputs.formats.network_file import network_text
from slacktide.inputs.formats.tables import hosts_of, workload_of
from slacktide.inputs.generators.api import Value, settled
from slacktide.inputs.generators.registry import GENERATORS, generated
from slacktide.inputs.grouping import grouped
from slacktide.inputs.mapped.reading import Table
from slacktide.inputs.problems import check_readable
from slacktide.inputs.write import hosts_table, workload_table
from slacktide.model import DEFAULT_CLASSES, Hosts, Network, ServiceClass, Workload
from slacktide.results.generated import save
from slacktide.settings_file import read as read_settings
from slacktide.whole_file import write_whole

if TYPE_CHECKING:
    import polars as pl


class Generated:
    """A generated workload and its hosts; equal names, parameters and seeds give equal ones, to the bit.

    Wherever a workload or hosts are asked for it can be given as it is, or as its frames, which may be changed.
    """

    def __init__(self, generator: str, seed: int, parameters: Mapping[str, Value]) -> None:
        self.generator = generator
        self.seed = seed
        self.parameters = dict(parameters)

    @cached_property
    def tables(self) -> tuple[Any, Any]:
        """Workload and hosts as Arrow tables, with what ``slacktide generate`` writes into files."""
        requests, hosts = self._made
        return workload_table(requests), hosts_table(hosts)

    @cached_property
    def _made(self) -> tuple[Workload, Hosts]:
        return generated(self.generator, self.parameters, self.seed)

    @cached_property
    def workload(self) -> pl.DataFrame:
        """The requests, with the columns of a workload file (docs/formats.md)."""
        return frame_of(self.tables[0])

    @cached_property
    def hosts(self) -> pl.DataFrame:
        """The hosts, with the columns of a hosts file."""
        return frame_of(self.tables[1])

    @property
    def classes(self) -> tuple[ServiceClass, ...]:
        """The service classes that its requests name."""
        return self._made[0].classes

    @property
    def network(self) -> Network | None:
        """Where its hosts and users are; None: nobody asks."""
        return self._made[1].network

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes workload.parquet, hosts.parquet and what belongs to them, as ``slacktide generate --out`` does.

        Parameters
        ----------
        folder : path
            Is there whole or not at all.

        Returns
        -------
        pathlib.Path

        Raises
        ------
        OutputError
        """
        out = folder_at("save", folder)
        save(GENERATORS[self.generator], self.parameters, self.seed, out)
        return out

    def __repr__(self) -> str:
        requests, hosts = self.tables
        said = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        rows = f"{requests.num_rows:,} requests, {hosts.num_rows:,} hosts"
        return f"generate({self.generator!r}, seed={self.seed}{said}): {rows}"


@in_python("generate")
def generate(name: str, /, *, seed: SupportsIndex = 0, **parameters: Any) -> Generated:
    """A workload and its hosts.

    Parameters
    ----------
    name : str
        Of the generator; :func:`list_generators` has them.
    seed : int
        Equal ones give equal workloads.
    **parameters
        The generator's own, such as ``hosts=62``.

    Returns
    -------
    Generated

    Raises
    ------
    ConfigError
        For an unknown generator or parameter, and for a value out of range.
    """
    seed = whole_number("generate: seed", seed, 0)
    name = str(name)
    if name not in GENERATORS:
        raise ConfigError(f"generate: found {name!r}, expected {expected_name(name, list(GENERATORS))}")
    known = settled(name, GENERATORS[name].parameters, parameters)
    found = Generated(name, seed, {key: value for key, value in known.items() if key in parameters})
    found.tables  # noqa: B018  here, so that a mistake is noticed where it was made
    return found


class LazyFrame(Protocol):
    """A frame of polars that is not computed yet."""

    def collect(self) -> ArrowStream: ...


Source: TypeAlias = str | os.PathLike[str] | ArrowStream | LazyFrame | Generated
"""A path, a frame (polars, also lazy, pandas, Arrow, whatever has Arrow's C stream), or what ``generate`` returned."""


Columns: TypeAlias = str | os.PathLike[str] | Mapping[str, str]
"""Which columns of a table are ours, as ``--columns`` has it."""


@dataclass(slots=True)
class Origin:
    """What was read, for a manifest: files, and Arrow tables in memory by what they were for."""

    files: list[Path] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    network: Network | None = None
    own: OwnColumns = field(default_factory=OwnColumns)
    epoch: str = ""

    def digests(self) -> dict[str, str]:
        """SHA-256 of each table, as Arrow writes it, and of the network as its file would be.

        Equal rows have equal ones, whatever held them.
        """
        import pyarrow as pa

        found = {}
        for what, given in self.tables.items():
            sink, table = pa.BufferOutputStream(), _alike(given)
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            found[f"{what} in memory"] = hashlib.sha256(sink.getvalue()).hexdigest()
        if self.network is not None:
            found["network in memory"] = hashlib.sha256(network_text(self.network).encode()).hexdigest()
        return found


def _alike(table: Any) -> Any:
    """The same rows with texts of one type, columns in one order and in one piece."""
    import pyarrow as pa
    import pyarrow.types as kinds

    plain = pa.schema(
        (one.name, one.type if kinds.is_primitive(one.type) else pa.large_string())
        for one in sorted(table.schema, key=lambda one: str(one.name))
    )
    return table.select(plain.names).cast(plain).combine_chunks()


def inputs_of(
    workload: Source,
    hosts: Source | None,
    classes: tuple[ServiceClass, ...],
    grouping: dict[str, str] | None,
    origin: Origin,
    columns: Columns | None = None,
) -> tuple[Workload, Hosts, str]:
    """Both, of the same resources, and when second 0 was, where a workload with ``columns`` of its own says it.

    Raises :class:`InputError` with every broken value.
    """
    given = hosts_given(workload, hosts)
    read = None
    if columns is not None:
        read, origin.epoch = mapped_workload(workload, classes, origin, columns)
    requests = grouped(_workload(workload, classes, origin) if read is None else read, grouping)
    names = [_name(one, what) for one, what in ((workload, "workload"), (given, "hosts"))]
    return *align(requests, _hosts(given, origin), workload_file=names[0], hosts_file=names[1]), origin.epoch


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
    opened = workload_frame(source.tables[0] if isinstance(source, Generated) else frame_given(source, "workload"))
    _warn_of_gaps(source)
    origin.tables["workload"], origin.own, origin.epoch = opened.table, opened.own, opened.epoch
    return workload_of(opened, classes)


def mapped_workload(
    source: Source, classes: tuple[ServiceClass, ...], origin: Origin, columns: Columns
) -> tuple[Workload, str]:
    """A workload with columns of its own, and when its second 0 was; warns of what was guessed and assumed."""
    if isinstance(source, Generated):
        raise ConfigError("columns: found them beside what generate() returned, whose columns are known")
    is_file = isinstance(source, str | os.PathLike)
    said = Path(columns) if isinstance(columns, os.PathLike) else columns
    table = Table(Path(source) if isinstance(source, str | os.PathLike) else frame_given(source, "workload"), said)
    if isinstance(source, str | os.PathLike):
        origin.files.append(Path(source))
    else:
        origin.tables["workload"] = table.arrow
    found = table.read(classes, rests=is_file)
    warnings.warn("\n".join((*table.describe(), *found.notes)), UserWarning, stacklevel=4)
    return found.workload, found.epoch


def _hosts(source: Source, origin: Origin) -> Hosts:
    if isinstance(source, str | os.PathLike):
        origin.files.append(Path(source))
        return read_hosts(Path(source))
    opened = hosts_frame(source.tables[1] if isinstance(source, Generated) else frame_given(source, "hosts"))
    origin.tables["hosts"] = opened.table
    found = hosts_of(opened)
    return replace(found, network=source.network) if isinstance(source, Generated) else found


def frame_given(source: object, what: str) -> ArrowStream:
    """A frame; polars' lazy ones are collected."""
    collect = getattr(source, "collect", None)
    found = collect() if callable(collect) and not isinstance(source, ArrowStream) else source
    if not isinstance(found, ArrowStream):
        raise ConfigError(
            f"{what}: found {type(source).__name__}, expected a path, a frame (polars, pandas, Arrow) or what "
            "generate() returned"
        )
    return found


def _warn_of_gaps(source: Any) -> None:
    """Of numbers pandas says NaN for a gap and for what could not be computed; as a duration a gap means a lot."""
    if type(source).__module__.partition(".")[0] != "pandas" or "duration" not in source:
        return
    gaps = np.flatnonzero(source["duration"].isna())
    if len(gaps) and source["duration"].dtype.kind == "f":
        warnings.warn(
            f"workload: duration: NaN in {len(gaps):,} {'row' if len(gaps) == 1 else 'rows'} (the first: {gaps[0]}), "
            "taken as: never completes; write inf where that is meant",
            InputWarning,
            stacklevel=5,
        )


def warn_of_other_inputs(config: str | os.PathLike[str] | None, origin: Origin) -> None:
    """Warns where settings are those of a run whose inputs were others: it is not that run which is repeated.

    A file and a frame are not compared: what is the same in both looks different.
    """
    if config is None or Path(config).suffix != ".json":
        return
    known = read_settings(Path(config)).values.get("inputs")
    if not isinstance(known, dict) or not any(name.endswith(" in memory") for name in known):
        return
    found = origin.digests()
    others = [name.removesuffix(" in memory") for name in found if known.get(name, found[name]) != found[name]]
    if others:
        warnings.warn(
            f"config: {os.fspath(config)}: that run had another {' and other '.join(others)}: its settings are taken, "
            "its results will not come out again",
            InputWarning,
            stacklevel=4,
        )


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
    given, origin = tuple(classes), Origin()
    if what == "workload":
        found = _workload(source, given, origin)
        _warn_of_what_stays(origin)
        return kept_in(folder, partial(write_workload, found))
    return kept_in(folder, partial(write_hosts, _hosts(source, origin)))


def _warn_of_what_stays(origin: Origin) -> None:
    """Many runs have a workload in a file, in which ids are numbers and admissions seconds."""
    own, stays = origin.own, []
    if own.texts is not None:
        stays.append("ids are numbers in the order of the rows, from 0")
    if own.further is not None and own.further.num_columns:
        stays.append(f"further columns stay behind: {', '.join(own.further.column_names)}")
    if origin.epoch:
        stays.append(f"second 0 is {origin.epoch} (simulation_epoch says so to windows and hours)")
    if stays:
        warnings.warn(f"workload: in many runs {'; '.join(stays)}", InputWarning, stacklevel=5)


def network_file(network: Network, folder: Path) -> str:
    """A network in a file of ``folder``, named by its content, for many runs."""
    text = network_text(network)
    path = folder / f"given-{hashlib.sha256(text.encode()).hexdigest()}.yaml"
    write_whole(path, text)
    return str(path.resolve())


def _name(source: Source, what: str) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else what
