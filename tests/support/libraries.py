"""The library of compiled kernels, for tests that need one, and programs without Numba."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import slacktide
from slacktide import kernels
from slacktide.kernels.runtime import library

PACKAGE = Path(slacktide.__file__).parent
WITHOUT_NUMBA = "import sys; sys.modules.update(dict.fromkeys(('numba', 'llvmlite'))); "
"""Before a program: it finds neither, as where they are not installed."""
COMMAND = WITHOUT_NUMBA + "import sys; from slacktide.cli import main; sys.exit(main(sys.argv[1:]))"
"""The command line, without Numba."""


def missing() -> str:
    """Why there is no library for these sources; an error where there must be one (``SLACKTIDE_REQUIRE_LIBRARY=1``)."""
    reason = library.obstacle()
    if reason and os.environ.get("SLACKTIDE_REQUIRE_LIBRARY") == "1":
        raise RuntimeError(f"{reason}, but SLACKTIDE_REQUIRE_LIBRARY=1")
    return reason


needs_library = pytest.mark.skipif(bool(missing()), reason=f"{missing()}: run 'make library'")


_LOWERED = """
import sys
from slacktide.kernels.ahead_of_time.building import bitcode
sys.stdout.buffer.write(bitcode())
"""


def bitcode() -> bytes:
    """All kernels as one LLVM module, lowered in a process of their own, or kept from the last time."""
    done = subprocess.run([sys.executable, "-c", _LOWERED], env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def import_every_kernel() -> None:
    """So that each is registered."""
    for module in pkgutil.walk_packages(kernels.__path__, "slacktide.kernels."):
        if "ahead_of_time" not in module.name:
            importlib.import_module(module.name)


def environment(**more: str) -> dict[str, str]:
    """That of this process for another one, which chooses anew how its kernels run."""
    chosen = ("SLACKTIDE_JIT", "SLACKTIDE_CPU", "NUMBA_DISABLE_JIT")
    kept = {name: value for name, value in os.environ.items() if name not in chosen}
    return kept | {"PYTHONPATH": os.pathsep.join(sys.path)} | more


def run(program: str, *words: str | Path, path: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """What a Python program said, which never fails; with the slacktide of folder ``path`` where that is given."""
    given = environment(**more)
    if path is not None:
        given["PYTHONPATH"] = os.pathsep.join([str(path), given["PYTHONPATH"]])
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


def copied(folder: Path) -> Path:
    """A copy of the package in this folder, library and all, to be changed."""
    shutil.copytree(PACKAGE, folder / "slacktide", ignore=shutil.ignore_patterns("__pycache__"))
    return folder
