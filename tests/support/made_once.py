"""What takes long to make, once for all workers of a test run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from slacktide.lab.processes import locked


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder ``name``, which ``make`` fills. The first one that asks makes it; others wait until it is complete.

    pytest keeps a fixture for each worker, and so makes it in each; tests only read what is in this folder.
    """
    base = factory.getbasetemp()
    if base.name.startswith("popen-"):  # a worker's own, in that of the run
        base = base.parent
    folder, complete = base / name, base / f"{name}.complete"
    with locked(base / f"{name}.lock"):
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder
