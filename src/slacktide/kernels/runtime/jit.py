"""Kernels compiled in this process, by Numba: one place for its options. Importing this imports Numba."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
from numba.core import event, types

from slacktide.kernels.runtime.linking import inlined, named, pipeline
from slacktide.kernels.runtime.sources import cache_directory

COMPILER = f"numba {numba.__version__}, llvmlite {llvmlite.__version__}"

if "NUMBA_CACHE_DIR" not in os.environ:
    numba.config.CACHE_DIR = str(cache_directory(COMPILER))  # type: ignore[attr-defined]

OPTIONS: dict[str, Any] = {"fastmath": False, "error_model": "numpy"}


def part(function: Callable[..., object], **options: bool) -> Any:
    """What entries have inside: exact arithmetic, no bounds checks. Not callable from Python."""
    return _compile(inlined(function), no_cpython_wrapper=True, **options)


def for_python(function: Callable[..., object]) -> Any:
    """An entry: its machine code is kept between runs."""
    return _compile(function, cache=True)


def by_address(function: Callable[..., int]) -> Any:
    """A function of whole numbers, compiled now."""
    code = named(function).__code__
    signature = types.int64(*[types.int64] * code.co_argcount)
    make: Any = numba.cfunc
    with event.trigger_event("numba:compile", data={"dispatcher": function}):  # as Numba tells of other functions
        return make(signature, **OPTIONS, cache=True, pipeline_class=pipeline())(function)


def apart(function: Any) -> Any:
    """A function of a kernel's code that Python can call, compiled when it is first called."""
    again = FunctionType(function.__code__, function.__globals__, function.__name__)  # of another name than the kernel
    jit: Any = numba.njit
    return jit(error_model="numpy", pipeline_class=pipeline())(again)


def cached(pattern: str) -> bool:
    """Whether machine code of such a name is kept for exactly these sources."""
    return any(Path(str(numba.config.CACHE_DIR)).rglob(pattern))  # type: ignore[attr-defined]


def _compile(function: Callable[..., object], **options: bool) -> Any:
    jit: Any = numba.njit  # its stubs lack some options
    return jit(**OPTIONS, no_cfunc_wrapper=True, pipeline_class=pipeline(), **options)(function)


@contextmanager
def timed() -> Iterator[Callable[[], float]]:
    """Adds up the seconds that Numba spends on compiling."""
    make: Any = event.TimingListener
    listener = make()
    with event.install_listener("numba:compile", listener):
        yield lambda: float(listener.duration) if listener.done else 0.0
