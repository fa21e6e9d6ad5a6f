"""An allocation score of your own: pack, so that large requests later find an empty host.

    slacktide simulate WORKLOAD HOSTS --set policy.score=examples/02_own_score.py:packed

Numba compiles a score, and it runs inside the kernels, at their speed. It sees one host at a time.
"""

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]


def packed(capacity: Amounts, free: Amounts, demand: Amounts) -> float:
    """Larger is better: how full the host will be, by its fuller resource, in 0 to 1.

    All arguments have shape (resources,), CPU and memory first, in the unit of the host file. ``free`` is
    what is free before the request is placed, with victims already gone.
    """
    fullest = 0.0
    for r in range(len(capacity)):
        if capacity[r] > 0.0:
            fullest = max(fullest, 1.0 - (free[r] - demand[r]) / capacity[r])
    return fullest
