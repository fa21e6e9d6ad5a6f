"""From the address of the state record to its arrays: ``slots(tb)`` is the array of that name.

There is a function here for each array that :data:`slacktide.kernels.tables.arrays.ARRAYS` declares. A view is made
from an address and a shape, costs nothing once compiled, and counts no references.
:class:`slacktide.kernels.tables.arrays.Tables` keeps the arrays alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

from slacktide.kernels.tables.arrays import ARRAYS, STATE
from slacktide.kernels.tables.schema import State

OFFSETS: dict[str, Any] = dict(STATE.fields or {})
"""Type and offset of each field of the state record."""


def _memory(address: int, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """An array over memory that exists, for runs with compilation off."""
    size = count * dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(address) if size else b""
    return np.frombuffer(memory, dtype)


def _record(name: str) -> Callable[[State], Any]:
    """The settings or the counters inside the state record itself."""
    dtype, offset = OFFSETS[name]
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]

        def plain(tb: State) -> Any:
            return _memory(tb + offset, dtype, 1)[0]

        return plain

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = builder.add(args[0], ir.IntType(64)(offset))
        return builder.inttoptr(address, context.get_value_type(signature.return_type))

    def view(typing: Any, tb: Any) -> Any:
        return from_dtype(dtype)(tb), generate

    view.__name__ = view.__qualname__ = name
    return cast(Any, intrinsic(view))


def _plain(name: str, dtype: np.dtype[Any], axes: int) -> Callable[[State], NDArray[Any]]:
    """The same view for runs with compilation off."""
    known: dict[tuple[int, ...], NDArray[Any]] = {}

    def view(tb: State) -> NDArray[Any]:
        record = _memory(tb, STATE, 1)[0]
        key = (int(record[f"{name}_at"]), *(int(record[f"{name}_{axis}"]) for axis in range(axes)))
        if key not in known:
            known.clear()
            known[key] = _memory(key[0], dtype, int(np.prod(key[1:]))).reshape(key[1:])
        return known[key]

    return view


def _compiled(name: str, dtype: np.dtype[Any], axes: int) -> Callable[[State], NDArray[Any]]:
    """The view as an intrinsic: a few loads instead of a function to compile and call."""
    offsets = [OFFSETS[f"{name}_at"][1]] + [OFFSETS[f"{name}_{axis}"][1] for axis in range(axes)]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole, byte = ir.IntType(64), ir.IntType(8)
        base = builder.inttoptr(args[0], byte.as_pointer())
        loads = [
            builder.load(builder.bitcast(builder.gep(base, [whole(offset)]), whole.as_pointer())) for offset in offsets
        ]
        returned = signature.return_type
        array = context.make_array(returned)(context, builder)
        strides = [whole(dtype.itemsize)]
        for extent in reversed(loads[2:]):
            strides.insert(0, builder.mul(strides[0], extent))
        count = loads[1]
        for extent in loads[2:]:
            count = builder.mul(count, extent)
        data = builder.inttoptr(loads[0], context.get_data_type(returned.dtype).as_pointer())
        fill: Any = populate_array
        fill(array, data, loads[1:], strides, whole(dtype.itemsize), None)
        array.nitems = count
        return array._getvalue()

    def view(typing: Any, tb: Any) -> Any:
        return types.Array(from_dtype(dtype), axes, "C")(tb), generate

    view.__name__ = view.__qualname__ = name
    return cast(Any, intrinsic(view))


def _view(name: str) -> Callable[[State], NDArray[Any]]:
    make = _plain if numba.config.DISABLE_JIT else _compiled  # type: ignore[attr-defined]
    return make(name, ARRAYS[name].dtype, len(ARRAYS[name].axes))


rules = _record("rules")
control = _record("control")
globals().update({name: _view(name) for name in ARRAYS})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[[State], NDArray[Any]]: ...
