"""What hosts could give to those of an overloaded class: bounds that save looking at hosts in vain.

Under triage most of those who look for victims find nobody (docs/overload.md). Who is eligible for them depends on
the rank of their class, on whether they are savable or lost, of the lost on whether their class recovers, and of the
savable on what they ask for (:mod:`slacktide.kernels.policies.triage`). So a host has three bounds for each rank, one
for the savable and two for the lost, of two parts: its free amounts with all that those take who may be preempted
whatever j asks for; and the most that any other of equal importance demands, in each resource. Where the first is less
than what j asks for, and the second less than twice that, j finds nobody there. Both hold until the first of the
others may become eligible, while the host's contents stay. In a pass the largest of each bound is kept, of all hosts
and of some that are next to each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.feasible import grants
from slacktide.kernels.feasible.free_index import PLENTY
from slacktide.kernels.policies import triage
from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.qos.metric import NEAR
from slacktide.kernels.qos.metric_dynamics import reaches
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State

STANDINGS = 3
"""Bounds of each rank."""
BLOCK = 16
"""So many hosts, one after the other, have a bound of them all: most of those who find nobody look at no host."""


@leaf
def place_of(tb: State, cls: int, stands: float) -> int:
    """The place of a bound on a host: for the savable of the rank of ``cls``, its lost that recover, its others."""
    lost = 0 if stands != triage.LOST else 1 if triage.recovers(tb, cls) else 2
    return whole(STANDINGS * views.classes(tb)[cls]["level"] + lost)


@kernel
def may_give_from(tb: State, slot: Records, q: float, cls: int, stands: float, now: float) -> float:
    """When an instance that may not be preempted for one that ``stands`` so may become eligible, or inf; O(1)."""
    k, j, rules = views.classes(tb)[slot["cls"]], views.classes(tb)[cls], views.rules(tb)
    if k["rank"] < j["rank"] or window_ledger.goes_for_good(slot):
        return np.inf
    if stands == triage.LOST and k["rank"] == j["rank"]:
        return reaches(tb, slot, k["margin"] + rules["overload_patience"], now)
    until = reaches(tb, slot, k["margin"] + rules["patience"], now)
    if rules["floor"] > 0.0 and q < k["late_below"]:
        return now  # it is spared while it starves, and may have enough at any time
    if now < slot["on"]:  # its metric falls: it may be lost before its start-up is over
        until = min(until, now + max(0.0, q - k["late_below"]) - NEAR)
    return until


@kernel
def look_through(tb: State, h: int, cls: int, stands: float, now: float) -> None:
    """Work out the bound of host ``h`` for those of class ``cls`` that stand so; O(instances on it)."""
    at, resources = place_of(tb, cls, stands), views.free(tb).shape[1]
    bound = views.lendable(tb)[h, at]
    for r in range(resources):
        bound[r] = views.free(tb)[h, r]
        bound[resources + r] = 0
    until = np.inf
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        q, row, shape = request_ledger.metric_of(tb, slot, now), whole(slot["row"]), whole(slot["shape"])
        if triage.allows_any(tb, slot, q, cls, stands, now):
            for r in range(resources):
                bound[r] += grants.taken(tb, row, shape, r)
            continue
        until = min(until, may_give_from(tb, slot, q, cls, stands, now))
        if views.classes(tb)[slot["cls"]]["rank"] == views.classes(tb)[cls]["rank"]:
            for r in range(resources):
                bound[resources + r] = max(bound[resources + r], views.demand(tb)[shape, r])
    views.lendable_until(tb)[h, at] = until


@leaf
def falls_short(tb: State, bound: NDArray[np.int64], shape: int, stands: float) -> bool:
    """Whether a bound shows that this demand is not to be had for one that stands so; O(resources)."""
    resources = views.demand(tb).shape[1]
    enough, room_for_two = True, stands != triage.LOST
    for r in range(resources):
        demand = views.demand(tb)[shape, r]
        enough = enough and (demand == 0 or demand <= bound[r])
        room_for_two = room_for_two and triage.ROOMS * demand <= bound[resources + r]
    return not enough and not room_for_two


@leaf
def too_little(tb: State, h: int, shape: int, cls: int, stands: float, now: float) -> bool:
    """Whether host ``h`` can surely not give this demand to one of class ``cls`` that stands so; O(resources).

    Now and then O(instances). False, too, where requests of several instances are on the host: their metrics change
    without its contents.
    """
    if stands > triage.LOST:
        return True  # it preempts nobody
    if views.hosts(tb)[h]["shared"] > 0:
        return False
    at = place_of(tb, cls, stands)
    if not now < views.lendable_until(tb)[h, at]:
        look_through(tb, h, cls, stands, now)
    return falls_short(tb, views.lendable(tb)[h, at], shape, stands)


@kernel
def include(tb: State, h: int, cls: int, stands: float) -> None:
    """Raise the bounds of all hosts, and of its block, to that of host ``h`` as it is now.

    O(resources), now and then O(instances).
    """
    at, now = place_of(tb, cls, stands), views.control(tb)["now"]
    most, block = views.most_lendable(tb)[at], views.block_lendable(tb)[at, h // BLOCK]
    if views.hosts(tb)[h]["shared"] > 0:
        views.lenders(tb)[at]["unknown"] = 1
        block[:] = PLENTY
        return
    if not now < views.lendable_until(tb)[h, at]:
        look_through(tb, h, cls, stands, now)
    for i in range(len(most)):
        most[i] = max(most[i], views.lendable(tb)[h, at, i])
        block[i] = max(block[i], views.lendable(tb)[h, at, i])


@kernel
def nobody_lends(tb: State, shape: int, cls: int, stands: float) -> bool:
    """Whether this demand is more than any host can give to one of class ``cls`` that stands so; O(resources).

    The first time in a pass O(hosts), later and then O(hosts that changed since).
    """
    if stands > triage.LOST:
        return True
    control, changes, at = views.control(tb), views.changes(tb), place_of(tb, cls, stands)
    lenders = views.lenders(tb)[at]
    if lenders["batch"] != control["batch"] or control["changes"] - lenders["position"] > len(changes):
        lenders["batch"], lenders["unknown"] = control["batch"], 0
        views.most_lendable(tb)[at, :] = 0
        views.block_lendable(tb)[at, :, :] = 0
        for h in range(len(views.hosts(tb))):
            include(tb, h, cls, stands)
    else:
        for i in range(lenders["position"], control["changes"]):
            include(tb, whole(changes[i % len(changes)]), cls, stands)
    lenders["position"] = control["changes"]
    return not lenders["unknown"] and falls_short(tb, views.most_lendable(tb)[at], shape, stands)


@leaf
def block_lends_nothing(tb: State, h: int, shape: int, cls: int, stands: float) -> bool:
    """Whether this demand is more than any host of the block of ``h`` can give; after :func:`nobody_lends` said that
    some host may; O(resources)."""
    return falls_short(tb, views.block_lendable(tb)[place_of(tb, cls, stands), h // BLOCK], shape, stands)


@kernel
def forget(tb: State, h: int) -> None:
    """The contents of host ``h`` changed; O(levels)."""
    if len(views.lendable(tb)) > 0:
        for at in range(views.lendable_until(tb).shape[1]):
            views.lendable_until(tb)[h, at] = -np.inf
