"""Calls into a user's own score and cost, by the address of their machine code.

One kernel serves every user's function this way; a new function compiles in
milliseconds and the kernels not again. :mod:`slacktide.policy.loader` makes the
addresses. With compilation off the functions are looked up and called as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.runtime.compiling import PLAIN, compiles, kernel

Floats = NDArray[np.float64]

UNIT = 2.0**20


def _plain_score(address: int, capacity: Floats, free: Floats, demand: Floats, _length: int, numbers: Floats) -> float:
    return float(PLAIN[address](capacity, free, demand, *numbers.tolist()))


def _plain_cost(address: int, slack: Floats, rank: Any, length: int, out: Floats, width: int) -> None:
    PLAIN[address](slack[:length], rank[:length], out[:width])


_call_score: Any = _plain_score
_call_cost: Any = _plain_cost
if compiles():
    from slacktide.kernels.runtime import intrinsics

    _call_score, _call_cost = intrinsics.call_score, intrinsics.call_cost


@kernel
def score_of(address: int, capacity: Floats, free: Floats, demand: Floats, numbers: Floats) -> float:
    """A user's allocation score in units of 2^-20, NaN where it raised; amounts (resources,) in the user's units, and
    what else it asks for (:mod:`slacktide.kernels.feasible.own_numbers`)."""
    return np.rint(_call_score(address, capacity, free, demand, len(demand), numbers) * UNIT)


@kernel
def cost_of(address: int, slack: Floats, rank: NDArray[np.int64], count: int, out: Floats) -> None:
    """A user's preemption cost: of the first ``count`` victims into ``out`` (larger is better)."""
    _call_cost(address, slack, rank, count, out, len(out))
