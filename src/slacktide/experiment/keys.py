"""What determines an outcome, as one number: results are kept under it, so that equal work is never done twice."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

import numpy as np

import slacktide
from slacktide import settings
from slacktide.config import Config
from slacktide.errors import fail
from slacktide.experiment.grid import First, FromFile, Generated, Grid, Origin, Peak, Point, Share
from slacktide.experiment.run_folder import files_in
from slacktide.kernels.builtin import COSTS, DEFAULT, SCORES
from slacktide.results import experiment as folder
from slacktide.results.directory import SCHEMA_VERSION

SOURCES = ("model", "qos", "state", "kernels", "policy", "inputs", "sim", "results")
"""Packages whose code an outcome depends on."""
FILES = (
    *("config.py", "metrics/intervals.py"),
    *("experiment/run_folder.py", "experiment/run.py", "experiment/prepare.py"),
)
"""Modules outside of these packages."""
APART = frozenset({"results/experiment.py", "results/directory.py", "results/generated.py"})
"""Of these, what only reads or moves outcomes."""


@cache
def code() -> str:
    """SHA-256 over the sources that outcomes depend on, and the version of the library that does the arithmetic.

    Not how kernels were compiled, in a library or here, by which version of Numba, for which processor: they decide
    alike, to the bit (``tests/test_decision_hashes.py``). For a user's own score or cost nobody has tested that: see
    :func:`installed`.
    """
    digest = hashlib.sha256(f"numpy {np.__version__}".encode())
    root = Path(slacktide.__file__).parent
    files = [one for package in SOURCES for one in (root / package).rglob("*.py")]
    for source in sorted([*files, *(root / name for name in FILES if (root / name).exists())]):
        name = source.relative_to(root).as_posix()
        if name not in APART:
            digest.update(name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def digest(value: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal, of plain values; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _content(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content(path: Path) -> str:
    """SHA-256 of a file's content, read once unless the file changes. Raises :class:`InputError`."""
    try:
        about = path.stat()
        return _content(path, about.st_size, about.st_mtime_ns)
    except OSError as error:
        raise fail(path, f"a readable file ({error.strerror})") from error


def recipe(origin: Origin, grid: Grid) -> dict[str, Any]:
    """What a workload or host set is made from: contents, not names, so that renaming changes nothing."""
    match origin:
        case FromFile(path):
            return {"file": content(path), "format": path.suffix.lower()}
        case Generated():
            return {"generated": {**asdict(origin), "parameters": dict(origin.parameters)}}
        case Share(of, share, resource, seed):
            above = recipe(grid.hosts[of], grid)
            return {"share": share, "of": above, "resource": resource, "seed": seed}
        case Peak(workload, hosts, repeat, seed):
            peak_of = recipe(grid.workloads[workload].origin, grid)
            return {"peak_of": peak_of, "from": recipe(grid.hosts[hosts], grid), "repeat": repeat, "seed": seed}
        case First(of, count, before):
            named = {"before": list(before)} if before else {}
            return {"first": count, "of": recipe(grid.hosts[of], grid), **named}


def input_key(kind: str, origin: Origin, grid: Grid) -> str:
    """The name under which a prepared ``workload`` or ``hosts`` is kept."""
    return digest({"kind": kind, "code": code(), "recipe": recipe(origin, grid)})


def run_keys(grid: Grid, points: Sequence[Point]) -> list[str]:
    """For each run of ``grid`` the SHA-256 of everything that determines its outcome.

    Contents of the inputs and of every file that settings name (their places are of no account), how rows are
    grouped, all settings of the simulator with seed and end, the interval of tables over time, whether passes are
    kept, the code (also of a policy from an entry point), and the versions of what is written. Raises
    :class:`InputError` for a file that cannot be read.
    """
    written = [folder.SCHEMA_VERSION, SCHEMA_VERSION]
    common = digest({"schema": written, "code": code(), "intervals": grid.intervals, "passes": grid.passes})
    workloads: dict[Any, str] = {}  # a grid of very many runs has few of each
    hosts: dict[str, str] = {}
    chosen: dict[tuple[str, str, str], str] = {}
    found = []
    for point in points:
        entry = grid.workloads[point.workload]
        drawn = point.workload, point.seed if entry.drawn else None
        if drawn not in workloads:
            grouping = dict(entry.grouping) if entry.grouping else None
            workloads[drawn] = digest({"of": recipe(entry.origin_for(point.seed), grid), "grouping": grouping})
        if point.hosts not in hosts:
            hosts[point.hosts] = digest(recipe(grid.hosts[point.hosts], grid))
        cell = (point.workload, point.policy, point.hosts if grid.events else "")
        if cell not in chosen:
            chosen[cell] = _settings(grid.config_of(point))
        parts = [common, workloads[drawn], hosts[point.hosts], chosen[cell], str(point.seed)]
        found.append(hashlib.sha256(" ".join(parts).encode()).hexdigest())
    return found


def _settings(config: Config) -> str:
    """All settings of the simulator but the seed, as one number."""
    mapping = settings.to_mapping(replace(config, simulation=replace(config.simulation, seed=0)))
    del mapping["kube"]  # the live scheduler's
    replaced = {str(path): f"sha256:{content(path)}" for path in files_in(config)}
    return digest({"settings": _without_places(mapping, replaced), "installed": installed(config)})


def installed(config: Config) -> dict[str, str]:
    """Of a policy, score or cost from an entry point its package's version and its module's source (SHA-256).

    Where a score or cost is the user's own, also the version of Numba, which compiles it.
    """
    found = {}
    for key, kind in (("name", "policies"), ("score", "scores"), ("cost", "costs")):
        chosen = getattr(config.policy, key)
        for point in [] if ".py:" in chosen else entry_points(group=f"slacktide.{kind}", name=chosen):
            release = point.dist.version if point.dist is not None else "?"
            try:
                source = importlib.util.find_spec(point.module)
            except (ImportError, ValueError):  # the run that needs it says more
                source = None
            file = None if source is None or source.origin is None else Path(source.origin)
            found[key] = f"{release} {content(file) if file is not None and file.is_file() else '?'}"
    if config.policy.score not in (DEFAULT, *SCORES) or config.policy.cost not in (DEFAULT, *COSTS):
        found["numba"] = version("numba")
    return found


def _without_places(value: Any, replaced: Mapping[str, str]) -> Any:
    """Plain values in which a file's content stands for its path."""
    if isinstance(value, dict):
        return {key: _without_places(one, replaced) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_places(one, replaced) for one in value]
    if isinstance(value, str):
        file, colon, name = value.rpartition(":")
        return replaced.get(value) or (f"{replaced[file]}:{name}" if colon and file in replaced else value)
    return value
