"""Network-aware scheduling (NAS; Santos et al. 2019): the preferred host while it fits, then by distance to it.

Chosen where the source leaves it open: among hosts at one distance, and where nobody is
preferred, the draw decides. Its check of bandwidth is that of resource ``network``.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.runtime.compiling import addressed, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State

UNIT = 2.0**20


@leaf
def nearness(tb: State, h: int, shape: int) -> int:
    """Round-trip time between host ``h`` and what is preferred, 2^-20 s, negative; the host itself: 1; O(1)."""
    asks = views.access(tb)[shape]
    if asks["preferred"] == h and h >= 0:
        return whole(1)
    if asks["preferred_place"] < 0:
        return whole(0)
    return whole(-np.rint(views.rtt(tb)[asks["preferred_place"], views.place(tb)[h]] * UNIT))


@addressed
def score(tb: State, h: int, shape: int) -> int:
    """Where hosts are not compared with each other: :func:`nearness`; O(1)."""
    return nearness(tb, h, shape)


@addressed
def choose(tb: State, shape: int) -> int:
    """The nearest of the hosts whose points are not NOWHERE, or -1; O(hosts)."""
    host, best = NOBODY, whole(NOWHERE)
    for h in range(len(views.hosts(tb))):
        if views.points(tb)[h] == NOWHERE:
            continue
        mine = whole(nearness(tb, h, shape))
        if mine > best or (mine == best and views.hosts(tb)[h]["tie"] > views.hosts(tb)[host]["tie"]):
            host, best = whole(h), mine
    return host


CALLED = {"score": score, "choose": choose}
