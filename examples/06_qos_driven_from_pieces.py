"""The paper's policy `qos-driven` from pieces. It decides as the built-in one does with the preset `published`.

    slacktide simulate WORKLOAD HOSTS --preset published --policy examples/06_qos_driven_from_pieces.py:qos_driven

`metric` is Q, seconds; whoever is below the `margin` of its class is about to miss its promise. `levels` says how many
different importances there are. From da Silva et al., "QoS-driven scheduling in the cloud" (2020).
"""

import numpy as np
from numpy.typing import NDArray

from slacktide.policy import Pieces

NEVER = -np.inf


def queue(metric: float, margin: float, level: int, levels: int) -> tuple[int, float]:
    """Those below their margin first, the most important class first; then all others; each by increasing Q."""
    return (level if metric < margin else levels), metric


def gives_way(
    metric: float, margin: float, level: int, rank: int, overhead: float, overhead_limit: float,
    waiting_margin: float, waiting_level: int, waiting_rank: int,
) -> float:  # fmt: skip
    """It may be preempted for one that waits with a metric below this."""
    if overhead > overhead_limit and level <= waiting_level:
        return NEVER
    if metric >= margin:  # above its margin it lends to whoever has less slack, but to no lower priority of its rank
        return NEVER if rank == waiting_rank and waiting_level > level else metric
    if level > waiting_level:
        return waiting_margin
    return min(metric, waiting_margin) if level == waiting_level else NEVER


def leaves(metric: float, margin: float, level: int, levels: int) -> tuple[int, float]:
    """The mirror of the queue: those above their margin first, then the least important; each by decreasing Q."""
    return (0 if metric >= margin else levels - level), -metric


def cost(out: NDArray[np.float64], slack: float, level: int) -> None:
    """What is missing to the margin, a place for each importance; then all slack together."""
    out[-1] += slack
    if slack < 0.0:
        out[level] += slack


qos_driven = Pieces(queue, gives_way, leaves, cost, name="qos-driven from pieces")
