"""Builds the wheel with its library of compiled kernels (``python -m slacktide.kernels.ahead_of_time``).

``SLACKTIDE_PURE=1`` leaves it out: then Numba compiles the kernels where the wheel is installed. So it is on systems
other than Linux on x86-64 and ARM. ``SLACKTIDE_PLATFORM=aarch64`` builds for another machine than this one. An
editable installation has none; ``make library`` adds it.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MACHINES = ("x86_64", "aarch64")


def _machine() -> str | None:
    """The machine whose library goes into the wheel, or None where none does."""
    machine = os.environ.get("SLACKTIDE_PLATFORM") or platform.machine()
    pure = os.environ.get("SLACKTIDE_PURE", "") not in ("", "0")
    return None if pure or platform.system() != "Linux" or machine not in MACHINES else machine


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the library into the wheel, and the platform that it is for into the wheel's name."""

    def dependencies(self) -> list[str]:
        """What a build of the wheel needs beside hatchling: nothing where it has no library."""
        return [] if _machine() is None else self.config["compiler"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is written."""
        machine = _machine()
        if version == "editable" or machine is None:
            return
        root = Path(self.root)
        folder = root / "build" / f"library-{machine}"  # not the package's own: a checkout would go on with it unasked
        command = [sys.executable, "-m", "slacktide.kernels.ahead_of_time", "--out", str(folder), "--platform", machine]
        # What the build needs may itself be found by PYTHONPATH: so pip isolates builds.
        path = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
        subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True)
        said = json.loads((folder / "kernels.json").read_bytes())
        for name in ["kernels.json", *said["levels"].values()]:
            build_data["force_include"][str(folder / name)] = f"slacktide/kernels/library/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{said['tag']}"
