"""How kernels are compiled: one place for the options, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., object])

KERNELS: dict[str, Callable[..., object]] = {}
"""Every kernel by ``module.name``; a test fails for one without a slow twin."""


def kernel(function: Function) -> Function:
    """Compile ``function`` when it is first called; exact arithmetic, no bounds checks."""
    return _compile(function, cache=False)


def leaf(function: Function) -> Function:
    """As :func:`kernel`, for the few lines that inner loops consist of: always inlined."""
    return _compile(function, cache=False, forceinline=True)


def entry(function: Function) -> Function:
    """As :func:`kernel`, for those that Python calls: their machine code is kept between runs."""
    return _compile(function, cache=True)


def _compile(function: Function, cache: bool, forceinline: bool = False) -> Function:
    compiled = numba.njit(cache=cache, forceinline=forceinline, fastmath=False, error_model="numpy")(function)
    KERNELS[f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"] = compiled
    return compiled  # type: ignore[no-any-return]
