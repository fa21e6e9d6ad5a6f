"""An experiment from its grid to its results: what is done already stays, what fails is noted, the rest goes on."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import slacktide
from slacktide import settings
from slacktide.config import Config
from slacktide.errors import ConfigError, OutputError, remedy
from slacktide.experiment import keys
from slacktide.experiment.grid import Grid, Point
from slacktide.experiment.prepare import Inputs, about, classes_of
from slacktide.experiment.run import Outcome, Task
from slacktide.experiment.run_folder import files_in
from slacktide.experiment.store import Store
from slacktide.results import experiment as names
from slacktide.results.directory import libraries


class Executor(Protocol):
    """Whoever carries out tasks: processes here, or a cluster."""

    def carry_out(
        self, tasks: Sequence[Task], told: Callable[[Outcome], None], tick: Callable[[], None] = ...
    ) -> None: ...


class Watcher(Protocol):
    """Whoever is told how far it is."""

    def announce(self, text: str) -> None:
        """Something takes a while."""

    def expect(self, later: Sequence[Point]) -> None:
        """Runs that are likely to follow those that begin next."""

    def begin(self, todo: Sequence[Point], done: int) -> None:
        """Runs begin: those to come, and how many there were."""

    def told(self, point: Point, outcome: Outcome) -> None:
        """A run has ended."""

    def tick(self) -> None:
        """Some time has passed."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A run of the grid and its key."""

    key: str
    point: Point


def listed(grid: Grid) -> list[Listed]:
    """All runs with their keys, in the grid's order. Raises :class:`InputError` for files that cannot be read."""
    points = grid.points()
    return [Listed(key, point) for key, point in zip(keys.run_keys(grid, points), points, strict=True)]


def describe(store: Store, grid: Grid, runs: Sequence[Listed], command: Sequence[str], text: str | None) -> None:
    """Write experiment.json, and ``text`` as grid.yaml; None: there is no such file. Raises :class:`OutputError`."""
    versions = {"slacktide": slacktide.__version__, "python": platform.python_version(), **libraries()}
    if text is None:
        store.remove(names.GRID)
    else:
        store.write(names.GRID, text)
    store.write_json(
        names.ABOUT,
        {
            "format": names.FORMAT,
            "schema_version": names.SCHEMA_VERSION,
            "created": store.created(),
            "command": list(command),
            "versions": versions,
            "code": keys.code(),
            "grid": resolved(grid),
            "runs": [{"key": one.key, **asdict(one.point)} for one in runs],
        },
    )


def resolved(grid: Grid) -> dict[str, Any]:
    """The grid as plain values: where everything comes from, and all settings of every policy."""
    return {
        "title": grid.title,
        "workloads": {
            name: {
                **_origin(one.origin, grid),
                "grouping": None if one.grouping is None else dict(one.grouping),
                "startup": dict(one.startup),
                "end": grid.end if one.end is None else one.end,
                "seeds": list(grid.seeds_of(name)),
                "input": keys.input_key("workload", one.origin, grid),
                **({"drawn": {seed: _origin(each, grid) for seed, each in one.drawn.items()}} if one.drawn else {}),
            }
            for name, one in grid.workloads.items()
        },
        "hosts": {
            name: {**_origin(one, grid), "input": keys.input_key("hosts", one, grid)}
            for name, one in grid.hosts.items()
        },
        "policies": {
            name: {"preset": one.preset, "policy": one.config.policy.name, "settings": settings.to_mapping(one.config)}
            | ({"swept": dict(one.swept)} if one.swept else {})
            for name, one in grid.policies.items()
        },
        "seeds": list(grid.seeds) if isinstance(grid.seeds, tuple) else grid.seeds,
        "base_seed": grid.base_seed,
        "end": grid.end,
        "intervals": grid.intervals,
        "passes": grid.passes,
        "exclude": [{axis: list(values) for axis, values in one.items()} for one in grid.excluded],
    }


def _origin(origin: Any, grid: Grid) -> dict[str, Any]:
    """As the grid file would say it."""
    words = {"path": "file", "parameters": "with"}
    if type(origin).__name__ == "Peak":
        words = {"workload": "peak_of", "hosts": "from"}
    found = {words.get(key, key): value for key, value in asdict(origin).items()}
    if "file" in found:
        found = {"file": str(found["file"]), "sha256": keys.recipe(origin, grid)["file"]}
    return found


def conduct(
    grid: Grid, runs: Sequence[Listed], store: Store, executor: Executor, watcher: Watcher
) -> list[tuple[Point, Outcome]]:
    """Carry out the runs that have no results yet; those that failed, in the order in which they did.

    Failed ones of an earlier time are tried again. Raises InputError for a workload or hosts that cannot be used, and
    :class:`OutputError` where results cannot be written: every other run would end so, too.
    """
    first: dict[str, Point] = {}
    for one in runs:
        first.setdefault(one.key, one.point)
    todo = {key: point for key, point in first.items() if not store.has(key)}
    failures: list[tuple[Point, Outcome]] = []
    if not todo:
        return failures
    inputs = Inputs(grid, store.inputs, watcher.announce)
    tasks = _tasks(store, inputs, todo)

    def told(outcome: Outcome) -> None:
        point = todo[outcome.key]
        if outcome.kind == OutputError.__name__:
            raise OutputError(outcome.error)
        store.note(outcome, {"workload": point.workload, "hosts": point.hosts, "policy": point.policy})
        if outcome.error is not None:
            failures.append((point, outcome))
        watcher.told(point, outcome)

    watcher.begin(list(todo.values()), len(first) - len(todo))
    executor.carry_out(tasks, told, watcher.tick)
    return failures


def _tasks(store: Store, inputs: Inputs, todo: Mapping[str, Point]) -> list[Task]:
    """Runs in words, those first that take longest; their inputs are there when this returns."""
    drawn = dict.fromkeys((one.workload, one.seed) for one in todo.values())
    workloads = {(name, seed): inputs.workload(name, seed) for name, seed in drawn}
    hosts = {name: inputs.hosts(name) for name in dict.fromkeys(one.hosts for one in todo.values())}
    chosen: dict[tuple[Path, str], tuple[Mapping[str, Any], Mapping[str, str]]] = {}
    tasks = []
    for key, point in todo.items():
        workload = workloads[point.workload, point.seed]
        pair = (workload, point.policy)
        if pair not in chosen:
            config = inputs.grid.config_of(point)
            if config.simulation.end is None and about(workload)["endless"]:
                raise ConfigError(
                    f"workload {point.workload}: end: found none, expected when to stop, because some requests never "
                    "complete: add " + remedy("'end: 1h' to the grid", 'end="1h"')
                )
            chosen[pair] = _configuration(config, workload)
        configuration, files = chosen[pair]
        tasks.append(
            Task(
                key=key,
                root=str(store.folder),
                workload=str(workload),
                hosts=str(hosts[point.hosts]),
                grouping=inputs.grid.workloads[point.workload].grouping,
                configuration=configuration,
                seed=point.seed,
                intervals=inputs.grid.intervals,
                passes=inputs.grid.passes,
                files=files,
                code=keys.code(),
            )
        )
    # Requests for each unit of CPU: runs where many share little take longest, and the last one should be short.
    instances = {str(path): float(about(path)["instances"]) for path in workloads.values()}
    cores = {str(path): max(float(about(path)["capacity"]["cpu"]), 1e-9) for path in hosts.values()}
    tasks.sort(key=lambda one: instances[one.workload] / cores[one.hosts], reverse=True)  # stable: equal inputs stay
    return tasks


def _configuration(config: Config, workload: Path) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """All settings of runs on a prepared workload, and the content of every file they name."""
    classes = classes_of(workload, config.classes)
    files = {str(path): keys.content(path) for path in files_in(config)}
    return settings.to_mapping(replace(config, classes=classes)), files
