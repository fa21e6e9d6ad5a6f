"""What kernels do that Numba has no Python for: views of arrays by address, and calls of code by address.

Importing this imports Numba. Each has a plain counterpart where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

WHOLE, FLOAT, BYTE = ir.IntType(64), ir.DoubleType(), ir.IntType(8)


def record_at(name: str, dtype: np.dtype[Any], offset: int) -> Callable[[int], Any]:
    """The record of this type so many bytes behind an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = builder.add(args[0], WHOLE(offset))
        return builder.inttoptr(address, context.get_value_type(signature.return_type))

    def view(typing: Any, tb: Any) -> Any:
        return from_dtype(dtype)(tb), generate

    return _named(name, view)


def array_at(name: str, dtype: np.dtype[Any], offsets: Sequence[int]) -> Callable[[int], Any]:
    """The array whose address and extents lie so many bytes behind an address: a few loads, no function to call."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = builder.inttoptr(args[0], BYTE.as_pointer())
        loads = [
            builder.load(builder.bitcast(builder.gep(base, [WHOLE(offset)]), WHOLE.as_pointer())) for offset in offsets
        ]
        for load in loads:  # arrays are replaced between calls of entries only, so one load serves a whole call
            load.set_metadata("invariant.load", builder.module.add_metadata([]))
        return array_value(context, builder, signature.return_type, loads[0], loads[1:])

    def view(typing: Any, tb: Any) -> Any:
        return types.Array(from_dtype(dtype), len(offsets) - 1, "C")(tb), generate

    return _named(name, view)


def array_value(context: Any, builder: Any, array_type: Any, address: Any, extents: Sequence[Any]) -> Any:
    """An array in C order at an address, which counts no references."""
    array = context.make_array(array_type)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    strides = [WHOLE(size)]
    for extent in reversed(extents[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    count = extents[0]
    for extent in extents[1:]:
        count = builder.mul(count, extent)
    data = builder.inttoptr(address, context.get_data_type(array_type.dtype).as_pointer())
    fill: Any = populate_array
    fill(array, data, extents, strides, WHOLE(size), None)
    array.nitems = count
    return array._getvalue()


@intrinsic
def prefetch(typing: Any, array: Any, at: Any) -> Any:
    """Have the record at this place of an array of one axis on its way to the processor; it is read later."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, value=args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), BYTE.as_pointer())
        number = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [BYTE.as_pointer()], ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), *[number] * 3])
        )
        builder.call(function, [address, number(0), number(3), number(1)])  # to read, soon and again, as data
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _named(name: str, view: Any) -> Callable[[int], Any]:
    view.__name__ = view.__qualname__ = name
    return cast(Any, intrinsic(view))


def _generate_call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    code = builder.inttoptr(args[0], ir.FunctionType(WHOLE, [WHOLE] * (len(args) - 1)).as_pointer())
    return builder.call(code, args[1:])


@intrinsic
def call_with_two(typing: Any, address: Any, tb: Any, a: Any) -> Any:
    """Call code of two whole numbers."""
    return types.int64(types.int64, types.int64, types.int64), _generate_call


@intrinsic
def call_with_three(typing: Any, address: Any, tb: Any, a: Any, b: Any) -> Any:
    """Call code of three whole numbers."""
    return types.int64(types.int64, types.int64, types.int64, types.int64), _generate_call


def _pointers(context: Any, builder: Any, arrays: Any, values: Any) -> list[Any]:
    return [context.make_array(a)(context, builder, value=v).data for a, v in zip(arrays, values, strict=True)]


@intrinsic
def call_score(typing: Any, address: Any, capacity: Any, free: Any, demand: Any, length: Any, numbers: Any) -> Any:
    """Call a user's score."""
    signature = types.float64(types.int64, capacity, free, demand, types.int64, numbers)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = FLOAT.as_pointer()
        function = ir.FunctionType(FLOAT, [pointer, pointer, pointer, WHOLE, pointer])
        code = builder.inttoptr(args[0], function.as_pointer())
        arrays = (*signature.args[1:4], signature.args[5])
        capacity, free, demand, numbers = _pointers(context, builder, arrays, (*args[1:4], args[5]))
        return builder.call(code, [capacity, free, demand, args[4], numbers])

    return signature, generate


@intrinsic
def call_cost(typing: Any, address: Any, slack: Any, rank: Any, length: Any, out: Any, width: Any) -> Any:
    """Call a user's cost."""
    signature = types.void(types.int64, slack, rank, types.int64, out, types.int64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        floats, numbers = FLOAT.as_pointer(), WHOLE.as_pointer()
        function = ir.FunctionType(ir.VoidType(), [floats, numbers, WHOLE, floats, WHOLE])
        code = builder.inttoptr(args[0], function.as_pointer())
        arrays = (signature.args[1], signature.args[2], signature.args[4])
        slack, rank, out = _pointers(context, builder, arrays, (args[1], args[2], args[4]))
        builder.call(code, [slack, rank, args[3], out, args[5]])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def call_piece(typing: Any, address: Any, q: Any, overhead: Any, one: Any, its: Any, other: Any, out: Any) -> Any:
    """Call a piece of a user's policy."""
    signature = types.float64(types.int64, types.float64, types.float64, one, its, other, out)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = FLOAT.as_pointer()
        function = ir.FunctionType(FLOAT, [FLOAT, FLOAT, pointer, pointer, pointer, pointer])
        code = builder.inttoptr(args[0], function.as_pointer())
        return builder.call(code, [*args[1:3], *_pointers(context, builder, signature.args[3:], args[3:])])

    return signature, generate
