"""Allocation scores in units of 2^-40 of a host's free fraction (docs/semantics.md, A pass at instant t)."""

from __future__ import annotations

from collections.abc import Callable

Score = Callable[[float, float], float]

SCARCE = 2**40
"""By so much a host of a pool scores less by ``packed``."""
MOST = 2**44
"""16 hosts, in units of 2^-40: what is more, be it demanded or lacking, is as much."""


def left_over(free: int, demand: int, capacity: int) -> float:
    """What stays free of one resource once the instance is placed, units of 2^-40 of the capacity."""
    if capacity == 0:
        return 0.0
    unit = 2.0**40 / capacity
    return float(share(free * unit)) - float(share(demand * unit))


def share(units: float) -> int:
    """A whole number of units, within 16 hosts."""
    return max(-MOST, min(MOST, round(units)))


def least_requested(x: float, y: float) -> float:
    return x + y


def balanced(x: float, y: float) -> float:
    return -abs(x - y)


def mean(x: float, y: float) -> float:
    return min(3.0 * y - x, 3.0 * x - y)


def packed(x: float, y: float) -> float:
    return min(-x, -y)


SCORES: dict[str, Score] = {"least-requested": least_requested, "balanced": balanced, "mean": mean, "packed": packed}
"""By name; arguments are what stays free of CPU and of memory; larger is better."""
