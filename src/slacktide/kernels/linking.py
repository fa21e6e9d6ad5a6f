"""How the machine code of kernels is put together: entries link all that they need, once.

Numba would link, optimise and translate each kernel with everything below it, which is
half of the time that compiling takes (bench/cold_start.py). It has no switch for that,
so this wraps steps of its code library in versions where these are known, and does
nothing in others, where compiling takes longer. A kernel must neither raise nor print:
what Numba keeps for that (its environment) exists for entries only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numba.core.codegen

Function = TypeVar("Function", bound=Callable[..., object])

KNOWN_NUMBA = ((0, 63), (0, 68))
"""The first and the last version whose code libraries are as :func:`_link_once` expects."""

_INLINED: set[str] = set()


def named(function: Function) -> Function:
    """Name a function as none of a user's is: Numba names code by it."""
    function.__qualname__ = f"{function.__module__}.{function.__name__}"
    return function


def inlined(function: Function) -> Function:
    """Name a function whose code exists only as a part of what calls it."""
    _INLINED.add(named(function).__qualname__)
    return function


def _with_all(libraries: list[Any]) -> list[Any]:
    """These code libraries and, of kernels among them, what they call in turn; each once."""
    found: dict[Any, None] = {}
    left = list(reversed(libraries))
    while left:
        library = left.pop()
        if library not in found:
            found[library] = None
            if library.name in _INLINED:
                left += reversed(library._linking_libraries)
    return list(found)


def _link_once() -> None:
    first, last = KNOWN_NUMBA
    if not first <= numba.version_info.short <= last:
        return
    library: Any = numba.core.codegen.CPUCodeLibrary
    codegen: Any = numba.core.codegen.JITCPUCodegen
    finalize_whole, set_any = library.finalize, codegen.set_env

    def finalize(self: Any) -> None:
        if self.name in _INLINED:
            for called in self._linking_libraries:
                self._reload_init.update(called._reload_init)
            self._finalized = True
        else:
            self._linking_libraries = _with_all(self._linking_libraries)
            finalize_whole(self)

    def set_env(self: Any, name: str, env: Any) -> None:
        if self._engine.is_symbol_defined(name):  # a kernel's is not, as it is not machine code
            set_any(self, name, env)

    library.finalize, codegen.set_env = finalize, set_env


_link_once()
