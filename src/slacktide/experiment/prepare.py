"""Workloads and host sets of a grid, made once and kept under what they are made from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError, OutputError, fail
from slacktide.experiment import keys
from slacktide.experiment.grid import First, FromFile, Generated, Grid, Origin, Peak, PolicyEntry, Share
from slacktide.inputs import (
    WorkloadParquetWriter,
    read_hosts,
    read_workload,
    write_hosts,
    write_workload,
)
from slacktide.inputs.formats.network_file import network_text, read_network
from slacktide.inputs.generators.registry import GENERATORS
from slacktide.inputs.grouping import grouped
from slacktide.inputs.prepare.host_sets import binding_resource, draw_hosts, keep_share
from slacktide.inputs.prepare.peak import peak
from slacktide.model import DEFAULT_CLASSES, Hosts, ServiceClass, Workload
from slacktide.model.window import EPOCH
from slacktide.results import replaced_directory
from slacktide.settings import class_mapping, class_of

WORKLOAD, HOSTS, NETWORK, ABOUT = "workload.parquet", "hosts.parquet", "network.yaml", "about.json"
PREPARED = frozenset({WORKLOAD, HOSTS, NETWORK, ABOUT})


class Inputs:
    """The prepared inputs of a grid in ``folder``; what is missing there is made when it is asked for.

    ``announce`` is told what is being made.
    """

    def __init__(self, grid: Grid, folder: Path, announce: Callable[[str], None]) -> None:
        self.grid = grid
        self.folder = folder
        self._announce = announce

    def workload(self, name: str, seed: int | None = None) -> Path:
        """The folder of a prepared workload, of this seed where each has another one: workload.parquet and about.json.

        Raises InputError and OutputError.
        """
        entry = self.grid.workloads[name]
        return self._prepared("workload", name, entry.origin if seed is None else entry.origin_for(seed))

    def hosts(self, name: str) -> Path:
        """The folder of a prepared host set: hosts.parquet, about.json, and network.yaml where a generator has one.

        Raises InputError and OutputError.
        """
        return self._prepared("hosts", name, self.grid.hosts[name])

    def classes(self) -> tuple[ServiceClass, ...]:
        """The classes that rows of files may name: those common to all policies."""
        return next(iter(self.grid.policies.values())).config.classes

    def _prepared(self, kind: str, name: str, origin: Origin) -> Path:
        target = self.folder / keys.input_key(kind, origin, self.grid)
        if not (target / ABOUT).is_file():
            if not isinstance(origin, First):  # a plan makes many, each in no time
                self._announce(f"preparing {kind} {name}")
            with replaced_directory(target, PREPARED) as aside:
                try:
                    writes = self._write_workload if kind == "workload" else self._write_hosts
                    made = writes(aside, origin)
                except ConfigError as error:
                    raise ConfigError(f"{kind} {name}: {error}") from error
                text = json.dumps({"kind": kind, **made, "recipe": keys.recipe(origin, self.grid)}, indent=2)
                (aside / ABOUT).write_text(text + "\n", encoding="utf-8")
                if keys.input_key(kind, origin, self.grid) != target.name:
                    raise fail(f"{kind} {name}", "files that stay as they are while they are read; resume")
        return target

    def _write_workload(self, aside: Path, origin: Origin) -> dict[str, Any]:
        classes: tuple[ServiceClass, ...] = DEFAULT_CLASSES
        if isinstance(origin, Generated):
            instances, endless = 0, False
            with WorkloadParquetWriter(aside / WORKLOAD) as writer:
                for piece in _pieces(origin):
                    writer.append(piece)
                    instances, classes = instances + len(piece), piece.classes
                    endless |= bool(np.isinf(piece.duration).any())
            own = None if classes == DEFAULT_CLASSES else [class_mapping(one) for one in classes]
            return {"rows": writer.rows, "instances": instances, "classes": own, "endless": endless}
        assert isinstance(origin, FromFile)  # noqa: S101  what a workload can be
        workload = read_workload(origin.path, classes=self.classes())
        write_workload(workload, aside / WORKLOAD)
        endless = bool(np.isinf(workload.duration).any())
        return {"rows": len(workload), "instances": len(workload), "classes": None, "endless": endless}

    def _write_hosts(self, aside: Path, origin: Origin) -> dict[str, Any]:
        hosts = self._made(origin)
        write_hosts(hosts, aside / HOSTS)
        if hosts.network is not None:
            (aside / NETWORK).write_text(network_text(hosts.network), encoding="utf-8")
        capacity = dict(zip(hosts.resources, hosts.capacity.sum(axis=0).tolist(), strict=True))
        return {"hosts": len(hosts), "capacity": capacity}

    def _made(self, origin: Origin) -> Hosts:
        match origin:
            case FromFile(path):
                return read_hosts(path)
            case Generated(generator, parameters, seed):
                return GENERATORS[generator].generate(parameters, seed)[1]
            case Share(of, share, resource, seed):
                return keep_share(self._above(of), share, seed, resource)
            case Peak(workload, hosts, repeat, seed):
                population = self._above(hosts)
                needed = peak(self._read(workload))
                resource = binding_resource(needed, population)
                return draw_hosts(population, needed.of(resource), resource, seed, repeat=repeat, file=f"hosts {hosts}")
            case First(of, count, before):
                return first(self._above(of), count, before)

    def _above(self, name: str) -> Hosts:
        folder = self.hosts(name)
        hosts, network = read_hosts(folder / HOSTS), network_of(folder)
        return hosts if network is None else replace(hosts, network=read_network(network))

    def _read(self, name: str) -> Workload:
        folder = self.workload(name)
        return load_workload(folder, classes_of(folder, self.classes()))


def about(folder: Path) -> dict[str, Any]:
    """What about.json says of a prepared input. Raises :class:`OutputError` where it cannot be read again."""
    try:
        found = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        of = {"workload": "instances", "hosts": "capacity"}[found["kind"]]
        return {**found, of: found[of], "classes": found.get("classes"), "endless": found.get("endless")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{folder / ABOUT}: cannot be read again; remove {folder} and resume ({error!r})") from error


def network_of(folder: Path) -> str | None:
    """The network file of a prepared host set, for settings that say nothing of one (``delay.network``)."""
    path = folder / NETWORK
    return str(path) if path.is_file() else None


def classes_of(folder: Path, classes: tuple[ServiceClass, ...]) -> tuple[ServiceClass, ...]:
    """The service classes of a prepared workload: a generator's own where settings say nothing of ``classes``.

    Raises :class:`OutputError` where the folder has lost what was written.
    """
    if classes != DEFAULT_CLASSES:
        return classes
    listed = about(folder)["classes"]
    if listed is None:
        return classes
    return tuple(class_of(one) for one in listed)


def load_workload(
    folder: Path, classes: tuple[ServiceClass, ...], grouping: Mapping[str, str] | None = None
) -> Workload:
    """A prepared workload, rows of a job made one request as ``grouping`` says. Raises :class:`InputError`."""
    return grouped(read_workload(folder / WORKLOAD, classes=classes), grouping)


def _pieces(origin: Generated) -> Iterator[Workload]:
    return GENERATORS[origin.generator].generate(origin.parameters, origin.seed)[0]


def in_proportion(hosts: Hosts) -> NDArray[np.int64]:
    """Rows of ``hosts``, shape (h,), in an order of which every beginning has about the mix of the whole.

    Hosts of equal capacity are a kind. The i-th (from 0) of a kind of g stands at (i + 1/2) / g; equal places go by
    the first row of the kind. Within a kind rows are in a fixed random order, as files often list hosts of one
    attribute after the other.
    """
    shuffled = np.random.default_rng(0).permutation(len(hosts))
    _, first, kind = np.unique(hosts.capacity, axis=0, return_index=True, return_inverse=True)
    kind = kind.reshape(-1)[shuffled]
    sizes = np.bincount(kind, minlength=len(first))
    by_kind = np.argsort(kind, kind="stable")
    number = np.empty(len(hosts), np.int64)
    number[by_kind] = np.arange(len(hosts)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = (number + 0.5) / sizes[kind]
    return shuffled[np.lexsort((first[kind], place))]


def first(hosts: Hosts, count: int, before: Sequence[str] = ()) -> Hosts:
    """``count`` (at least 1) hosts: those called ``before``, the others of :func:`in_proportion`, all over and over.

    The set of a smaller count is part of that of a larger one. The second host of a name is called ``NAME*2`` and so
    on, and all are numbered from 1.
    """
    order = in_proportion(hosts)
    named = [hosts.names.index(name) for name in before]
    rows = np.resize(np.concatenate([np.array(named, np.int64), order[~np.isin(order, named)]]), count)
    copies = np.arange(count) // len(hosts) + 1
    names = tuple(
        hosts.names[row] if copy == 1 else f"{hosts.names[row]}*{copy}"
        for row, copy in zip(rows.tolist(), copies.tolist(), strict=True)
    )
    return replace(
        hosts,
        ids=np.arange(1, count + 1),
        names=names,
        capacity=hosts.capacity[rows],
        attributes=tuple(hosts.attributes[row] for row in rows.tolist()),
    )


def mapped(
    found: Workload, epoch: str, policies: Mapping[str, PolicyEntry], folder: Path
) -> tuple[FromFile, dict[str, PolicyEntry]]:
    """A workload that was read from columns of its own, in a file of ``folder`` as all are, and policies whose second 0
    is its first instant, unless settings say another one."""

    def beginning(one: PolicyEntry) -> PolicyEntry:
        simulation = one.config.simulation
        if not epoch or simulation.epoch != EPOCH:
            return one
        return replace(one, config=replace(one.config, simulation=replace(simulation, epoch=epoch)))

    return kept_in(folder, partial(write_workload, found)), {name: beginning(one) for name, one in policies.items()}


def kept_in(folder: Path, write: Callable[[Path], object]) -> FromFile:
    """What is written, in a file of ``folder`` named by its content, so that equal ones are equal inputs."""
    aside = folder / f".given-{os.getpid()}.parquet"
    write(aside)
    content = hashlib.sha256(aside.read_bytes()).hexdigest()
    return FromFile(aside.replace(folder / f"given-{content}.parquet").resolve())
