"""The policy `priority` from pieces: four functions of numbers, compiled. It decides as the built-in one does.

    slacktide simulate WORKLOAD HOSTS --policy examples/05_priority_from_pieces.py:priority --set policy.score=mean

Parameters ask by their names for numbers: `level` is the importance of the class, 0 the most important; `waiting_level`
is that of who waits. All else (search, index, windows, groups, live) is as for the built-in policies.
"""

import numpy as np
from numpy.typing import NDArray

from slacktide.policy import Pieces


def queue(level: int, admitted: float) -> tuple[int, float]:
    """The least has its turn first: the most important class, of one class who came first."""
    return level, admitted


def gives_way(level: int, waiting_level: int) -> bool:
    """Whether one on a host may be preempted for one that waits: for one that is more important."""
    return level > waiting_level


def leaves(level: int, admitted: float) -> tuple[int, float]:
    """The least leaves first: the least important class, of one class who came last."""
    return -level, -admitted


def cost(out: NDArray[np.float64], level: int) -> None:
    """The host with the largest cost is chosen: that with the fewest victims of the most important class."""
    out[level] -= 1.0


priority = Pieces(queue, gives_way, leaves, cost, name="priority from pieces")
