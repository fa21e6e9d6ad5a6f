"""What a set of victims costs, as a tuple: larger is better (docs/semantics.md, A pass at instant t)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple


class Victim(NamedTuple):
    """What a cost may know of a victim: rank, metric now (s), margin of its class (s), whether it is idle."""

    rank: int
    q: float
    margin: float
    idle: bool = False


Cost = Callable[[Sequence[Victim], Sequence[int]], tuple[float, ...]]


def slack(victims: Sequence[Victim], ranks: Sequence[int]) -> tuple[float, ...]:
    """Per rank the slack of victims already below their margin; last the slack of all victims (seconds).

    Idle ones count nothing; where all are idle the last is infinite.
    """
    if victims and all(k.idle for k in victims):
        return (*(0.0 for _ in ranks), inf)
    parts = []
    for rank in ranks:
        part = 0.0
        for k in victims:
            if not k.idle and k.rank == rank and k.q < k.margin:
                part += k.q - k.margin
        parts.append(part)
    total = 0.0
    for k in victims:
        if not k.idle:
            total += k.q - k.margin
    return (*parts, total)


def fewest_victims(victims: Sequence[Victim], ranks: Sequence[int]) -> tuple[float, ...]:
    """Minus the number of victims of each rank; idle ones count nothing."""
    return tuple(-float(sum(k.rank == rank and not k.idle for k in victims)) for rank in ranks)


COSTS: dict[str, Cost] = {"slack": slack, "fewest-victims": fewest_victims}
"""By name; ``ranks`` are the distinct ranks of all classes, most important (smallest) first."""
