"""CPU quotas by control groups, version 2 (``cpu.max``) or 1 (``cpu.cfs_quota_us``), whichever the machine has."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from slacktide.errors import ConfigError

PERIOD = 20_000
"""Microseconds; short, so that a group's turns are short beside a run."""
LEAST = 1_000
"""Microseconds in each period, the least that the kernel takes."""
HEAVY = {1: ("cpu.shares", "10240"), 2: ("cpu.weight", "1000")}
"""Ten times a group's usual weight: the quotas decide, not what else runs on the machine."""
REMOVE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where control groups for CPU are, and of which version."""

    root: Path
    version: int


def hierarchy(mounts: str) -> Hierarchy:
    """The one of these mounts (text of ``/proc/mounts``) that has the CPU controller; raises ConfigError if none."""
    for line in mounts.splitlines():
        _, place, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpu" in options.split(","):
            return Hierarchy(Path(place), 1)
        controllers = Path(place) / "cgroup.controllers"
        if kind == "cgroup2" and controllers.is_file() and "cpu" in controllers.read_text().split():
            return Hierarchy(Path(place), 2)
    raise ConfigError("no control group with the CPU controller is mounted (cgroup version 1 or 2): no quotas")


class Quotas:
    """A tree of groups below one of its own, all removed at the end; a context manager.

    Groups are named by words, ``("n1",)`` or ``("n1", "101")``; their quotas are cores. Raises ConfigError where
    groups cannot be made.
    """

    def __init__(self, name: str) -> None:
        self._found = hierarchy(Path("/proc/mounts").read_text())
        self.folder = self._found.root / name
        self._made: list[Path] = []

    def __enter__(self) -> Quotas:
        try:
            if self._found.version == 2:
                self._delegate(self._found.root)
            self._make(self.folder)
            (self.folder / HEAVY[self._found.version][0]).write_text(HEAVY[self._found.version][1])
        except OSError as error:
            self.__exit__(None, None, None)
            raise ConfigError(f"{self._found.root}: CPU quotas cannot be set here: {error}") from error
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.remove()

    def group(self, *words: str, cores: float) -> None:
        """A group with a quota; that of a group within must not be more than its parent's."""
        folder = self.folder.joinpath(*words)
        try:
            if self._found.version == 2:
                self._delegate(folder.parent)
            self._make(folder)
            quota = max(round(cores * PERIOD), LEAST)
            if self._found.version == 2:
                (folder / "cpu.max").write_text(f"{quota} {PERIOD}")
            else:
                (folder / "cpu.cfs_period_us").write_text(str(PERIOD))
                (folder / "cpu.cfs_quota_us").write_text(str(quota))
        except OSError as error:
            raise ConfigError(f"{folder}: no quota of {cores:g} cores: {error}") from error

    def move(self, process: int, *words: str) -> None:
        """Put a process, which has not begun to work, into a group."""
        (self.folder.joinpath(*words) / "cgroup.procs").write_text(str(process))

    def remove(self, *words: str) -> None:
        """Remove a group and all in it; their processes have ended."""
        folder = self.folder.joinpath(*words)
        for made in reversed([one for one in self._made if one == folder or folder in one.parents]):
            end = time.monotonic() + REMOVE_SECONDS
            while made.exists():
                try:
                    made.rmdir()
                except OSError:  # the kernel lets go of an ended process a little later
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.05)
            self._made.remove(made)

    def _make(self, folder: Path) -> None:
        self._made.append(folder)  # first: an interrupt may come between
        folder.mkdir()

    @staticmethod
    def _delegate(folder: Path) -> None:
        control = folder / "cgroup.subtree_control"
        if "cpu" not in control.read_text().split():
            control.write_text("+cpu")


def why_not(name: str) -> str:
    """Why there can be no quotas here, tried with a group of this name; empty where there can be."""
    try:
        with Quotas(name) as quotas:
            quotas.group("probe", cores=1.0)
    except (ConfigError, OSError) as error:
        return str(error)
    return ""


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))
