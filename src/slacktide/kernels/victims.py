"""Who may be preempted on a host, and what it would cost (specification, section 4)."""

from __future__ import annotations

import numpy as np

from slacktide.kernels import board, budgets, free_index, grants, requests, views
from slacktide.kernels.compiling import kernel, leaf, whole
from slacktide.kernels.own import cost_of
from slacktide.kernels.tables import (
    FEWEST_VICTIMS,
    OWN_COST,
    PRIORITY,
    SCOPE_ALL,
    SCOPE_CLASS,
    SCOPE_LEVEL,
    SLACK,
    Records,
    State,
)


@leaf
def within_overhead(tb: State, slot: Records, cls: int, now: float) -> bool:
    """Whether the overhead limit lets a request of class ``cls`` preempt this instance; O(1)."""
    scope = views.rules(tb)["scope"]
    theirs = views.classes(tb)[slot["cls"]]
    applies = scope == SCOPE_ALL
    if scope == SCOPE_LEVEL:
        applies = theirs["rank"] <= views.classes(tb)[cls]["rank"]
    elif scope == SCOPE_CLASS:
        applies = slot["cls"] == cls
    return not applies or requests.overhead_of(tb, slot, now) <= theirs["limit"]


@leaf
def eligible(tb: State, slot: Records, q: float, cls: int, mine: float, now: float) -> bool:
    """Whether the instance with metric ``q`` may be preempted for one of class ``cls`` with metric ``mine``; O(1)."""
    theirs, ours = views.classes(tb)[slot["cls"]], views.classes(tb)[cls]
    below = mine < ours["margin"]
    if q >= theirs["margin"]:
        if not mine < q or (views.rules(tb)["needed"] and not below):
            return False
    else:
        if not below or ours["rank"] > theirs["rank"]:
            return False
        if ours["rank"] == theirs["rank"] and not mine + views.rules(tb)["patience"] < q:
            return False
    return within_overhead(tb, slot, cls, now)


@leaf
def validity(tb: State, slot: Records, q: float, cls: int) -> float:
    """The instance stays eligible for metrics clearly below this; O(1)."""
    theirs, ours = views.classes(tb)[slot["cls"]], views.classes(tb)[cls]
    if q >= theirs["margin"]:
        return min(q, ours["margin"]) if views.rules(tb)["needed"] else q
    if ours["rank"] == theirs["rank"]:
        return min(q - views.rules(tb)["patience"], ours["margin"])
    return ours["margin"]


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


@kernel
def choose_by_metric(tb: State, h: int, cls: int, mine: float, now: float) -> int:
    """Victims on host ``h`` into ``views.taken(tb)``; their number, or -1 where they do not suffice; O(instances)."""
    board.sort_victims(tb, h, now)
    batch = views.control(tb)["batch"]
    below = mine < views.classes(tb)[cls]["margin"]
    number = 0
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        q = requests.metric_of(tb, slot, now)
        idle = requests.is_idle(tb, slot)
        if i == 0 and not idle and q >= views.classes(tb)[slot["cls"]]["margin"] and views.rules(tb)["one_margin"]:
            board.lower_ceiling(tb, h, q, now)
        if not below and q <= mine and not idle:
            return -1  # nobody after this one is further above its promise and above its margin
        if slot["batch"] == batch or not eligible(tb, slot, q, cls, mine, now) or budgets.spared(tb, h, i, number, now):
            continue
        views.taken(tb)[number] = i
        number += 1
        if release(tb, slot):
            return number
    return -1


@kernel
def choose_by_priority(tb: State, h: int, cls: int, now: float) -> int:
    """As :func:`choose_by_metric`, for the priority policy; O(instances)."""
    board.sort_victims(tb, h, now)
    batch = views.control(tb)["batch"]
    number = 0
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        if views.classes(tb)[slot["cls"]]["rank"] <= views.classes(tb)[cls]["rank"]:
            return -1
        if slot["batch"] == batch or budgets.spared(tb, h, i, number, now):
            continue
        views.taken(tb)[number] = i
        number += 1
        if release(tb, slot):
            return number
    return -1


@kernel
def choose(tb: State, h: int, shape: int, cls: int, mine: float, now: float) -> int:
    """Victims that host ``h`` needs for this demand into ``taken``: 0 or more, or -1: infeasible; O(instances)."""
    control = views.control(tb)
    if views.hosts(tb)[h]["down"]:
        return -1
    control["operations"] += 1
    if free_index.has_room(tb, h, shape):
        return 0
    if control["mode"] == PRIORITY:
        return choose_by_priority(tb, h, cls, now)
    if views.rules(tb)["needed"] and not mine < views.classes(tb)[cls]["margin"]:
        return -1  # it can still wait
    return choose_by_metric(tb, h, cls, mine, now)


@kernel
def preemption_cost(tb: State, h: int, number: int, now: float, out: Records) -> None:
    """The cost tuple of the chosen victims into ``out``, shape (levels + 1,), larger is better; O(victims)."""
    levels = len(out) - 1
    out[:] = 0.0
    by_priority = views.control(tb)["mode"] == PRIORITY
    kind = views.rules(tb)["priority_cost"] if by_priority else views.rules(tb)["cost"]
    felt = 0
    for v in range(number):
        slot = views.slots(tb)[h, views.taken(tb)[v]]
        theirs = views.classes(tb)[slot["cls"]]
        views.ranks(tb)[v] = theirs["rank"]
        if not by_priority and requests.is_idle(tb, slot):
            views.slack(tb)[v] = np.inf
            continue
        felt += 1
        if kind == FEWEST_VICTIMS:
            out[theirs["level"]] -= 1.0
            continue
        slack = requests.metric_of(tb, slot, now) - theirs["margin"]
        views.slack(tb)[v] = slack
        out[levels] += slack
        if slack < 0.0:
            out[theirs["level"]] += slack
    if kind == SLACK and felt == 0 and number > 0:
        out[levels] = np.inf
    if kind == OWN_COST and number > 0:
        out[:] = 0.0
        cost_of(views.rules(tb)["own_cost"], views.slack(tb), views.ranks(tb), number, out)
        for m in range(levels + 1):
            if np.isnan(out[m]):
                views.control(tb)["broken"] = 1
                out[m] = -np.inf


@kernel
def result_validity(tb: State, h: int, number: int, cls: int, now: float) -> float:
    """The chosen victims are also those of any larger metric clearly below this; O(victims)."""
    limit = np.inf
    if views.control(tb)["mode"] == PRIORITY:
        return limit
    for v in range(number):
        slot = views.slots(tb)[h, views.taken(tb)[v]]
        q = requests.metric_of(tb, slot, now)
        limit = min(limit, validity(tb, slot, q, cls))
    return limit
