"""From object files to shared libraries, by a linker: Zig's where the package ``ziglang`` is installed, else cc."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from slacktide.errors import KernelError

GLIBC = "2.17"
"""The oldest C library that one linked by Zig can be loaded with (manylinux2014)."""
# No -lm: functions of libm differ in their last digits from one machine to the next, and kernels do without. What is
# left undefined, like a helper of Numba's own runtime, is an error.
FLAGS = ("-shared", "-Wl,--no-undefined", "-Wl,-z,noexecstack", "-Wl,-s")


class Linker(NamedTuple):
    """A command that links, and the tag of a platform whose machines surely have what it links against."""

    command: tuple[str, ...]
    tag: str


def linker_for(machine: str) -> Linker:
    """One that links for this machine (``x86_64``, ``aarch64``). Raises :class:`KernelError` where there is none."""
    if importlib.util.find_spec("ziglang") is not None:
        command = (sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.{GLIBC}")
        return Linker(command, f"manylinux_{GLIBC.replace('.', '_')}_{machine}")
    own = machine == platform.machine()
    names = ("cc", "gcc", "clang") if own else (f"{machine}-linux-gnu-gcc",)
    for name in names:
        if shutil.which(name):
            return Linker((name,), f"linux_{machine}")
    raise KernelError(
        f"no linker for {machine}: found neither the package ziglang nor {' nor '.join(names)}; install one, or set "
        "SLACKTIDE_PURE=1 to have a wheel without compiled kernels"
    )


def link(linker: Linker, objects: Path, library: Path) -> None:
    """Link an object file into a library. Raises :class:`KernelError` with what the linker said."""
    command = [*linker.command, *FLAGS, "-o", str(library), str(objects)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelError(f"{' '.join(command)}: {done.stderr.strip()}")
