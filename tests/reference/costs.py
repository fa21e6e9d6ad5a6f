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


def lateness(graces: Sequence[float], slack: float) -> float:
    """Seconds by which victims that may take so long to go are gone later than one of this slack can wait."""
    return max(0.0, max(graces, default=0.0) - max(0.0, slack))


COSTS: dict[str, Cost] = {"slack": slack, "fewest-victims": fewest_victims}
"""By name; ``ranks`` are the distinct ranks of all classes, most important (smallest) first."""
