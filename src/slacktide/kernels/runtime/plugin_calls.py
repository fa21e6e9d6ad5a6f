"""Calls into a user's own score, cost and pieces of a policy, by the address of their machine code.

One kernel serves every user's function this way; a new function compiles in
milliseconds and the kernels not again. :mod:`slacktide.policy.loader` makes the
addresses. With compilation off the functions are looked up and called as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.runtime.compiling import PLAIN, compiles, kernel, leaf

Floats = NDArray[np.float64]

UNIT = 2.0**20


def _plain_score(address: int, capacity: Floats, free: Floats, demand: Floats, _length: int, numbers: Floats) -> float:
    return float(PLAIN[address](capacity, free, demand, *numbers.tolist()))


def _plain_cost(address: int, slack: Floats, rank: Any, length: int, out: Floats, width: int) -> None:
    PLAIN[address](slack[:length], rank[:length], out[:width])


def _plain_piece(
    address: int, q: float, overhead: float, one: Floats, its: Floats, other: Floats, out: Floats
) -> float:
    return float(PLAIN[address](q, overhead, one, its, other, out))


_call_score: Any = _plain_score
_call_cost: Any = _plain_cost
_call_piece: Any = _plain_piece
if compiles():
    from slacktide.kernels.runtime import intrinsics

    _call_score, _call_cost, _call_piece = intrinsics.call_score, intrinsics.call_cost, intrinsics.call_piece


@kernel
def score_of(address: int, capacity: Floats, free: Floats, demand: Floats, numbers: Floats) -> float:
    """A user's allocation score in units of 2^-20, NaN where it raised; amounts (resources,) in the user's units, and
    what else it asks for (:mod:`slacktide.kernels.feasible.own_numbers`)."""
    return np.rint(_call_score(address, capacity, free, demand, len(demand), numbers) * UNIT)


@kernel
def cost_of(address: int, slack: Floats, rank: NDArray[np.int64], count: int, out: Floats) -> None:
    """A user's preemption cost: of the first ``count`` victims into ``out`` (larger is better)."""
    _call_cost(address, slack, rank, count, out, len(out))


@leaf
def piece_of(address: int, q: float, overhead: float, one: Floats, its: Floats, other: Floats, out: Floats) -> float:
    """What a piece of a user's policy says (:mod:`slacktide.kernels.policies.pieces`), NaN where it raised: of metric,
    overhead, numbers of the instance, of its class and of that of who waits. More goes into ``out``."""
    return _call_piece(address, q, overhead, one, its, other, out)
