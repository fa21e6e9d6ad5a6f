"""In which form kernels run in this process: as a library that came with the wheel, compiled here, or as plain Python.

=========  =============================================================================================
LIBRARY    the shared library of :mod:`slacktide.kernels.ahead_of_time`: where there is one for this processor
           and these very sources. Numba is not imported. ``SLACKTIDE_CPU`` asks for one level of processor.
JIT        compiled by Numba where it is needed, and kept in a cache: with ``SLACKTIDE_JIT=1``, and wherever
           there is no library, as after an edit of a kernel.
PLAIN      plain Python: with ``NUMBA_DISABLE_JIT=1``, for tests.
BUILD      compiled to be put into a library: only in the process that builds one.
=========  =============================================================================================

Decorators and views ask for it when they are imported, so it never changes in a process.
"""

from __future__ import annotations

import importlib.util
import os
from enum import Enum

from slacktide.errors import KernelError
from slacktide.kernels.runtime import library

INSTALL = "pip install 'slacktide[plugins]'"
"""What brings Numba."""


class Mode(Enum):
    """A form in which kernels run."""

    LIBRARY = "library"
    JIT = "jit"
    PLAIN = "plain"
    BUILD = "build"


_chosen: list[Mode] = []


def mode() -> Mode:
    """That of this process. Raises :class:`KernelError` where there is neither a library nor Numba."""
    if not _chosen:
        _chosen.append(_choose())
    return _chosen[0]


def choose(wanted: Mode) -> None:
    """Decide it before a kernel is imported: for the process that builds a library."""
    if _chosen and _chosen[0] is not wanted:
        raise RuntimeError(f"kernels have been imported before, as {_chosen[0].value}")
    _chosen[:] = [wanted]


def has_numba() -> bool:
    """Whether Numba is installed; does not import it."""
    return importlib.util.find_spec("numba") is not None


def _choose() -> Mode:
    if _flag("NUMBA_DISABLE_JIT"):
        return Mode.PLAIN
    asked = _flag("SLACKTIDE_JIT")
    why = "SLACKTIDE_JIT asks for compiling" if asked else library.obstacle()
    if why and not asked and (level := os.environ.get("SLACKTIDE_CPU")):
        raise KernelError(f"SLACKTIDE_CPU={level}: {why}; unset it")
    if not why:
        return Mode.LIBRARY
    if has_numba():
        return Mode.JIT
    hint = "unset SLACKTIDE_JIT, or " if asked and not library.obstacle() else ""
    raise KernelError(f"the kernels must be compiled here ({why}), and Numba is absent; {hint}{INSTALL}")


def _flag(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")
