"""Finds the programs a lab starts, or has them built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slacktide.lab.building import SOURCES, build, cached
from slacktide.lab.errors import LabError

NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok")
"""Without these there is no lab; kube-scheduler and kubectl are optional."""

OLDEST_ETCD = (3, 5, 13)
"""Earlier ones cannot tell how far a watch has come; KWOK then lists everything again and again, seconds late."""


def _silent(_text: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where each program is."""

    paths: Mapping[str, Path]

    @classmethod
    def find(
        cls,
        programs: Sequence[str] = NEEDED,
        *,
        directory: Path | None = None,
        say: Callable[[str], None] = _silent,
    ) -> Binaries:
        """Looks for each program in ``directory``, $SLACKTIDE_LAB_BIN, $KUBEBUILDER_ASSETS, on the PATH (in a
        version that fits) and in the cache; what is found nowhere is built there.

        Raises:
            LabError: if something can neither be found nor built, or ``directory`` is none.
        """
        unknown = [program for program in programs if program not in SOURCES]
        if unknown:
            raise LabError(f"{unknown[0]!r} is no program of the lab; expected one of {', '.join(SOURCES)}")
        if directory is not None and not directory.is_dir():
            raise LabError(f"--bin {directory}: is no directory; expected one that holds {', '.join(programs)}")
        found = {program: find(program, directory) for program in programs}
        build([program for program, path in found.items() if path is None], say)
        return cls({program: path or cached(program) for program, path in found.items()})

    def __getitem__(self, program: str) -> Path:
        try:
            return self.paths[program]
        except KeyError:
            raise LabError(f"{program} was not asked for; have {', '.join(self.paths)}") from None


def find(program: str, directory: Path | None = None) -> Path | None:
    """The program's path, or None; directories that a user names are trusted, a PATH's versions are looked at."""
    variables = map(os.environ.get, ("SLACKTIDE_LAB_BIN", "KUBEBUILDER_ASSETS"))
    named = [directory, *(Path(value) for value in variables if value)]
    for folder in named:
        if folder is not None and os.access(folder / program, os.X_OK):
            return (folder / program).absolute()
    on_path = shutil.which(program)
    if on_path and _fits(program, on_path):
        return Path(on_path).absolute()
    return cached(program) if cached(program).exists() else None


def _fits(program: str, path: str) -> bool:
    if program == "kubectl":  # for people's eyes only: any will do
        return True
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    if found is None:
        return False
    if program == "etcd":
        return tuple(map(int, found.groups())) >= OLDEST_ETCD
    return f"{found[1]}.{found[2]}" == SOURCES[program].minor
