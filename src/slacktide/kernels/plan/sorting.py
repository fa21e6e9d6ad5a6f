"""Sorting without the parts of NumPy that need a C library."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.runtime.compiling import kernel, whole


@kernel
def order_by(keys: NDArray[np.float64], count: int, order: NDArray[np.int64], scratch: NDArray[np.int64]) -> None:
    """The places of the first ``count`` keys by increasing key, equal ones as they stand, into ``order``; as long as
    ``scratch``; a merge sort, O(n log n)."""
    for i in range(count):
        order[i] = i
    width = whole(1)
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            if middle == end or keys[order[middle - 1]] <= keys[order[middle]]:
                continue  # as they stand
            left, right = whole(begin), whole(middle)
            for i in range(begin, end):
                if right >= end or (left < middle and keys[order[left]] <= keys[order[right]]):
                    scratch[i] = order[left]
                    left += 1
                else:
                    scratch[i] = order[right]
                    right += 1
            for i in range(begin, end):
                order[i] = scratch[i]
        width *= 2
