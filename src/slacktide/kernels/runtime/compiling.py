"""How kernels become what runs: one place for the decorators, and the list of all kernels.

What a decorator makes of a function follows from :mod:`slacktide.kernels.runtime.mode`. Where kernels come from a
library only entries, and functions that are called by address, can be called; the others stay as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np

from slacktide.kernels.runtime import library
from slacktide.kernels.runtime.mode import Mode, has_numba, mode
from slacktide.kernels.runtime.sources import fingerprint

Function = TypeVar("Function", bound=Callable[..., object])

whole: Callable[[Any], int] = cast(Any, np.int64)
"""A whole number of 64 bits: kernels are compiled once more for every other width they are given."""

KERNELS: dict[str, Callable[..., object]] = {}
"""Every kernel by ``module.name``; a test fails for one without a slow twin."""

ENTRIES: list[Any] = []
"""What Python calls, as :func:`entry` made it."""

ADDRESSED: list[ByAddress] = []
"""What kernels call by address."""

PLAIN: dict[int, Callable[..., Any]] = {}
"""Functions by address, for kernels that run as plain Python."""


def kernel(function: Function) -> Function:
    """Compile ``function`` where an entry needs it; exact arithmetic, no bounds checks. Not callable from Python."""
    return _register(function, _part(function) if compiles() else function)


def leaf(function: Function) -> Function:
    """As :func:`kernel`, for the few lines that inner loops consist of: always inlined."""
    return _register(function, _part(function, forceinline=True) if compiles() else function)


def entry(function: Function) -> Function:
    """Compile ``function`` for calls from Python; what is compiled here is kept between runs.

    Every argument has an annotation that :mod:`slacktide.kernels.runtime.signatures` understands: a library has it
    for these types only.
    """
    made: Any = function
    if mode() is Mode.LIBRARY:
        made = library.Entry(function)
    elif mode() is Mode.BUILD:
        made = _part(function)
    elif mode() is Mode.JIT:
        from slacktide.kernels.runtime import jit

        made = jit.for_python(function)
    ENTRIES.append(made)
    return _register(function, made)


class ByAddress:
    """A function of whole numbers that kernels call by the address of its machine code; none has it inside.

    Without a library it is compiled, or read from the cache, when the address is first asked for: runs that never
    ask do without.
    """

    def __init__(self, function: Callable[..., int]) -> None:
        self.py_func = function
        self._code: Any = None

    @property
    def address(self) -> int:
        """Where the machine code is; with compilation off a key of ``PLAIN``."""
        if not compiles():
            found = library.address_of(self.py_func) if mode() is Mode.LIBRARY else id(self)
            PLAIN[found] = self.py_func
            return found
        if self._code is None:
            from slacktide.kernels.runtime import jit

            self._code = jit.by_address(self.py_func)
        return int(self._code.address)


def addressed(function: Callable[..., int]) -> ByAddress:
    """Compile ``function(tb, ...)`` for calls by its address; it must not raise."""
    found = ByAddress(function)
    ADDRESSED.append(found)
    _register(function, cast(Any, found))
    return found


def callable_from_python(compiled: Function) -> Function:
    """A kernel or leaf as a function that Python can call: compiled when it is first called, or where kernels are not
    compiled here as plain Python."""
    plain: Any = getattr(compiled, "py_func", compiled)
    if not compiles():
        return cast(Function, plain)
    from slacktide.kernels.runtime import jit

    return cast(Function, jit.apart(plain))


def compiles() -> bool:
    """Whether kernels are compiled in this process."""
    return mode() in (Mode.JIT, Mode.BUILD)


def _part(function: Function, **options: bool) -> Any:
    from slacktide.kernels.runtime import jit

    return jit.part(function, **options)


def _register(function: Function, made: Any) -> Function:
    KERNELS[f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"] = made
    return cast(Function, made)


def compiled_before(name: str = "") -> bool:
    """Whether nothing (nothing of the kernel ``name``) is left to compile, so that a run starts at once."""
    if not compiles():
        return True
    from slacktide.kernels.runtime import jit

    return jit.cached(f"{name}-*.nbc" if name else "*.nbc")


@contextmanager
def compile_clock(also: bool = False) -> Iterator[Callable[[], float]]:
    """Seconds that Numba has spent on compiling since this began; ``also`` where it compiles more than kernels."""
    if not (compiles() or (also and mode() is Mode.LIBRARY and has_numba())):
        yield lambda: 0.0
        return
    from slacktide.kernels.runtime import jit

    with jit.timed() as seconds:
        yield seconds


def described() -> str:
    """What runs as kernels in this process, for people who want to repeat a run."""
    if mode() is Mode.LIBRARY:
        return f"library {library.loaded().level} {fingerprint()}"
    if mode() is Mode.PLAIN:
        return f"plain Python {fingerprint()}"
    from slacktide.kernels.runtime import jit

    return f"compiled by {jit.COMPILER} {fingerprint()}"
