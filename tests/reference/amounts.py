"""Resource amounts as whole numbers (docs/semantics.md, Amounts)."""

from __future__ import annotations

from collections.abc import Sequence

Amounts = tuple[int, ...]

LARGEST = 2.0**50


def scale(capacities: Sequence[float]) -> float:
    """10^k for one resource, k the largest of 0..9 that keeps the biggest host within 2^50 (0 where none does)."""
    biggest = max(capacities, default=0.0)
    for k in range(9, 0, -1):
        if biggest * 10.0**k <= LARGEST:
            return 10.0**k
    return 1.0


def whole(amount: float, factor: float) -> int:
    """``amount * factor`` rounded half to even."""
    return round(float(amount) * factor)


def fits(demand: Amounts, free: Amounts) -> bool:
    for wanted, there in zip(demand, free, strict=True):  # noqa: SIM110  # asked a hundred thousand times a second
        if wanted > max(there, 0):  # a host may be overcommitted in what nobody asks for here
            return False
    return True


def plus(left: Amounts, right: Amounts) -> Amounts:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def minus(left: Amounts, right: Amounts) -> Amounts:
    return tuple(a - b for a, b in zip(left, right, strict=True))
