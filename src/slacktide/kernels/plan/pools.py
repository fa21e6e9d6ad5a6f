"""Pools: hosts that are all that some services can use, where those services ask for more than these have.

A zone, nodes with an accelerator, the few nodes that are large enough: room elsewhere does not help whoever can only
run there, and nobody who runs elsewhere can lend to them. So the plan asks of every pool what it asks of the whole
cluster, of those who are *bound* to it: whom no host outside could take. Pool 0 is the whole cluster. Whoever is bound
to it and runs outside (its host was cordoned since, or relabelled) takes room there that counts as the pool's.

A pool is known by a kind that can run there only. It is looked at from the first plan that finds it short, until it has
not been short for the longest window.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.feasible import host_slots
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State

MOST = 8
"""Pools that are looked at beside the whole cluster: those that came first."""
CANDIDATES = 64
"""Demands with their constraints of which a plan asks whether their hosts are short: the first in the workload."""
NONE = -1

Outside = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The most that a host outside of a pool has, by resource, and what was found of terms: -1 where one allows no such
host, 0 where nobody asked yet."""


@leaf
def is_used(tb: State, pool: int) -> bool:
    """Whether there is a pool of this number; O(1)."""
    return pool == 0 or views.pools(tb)[pool - 1]["kind"] != NONE


@kernel
def reaches_beyond(tb: State, kind: int, other: int) -> bool:
    """Whether a host that could take one of ``kind``, were it empty, could take none of ``other``; O(groups of hosts *
    resources)."""
    for g in range(len(views.groups(tb))):
        h = whole(views.leaf_host(tb)[views.groups(tb)[g]["first"]])
        if host_slots.holds_alone(tb, h, kind) and not host_slots.holds_alone(tb, h, other):
            return True
    return False


@kernel
def outside_of(tb: State, pool: int) -> Outside:
    """What is known of the hosts outside of a pool; O(groups of hosts * resources)."""
    most, reached = np.zeros(views.capacity(tb).shape[1], np.int64), np.zeros(len(views.allowed(tb)), np.int64)
    for g in range(len(views.groups(tb)) if pool > 0 else 0):
        h = whole(views.leaf_host(tb)[views.groups(tb)[g]["first"]])
        if not host_slots.holds_alone(tb, h, whole(views.pools(tb)[pool - 1]["kind"])):
            for r in range(len(most)):
                most[r] = max(most[r], views.capacity(tb)[h, r])
    return most, reached


@kernel
def reaches_outside(tb: State, pool: int, term: int) -> bool:
    """Whether a term allows a host outside of a pool; O(groups of hosts * resources)."""
    own = whole(views.pools(tb)[pool - 1]["kind"])
    for g in range(len(views.groups(tb))):
        h = whole(views.leaf_host(tb)[views.groups(tb)[g]["first"]])
        if views.allowed(tb)[term, g] and not host_slots.holds_alone(tb, h, own):
            return True
    return False


@kernel
def is_bound(tb: State, pool: int, kind: int, outside: Outside) -> bool:
    """Whether no host outside of a pool could take one of a kind, as is seen at once: by its term, by an amount that
    none has, or as it asks for what the pool's own kind does and more; O(resources), once a term O(groups of hosts)."""
    if pool == 0:
        return True
    most, reached = outside
    about, own = views.kinds(tb)[kind], views.kinds(tb)[views.pools(tb)[pool - 1]["kind"]]
    if reached[about["term"]] == 0:
        reached[about["term"]] = 1 if reaches_outside(tb, pool, whole(about["term"])) else -1
    if reached[about["term"]] < 0:
        return True
    no_less = about["term"] == own["term"]
    for r in range(len(most)):
        asked = views.demand(tb)[about["shape"], r]
        if asked > most[r]:
            return True
        no_less = no_less and asked >= views.demand(tb)[own["shape"], r]
    return no_less


@kernel
def hosts_of(tb: State, pool: int) -> NDArray[np.bool_]:
    """Which hosts are of a pool, shape (hosts,); O(hosts * resources)."""
    inside = np.ones(len(views.hosts(tb)), np.bool_)
    if pool > 0:
        for h in range(len(inside)):
            inside[h] = host_slots.holds_alone(tb, whole(h), whole(views.pools(tb)[pool - 1]["kind"]))
    return inside


@kernel
def is_everywhere(tb: State, kind: int) -> bool:
    """Whether every host that has anything could take one of a kind, were it empty; O(groups of hosts * resources)."""
    for g in range(len(views.groups(tb))):
        h = whole(views.leaf_host(tb)[views.groups(tb)[g]["first"]])
        if views.capacity(tb)[h].any() and not host_slots.holds_alone(tb, h, kind):
            return False
    return True


@kernel
def scarce_resource(tb: State, kind: int) -> int:
    """The first resource that a kind asks for and that some hosts have none of, or NONE: what those ask for who do not
    need it is no room for those who do; O(hosts * resources)."""
    demand, capacity = views.demand(tb), views.capacity(tb)
    for r in range(capacity.shape[1]):
        if demand[views.kinds(tb)[kind]["shape"], r] <= 0:
            continue
        for h in range(capacity.shape[0]):
            if capacity[h, r] <= 0 and capacity[h].any():
                return whole(r)
    return whole(NONE)


@kernel
def by_size(tb: State) -> NDArray[np.int64]:
    """The numbers of the pools that there are, those of the fewest hosts first, the whole cluster last; O(hosts)."""
    numbers, sizes, count = np.zeros(MOST + 1, np.int64), np.zeros(MOST + 1, np.int64), whole(0)
    for pool in range(MOST, -1, -1):
        if not is_used(tb, whole(pool)):
            continue
        size = hosts_of(tb, whole(pool)).sum() if pool > 0 else 2**62
        at = count
        while at > 0 and sizes[at - 1] > size:
            numbers[at], sizes[at] = numbers[at - 1], sizes[at - 1]
            at -= 1
        numbers[at], sizes[at] = pool, size
        count += 1
    return numbers[:count]
