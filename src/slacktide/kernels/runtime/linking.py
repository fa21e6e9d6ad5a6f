"""How the machine code of kernels is put together: entries link all that they need, once.

Numba would link, optimise and translate each kernel with everything below it, which is
half of the time that compiling takes (bench/cold_start.py). It has no switch for that,
so kernels are compiled by a pipeline of our own, with code libraries of our own
(:mod:`slacktide.kernels.runtime.code_parts`), where Numba is as those expect. Anywhere else
Numba's usual pipeline compiles them, which takes longer. Functions of others are always
compiled by the usual one. A kernel must neither raise nor print: what Numba keeps for
that (its environment) exists for entries only.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container
from functools import cache
from typing import Any, TypeVar

import numba

from slacktide.kernels.runtime.mode import Mode, mode

Function = TypeVar("Function", bound=Callable[..., object])

KNOWN_NUMBA = ((0, 63), (0, 68))
"""The first and the last version whose code libraries are as ``code_parts`` expects."""

PARTS: set[str] = set()
"""Names of functions whose code exists only as a part of what calls them."""


class Everything(Container[str]):
    """Contains every name: nothing becomes machine code in the process that builds a library."""

    def __contains__(self, name: object) -> bool:
        return True


def named(function: Function) -> Function:
    """Name a function as none of a user's is: Numba names code by it."""
    function.__qualname__ = f"{function.__module__}.{function.__name__}"
    return function


def inlined(function: Function) -> Function:
    """Name a function whose code exists only as a part of what calls it."""
    PARTS.add(named(function).__qualname__)
    return function


@cache
def pipeline() -> Any:
    """What compiles kernels: a class for Numba's ``pipeline_class``, or None for its usual one."""
    if not as_expected():
        return None
    try:
        from slacktide.kernels.runtime.code_parts import pipeline_for  # its bases may be missing in Numba
    except (ImportError, AttributeError):
        return None
    return pipeline_for(Everything() if mode() is Mode.BUILD else PARTS)


def as_expected() -> bool:
    """Whether this is a version of Numba that ``code_parts`` was written for, and has what it builds on."""
    first, last = KNOWN_NUMBA
    if not first <= numba.version_info.short <= last:
        return False
    try:
        from numba.core import base, codegen, compiler, cpu

        library, target = codegen.CPUCodeLibrary, base.BaseContext
        told = list(inspect.signature(compiler.CompilerBase).parameters)[:2]
        names = set(library.finalize.__code__.co_names)
        return (
            issubclass(codegen.JITCodeLibrary, library)
            and told == ["typingctx", "targetctx"]
            and {"_linking_libraries", "_reload_init", "_get_module_for_linking"} <= names
            and "_finalized" in library._ensure_finalized.__code__.co_names
            and "_internal_codegen" in cpu.CPUContext.codegen.__code__.co_names
            and "cached_internal_func" in target.subtarget.__code__.co_names
            and {"create_library", "set_env"} <= set(dir(codegen.JITCPUCodegen))
            and "is_symbol_defined" in dir(codegen.JitEngine)
        )
    except (ImportError, AttributeError, TypeError, ValueError):
        return False
