"""An experiment's folder: the runs of one grid, each a folder as of ``slacktide simulate --out`` (docs/experiments.md).

::

    experiment.json       what was asked for, when it was begun, and the key of every run
    grid.yaml             the grid file as it was given
    inputs/               prepared workloads and host sets, under the hash of what they are made from
    runs/KEY/             a run's results: whole, or not there
    failures/KEY.json     why a run has none
    times.jsonl           how long runs took on this machine

Here it is read; it is written by ``slacktide.experiment``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slacktide.errors import fail
from slacktide.results.directory import FORMAT as RESULTS
from slacktide.results.directory import SCHEMA_VERSION as RESULTS_VERSION

FORMAT = "slacktide-experiment"
SCHEMA_VERSION = 1
"""Counts up when a key of experiment.json, or what determines a run's key, changes its meaning."""
ABOUT, GRID, INPUTS, RUNS, FAILURES, TIMES = (
    "experiment.json",
    "grid.yaml",
    "inputs",
    "runs",
    "failures",
    "times.jsonl",
)


MANIFEST = "manifest.json"
"""What says of a folder that it is a run's results."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the grid: where it stands in it (names as given there) and what came of it.

    key      SHA-256, in hexadecimal, of everything that determines the outcome
    seed     ``simulation.seed`` of the run
    folder   its results; None: there are none yet
    error    why it failed; None: it did not
    """

    key: str
    workload: str
    hosts: str
    policy: str
    seed: int
    folder: Path | None
    error: str | None

    def requests(self) -> Any:
        """The table requests.parquet (docs/results.md). Raises :class:`InputError`, as the others, if it is missing."""
        return self.table("requests.parquet")

    def intervals(self) -> Any:
        """The table intervals.parquet, a row per interval and class."""
        return self.table("intervals.parquet")

    def progress(self) -> Any:
        """The table progress.parquet, a row per interval."""
        return self.table("progress.parquet")

    def manifest(self) -> dict[str, Any]:
        """Versions, settings, inputs and totals of the run."""
        path = self._path("manifest.json")
        return _mapping(path, "what slacktide writes beside the tables of a run")

    def _path(self, name: str) -> Path:
        if self.folder is None:
            missing = f"runs/{self.key}"
            raise fail(Path(missing), f"the results of {self}: resume with 'slacktide experiment run'")
        return self.folder / name

    def table(self, name: str) -> Any:
        """One by the name of its file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._path(name)
        try:
            return pq.ParquetFile(path).read()  # read_table() is for data sets, whose module imports pandas
        except (OSError, pa.ArrowException) as error:
            raise fail(path, f"a table of results ({error})") from error

    def __str__(self) -> str:
        return f"{self.workload} / {self.hosts} / {self.policy} / seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Experiment:
    """A grid and its runs, in the grid's order: workloads, within them hosts, seeds, policies.

    created  when it was begun (ISO 8601, UTC); None: by a slacktide that did not note it
    """

    folder: Path
    grid: Mapping[str, Any]
    runs: list[Run]
    command: list[str]
    versions: Mapping[str, str]
    created: str | None = None

    @property
    def done(self) -> list[Run]:
        """Runs that have results."""
        return [run for run in self.runs if run.folder is not None]


def read(folder: Path | str) -> Experiment:
    """The experiment in ``folder``, complete or not.

    Raises :class:`InputError` for a folder that holds none, or one of another version.
    """
    folder = Path(folder)
    path = folder / ABOUT
    about = _mapping(path, "an experiment's folder, as 'slacktide experiment run GRID --out DIR' makes it")
    found = (about.get("format"), about.get("schema_version"))
    if found != (FORMAT, SCHEMA_VERSION):
        raise fail(path, f"format {FORMAT}, schema_version {SCHEMA_VERSION}", value=f"{found[0]}, {found[1]}")
    try:
        runs = [
            _run(folder, **{name: one[name] for name in ("key", "workload", "hosts", "policy", "seed")})
            for one in about["runs"]
        ]
        grid, versions = dict(about["grid"]), dict(about["versions"])
        created = about.get("created")
        began = None if created is None else str(created)
        return Experiment(folder, grid, runs, [str(one) for one in about["command"]], versions, began)
    except (KeyError, TypeError, ValueError) as error:
        raise fail(path, f"what 'slacktide experiment run' writes ({type(error).__name__}: {error})") from error


def read_or_run(folder: Path | str) -> Experiment:
    """The experiment in ``folder``, or the one run that ``slacktide simulate --out`` left there as one.

    Its workload and hosts are called as their files. Raises :class:`InputError` for a folder that holds neither.
    """
    folder = Path(folder)
    if (folder / ABOUT).is_file() or not (folder / MANIFEST).is_file():
        return read(folder)
    path = folder / MANIFEST
    about = _mapping(path, "what 'slacktide simulate --out' writes")
    found = (about.get("format"), about.get("schema_version"))
    if found != (RESULTS, RESULTS_VERSION):
        raise fail(path, f"format {RESULTS}, schema_version {RESULTS_VERSION}", value=f"{found[0]}, {found[1]}")
    try:
        policy, files = str(about["configuration"]["policy"]["name"]), [Path(one).name for one in about["inputs"]]
        workload, hosts = files[:2] if len(files) > 1 else ("workload", "hosts")
        known = json.dumps([about["inputs"], about["configuration"], about["slacktide"]], sort_keys=True)
        key = hashlib.sha256(known.encode()).hexdigest()
        versions = {"slacktide": str(about["slacktide"]), "python": str(about["python"]), **about["libraries"]}
        run = Run(key, workload, hosts, policy, int(about["seed"]), folder, None)
        return Experiment(folder, {}, [run], [str(one) for one in about["command"]], versions)
    except (KeyError, TypeError, ValueError) as error:
        raise fail(path, f"what 'slacktide simulate --out' writes ({type(error).__name__}: {error})") from error


def _run(folder: Path, key: str, workload: str, hosts: str, policy: str, seed: int) -> Run:
    results = folder / RUNS / key
    failure = folder / FAILURES / f"{key}.json"
    there = (results / "manifest.json").is_file()
    error = None
    if not there and failure.is_file():
        error = str(_mapping(failure, "what 'slacktide experiment run' writes").get("error"))
    return Run(key, workload, hosts, policy, seed, results if there else None, error)


def _mapping(path: Path, expected: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise fail(path, f"{expected} ({error.strerror})") from error
    except ValueError as error:
        raise fail(path, f"{expected} (not JSON: {error})") from error
    if not isinstance(found, dict):
        raise fail(path, expected)
    return found
