"""When a host can serve a request at the earliest, while its contents stay as they are.

Between events a waiting request's metric falls by 1 a second and a running
instance's rises by at most ``1/sigma - 1`` (docs/metric.md). What is infeasible now
therefore stays so for a time that can be computed; until then only changed hosts
need a look. Every bound here errs towards too early.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible import free_index, host_slots
from slacktide.kernels.place import victims
from slacktide.kernels.policies import in_force, qos_driven
from slacktide.kernels.policies.qos_driven import BETWEEN_EQUALS, BY_METRIC, NEVER
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.qos.metric import NEAR, running
from slacktide.kernels.qos.metric_dynamics import ceiling_at, pace, reaches
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State


@kernel
def under_limit_from(tb: State, slot: Records, now: float) -> float:
    """When the instance's overhead C comes down to its class's limit: e = c (1 - limit) / limit; O(1)."""
    limit = views.classes(tb)[slot["cls"]]["limit"]
    if limit <= 0.0:
        return np.inf
    if slot["request"] >= 0:
        return shared_under_limit_from(tb, whole(slot["request"]), limit, now)
    wanted = slot["overhead"] * (1.0 - limit) / limit
    return max(now, slot["on"]) + (wanted - running(slot, now))


@kernel
def shared_under_limit_from(tb: State, q: int, limit: float, now: float) -> float:
    """As :func:`under_limit_from`, of a request; O(1)."""
    request = views.requests(tb)[q]
    rate = request_ledger.gain(request, views.rules(tb)["accounting"])
    if rate <= 0.0:
        return np.inf
    wanted = request["overhead"] * (1.0 - limit) / limit
    return now + (wanted - request_ledger.earned(tb, q, now)) / rate - NEAR


@kernel
def over_margin_from(tb: State, slot: Records, now: float) -> float:
    """When the instance's metric reaches its margin by running on, inf for never; O(1)."""
    margin = views.classes(tb)[slot["cls"]]["margin"]
    if slot["request"] >= 0:
        rise, until, blur = pace(tb, slot, now)
        if rise <= 0.0:
            return until
        return min(until, now + (margin - request_ledger.metric_of(tb, slot, now) - blur) / rise - NEAR)
    return reaches(tb, slot, margin, now)


@kernel
def change_of_tier(tb: State, slot: Records, cls: int, now: float) -> float:
    """When the instance may become a victim by a rule that does not hold for it now; O(1)."""
    until = over_margin_from(tb, slot, now)
    if not qos_driven.within_overhead(tb, slot, cls, now):
        until = min(until, under_limit_from(tb, slot, now))
        if until < now:
            until = now
    return until


@kernel
def level_of(tb: State, h: int, cls: int, now: float) -> float:
    """A metric that a request of this demand must fall below before host ``h`` can serve it; -inf: none.

    ``views.missing(tb)`` must hold demand less free amounts. Victims count by decreasing
    level: their own metric, the request's margin where it is more important, their
    metric less patience between equals.
    """
    host_slots.sort_victims(tb, h, now)
    ours = views.classes(tb)[cls]
    idle_peak = peak_where_idle(tb, h, now)  # then victims do not come by decreasing metric
    for line in range(BY_METRIC, BETWEEN_EQUALS + 1):
        for i in range(views.hosts(tb)[h]["count"]):
            slot = views.slots(tb)[h, i]
            q = request_ledger.metric_of(tb, slot, now)
            if qos_driven.line_of(tb, slot, q, cls, now) == line and victims.release(tb, slot):
                return qos_driven.needed_level(tb, line, max(q, idle_peak), ours)
    return -np.inf


@kernel
def peak_where_idle(tb: State, h: int, now: float) -> float:
    """The largest metric on host ``h`` where idle instances are on it, else -inf; O(instances)."""
    peak, idle = -np.inf, False
    if views.hosts(tb)[h]["shared"] > 0:
        for i in range(views.hosts(tb)[h]["count"]):
            slot = views.slots(tb)[h, i]
            idle = idle or request_ledger.is_idle(tb, slot)
            peak = max(peak, request_ledger.metric_of(tb, slot, now))
    return peak if idle else -np.inf


@kernel
def earliest(tb: State, h: int, kind: int, mine: float, fall: float) -> float:
    """No instance of this kind fits on the unchanged host ``h`` before; O(instances).

    Its metric is at least one that falls from ``mine`` by ``fall`` a second.
    """
    now = views.control(tb)["now"]
    shape, cls, job = views.kinds(tb)[kind]["shape"], views.kinds(tb)[kind]["cls"], views.kinds(tb)[kind]["job"]
    host = views.hosts(tb)[h]
    if (
        host["down"]
        or not views.allowed(tb)[views.kinds(tb)[kind]["term"], host["group"]]
        or host_slots.has_sibling(tb, h, job)
    ):
        return np.inf
    until, fastest, blurred = np.inf, views.rules(tb)["fastest"], 0.0
    for i in range(host["count"]):
        slot = views.slots(tb)[h, i]
        q = request_ledger.metric_of(tb, slot, now)
        if slot["request"] >= 0:
            rise, holds, blur = pace(tb, slot, now)
            until, fastest, blurred = min(until, holds), max(fastest, rise), max(blurred, blur)
        line = qos_driven.line_of(tb, slot, q, cls, now)
        if line == NEVER or line == BETWEEN_EQUALS:
            until = min(until, change_of_tier(tb, slot, cls, now))
            if until <= now:
                return now
    free_index.has_room(tb, h, shape)
    level = level_of(tb, h, cls, now)
    if views.rules(tb)["needed"]:
        level = min(level, views.classes(tb)[cls]["margin"])
    if mine <= level + blurred:
        return now
    return min(until, now + (mine - level - blurred) / (fall + fastest))


@kernel
def meets_ceiling(tb: State, h: int, mine: float, fall: float, now: float) -> float:
    """When a request above its margin meets the ceiling of host ``h``; O(1)."""
    ceiling = views.ceilings(tb)[h]
    gap = mine - ceiling_at(ceiling, now)
    return min(ceiling["until"], now + gap / (fall + ceiling["rise"]))


@kernel
def earliest_below_ceilings(tb: State, mine: float, fall: float, margin: float) -> float:
    """As :func:`earliest_anywhere` for a request above its margin: when it meets a host's ceiling; O(hosts)."""
    now = views.control(tb)["now"]
    until = now + (mine - margin) / fall
    for h in range(len(views.hosts(tb))):
        until = min(until, meets_ceiling(tb, h, mine, fall, now))
    return max(until, now) - NEAR


@kernel
def earliest_anywhere(tb: State, kind: int, mine: float, fall: float) -> float:
    """As :func:`earliest`, of all hosts; O(all instances)."""
    now = views.control(tb)["now"]
    if mine == np.inf:
        return np.inf  # who can never miss its promise preempts nobody
    if not in_force.by_metric(tb):
        return np.inf  # a host that spares one less counts as changed
    cls = views.kinds(tb)[kind]["cls"]
    margin = views.classes(tb)[cls]["margin"]
    if qos_driven.can_wait(tb, cls, mine):
        return now + (mine - margin) / fall - NEAR
    if mine >= margin:
        return earliest_below_ceilings(tb, mine, fall, margin)
    until = np.inf
    for h in range(len(views.hosts(tb))):
        until = min(until, earliest(tb, h, kind, mine, fall))
        if until <= now:
            break
    return until - NEAR
