"""Availability of a request over its whole life, in each accounting of start-up time.

The availability is running time over all time since the admission::

    A = e / (e + p + d)

with e running, p pending and d lost again, in seconds. The accounting says which start-ups belong to e and which to p.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.model.service_class import SLO_TOLERANCE as SLO_TOLERANCE

Seconds = NDArray[np.float64]

ACCOUNTINGS: tuple[Accounting, ...] = get_args(Accounting)
TIMES = ("running", "pending", "startup_first", "startup_restarts", "discarded")
"""Of an instance these are, together, the seconds from its admission to now, its completion or removal."""


def availability(
    accounting: Accounting,
    running: Seconds,
    pending: Seconds,
    startup_first: Seconds,
    startup_restarts: Seconds,
    discarded: Seconds,
) -> NDArray[np.float64]:
    """Shape (n,), 0 to 1; 1 where nothing was owed yet.

    All arguments are seconds of shape (n,): useful running time, time in the queue, the first
    start-up, all later ones, and running time that was lost again. ``always`` counts every start-up as
    pending, ``restart`` all but the first, ``never`` none.
    """
    up = running
    if accounting != "always":
        up = up + startup_first
    if accounting == "never":
        up = up + startup_restarts
    whole = running + startup_first
    whole += startup_restarts
    whole += pending
    whole += discarded
    return np.divide(up, whole, out=np.ones_like(whole), where=whole > 0.0)


def fulfilled(achieved: NDArray[np.float64], slo: float | NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each promise was kept: ``A >= slo - SLO_TOLERANCE``. Shapes (n,), and (n,) or one number."""
    return np.asarray(achieved >= slo - SLO_TOLERANCE, dtype=np.bool_)
