"""What an instance takes of its host: its demand, or what it is granted up to its limit.

Equations are those of Lai, Wang and Wei, 'Delay-Aware Container Scheduling in Kubernetes'.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.runtime.compiling import leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State


@leaf
def granted(tb: State, shape: int, r: int, residual: int) -> int:
    """A of equation 9, whole amounts: share phi of what is left, not above the limit, not below the demand; O(1)."""
    least = views.demand(tb)[shape, r]
    if len(views.limit(tb)) == 0:
        return whole(least)
    share = whole(np.floor(views.rules(tb)["phi"] * residual))
    return whole(max(least, min(share, views.limit(tb)[shape, r])))


@leaf
def taken(tb: State, row: int, shape: int, r: int) -> int:
    """What an instance on a host takes of resource ``r``: what it was granted, or its demand; O(1)."""
    if len(views.granted(tb)) > 0:
        return whole(views.granted(tb)[row, r])
    return whole(views.demand(tb)[shape, r])


@leaf
def take(tb: State, row: int, h: int, shape: int) -> None:
    """Fix what the instance takes of host ``h`` from now on (equations 14 to 16); O(resources)."""
    for r in range(views.granted(tb).shape[1]):
        views.granted(tb)[row, r] = granted(tb, shape, whole(r), whole(views.free(tb)[h, r]))
