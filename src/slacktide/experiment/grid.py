"""What a grid file asks for (docs/experiments.md): workloads x host sets x policies x seeds."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import UNSET

from slacktide import settings, settings_file
from slacktide.config import Config, Count, Text, preset
from slacktide.errors import ConfigError
from slacktide.experiment import checked
from slacktide.experiment.checked import INTERVALS, VERSION, Node
from slacktide.experiment.run_folder import FILES
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.columns.instances import WHY_AGGREGATED
from slacktide.inputs.generators.api import settled
from slacktide.inputs.generators.registry import GENERATORS
from slacktide.kernels.builtin import POLICIES
from slacktide.policy.loader import SETTINGS, available, unknown
from slacktide.sim.startup import SHAPES

OF_GRID = {"seed": "seeds", "end": "end"}
"""Settings of the section ``simulation`` that a grid says itself, and under which key."""
AXES = ("workload", "hosts", "policy", "seed")


@dataclass(frozen=True, slots=True)
class FromFile:
    """A workload or hosts from a file."""

    path: Path


@dataclass(frozen=True, slots=True)
class Generated:
    """A workload, or its hosts, from a generator."""

    generator: str
    parameters: Mapping[str, Any]
    seed: int


@dataclass(frozen=True, slots=True)
class Share:
    """Of another host set what remains when random hosts are removed until at most ``share`` of a resource is left."""

    of: str
    share: float
    resource: str
    seed: int


@dataclass(frozen=True, slots=True)
class Peak:
    """Hosts drawn from another set until they reach a workload's peak; ``repeat``: each as often as needed."""

    workload: str
    hosts: str
    repeat: bool
    seed: int


@dataclass(frozen=True, slots=True)
class First:
    """The first ``count`` hosts when copies of another set are lined up in proportion, those called ``before`` at the
    beginning (``slacktide plan``)."""

    of: str
    count: int
    before: tuple[str, ...] = ()


Origin = FromFile | Generated | Share | Peak | First


@dataclass(frozen=True, slots=True)
class WorkloadEntry:
    """A workload of the grid.

    grouping  by, kind and approach where rows of a job become a request, as in a manifest
    startup   start-up delays of its own, by hot and cold
    end       seconds; None: the grid's
    drawn     where it comes from by the run's seed, where each seed has another one (from Python)
    """

    origin: FromFile | Generated
    grouping: Mapping[str, str] | None = None
    startup: Mapping[str, str] = dataclasses.field(default_factory=dict)
    end: float | None = None
    drawn: Mapping[int, FromFile | Generated] = dataclasses.field(default_factory=dict)

    def origin_for(self, seed: int) -> FromFile | Generated:
        """Where that of a seed comes from."""
        return self.drawn.get(seed, self.origin)


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A policy of the grid; ``config`` are all its settings, the grid's common ones among them, ``swept`` those that
    the grid's sweep says, by SECTION.KEY."""

    preset: str
    config: Config
    swept: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Point:
    """One run of the grid: a name on each axis, and the seed."""

    workload: str
    hosts: str
    policy: str
    seed: int


@dataclass(frozen=True, slots=True)
class Grid:
    """What is to be run.

    seeds      how many, or the very seeds
    end        seconds; None: until everything has completed
    intervals  seconds
    passes     whether runs keep a row for each pass
    excluded   a run is left out where all that a mapping names applies to it
    events     by host set and file of host events, the file with those of hosts in the set (``slacktide plan``)
    """

    workloads: Mapping[str, WorkloadEntry]
    hosts: Mapping[str, Origin]
    policies: Mapping[str, PolicyEntry]
    seeds: int | tuple[int, ...] = 1
    base_seed: int = 0
    end: float | None = None
    intervals: float = INTERVALS
    passes: bool = False
    excluded: tuple[Mapping[str, tuple[Any, ...]], ...] = ()
    title: str | None = None
    events: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict)

    def seeds_of(self, workload: str) -> tuple[int, ...]:
        """The seeds of a workload's runs: the same for all policies and host sets, so that runs can be paired."""
        if isinstance(self.seeds, tuple):
            return self.seeds
        return tuple(derived_seed(self.base_seed, workload, number) for number in range(self.seeds))

    def points(self) -> list[Point]:
        """Every run, in order: workloads, within them hosts, seeds, policies."""
        seeds = {name: self.seeds_of(name) for name in self.workloads}
        return [
            Point(workload, hosts, policy, seed)
            for workload in self.workloads
            for hosts in self.hosts
            for seed in seeds[workload]
            for policy in self.policies
            if not self._excludes(workload, hosts, policy, seed)
        ]

    def config_of(self, point: Point) -> Config:
        """All settings of a run."""
        entry, config = self.workloads[point.workload], self.policies[point.policy].config
        end = self.end if entry.end is None else entry.end
        file = config.failures.file or ""
        file = self.events.get((point.hosts, file), file)
        return dataclasses.replace(
            config,
            failures=dataclasses.replace(config.failures, file=file or None),
            simulation=dataclasses.replace(config.simulation, seed=point.seed, end=end),
            startup=dataclasses.replace(config.startup, **entry.startup),
        )

    def _excludes(self, *run: Any) -> bool:
        at = dict(zip(AXES, run, strict=True))
        return any(all(at[axis] in names for axis, names in one.items()) for one in self.excluded)


def derived_seed(base: int, workload: str, number: int) -> int:
    """The ``number``-th seed (from 0) of a workload's runs, below 2^32.

    The first four bytes of SHA-256 over ``slacktide:BASE:WORKLOAD:NUMBER``. Neither policy nor host set is part of it:
    what differs between two runs of equal seed is what is compared.
    """
    digest = hashlib.sha256(f"slacktide:{base}:{workload}:{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def read(path: Path, variables: Mapping[str, str] | None = None) -> Grid:
    """The grid of a file, ``variables`` filled in. Raises :class:`ConfigError` naming file, line, key and value."""
    return of(checked.read(path, variables or {}))


def of(node: Node) -> Grid:
    """The grid that stands at a node, in the words of a grid file. Raises :class:`ConfigError` as :func:`read`."""
    top = node.convert(checked.Top)
    if top.version != VERSION:
        node.child("version").fail(f"{VERSION}, the version this one reads")
    common = [] if top.config is UNSET else [_settings_file(node.child("config"))]
    if top.settings is not None:
        common.append(node.child("settings"))
    for one in common:  # on their own, so that their lines are named
        _merged(preset("recommended"), one)
    workloads = {name: _workload(one) for name, one in node.child("workloads").named("workloads")}
    places = dict(node.child("hosts").named("hosts"))
    hosts = {name: _hosts(one) for name, one in places.items()}
    for name in hosts:
        _check_references(name, places, hosts, workloads)
    grid = Grid(
        workloads=workloads,
        hosts=hosts,
        policies=_policies(node, common),
        seeds=_seeds(node.child("seeds")) if "seeds" in node else 1,
        base_seed=top.base_seed,
        end=top.end or None,
        intervals=top.intervals,
        passes=top.passes,
        title=top.title or None,
    )
    if "exclude" in node:
        grid = dataclasses.replace(grid, excluded=_excluded(node.child("exclude"), grid))
        if not grid.points():
            node.child("exclude").fail("at least one run that is left")
    return grid


def _policies(node: Node, common: Sequence[Node]) -> dict[str, PolicyEntry]:
    """All policies, each with every combination of what is swept."""
    found = {name: _policy(one, common) for name, one in node.child("policies").named("policies")}
    if "sweep" not in node:
        return found
    axes = []
    for name in node.child("sweep").value:
        place = node.child("sweep").child(name)
        values = [json.dumps(value, sort_keys=True, default=str) for value in _each(place) for value in [value.value]]
        if len(set(values)) < len(values):
            place.fail("different values")
        axes.append([(name, value) for value in _each(place)])
    return {
        ", ".join([policy, *(f"{name}={value.value}" for name, value in values)]): _swept(entry, values)
        for policy, entry in found.items()
        for values in itertools.product(*axes)
    }


def _swept(entry: PolicyEntry, values: Sequence[tuple[str, Node]]) -> PolicyEntry:
    config = entry.config
    for name, node in values:
        section, _, key = name.partition(".")
        if name not in settings.names() or (section == "simulation" and key in OF_GRID):
            node.fail("a setting as SECTION.KEY, such as policy.patience, that is not of the whole grid")
        said = {section: {key: node.value}}
        config = _merged(config, Node(settings_file.SettingsFile(node.where, said), (), said))
    return dataclasses.replace(entry, config=config, swept={name: one.value for name, one in values})


def _seeds(node: Node) -> int | tuple[int, ...]:
    if not isinstance(node.value, list):
        return node.convert(checked.Seeds)
    found = tuple(node.convert(list[Count]))
    if not found or len(set(found)) < len(found):
        node.fail("a number of seeds, or a list of different ones")
    return found


def _origin(node: Node, keys: checked.Source) -> FromFile | Generated:
    """A file or a generator; exactly one of them."""
    if ("file" in node) == ("generator" in node):
        node.fail("file or generator, one of them")
    if "file" in node:
        for key in ("with", "seed"):
            if key in node:
                raise ConfigError(f"{node.child(key).where}: belongs to a generator, not to a file")
        return FromFile(node.child("file").path())
    name = node.child("generator").choice(list(GENERATORS))
    return Generated(name, _parameters(name, node.child("with") if "with" in node else None), keys.seed)


def _parameters(generator: str, node: Node | None) -> dict[str, Any]:
    """All parameters of a generator, those not given with their defaults."""
    known = GENERATORS[generator].parameters
    found: dict[str, Any] = {one.name: one.default for one in known}
    given = {} if node is None else {key: node.child(key) for key in node.value}
    for key, one in given.items():
        try:
            found[key] = settled(generator, known, {key: one.value})[key]
        except ConfigError as error:
            raise ConfigError(f"{one.where}: {error}") from error
    return found


def _workload(node: Node) -> WorkloadEntry:
    if isinstance(node.value, str):
        return WorkloadEntry(FromFile(node.path()))
    keys = node.convert(checked.Workload)
    startup = {}
    if keys.startup:
        place = node.child("startup")
        startup = {key: _file_or_shape(place.child(key)) for key in place.value}
    return WorkloadEntry(_origin(node, keys), _grouping(node, keys), startup, keys.end or None)


def _grouping(node: Node, keys: checked.Workload) -> dict[str, str] | None:
    if not keys.group_by:
        for key in ("kind", "approach"):
            if key in node:
                raise ConfigError(f"{node.child(key).where}: needs 'group_by: job' beside it")
        return None
    approach = keys.approach or ("aggregated" if keys.kind == "batch" else "independent")
    if keys.kind == "batch" and approach != "aggregated":
        node.child("approach").fail(f"aggregated with 'kind: batch': {WHY_AGGREGATED}")
    return {"by": keys.group_by, "kind": keys.kind, "approach": approach}


def _hosts(node: Node) -> Origin:
    if isinstance(node.value, str):
        return FromFile(node.path())
    keys = node.convert(checked.Hosts)
    if "of" in node:
        share = node.convert(checked.Share)
        return Share(str(share.of), share.share, share.resource, share.seed)
    if "peak_of" in node:
        peak = node.convert(checked.Peak)
        return Peak(str(peak.peak_of), str(peak.origin), peak.repeat, peak.seed)
    for key, needed in (("share", "of"), ("resource", "of"), ("from", "peak_of"), ("repeat", "peak_of")):
        if key in node:
            raise ConfigError(f"{node.child(key).where}: goes with {needed!r}, which is missing")
    return _origin(node, keys)


def _check_references(
    name: str, places: Mapping[str, Node], hosts: Mapping[str, Origin], workloads: Mapping[str, Any]
) -> None:
    """Names that a host set refers to exist, and lead to a file or generator in the end."""
    path = [name]
    at: Origin = hosts[name]
    while not isinstance(at, FromFile | Generated):
        if isinstance(at, Peak) and at.workload not in workloads:
            found = expected_name(at.workload, list(workloads))
            raise ConfigError(f"{places[path[-1]].where}.peak_of: found {at.workload!r}, expected a workload, {found}")
        above = at.hosts if isinstance(at, Peak) else at.of
        if above not in hosts or above in path:
            rule = "a host set that does not lead back here" if above in path else "a host set"
            key = "from" if isinstance(at, Peak) else "of"
            others = [one for one in hosts if one not in path]
            right = f", {expected_name(above, others)}" if others else ""
            raise ConfigError(f"{places[path[-1]].where}.{key}: found {above!r}, expected {rule}{right}")
        path.append(above)
        at = hosts[above]


def _settings_file(node: Node) -> Node:
    """What a settings file says, but for what a grid says for all its runs."""
    file = settings_file.read(node.path())
    place, values = settings.sections_in(file)
    if isinstance(values.get("simulation"), dict):
        values["simulation"] = {key: value for key, value in values["simulation"].items() if key not in OF_GRID}
    return Node(file, place, values, len(place), "[{}]")


def _policy(node: Node, common: Sequence[Node]) -> PolicyEntry:
    keys = node.convert(checked.Policy)
    if not node.value:
        node.fail("policy, preset or settings")
    config = settings.load(None, keys.preset)
    for one in common:
        config = _merged(config, one)
    if keys.policy:
        chosen = keys.policy
        if chosen not in POLICIES and ".py:" in chosen:
            chosen = _own_code(chosen, node.child("policy"))
        config = dataclasses.replace(config, policy=dataclasses.replace(config.policy, name=chosen))
    if keys.settings is not None:
        config = _merged(config, node.child("settings"))
    check_names(config, node.where)
    return PolicyEntry(keys.preset, config)


def check_names(config: Config, where: str) -> None:
    """Raises :class:`ConfigError`, beginning with ``where``, for a policy, score or cost that nobody offers.

    What a file offers is looked at by the run that needs it.
    """
    for kind, key in SETTINGS.items():
        chosen = getattr(config.policy, key)
        if ".py:" not in chosen and chosen not in [one.name for one in available() if one.kind == kind]:
            raise ConfigError(f"{where}: policy.{key}: {unknown(chosen, kind)}")


def _merged(config: Config, node: Node) -> Config:
    """``config`` changed by the sections at ``node``, files in them made absolute."""
    if not isinstance(node.value, dict):
        node.fail("sections of settings ('slacktide settings' lists them)")
    simulation = node.value.get("simulation")
    for key, right in OF_GRID.items():
        if isinstance(simulation, dict) and key in simulation:
            where = node.child("simulation").child(key).where
            raise ConfigError(f"{where}: a grid says this for all its runs, under {right!r} at the top of the file")
    changed = settings.with_sections(config, node.value, node.file, node.place)
    for section, key in FILES:
        content = node.value.get(section)
        if isinstance(content, dict) and content.get(key) is not None:
            one = node.child(section).child(key)
            value = _own_code(one.convert(Text), one) if section == "policy" else _file_or_shape(one)
            inner = dataclasses.replace(getattr(changed, section), **{key: value})
            changed = dataclasses.replace(changed, **{section: inner})
    return changed


def absolute(config: Config) -> Config:
    """``config`` with absolute paths of the files it names, relative ones from the current directory."""
    for section, key in FILES:
        inner = getattr(config, section)
        text = getattr(inner, key) or ""
        file, colon, name = text.rpartition(":") if section == "policy" else (text, "", "")
        if file and Path(file).is_file():
            changed = dataclasses.replace(inner, **{key: f"{Path(file).resolve()}{colon}{name}"})
            config = dataclasses.replace(config, **{section: changed})
    return config


def _file_or_shape(node: Node) -> str:
    """A distribution as it stands, or a file's absolute path."""
    text = node.convert(Text)
    name, colon, _ = text.partition(":")
    return text if colon and name in SHAPES else str(node.path())


def _own_code(text: str, node: Node) -> str:
    """A name as it stands, or ``file.py:Name`` with the file's absolute path."""
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py"):
        return text
    return f"{Node(node.file, node.place, file).path()}:{name}"


def _excluded(node: Node, grid: Grid) -> tuple[Mapping[str, tuple[Any, ...]], ...]:
    if not isinstance(node.value, list):
        node.fail("a list of combinations, such as '- {workload: NAME, hosts: NAME}'")
    known = {
        "workload": list(grid.workloads),
        "hosts": list(grid.hosts),
        "policy": list(grid.policies),
    }
    return tuple(_combination(one, known) for one in node)


def _combination(node: Node, known: Mapping[str, list[str]]) -> Mapping[str, tuple[Any, ...]]:
    node.convert(checked.Axes)
    if not node.value:
        node.fail(f"at least one of {', '.join(known)}")
    return {axis: tuple(one.choice(known[axis]) for one in _each(node.child(axis))) for axis in node.value}


def _each(node: Node) -> Iterator[Node]:
    if isinstance(node.value, list):
        if not node.value:
            node.fail("at least one name: nothing is left out by none")
        return iter(node)
    return iter([node])
