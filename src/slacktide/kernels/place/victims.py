"""Which instances on a host would be preempted, and what that would cost, by the rules of the policy in force."""

from __future__ import annotations

import numpy as np

from slacktide.kernels.builtin import FEWEST_VICTIMS, OWN, SLACK
from slacktide.kernels.feasible import disruption_budgets, free_index, grants, host_slots, leeway
from slacktide.kernels.policies import in_force, priority, qos_driven
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.runtime.plugin_calls import cost_of
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State


@leaf
def release(tb: State, slot: Records) -> bool:
    """Take a victim's amounts off ``views.missing(tb)``; whether nothing is missing any more; O(resources)."""
    enough = True
    row, shape = whole(slot["row"]), whole(slot["shape"])
    for r in range(len(views.missing(tb))):
        views.missing(tb)[r] -= grants.taken(tb, row, shape, r)
        if views.missing(tb)[r] > 0:
            enough = False
    return enough


@leaf
def take_back(tb: State, slot: Records) -> bool:
    """The reverse of :func:`release`, of one that stays; whether nothing is missing even so; O(resources)."""
    enough = True
    row, shape = whole(slot["row"]), whole(slot["shape"])
    for r in range(len(views.missing(tb))):
        views.missing(tb)[r] += grants.taken(tb, row, shape, r)
        if views.missing(tb)[r] > 0:
            enough = False
    return enough


@kernel
def choose_by_metric(tb: State, h: int, cls: int, mine: float, now: float) -> int:
    """Victims on host ``h`` into ``views.taken(tb)``; their number, or -1 where they do not suffice; O(instances)."""
    host_slots.sort_victims(tb, h, now)
    batch = views.control(tb)["batch"]
    number = 0
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        q = request_ledger.metric_of(tb, slot, now)
        idle = request_ledger.is_idle(tb, slot)
        if slot["request"] >= 0:
            leeway.keep_eligibility(tb, slot, q, cls, mine, now)
        if i == 0 and not idle and q >= views.classes(tb)[slot["cls"]]["margin"] and views.rules(tb)["one_margin"]:
            host_slots.lower_ceiling(tb, h, leeway.most_of(tb, slot, q, now), now)
        if qos_driven.none_after(tb, slot, q, idle, cls, mine):
            return -1
        if (
            slot["batch"] == batch
            or not qos_driven.eligible(tb, slot, q, cls, mine, now)
            or disruption_budgets.spared(tb, h, i, number, now)
        ):
            continue
        views.taken(tb)[number] = i
        number += 1
        if release(tb, slot):
            return number
    return -1


@kernel
def choose_by_priority(tb: State, h: int, cls: int, now: float) -> int:
    """As :func:`choose_by_metric`, where no metric is asked for; O(instances)."""
    host_slots.sort_victims(tb, h, now)
    batch = views.control(tb)["batch"]
    number = 0
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        if not in_force.eligible_by_class(tb, slot, cls):
            return -1  # nor is anybody after this one
        if slot["batch"] == batch or disruption_budgets.spared(tb, h, i, number, now):
            continue
        views.taken(tb)[number] = i
        number += 1
        if release(tb, slot):
            return number
    return -1


@kernel
def choose(tb: State, h: int, shape: int, cls: int, mine: float, now: float) -> int:
    """Victims that host ``h`` needs for this demand into ``taken``: 0 or more, or -1: infeasible; O(instances)."""
    if views.hosts(tb)[h]["down"]:
        return -1
    views.control(tb)["operations"] += 1
    if free_index.has_room(tb, h, shape):
        return 0
    if not in_force.by_metric(tb):
        return choose_by_priority(tb, h, cls, now)
    if qos_driven.can_wait(tb, cls, mine):
        return -1
    return choose_by_metric(tb, h, cls, mine, now)


@kernel
def preemption_cost(tb: State, h: int, number: int, now: float, out: Records) -> None:
    """The cost tuple of the chosen victims into ``out``, shape (levels + 1,), larger is better; O(victims)."""
    levels = len(out) - 1
    out[:] = 0.0
    by_metric, cost = in_force.by_metric(tb), in_force.cost(tb)
    felt = 0
    for v in range(number):
        slot = views.slots(tb)[h, views.taken(tb)[v]]
        theirs = views.classes(tb)[slot["cls"]]
        views.ranks(tb)[v] = theirs["named_rank"]
        if by_metric and request_ledger.is_idle(tb, slot):
            views.slack(tb)[v] = np.inf
            continue
        felt += 1
        if cost == FEWEST_VICTIMS:
            priority.add_cost(out, theirs["level"])
            continue
        slack = request_ledger.metric_of(tb, slot, now) - theirs["margin"]
        views.slack(tb)[v] = slack
        qos_driven.add_cost(out, theirs["level"], slack)
    if cost == SLACK and felt == 0 and number > 0:
        qos_driven.no_cost(out)
    if cost == OWN and number > 0:
        out[:] = 0.0
        cost_of(views.rules(tb)["own_cost"], views.slack(tb), views.ranks(tb), number, out)
        for m in range(levels + 1):
            if np.isnan(out[m]):
                views.control(tb)["broken"] = 1
                out[m] = -np.inf


@kernel
def longest_grace(tb: State, h: int, number: int) -> float:
    """Seconds that the last of the chosen victims may take to end; O(victims)."""
    longest = 0.0
    for v in range(number):
        row = views.slots(tb)[h, views.taken(tb)[v]]["row"]
        longest = max(longest, views.kinds(tb)[views.instances(tb)[row]["kind"]]["grace"])
    return longest


@kernel
def result_validity(tb: State, h: int, number: int, cls: int, now: float) -> float:
    """The chosen victims are also those of any larger metric clearly below this; O(victims)."""
    limit = np.inf
    if not in_force.by_metric(tb):
        return limit
    for v in range(number):
        slot = views.slots(tb)[h, views.taken(tb)[v]]
        q = request_ledger.metric_of(tb, slot, now)
        if not views.classes(tb)[cls]["overloaded"]:
            q = leeway.least_of(tb, slot, q, now)
        limit = min(limit, qos_driven.eligible_below(tb, slot, q, cls, now))
    return limit
