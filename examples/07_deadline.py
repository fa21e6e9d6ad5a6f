"""A metric of your own: batch work that is to be done by a deadline, whenever in that time it runs.

    slacktide simulate WORKLOAD HOSTS --policy examples/07_deadline.py:by_deadline

Availability asks for a share of every stretch of life. Throughput asks for as much running in all, `slo` of the first
hour: who has received it has infinite slack, and nobody waits at its expense.
"""

import numpy as np
from numpy.typing import NDArray

from slacktide.policy import Pieces
from slacktide.policy.metrics import throughput

NEVER = -np.inf
MINUTE, HOUR = 60.0, 3600.0


def queue(metric: float) -> tuple[int, float]:
    """Those first who can still make it, whoever can wait the least before the others."""
    return (0 if metric >= 0.0 else 1), metric


def gives_way(metric: float, level: int, waiting_level: int, waiting_margin: float) -> float:
    """Who has a minute to spare lends its place to whoever can wait less; who has not, to the more important only."""
    if metric >= MINUTE:
        return metric - MINUTE
    return waiting_margin if level > waiting_level else NEVER


def leaves(metric: float) -> float:
    """Whoever can wait longest leaves first."""
    return -metric


def cost(out: NDArray[np.float64], slack: float, level: int) -> None:
    """Hurt the less important, then those that can wait longest."""
    if slack < 0.0:
        out[level] -= 1.0
    out[-1] += min(slack, HOUR)


by_deadline = Pieces(queue, gives_way, leaves, cost, metric=throughput(HOUR), name="by deadline")
