"""What a failure proves: until when, and at which hosts, looking again is of no use (docs/metric.md).

Where users are makes no difference to that, so that it is kept at the first of the kinds that are alike.

Between events a waiting request's metric falls by 1 a second and a running instance's rises by at most
``1/sigma - 1``. What is infeasible on a host now therefore stays so, while its contents stay, for a time that can be
computed; until then only changed hosts need a look. Every bound here errs towards too early.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible import free_index, host_slots, victim_order
from slacktide.kernels.memo import lesser_demands, own_failures
from slacktide.kernels.place import victims
from slacktide.kernels.place.search import MANY
from slacktide.kernels.policies import in_force, pieces, qos_driven
from slacktide.kernels.policies.qos_driven import BETWEEN_EQUALS, BY_METRIC, NEVER
from slacktide.kernels.qos import metric_dynamics, request_ledger
from slacktide.kernels.qos.metric import NEAR, running
from slacktide.kernels.qos.metric_dynamics import ceiling_at, pace, reaches
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
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
def earliest(tb: State, h: int, kind: int, q_j: float, fall: float) -> float:
    """No instance of this kind fits on the unchanged host ``h`` before; O(instances).

    Its metric is at least one that falls from ``q_j`` by ``fall`` a second.
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
    if q_j <= level + blurred:
        return now
    return min(until, now + (q_j - level - blurred) / (fall + fastest))


@kernel
def meets_ceiling(tb: State, h: int, q_j: float, fall: float, now: float) -> float:
    """When a request above its margin meets the ceiling of host ``h``; O(1)."""
    ceiling = views.ceilings(tb)[h]
    gap = q_j - ceiling_at(ceiling, now)
    return min(ceiling["until"], now + gap / (fall + ceiling["rise"]))


@kernel
def earliest_below_ceilings(tb: State, q_j: float, fall: float, margin: float) -> float:
    """As :func:`earliest_anywhere` for a request above its margin: when it meets a host's ceiling; O(hosts)."""
    now = views.control(tb)["now"]
    until = now + (q_j - margin) / fall
    for h in range(len(views.hosts(tb))):
        until = min(until, meets_ceiling(tb, h, q_j, fall, now))
    return max(until, now) - NEAR


@kernel
def earliest_anywhere(tb: State, kind: int, q_j: float, fall: float) -> float:
    """As :func:`earliest`, of all hosts; O(all instances)."""
    now = views.control(tb)["now"]
    if q_j == np.inf:
        return np.inf  # who can never miss its promise preempts nobody
    if not in_force.by_metric(tb):
        return np.inf  # a host that spares one less counts as changed
    if pieces.decide(tb):
        return own_failures.lasts_until(tb, kind, q_j, fall, whole(-1)) - NEAR
    cls = views.kinds(tb)[kind]["cls"]
    margin = views.classes(tb)[cls]["margin"]
    if qos_driven.can_wait(tb, cls, q_j):
        return now + (q_j - margin) / fall - NEAR
    if q_j >= margin:
        return earliest_below_ceilings(tb, q_j, fall, margin)
    until = np.inf
    for h in range(len(views.hosts(tb))):
        until = min(until, earliest(tb, h, kind, q_j, fall))
        if until <= now:
            break
    return until - NEAR


PAYS = 8
"""For so many passes a failure must have held, so that its end was worth working out: that costs as much as some looks
at all hosts, of which each pass saves one."""


@leaf
def covers(tb: State, kind: Records, q_j: float) -> bool:
    """Whether the last failure in this pass, with a metric no larger, is one of this metric as well; O(1)."""
    if kind["batch"] != views.control(tb)["batch"]:
        return False
    key = in_force.on_path(tb, q_j, 1.0)
    return key >= kind["pass_key"] and victim_order.says_the_same(tb, kind["order_mattered"], key == kind["pass_key"])


@kernel
def known_since(tb: State, k: int, q_j: float) -> int:
    """Position in the change log up to which every host is known to be of no use to kind ``k`` with this metric, or -1.

    O(1); O(resources) where only others of its class say so.
    """
    alike = whole(views.kinds(tb)[k]["alike"])
    control, kind = views.control(tb), views.kinds(tb)[alike]
    if views.rules(tb)["naive"]:
        return -1
    position = whole(-1)
    tight = kind["loosened"] == control["loosened"]
    lasts = control["now"] < kind["until"] and (tight or in_force.by_metric(tb))
    in_pass = tight and covers(tb, kind, q_j)
    if in_pass:
        position = kind["pass_position"]
    elif lasts and in_force.on_path(tb, q_j, kind["fall"]) >= kind["key"] - kind["slop"]:
        position = kind["position"]
    else:
        position = lesser_demands.known_since(tb, alike, q_j)
    if position >= 0 and control["changes"] - position > min(len(views.changes(tb)), 2 * len(views.hosts(tb)) + MANY):
        return -1  # there is less to look at everywhere
    if in_pass and kind["order_mattered"]:
        control["order_mattered"] = 1  # a look at what changed since tells no more than that one did
    return position


@kernel
def earliest_at_changes(tb: State, kind: int, q_j: float, fall: float, position: int) -> float:
    """As :func:`.earliest_feasible.earliest_anywhere`, of the hosts that changed since ``position``."""
    until, now, cls = np.inf, views.control(tb)["now"], views.kinds(tb)[kind]["cls"]
    if not in_force.by_metric(tb) or q_j == np.inf:
        return until
    if pieces.decide(tb):
        return own_failures.lasts_until(tb, kind, q_j, fall, position) - NEAR
    margin = views.classes(tb)[cls]["margin"]
    if qos_driven.can_wait(tb, cls, q_j):
        return now + (q_j - margin) / fall - NEAR
    by_ceiling = q_j >= margin
    if by_ceiling:
        until = now + (q_j - margin) / fall
    for i in range(position, views.control(tb)["changes"]):
        h = whole(views.changes(tb)[i % len(views.changes(tb))])
        if by_ceiling:
            until = min(until, meets_ceiling(tb, h, q_j, fall, now))
        else:
            until = min(until, earliest(tb, h, kind, q_j, fall))
        if until <= now:
            break
    return max(until, now) - NEAR


@kernel
def worth_computing(tb: State, kind: Records) -> bool:
    """Whether to compute how long a failure lasts; after disappointments ever more rarely. Changes no result."""
    if kind["wait"] > 0:
        kind["wait"] -= 1
        return False
    passes = views.control(tb)["batch"]
    if kind["until"] > -np.inf:
        if passes - kind["worked_out"] < PAYS:
            kind["penalty"] = min(2 * kind["penalty"] + 1, 63)
            kind["wait"] = kind["penalty"]
            return False
        kind["penalty"] = 0
    kind["worked_out"] = passes
    return True


@kernel
def lasts_until(tb: State, k: int, q_j: float, fall: float, position: int) -> float:
    """Until when a failure holds at hosts that do not change; ``position`` as for :func:`note_failure`."""
    now, kind = views.control(tb)["now"], views.kinds(tb)[k]
    if position >= 0:
        return min(kind["until"], earliest_at_changes(tb, k, q_j, fall, position)) if kind["until"] > now else now
    simple = not in_force.by_metric(tb) or qos_driven.can_wait(tb, whole(kind["cls"]), q_j)
    if simple or worth_computing(tb, kind):
        return earliest_anywhere(tb, k, q_j, fall)
    return -np.inf


@kernel
def note_failure(tb: State, entry: Records, q_j: float, position: int) -> None:
    """Remember until when looking again is of no use; ``position`` is where the look began, or -1: everywhere.

    What an earlier failure proved for a metric that falls at its speed is kept at that speed.
    """
    k = whole(views.kinds(tb)[entry["kind"]]["alike"])
    control, kind = views.control(tb), views.kinds(tb)[k]
    # Triage changes who is eligible from one pass to the next, and the order that bounds of the future rely on.
    if kind["batch"] != control["batch"] and control["overloaded"] == 0:
        fall, kink, slop = 1.0, np.inf, 0.0
        if position >= 0:
            fall, slop = kind["fall"], kind["slop"]
        elif pieces.weigh(tb) and in_force.by_metric(tb):
            fall, slop = pieces.fall_of_waiting(tb, whole(entry["row"]), k), NEAR
        elif entry["request"] >= 0 and in_force.by_metric(tb):
            fall, kink, slop = metric_dynamics.waiting_pace(tb, whole(entry["request"]), control["now"])
        until = min(kink, lasts_until(tb, k, q_j - 2.0 * slop, fall, position))
        kind["key"] = in_force.on_path(tb, q_j, fall)
        kind["fall"], kind["slop"], kind["until"] = fall, slop, until
        kind["position"] = control["changes"]
        kind["batch"] = control["batch"]
    note_in_pass(tb, k, q_j)
    if position < 0:  # who looked at changed hosts only costs little, and so does the next one
        lesser_demands.note(tb, k, q_j)


@kernel
def note_in_pass(tb: State, k: int, q_j: float) -> None:
    """Remember for the rest of the pass that this metric found no host; O(1)."""
    control, kind = views.control(tb), views.kinds(tb)[views.kinds(tb)[k]["alike"]]
    kind["batch"] = control["batch"]
    kind["pass_key"] = in_force.on_path(tb, q_j, 1.0)
    kind["pass_position"] = control["changes"]
    kind["loosened"], kind["order_mattered"] = control["loosened"], victim_order.mark(tb)


@kernel
def fails_again(tb: State, k: int, q_j: float) -> bool:
    """Whether a kind with rules surely finds no host: one :func:`covers` it, and nothing changed; O(1)."""
    control, kind = views.control(tb), views.kinds(tb)[views.kinds(tb)[k]["alike"]]
    unchanged = kind["pass_position"] == control["changes"] and kind["loosened"] == control["loosened"]
    return not views.rules(tb)["naive"] and unchanged and covers(tb, kind, q_j)
