"""From kernels to the library of a machine: all steps, and what is kept of them.

The linker is Zig's where the package ``ziglang`` is installed, else cc.
"""

from __future__ import annotations

import importlib.util
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from slacktide.errors import KernelError
from slacktide.kernels.runtime import mode
from slacktide.kernels.runtime.library import ABOUT, FORMAT, about, file_of
from slacktide.kernels.runtime.sources import cache_directory, fingerprint

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


def built(folder: Path, machine: str, levels: Collection[str]) -> bool:
    """Whether the folder has a library for these levels of a machine, made from these sources by the linker that is
    found now.

    Raises :class:`KernelError` where there is no linker.
    """
    said = about(folder)
    wanted = {"format": FORMAT, "fingerprint": fingerprint(), "machine": machine, "tag": linker_for(machine).tag}
    if said is None or not wanted.items() <= said.items() or not set(levels) <= said["levels"].keys():
        return False
    return all((folder / name).exists() for name in files(said))


def files(said: dict[str, Any]) -> list[str]:
    """What belongs to a library, by what ``kernels.json`` says."""
    return [ABOUT, *said["levels"].values()]


def bitcode() -> bytes:
    """All kernels as one LLVM module, not yet optimised, for any machine of 64 bits.

    Kept in the user's cache folder, as it is two thirds of the work. Raises :class:`SlacktideError`.
    """
    mode.choose(mode.Mode.BUILD)

    from slacktide.kernels.runtime.jit import COMPILER

    kept = cache_directory(COMPILER) / "kernels.bc"
    if not kept.exists():
        from slacktide.kernels.ahead_of_time.lowering import lowered

        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
            made = Path(scratch, kept.name)
            made.write_bytes(lowered())
            made.replace(kept)  # whole or not at all
    return kept.read_bytes()


def build(folder: Path, machine: str, levels: Collection[str]) -> None:
    """Make the library of these levels of a machine; ``kernels.json`` last. Raises :class:`SlacktideError`."""
    linker = linker_for(machine)  # before the work that would be for nothing without one
    module = bitcode()

    from slacktide.kernels.ahead_of_time.lowering import translated
    from slacktide.kernels.runtime.jit import COMPILER

    said: dict[str, Any] = {
        "format": FORMAT,
        "fingerprint": fingerprint(),
        "system": "Linux",
        "machine": machine,
        "levels": {level: file_of(level, fingerprint()) for level in levels},
        "tag": linker.tag,
        "compiler": COMPILER,
    }
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:  # each file is there whole or not at all
        for level in levels:
            made = Path(scratch, "kernels.o")
            made.write_bytes(translated(module, machine, level))
            library = Path(scratch, said["levels"][level])
            link(linker, made, library)
            library.replace(folder / library.name)
        described = Path(scratch, ABOUT)
        described.write_text(json.dumps(said, indent=1) + "\n")
        described.replace(folder / ABOUT)
    for old in set(folder.glob("kernels-*.so")) - {folder / name for name in files(said)}:
        old.unlink(missing_ok=True)
