"""ElasticFog (Nguyen et al. 2020): an application's instances in proportion to the traffic of each host.

The source resizes a running application by the traffic that enters at each node, at
least one instance each. Here instances come one after the other and stay. Chosen where
that leaves something open:

- the traffic of an application is that of its instances so far and of this one, one
  unit each, by the shares of their users;
- that of users on a host enters there; that of a place that is no host enters at all
  hosts in inverse proportion to their round-trip times from it;
- a host's target is its part of the traffic times the instances; the next goes to the
  host that lacks most of its target, hosts without any first; ties by draw.

Applications are jobs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.runtime.compiling import addressed, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State

UNIT = 2.0**20
NEAREST = 1e-9  # seconds; no distance counts as less


@leaf
def weight(tb: State, place: int, h: int) -> float:
    """By how much traffic of a place enters at host ``h``; O(1)."""
    return 1.0 / max(views.rtt(tb)[place, views.place(tb)[h]], NEAREST)


@leaf
def add_traffic(tb: State, shape: int, at_hosts: NDArray[np.float64], at_places: NDArray[np.float64]) -> float:
    """Add one instance's users to where their traffic enters; their shares together; O(logins)."""
    asks, total = views.access(tb)[shape], 0.0
    for i in range(asks["logins_at"], asks["logins_at"] + asks["logins"]):
        login = views.logins(tb)[i]
        total += login["share"]
        if login["host"] >= 0:
            at_hosts[login["host"]] += login["share"]
        else:
            at_places[login["place"]] += login["share"]
    return total


@kernel
def traffic(tb: State, shape: int, at: NDArray[np.float64], there: NDArray[np.int64]) -> tuple[int, float]:
    """Traffic by host into ``at`` and the application's instances by host into ``there``; how many these are with the
    new one, and all their traffic; O(instances * logins + hosts * places)."""
    hosts, places = len(views.hosts(tb)), np.zeros(len(views.places(tb)))
    total, seen = add_traffic(tb, shape, at, places), whole(1)
    for h in range(hosts):
        for i in range(views.hosts(tb)[h]["count"]):
            other = whole(views.slots(tb)[h, i]["shape"])
            if views.access(tb)[other]["application"] == views.access(tb)[shape]["application"]:
                total += add_traffic(tb, other, at, places)
                there[h] += 1
                seen += 1
    for p in range(len(places)):
        if places[p] == 0.0:
            continue
        every = 0.0
        for h in range(hosts):
            every += weight(tb, whole(p), whole(h))
        for h in range(hosts):
            at[h] += places[p] * (weight(tb, whole(p), whole(h)) / every)
    return seen, total


@addressed
def choose(tb: State, shape: int) -> int:
    """The host that lacks most of its target, of those whose points are not NOWHERE, or -1; O(instances * logins)."""
    at, there = np.zeros(len(views.hosts(tb))), np.zeros(len(views.hosts(tb)), np.int64)
    seen, total = traffic(tb, shape, at, there)
    host, best = NOBODY, whole(NOWHERE)
    for h in range(len(views.hosts(tb))):
        if views.points(tb)[h] == NOWHERE:
            continue
        lacks = at[h] * seen / (total if total > 0.0 else 1.0) - there[h]
        if there[h] == 0:
            lacks += seen + 1.0
        mine = whole(np.rint(lacks * UNIT))
        if mine > best or (mine == best and views.hosts(tb)[h]["tie"] > views.hosts(tb)[host]["tie"]):
            host, best = whole(h), mine
    return host


CALLED = {"choose": choose}
