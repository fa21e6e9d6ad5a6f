"""What a set of victims costs, as a tuple: larger is better (docs/semantics.md, A pass at instant t)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reference.state import Instance
from slacktide.config import Config

Cost = Callable[[Sequence[Instance], Sequence[int], float, Config], tuple[float, ...]]


def slack(victims: Sequence[Instance], ranks: Sequence[int], t: float, config: Config) -> tuple[float, ...]:
    """Per rank the slack of victims already below their margin; last the slack of all victims (seconds)."""
    per_rank = []
    for rank in ranks:
        total = 0.0
        for k in victims:
            q = k.metric_at(t, config)
            if k.rank == rank and q < k.margin:
                total += q - k.margin
        per_rank.append(total)
    whole = 0.0
    for k in victims:
        whole += k.metric_at(t, config) - k.margin
    return (*per_rank, whole)


def fewest_victims(victims: Sequence[Instance], ranks: Sequence[int], t: float, config: Config) -> tuple[float, ...]:
    """Minus the number of victims of each rank."""
    return tuple(-float(sum(k.rank == rank for k in victims)) for rank in ranks)


COSTS: dict[str, Cost] = {"slack": slack, "fewest-victims": fewest_victims}
"""By name; ``ranks`` are the distinct ranks of all classes, most important (smallest) first."""
