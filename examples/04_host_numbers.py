"""An allocation score of your own that knows hosts: who must not miss a promise goes to hosts that seldom fail.

    slacktide simulate WORKLOAD HOSTS --host-events EVENTS --set policy.score=examples/04_host_numbers.py:reliable

Parameters after the three arrays ask by their names for numbers: `slo` and `rank` of the class that is placed,
`failures` and `age` (seconds) of the host as the run has seen them. Any other name is that of an attribute of
the host, or of a node's label, NaN where it has none.
"""

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]
DAY = 86_400.0


def reliable(capacity: Amounts, free: Amounts, demand: Amounts, failures: float, age: float, slo: float) -> float:
    """Larger is better. Of hosts that fail alike, the one on which most stays free.

    A promise of .999 allows 86 s a day, one of .9 two hours and a half: so hosts that fail are for the latter.
    """
    often = (failures + 0.1) / (age / DAY + 1.0)  # failures a day; 0.1 in the first, before anything is known
    allowed = max(1.0 - slo, 1e-4) * 100.0
    roomiest = 1.0
    for r in range(len(capacity)):
        if capacity[r] > 0.0:
            roomiest = min(roomiest, (free[r] - demand[r]) / capacity[r])
    wanted = -often if allowed < 1.0 else often
    return wanted + 0.01 * roomiest
