"""A user's own score and cost as machine code that kernels call by address. Importing this imports Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaError

__all__ = ["NumbaError", "cost", "score"]

_pointer: Any = types.CPointer  # untyped
_carray: Any = cast(Any, numba).carray
_make: Any = numba.cfunc
_FLOATS = _pointer(types.float64)
_SCORE = types.float64(_FLOATS, _FLOATS, _FLOATS, types.int64)
_COST = types.void(_FLOATS, _pointer(types.int64), types.int64, _FLOATS, types.int64)


def score(function: Callable[..., Any]) -> Any:
    """Compiled, with its ``address``. Raises :class:`NumbaError`."""
    own: Any = numba.njit(function)

    def call(capacity: Any, free: Any, demand: Any, length: Any) -> Any:
        shape = (length,)
        try:  # an exception cannot leave machine code that a kernel calls: no number says it instead
            return own(_carray(capacity, shape), _carray(free, shape), _carray(demand, shape))
        except Exception:
            return np.nan

    return _make(_SCORE)(call)


def cost(function: Callable[..., Any]) -> Any:
    """Compiled, with its ``address``. Raises :class:`NumbaError`."""
    own: Any = numba.njit(function)

    def call(slack: Any, rank: Any, length: Any, out: Any, width: Any) -> Any:
        filled = _carray(out, (width,))
        try:
            own(_carray(slack, (length,)), _carray(rank, (length,)), filled)
        except Exception:
            filled[:] = np.nan

    return _make(_COST)(call)
