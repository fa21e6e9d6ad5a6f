"""Whether an account allows one disruption more: how many there were, how long ago, and at what time of the week.

docs/semantics.md, 'Limits on disruption'. A limit that loosens does so by time alone. What is known of failures by
metric takes nobody to be protected (:mod:`slacktide.kernels.memo.infeasibility_memo`), so it holds whatever loosens.
What is known by rank does not: each pass begins as if something had loosened (:func:`pass_begins`), and no pass is
left out (:mod:`slacktide.kernels.memo.standstill`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slacktide.kernels.feasible import pod_groups
from slacktide.kernels.runtime.compiling import entry, kernel, leaf, whole
from slacktide.kernels.tables import limit_records, views
from slacktide.kernels.tables.schema import State

# Not literals, so that kernels are compiled once.
ALLOWED: Any = np.int64(limit_records.ALLOWED)
TOO_MANY: Any = np.int64(limit_records.TOO_MANY)
COOLING: Any = np.int64(limit_records.COOLING)
CLOSED: Any = np.int64(limit_records.CLOSED)


@leaf
def any_limits(tb: State) -> bool:
    """Whether disruptions of anybody are limited; O(1)."""
    return len(views.disruption_limits(tb)) > 0


@leaf
def pass_begins(tb: State) -> None:
    """Since the last pass any limit may have loosened, and any group may go by now; O(1)."""
    if any_limits(tb) or pod_groups.any_whole(tb):
        views.control(tb)["loosened"] += 1


@leaf
def account_of(tb: State, row: int) -> int:
    """The account of an instance, or -1: nothing limits its disruptions; O(1)."""
    if len(views.disruption_account(tb)) == 0:
        return whole(-1)
    return whole(views.disruption_account(tb)[row])


@kernel
def is_open(tb: State, at: int, count: int, now: float) -> bool:
    """Whether ``now`` lies in one of ``count`` intervals, in order from ``at`` on; O(log count)."""
    hours = views.open_hours(tb)
    low, high = at, at + count  # the first interval that ends after now
    while low < high:
        middle = (low + high) // 2
        if hours[middle, 1] <= now:
            low = middle + 1
        else:
            high = middle
    return low < at + count and hours[low, 0] <= now


@kernel
def forbidden(tb: State, a: int, used: int, now: float) -> int:
    """What forbids account ``a`` a disruption beside ``used`` others of this instant, ALLOWED where nothing does."""
    account = views.disruption_accounts(tb)[a]
    limits = views.disruption_limits(tb)[account["limits"]]
    if limits["most"] >= 0:
        left = limits["most"] - used
        if left <= 0:
            return TOO_MANY
        if account["begun"] >= left:  # then this one of the past must have aged out
            at = account["first"] + (account["begun"] - left) % limits["most"]
            if now < views.disruptions(tb)[at] + limits["per"]:
                return TOO_MANY
    cooldown = limits["cooldown"]
    if cooldown > 0.0 and (used > 0 or account["recovering"] > 0 or now < account["ended"] + cooldown):
        return COOLING
    if limits["hours"] >= 0 and not is_open(tb, whole(limits["hours_at"]), whole(limits["hours"]), now):
        return CLOSED
    return ALLOWED


@kernel
def protects(tb: State, h: int, i: int, number: int, now: float) -> int:
    """What forbids to disrupt the instance in slot ``i`` of host ``h``, ``number`` of others chosen; O(chosen)."""
    a = account_of(tb, whole(views.slots(tb)[h, i]["row"]))
    if a < 0:
        return ALLOWED
    used = whole(views.disruption_accounts(tb)[a]["tried"])
    for v in range(number):
        used += account_of(tb, whole(views.slots(tb)[h, views.taken(tb)[v]]["row"])) == a
    for c in range(views.control(tb)["companions"] if number > 0 else 0):
        used += account_of(tb, whole(views.companions(tb)[c])) == a
    return forbidden(tb, a, used, now)


@kernel
def begin(tb: State, row: int, now: float) -> None:
    """A disruption of an instance begins; O(1)."""
    a = account_of(tb, row)
    if a < 0:
        return
    account, control = views.disruption_accounts(tb)[a], views.control(tb)
    most = views.disruption_limits(tb)[account["limits"]]["most"]
    if most > 0:
        views.disruptions(tb)[account["first"] + account["begun"] % most] = now
    account["begun"] += 1
    if views.disrupted_at(tb)[row] == -np.inf:
        account["recovering"] += 1
    views.disrupted_at(tb)[row] = now
    if account["several"]:  # else nobody is left who could be disrupted
        control["tightened"] = control["looks"] + 1


@kernel
def over(tb: State, row: int, now: float) -> None:
    """An instance is ready, or no more: its disruption has ended, if there was one; O(1)."""
    a = account_of(tb, row)
    if a < 0 or views.disrupted_at(tb)[row] == -np.inf:
        return
    account = views.disruption_accounts(tb)[a]
    views.disrupted_at(tb)[row] = -np.inf
    account["recovering"] -= 1
    account["ended"] = max(account["ended"], now)


@kernel
def recovers(tb: State, row: int) -> bool:
    """Whether a disruption of the instance has not ended; O(1)."""
    return account_of(tb, row) >= 0 and views.disrupted_at(tb)[row] > -np.inf


@kernel
def try_one(tb: State, row: int, by: int) -> None:
    """Count a disruption of a trial (1), or take it back (-1); O(1)."""
    a = account_of(tb, row)
    if a < 0:
        return
    control = views.control(tb)
    views.disruption_accounts(tb)[a]["tried"] += by
    if not views.disruption_accounts(tb)[a]["several"]:
        return
    if by > 0:
        control["tightened"] = control["looks"] + 1
    else:
        control["loosened"] += 1


@kernel
def take_back(tb: State, row: int, recovers: bool) -> None:
    """The disruption of an instance that began last did not come to be; it ``recovers`` from an earlier one; O(most).

    What it took the place of had aged out, as else it had not been allowed.
    """
    a = account_of(tb, row)
    if a < 0 or views.disrupted_at(tb)[row] == -np.inf:
        return
    account, ring = views.disruption_accounts(tb)[a], views.disruptions(tb)
    most, first = whole(views.disruption_limits(tb)[account["limits"]]["most"]), whole(account["first"])
    begun = whole(account["begun"])
    if most > 0:
        at = begun - 1
        while at > max(0, begun - most) and ring[first + at % most] != views.disrupted_at(tb)[row]:
            at -= 1
        for later in range(at + 1, begun):
            ring[first + (later - 1) % most] = ring[first + later % most]
        ring[first + (begun - 1) % most] = -np.inf
    account["begun"] = max(begun - 1, 0)
    if not recovers:
        views.disrupted_at(tb)[row] = -np.inf
        account["recovering"] -= 1
    views.control(tb)["loosened"] += 1


@entry
def limit_in_force(tb: State, row: int, now: float) -> int:
    """What forbids to disrupt an instance now, ALLOWED where nothing does; O(log hours)."""
    a = account_of(tb, row)
    return ALLOWED if a < 0 else forbidden(tb, a, whole(0), now)
