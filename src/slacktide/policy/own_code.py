"""A user's own score, cost and pieces of a policy as machine code that kernels call by address.

Importing this imports Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaError
from numba.np.unsafe.ndarray import to_fixed_tuple

__all__ = ["NumbaError", "cost", "piece", "score"]

_pointer: Any = types.CPointer  # untyped
_carray: Any = cast(Any, numba).carray
_make: Any = numba.cfunc
_fixed_tuple: Any = to_fixed_tuple
_FLOATS = _pointer(types.float64)
_SCORE = types.float64(_FLOATS, _FLOATS, _FLOATS, types.int64, _FLOATS)
_PIECE = types.float64(types.float64, types.float64, _FLOATS, _FLOATS, _FLOATS, _FLOATS)
_SHOWN = types.Array(types.float64, 1, "C", readonly=True)
"""Numbers of the run's own: Numba compiles nothing that writes to them."""
_RANKS = types.Array(types.int64, 1, "C", readonly=True)
_COST = types.void(_FLOATS, _pointer(types.int64), types.int64, _FLOATS, types.int64)


def score(function: Callable[..., Any], further: int = 0) -> Any:
    """Compiled, with its ``address``; ``further`` numbers follow its three arrays. Raises :class:`NumbaError`."""
    own: Any = numba.njit([(_SHOWN, _SHOWN, _SHOWN, *[types.float64] * further)])(function)

    def call(capacity: Any, free: Any, demand: Any, length: Any, _numbers: Any) -> Any:
        shape = (length,)
        try:  # an exception cannot leave machine code that a kernel calls: no number says it instead
            return own(_carray(capacity, shape), _carray(free, shape), _carray(demand, shape))
        except Exception:
            return np.nan

    def spread_out(capacity: Any, free: Any, demand: Any, given: Any) -> Any:  # what Numba cannot do within "try"
        return own(capacity, free, demand, *_fixed_tuple(given, further))

    with_numbers: Any = numba.njit(spread_out)

    def call_with_numbers(capacity: Any, free: Any, demand: Any, length: Any, numbers: Any) -> Any:
        shape, given = (length,), _carray(numbers, (further,))
        try:
            return with_numbers(_carray(capacity, shape), _carray(free, shape), _carray(demand, shape), given)
        except Exception:
            return np.nan

    return _make(_SCORE)(call_with_numbers if further else call)


def cost(function: Callable[..., Any]) -> Any:
    """Compiled, with its ``address``. Raises :class:`NumbaError`."""
    own: Any = numba.njit([(_SHOWN, _RANKS, types.Array(types.float64, 1, "C"))])(function)

    def call(slack: Any, rank: Any, length: Any, out: Any, width: Any) -> Any:
        filled = _carray(out, (width,))
        try:
            own(_carray(slack, (length,)), _carray(rank, (length,)), filled)
        except Exception:
            filled[:] = np.nan

    return _make(_COST)(call)


def piece(function: Callable[..., Any], source: str) -> Any:
    """A wrapper of this source around a piece of a policy, with its ``address``. Raises :class:`NumbaError`."""
    known = {"own": numba.njit(function), "array": _carray, "nan": np.nan, "inf": np.inf}
    exec(source, known)  # of names that :mod:`.piece_code` knows
    return _make(_PIECE)(known["call"])
