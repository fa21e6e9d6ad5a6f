"""When somebody on a host ceases to be spared for the time it has run, so that the host is to be looked at again.

By class only the contents of hosts make a difference, and time by this alone (``policy.min_running``, and what a live
cluster says of single instances). So a host counts as changed at the instant at which it spares one less, and all that
was found out about the others stays (:mod:`slacktide.kernels.memo.infeasibility_memo`). A complete binary tree over all
hosts keeps the earliest of these instants. It is there where passes may decide by class and time may spare somebody.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible import disruption_budgets
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State


@kernel
def look_through(tb: State, h: int) -> None:
    """Contents of host ``h`` changed: when it spares one less next; O(instances on it + log hosts)."""
    wakes, now, earliest = views.wakes(tb), views.control(tb)["now"], np.inf
    if len(wakes) == 0:
        return
    for i in range(views.hosts(tb)[h]["count"]):
        until = disruption_budgets.spared_until(tb, views.slots(tb)[h, i])
        if until > now:
            earliest = min(earliest, until)
    node = (len(wakes) >> 1) + h
    wakes[node] = earliest
    node >>= 1
    while node > 0:
        earliest = min(wakes[2 * node], wakes[2 * node + 1])
        if wakes[node] == earliest:
            return
        wakes[node] = earliest
        node >>= 1


@leaf
def next_instant(tb: State) -> float:
    """When some host spares one less, inf for never; O(1)."""
    return views.wakes(tb)[1] if len(views.wakes(tb)) > 0 else np.inf


@kernel
def first_host(tb: State) -> int:
    """The host of which :func:`next_instant` tells; O(log hosts)."""
    wakes, node = views.wakes(tb), whole(1)
    width = len(wakes) >> 1
    while node < width:
        node = 2 * node if wakes[2 * node] == wakes[node] else 2 * node + 1
    return node - width
