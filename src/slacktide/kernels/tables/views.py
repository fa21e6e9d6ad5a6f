"""From the address of the state record to its arrays: ``slots(tb)`` is the array of that name.

There is a function here for each array that :data:`slacktide.kernels.tables.arrays.ARRAYS` declares. A view is made
from an address and a shape, costs nothing once compiled, and counts no references.
:class:`slacktide.kernels.tables.arrays.Tables` keeps the arrays alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.runtime.compiling import compiles
from slacktide.kernels.tables.arrays import ARRAYS, STATE
from slacktide.kernels.tables.schema import State

OFFSETS: dict[str, Any] = dict(STATE.fields or {})
"""Type and offset of each field of the state record."""


def _memory(address: int, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """An array over memory that exists, for runs with compilation off."""
    size = count * dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(address) if size else b""
    return np.frombuffer(memory, dtype)


class Checked(np.ndarray):
    """An array of a run with compilation off, which has no element before the first: in a library it has none."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_from_the_front(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_from_the_front(key), value)


def _from_the_front(key: Any) -> Any:
    several = key if isinstance(key, tuple) else (key,)
    if any(isinstance(one, (int, np.integer)) and one < 0 for one in several):
        raise IndexError(f"{key}: a kernel's index is below 0, which a library would not count from the end")
    return key


def _record(name: str) -> Callable[[State], Any]:
    """The settings or the counters inside the state record itself."""
    dtype, offset = OFFSETS[name]
    if compiles():
        from slacktide.kernels.runtime.intrinsics import record_at

        return record_at(name, dtype, offset)

    def plain(tb: State) -> Any:
        return _memory(tb + offset, dtype, 1)[0]

    return plain


def _plain(name: str, dtype: np.dtype[Any], axes: int) -> Callable[[State], NDArray[Any]]:
    """The same view for runs with compilation off."""
    known: dict[tuple[int, ...], NDArray[Any]] = {}

    def view(tb: State) -> NDArray[Any]:
        record = _memory(tb, STATE, 1)[0]
        key = (int(record[f"{name}_at"]), *(int(record[f"{name}_{axis}"]) for axis in range(axes)))
        if key not in known:
            known.clear()
            known[key] = _memory(key[0], dtype, int(np.prod(key[1:]))).reshape(key[1:]).view(Checked)
        return known[key]

    return view


def _view(name: str) -> Callable[[State], NDArray[Any]]:
    dtype, axes = ARRAYS[name].dtype, len(ARRAYS[name].axes)
    if not compiles():
        return _plain(name, dtype, axes)
    from slacktide.kernels.runtime.intrinsics import array_at

    return array_at(name, dtype, [OFFSETS[f"{name}_at"][1], *(OFFSETS[f"{name}_{axis}"][1] for axis in range(axes))])


rules = _record("rules")
control = _record("control")
globals().update({name: _view(name) for name in ARRAYS})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[[State], NDArray[Any]]: ...
