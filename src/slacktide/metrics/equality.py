"""How equal availabilities are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def gini(values: NDArray[np.float64]) -> float:
    """The Gini coefficient of ``values``, shape (n,), none negative; 0: all alike, near 1: one has everything.

    Half the mean difference of all pairs over the mean (da Silva et al. 2020, section 4.3.1)::

        G = sum_i sum_j |x_i - x_j| / (2 n^2 mean(x)) = 2 sum_i i x_(i) / (n sum(x)) - (n + 1) / n

    with ``x_(1) <= ... <= x_(n)``; at most ``1 - 1 / n``. 0 where all are 0, NaN of nothing. O(n log n).
    """
    count = len(values)
    if not count:
        return float("nan")
    lowest, highest = float(values.min()), float(values.max())
    if lowest == highest:
        return 0.0
    ordered = np.sort(values)
    weighted = float(np.dot(np.arange(1.0, count + 1.0), ordered))
    return max(0.0, 2.0 * weighted / (count * float(ordered.sum())) - (count + 1.0) / count)
