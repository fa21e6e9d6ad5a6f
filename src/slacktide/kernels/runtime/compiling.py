"""How kernels are compiled: one place for the options, and the list of all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event, types

from slacktide.kernels.runtime.linking import inlined, named, pipeline

Function = TypeVar("Function", bound=Callable[..., object])

whole: Callable[[Any], int] = cast(Any, np.int64)
"""A whole number of 64 bits: kernels are compiled once more for every other width they are given."""

KERNELS: dict[str, Callable[..., object]] = {}
"""Every kernel by ``module.name``; a test fails for one without a slow twin."""


PLAIN: dict[int, Callable[..., Any]] = {}
"""Functions by address, for runs with compilation off."""


def kernel(function: Function) -> Function:
    """Compile ``function`` where an entry needs it; exact arithmetic, no bounds checks. Not callable from Python."""
    return _compile(inlined(function), no_cpython_wrapper=True)


def leaf(function: Function) -> Function:
    """As :func:`kernel`, for the few lines that inner loops consist of: always inlined."""
    return _compile(inlined(function), no_cpython_wrapper=True, forceinline=True)


def entry(function: Function) -> Function:
    """Compile ``function`` for calls from Python; its machine code is kept between runs."""
    return _compile(function, cache=True)


class ByAddress:
    """A function of whole numbers that kernels call by the address of its machine code; none has it inside.

    It is compiled, or read from the cache, when the address is first asked for: runs that never ask do without.
    """

    def __init__(self, function: Callable[..., int]) -> None:
        self.py_func = named(function)

    @cached_property
    def _code(self) -> Any:
        signature = types.int64(*[types.int64] * len(inspect.signature(self.py_func).parameters))
        make: Any = numba.cfunc
        with event.trigger_event("numba:compile", data={"dispatcher": self}):  # as Numba tells of other functions
            options = {"cache": True, "fastmath": False, "error_model": "numpy", "pipeline_class": pipeline()}
            return make(signature, **options)(self.py_func)

    @property
    def address(self) -> int:
        """Where the machine code is; with compilation off a key of ``PLAIN``."""
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            PLAIN[id(self)] = self.py_func
            return id(self)
        return int(self._code.address)


def addressed(function: Callable[..., int]) -> ByAddress:
    """Compile ``function(tb, ...)`` for calls by its address; it must not raise."""
    found = ByAddress(function)
    _register(function, found)
    return found


def callable_from_python(compiled: Function) -> Function:
    """A kernel or leaf as a function that Python can call, compiled when it is first called."""
    plain: Any = getattr(compiled, "py_func", compiled)
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return cast(Function, plain)
    again = FunctionType(plain.__code__, plain.__globals__, plain.__name__)  # of another name than the kernel
    jit: Any = numba.njit
    return cast(Function, jit(error_model="numpy", pipeline_class=pipeline())(again))


def _compile(function: Function, **options: bool) -> Function:
    jit: Any = numba.njit  # its stubs lack some options
    given = {"fastmath": False, "error_model": "numpy", "no_cfunc_wrapper": True, "pipeline_class": pipeline()}
    compiled = jit(**given, **options)(function)
    _register(function, compiled)
    return cast(Function, compiled)


def _register(function: Callable[..., object], compiled: Any) -> None:
    KERNELS[f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"] = compiled
