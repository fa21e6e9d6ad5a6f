"""The folder of an experiment, as the one who conducts it sees it: one at a time, every file whole or not there.

What it holds also tells how long runs will take.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from slacktide.errors import OutputError
from slacktide.experiment import keys
from slacktide.experiment.grid import FromFile, Grid, Point
from slacktide.experiment.prepare import ABOUT, about
from slacktide.experiment.run import Outcome
from slacktide.results import experiment as names
from slacktide.results.directory import clear_abandoned
from slacktide.whole_file import PART, write_whole

LOCK = ".lock"
PROBE = ".probe-"
"""Begins the name of a file that a cluster has to see."""
HAVING = frozenset({names.ABOUT, names.GRID, names.INPUTS, names.RUNS, names.FAILURES, names.TIMES, LOCK})


class Store:
    """``folder`` and what is in it; made by :func:`opened`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def inputs(self) -> Path:
        return self.folder / names.INPUTS

    def has(self, key: str) -> bool:
        """Whether the run is done."""
        return (self.folder / names.RUNS / key / "manifest.json").is_file()

    def write(self, name: str, content: str | bytes) -> None:
        """A file, whole or as it was. Raises :class:`OutputError`."""
        write_whole(self.folder / name, content)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """As :meth:`write`."""
        self.write(name, json.dumps(value, indent=2, allow_nan=False) + "\n")

    def remove(self, name: str) -> None:
        """Have no such file. Raises :class:`OutputError`."""
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{self.folder / name}: cannot be removed: {error.strerror or error}") from error

    def created(self) -> str:
        """When the experiment was begun (ISO 8601, UTC): what experiment.json says, else now."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            said = str(json.loads((self.folder / names.ABOUT).read_text(encoding="utf-8"))["created"])
            datetime.fromisoformat(said)
            return said
        return datetime.now(UTC).isoformat(timespec="seconds")

    def note(self, outcome: Outcome, about: Mapping[str, Any]) -> None:
        """Keep what came of a run: its time for estimates, or its error. Raises :class:`OutputError`."""
        failure = self.folder / names.FAILURES / f"{outcome.key}.json"
        if outcome.error is not None:
            told = {"key": outcome.key, "error": outcome.error, "kind": outcome.kind}
            self.write_json(f"{names.FAILURES}/{outcome.key}.json", told)
            return
        line = json.dumps({"key": outcome.key, "seconds": round(outcome.seconds, 3), **about}) + "\n"
        try:
            failure.unlink(missing_ok=True)
            with (self.folder / names.TIMES).open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be written: {error.strerror or error}") from error

    def times(self) -> list[dict[str, Any]]:
        """What :meth:`note` kept of earlier runs; a line that a kill cut short is passed over."""
        try:
            lines = (self.folder / names.TIMES).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [one for one in found if isinstance(one, dict) and _is_time(one.get("seconds"))]


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and 0.0 <= value < math.inf


def check_folder(folder: Path) -> Path:
    """The absolute path of a folder that is new, empty or an experiment's.

    Raises :class:`OutputError` for one that holds anything else, or that cannot be written.
    """
    folder = folder.absolute()
    try:
        if folder.exists():
            if not folder.is_dir():
                raise OutputError(f"{folder}: a file; expected a new directory, or one with an experiment")
            foreign = sorted(one.name for one in folder.iterdir() if one.name not in HAVING and not _is_leftover(one))
            if foreign and not (folder / names.ABOUT).is_file():
                raise OutputError(
                    f"{folder}: holds {foreign[0]!r} and no experiment; expected a new directory, or one with an "
                    "experiment to go on with"
                )
        above = next(one for one in (folder, *folder.parents) if one.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise OutputError(f"{folder}: no permission to write in {above}")
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from error
    return folder


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Store]:
    """The store in ``folder``, for this process alone. Raises :class:`OutputError`.

    What fails before it is known what is to be run leaves no folder behind that was not there.
    """
    folder = check_folder(folder)
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        for name in (names.INPUTS, names.RUNS, names.FAILURES):
            (folder / name).mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            raise OutputError(f"{folder}: {lock.read().strip() or 'another process'} is at work there") from error
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        lock.flush()
        _clear(folder)
        try:
            yield Store(folder)
        except Exception:
            if new and not (folder / names.ABOUT).is_file():
                _remove(folder, new)
            raise


def _remove(folder: Path, new: Iterable[Path]) -> None:
    """Removes the folder, and those above it that were made for it."""
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
        for one in new:
            if one != folder:
                one.rmdir()


def _is_leftover(path: Path) -> bool:
    """Whether a kill left it: what was to become a file of ours, or to try whether a cluster sees the folder."""
    return path.name.startswith(PROBE) or (path.name.startswith(".") and path.name.endswith(PART))


def _clear(folder: Path) -> None:
    """Removes what runs that were killed had begun."""
    for name in (names.INPUTS, names.RUNS):
        clear_abandoned(folder / name)
    for within in (folder, folder / names.FAILURES):
        for left in filter(_is_leftover, list(within.iterdir())):
            with contextlib.suppress(OSError):
                left.unlink()


class Estimates:
    """Seconds that a run takes, from earlier ones."""

    def __init__(self, times: Iterable[Mapping[str, Any]] = ()) -> None:
        self._sums: dict[tuple[str | None, ...], tuple[float, int]] = {}
        for one in times:
            workload, hosts, policy = (str(one.get(axis)) for axis in ("workload", "hosts", "policy"))
            self.add(workload, hosts, policy, float(one["seconds"]))

    def add(self, workload: str, hosts: str, policy: str, seconds: float) -> None:
        """A run has ended."""
        for alike in _alike(workload, hosts, policy):
            total, count = self._sums.get(alike, (0.0, 0))
            self._sums[alike] = (total + seconds, count + 1)

    def of(self, workload: str, hosts: str, policy: str) -> float | None:
        """The mean of the runs most alike; None where there are none."""
        for alike in _alike(workload, hosts, policy):
            if alike in self._sums:
                total, count = self._sums[alike]
                return total / count
        return None

    def __bool__(self) -> bool:
        return bool(self._sums)


def _alike(workload: str, hosts: str, policy: str) -> list[tuple[str | None, ...]]:
    """What a run shares with others, the most alike first."""
    return [(workload, hosts, policy), (workload, None, policy), (None, None, policy), (None, None, None)]


RATE = 10_000.0
"""Requests a second: about the middle of what policies and contention make of it (500 to 100,000)."""


class Expected:
    """Times of the runs of a grid whose folder is ``store``."""

    def __init__(self, store: Store, grid: Grid) -> None:
        self._store = store
        self._grid = grid
        self.known = Estimates(store.times())
        self._requests: dict[str, int | None] = {}

    def of(self, point: Point) -> float | None:
        """Seconds that a run takes, or None where nothing is known of it."""
        known = self.known.of(point.workload, point.hosts, point.policy)
        if known is not None:
            return known
        if point.workload not in self._requests:
            self._requests[point.workload] = self._count(point.workload)
        rows = self._requests[point.workload]
        return None if rows is None else rows / RATE

    def _count(self, workload: str) -> int | None:
        """About as many requests as the workload has, or None."""
        origin = self._grid.workloads[workload].origin
        prepared = self._store.inputs / keys.input_key("workload", origin, self._grid)
        if (prepared / ABOUT).is_file():
            return int(about(prepared)["instances"])
        if isinstance(origin, FromFile):
            return _rows(origin.path)
        return int(origin.parameters["requests"]) if "requests" in origin.parameters else None


def _rows(path: Path) -> int:
    """About as many as the file has."""
    if path.suffix.lower() == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return int(pq.ParquetFile(path).metadata.num_rows)
        except (OSError, pa.ArrowException):
            return 0
    with path.open("rb") as file:
        return sum(1 for _ in file)
