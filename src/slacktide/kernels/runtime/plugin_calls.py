"""Calls into a user's own score and cost, by the address of their machine code.

One kernel serves every user's function this way; a new function compiles in
milliseconds and the kernels not again. :mod:`slacktide.policy.loader` makes the
addresses. With compilation off the functions are looked up and called as they are.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from slacktide.kernels.runtime.compiling import PLAIN, kernel

Floats = NDArray[np.float64]

UNIT = 2.0**20


def _pointers(context: Any, builder: Any, arrays: Any, values: Any) -> list[Any]:
    return [context.make_array(a)(context, builder, value=v).data for a, v in zip(arrays, values, strict=True)]


@intrinsic
def _compiled_score(typing: Any, address: Any, capacity: Any, free: Any, demand: Any, length: Any) -> Any:
    signature = types.float64(types.int64, capacity, free, demand, types.int64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.DoubleType().as_pointer()
        function = ir.FunctionType(ir.DoubleType(), [pointer, pointer, pointer, ir.IntType(64)])
        code = builder.inttoptr(args[0], function.as_pointer())
        return builder.call(code, [*_pointers(context, builder, signature.args[1:4], args[1:4]), args[4]])

    return signature, generate


@intrinsic
def _compiled_cost(typing: Any, address: Any, slack: Any, rank: Any, length: Any, out: Any, width: Any) -> Any:
    signature = types.void(types.int64, slack, rank, types.int64, out, types.int64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        floats, whole = ir.DoubleType().as_pointer(), ir.IntType(64).as_pointer()
        function = ir.FunctionType(ir.VoidType(), [floats, whole, ir.IntType(64), floats, ir.IntType(64)])
        code = builder.inttoptr(args[0], function.as_pointer())
        arrays = (signature.args[1], signature.args[2], signature.args[4])
        slack, rank, out = _pointers(context, builder, arrays, (args[1], args[2], args[4]))
        builder.call(code, [slack, rank, args[3], out, args[5]])
        return context.get_dummy_value()

    return signature, generate


def _plain_score(address: int, capacity: Floats, free: Floats, demand: Floats, _length: int) -> float:
    return float(PLAIN[address](capacity, free, demand))


def _plain_cost(address: int, slack: Floats, rank: Any, length: int, out: Floats, width: int) -> None:
    PLAIN[address](slack[:length], rank[:length], out[:width])


_off = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]
_call_score: Any = _plain_score if _off else _compiled_score
_call_cost: Any = _plain_cost if _off else _compiled_cost


@kernel
def score_of(address: int, capacity: Floats, free: Floats, demand: Floats) -> float:
    """A user's allocation score in units of 2^-20, NaN where it raised; amounts (resources,) in the user's units."""
    return np.rint(_call_score(address, capacity, free, demand, len(demand)) * UNIT)


@kernel
def cost_of(address: int, slack: Floats, rank: NDArray[np.int64], count: int, out: Floats) -> None:
    """A user's preemption cost: of the first ``count`` victims into ``out`` (larger is better)."""
    _call_cost(address, slack, rank, count, out, len(out))
