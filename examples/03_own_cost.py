"""A preemption cost of your own: as few victims as possible. Of two equal choices it takes that with more slack.

    slacktide simulate WORKLOAD HOSTS --set policy.cost=examples/03_own_cost.py:gentle

Numba compiles a cost, and it runs inside the kernels. It compares hosts where the request fits only after
somebody is preempted. Who that would be is already chosen.
"""

import numpy as np
from numpy.typing import NDArray


def gentle(slack: NDArray[np.float64], rank: NDArray[np.int64], out: NDArray[np.float64]) -> None:  # noqa: ARG001
    """Write the cost into ``out``, compared place by place, larger is better.

    ``slack``, shape (victims,): seconds by which each victim is above its margin, below 0 where it is under it.
    It is empty for a host with room. ``rank``, shape (victims,): importance, 1 is the most important. ``out``,
    shape (distinct ranks of the workload + 1,), is all 0.
    """
    out[0] = -float(len(slack))
    least = np.inf
    for one in slack:  # code that runs in kernels must not raise, and min() of nothing would
        least = min(least, one)
    out[1] = least
