"""A folder of results, which is there whole or not at all, and its manifest."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import hashlib
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from slacktide import __version__
from slacktide.errors import OutputError, fail

AT_FDCWD = -100
RENAME_EXCHANGE = 2


def check_target(target: Path, ours: frozenset[str]) -> Path:
    """The absolute path of ``target`` where results may be put: free, empty, or holding nothing but ``ours``.

    Called before a run, too, so that a mistake costs no time. Raises :class:`OutputError` naming what is
    in the way.
    """
    target = target.resolve()
    try:
        if target == Path.cwd() or target in Path.cwd().parents:
            raise OutputError(f"{target}: the directory you are in; name one that can be replaced")
        if target.exists():
            if not target.is_dir():
                raise OutputError(f"{target}: a file; expected a new directory, or one with earlier results")
            foreign = sorted(entry.name for entry in target.iterdir() if entry.name not in ours)
            if foreign:
                raise OutputError(
                    f"{target}: holds {foreign[0]!r}, which is not a result of slacktide; expected a new directory, "
                    "or one with nothing but earlier results, which would be replaced"
                )
        above = next(one for one in target.parents if one.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise OutputError(f"{target}: no permission to create it in {above}")
    except OSError as error:
        raise OutputError(f"{target}: {error.strerror}") from error
    return target


@contextlib.contextmanager
def replaced_directory(target: Path, ours: frozenset[str]) -> Iterator[Path]:
    """Yields an empty directory to write into; when the block ends well it becomes ``target``.

    Raises :class:`OutputError` as :func:`check_target`, and for whatever the file system refuses.
    """
    target = check_target(target, ours)
    aside = target.with_name(f".{target.name}.partial-{socket.gethostname()}-{_begun(os.getpid())}-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        clear_abandoned(target.parent, glob.escape(target.name))
        aside.mkdir()
        yield aside
        for written in aside.iterdir():
            with written.open("rb") as file:
                os.fsync(file.fileno())
        _take_place(aside, check_target(target, ours))
    except OSError as error:
        raise OutputError(f"{target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def clear_abandoned(folder: Path, target: str = "*") -> None:
    """Removes from ``folder`` what runs on this machine that are no more had begun, for targets of these names."""
    for entry in folder.glob(f".{target}.partial-{socket.gethostname()}-*"):
        *_, begun, number = entry.name.split("-")
        if _is_abandoned(begun, number):
            shutil.rmtree(entry, ignore_errors=True)


def _is_abandoned(begun: str, number: str) -> bool:
    """Whether the process of this number, begun then, is no more; another one may have its number by now.

    One that has ended and was not waited for yet still has its number, and is no more.
    """
    if not number.isdecimal():
        return False
    return not _alive(int(number)) or begun != _begun(int(number))


def _begun(process: int) -> str:
    """When a process began, in the clock ticks since the system did (Linux), by which those of one number differ.

    Empty where it is no more, 0 where the system does not say.
    """
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # ProcessLookupError: it ended meanwhile
        return "" if Path("/proc/self/stat").exists() else "0"
    state, *values = text.rpartition(")")[2].split()  # before it stands the name, which may hold anything
    return "" if state in "ZX" else values[18]


def _alive(process: int) -> bool:
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _take_place(aside: Path, target: Path) -> None:
    """``aside`` becomes ``target``; what stood there is what remains at ``aside``."""
    if not target.exists() or not any(target.iterdir()):
        aside.replace(target)
    elif not _exchange(aside, target):
        # Two steps where the system cannot exchange; the earlier results are whole between them, under `old`.
        old = target.with_name(f"{aside.name}.old")
        target.rename(old)
        aside.rename(target)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swaps two directories in one step; ``False`` where system or file system cannot (Linux only)."""
    if not sys.platform.startswith("linux"):
        return False
    rename: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    return rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0


FORMAT = "slacktide-results"
SCHEMA_VERSION = 2
"""Counts up when a column or key of the results changes its meaning or type, or goes."""
LIBRARIES = ("numpy", "pyarrow")


def libraries() -> dict[str, str]:
    """What a run was computed with: versions, and which kernels."""
    from slacktide.kernels.runtime.compiling import described  # what runs nothing does without kernels

    return {name: metadata.version(name) for name in LIBRARIES} | {"kernels": described()}


def manifest(
    configuration: Mapping[str, Any], inputs: Mapping[str, str], command: Sequence[str], totals: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of ``manifest.json``.

    ``configuration`` are all settings (they contain the seed), ``inputs`` the SHA-256 of each input file,
    ``command`` the words of the command line. It holds no clock time and no place where it was written, so
    that equal runs leave equal manifests. It can itself be given as a settings file.
    """
    return {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "slacktide": __version__,
        "python": platform.python_version(),
        "libraries": libraries(),
        "machine": f"{platform.system()} {platform.machine()}",
        "command": list(command),
        "seed": configuration["simulation"]["seed"],
        "configuration": dict(configuration),
        "inputs": dict(inputs),
        "totals": dict(totals),
    }


def file_hashes(paths: Sequence[Path]) -> dict[str, str]:
    """SHA-256 of each file's content, by its path as given. Raises :class:`InputError` for an unreadable one."""
    found = {}
    for path in paths:
        try:
            with path.open("rb") as file:
                found[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise fail(path, f"a readable file ({error.strerror})") from error
    return found
