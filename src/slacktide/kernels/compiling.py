"""How kernels are compiled: one place for the options, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numba.core.codegen
import numpy as np

Function = TypeVar("Function", bound=Callable[..., object])

whole: Callable[[Any], int] = cast(Any, np.int64)
"""A whole number of 64 bits: kernels are compiled once more for every other width they are given."""

KERNELS: dict[str, Callable[..., object]] = {}
"""Every kernel by ``module.name``; a test fails for one without a slow twin."""


_INLINED: set[str] = set()


def _optimize_once() -> None:
    """Leave helpers unoptimised by themselves: the entry that inlines them optimises all of it once more anyway.

    A third of the compile time (bench/cold_start.py). Numba has no switch for it, so
    this wraps the step of its code library where that exists, and does nothing else.
    """
    library = getattr(numba.core.codegen, "CPUCodeLibrary", None)
    step = getattr(library, "_optimize_final_module", None)
    if library is None or step is None:
        return

    def optimize(self: Any) -> None:
        if self.name not in _INLINED:
            step(self)

    library._optimize_final_module = optimize


_optimize_once()


def kernel(function: Function) -> Function:
    """Compile ``function`` where an entry needs it; exact arithmetic, no bounds checks. Not callable from Python."""
    _INLINED.add(function.__qualname__)
    return _compile(function, no_cpython_wrapper=True)


def leaf(function: Function) -> Function:
    """As :func:`kernel`, for the few lines that inner loops consist of: always inlined."""
    _INLINED.add(function.__qualname__)
    return _compile(function, no_cpython_wrapper=True, forceinline=True)


def entry(function: Function) -> Function:
    """Compile ``function`` for calls from Python; its machine code is kept between runs."""
    return _compile(function, cache=True)


def callable_from_python(compiled: Function) -> Function:
    """A kernel or leaf as a function that Python can call, compiled when it is first called."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return compiled
    return cast(Function, numba.njit(cast(Any, compiled).py_func))


def _compile(function: Function, **options: bool) -> Function:
    jit: Any = numba.njit  # its stubs lack some options
    compiled = jit(fastmath=False, error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    KERNELS[f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"] = compiled
    return cast(Function, compiled)
