"""How long a failure by a user's own rule of eligibility lasts, of which only what it says now is known.

The rule is asked about the end of a time to come: of every instance on a host for the level that it may have by then,
and with less overhead. If those that could be eligible do not suffice even so, the failure holds until then. What is
asked of the rule for that is said in :mod:`slacktide.kernels.policies.pieces`.

A kind remembers for how long its failures held (``reach``): twice that is tried next, a fourth of it after one that
did not.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible import free_index, host_slots
from slacktide.kernels.place import victims
from slacktide.kernels.policies import pieces
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.qos.metric import NEAR, running
from slacktide.kernels.qos.metric_dynamics import pace
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State

FIRST_REACH, LEAST_REACH, LONGEST_REACH = 32.0, 0.25, 2.0**20
TRIES = 3


@leaf
def least_overhead(tb: State, slot: Records, then: float) -> float:
    """The overhead of an instance on a host is no less up to ``then``; O(1)."""
    if slot["request"] >= 0 or slot["overhead"] == 0.0:
        return 0.0
    return slot["overhead"] / (running(slot, then) + slot["overhead"])


@kernel
def range_of(tb: State, slot: Records, then: float) -> tuple[float, float, bool]:
    """Between which numbers the metric of an instance on a host stays up to ``then``; whether that is known; O(1)."""
    now = views.control(tb)["now"]
    if pieces.weigh(tb):
        begin, end = pieces.metric_at(tb, slot, now), pieces.metric_at(tb, slot, then)
        kink = pieces.metric_at(tb, slot, min(max(slot["on"], now), then))
        return min(begin, kink, end) - NEAR, max(begin, kink, end) + NEAR, True
    q, passed = request_ledger.metric_of(tb, slot, now), then - now
    if slot["request"] >= 0:
        rise, until, blur = pace(tb, slot, now)
        return q + min(rise, 0.0) * passed - blur - NEAR, q + max(rise, 0.0) * passed + blur + NEAR, until >= then
    falls = max(0.0, min(slot["on"], then) - now)
    return q - falls - NEAR, q + views.classes(tb)[slot["cls"]]["slope"] * passed + NEAR, True


@kernel
def lasts_at(tb: State, h: int, kind: int, q_j: float, then: float) -> bool:
    """Whether no instance of this kind fits on the unchanged host ``h`` before ``then``; O(instances on it).

    Its metric is at least ``q_j``.
    """
    one, host = views.kinds(tb)[kind], views.hosts(tb)[h]
    cls = whole(one["cls"])
    if host["down"] or not views.allowed(tb)[one["term"], host["group"]]:
        return True
    if host_slots.has_sibling(tb, h, whole(one["job"])):
        return True
    free_index.has_room(tb, h, whole(one["shape"]))
    for i in range(host["count"]):
        slot = views.slots(tb)[h, i]
        least, most, known = range_of(tb, slot, then)
        if not known:
            return False
        pieces.look(tb, whole(slot["row"]), whole(slot["shape"]), whole(pieces.LEVEL))
        above = pieces.highest(tb, whole(slot["cls"]), least, most, least_overhead(tb, slot, then), cls)
        if (q_j < above + NEAR or above == np.inf) and victims.release(tb, slot):
            return False
    return True


@kernel
def lasts_until_then(tb: State, kind: int, q_j: float, then: float, position: int) -> bool:
    """As :func:`lasts_at`, of all hosts that changed since ``position`` of the change log, or of all (-1)."""
    if position < 0:
        for h in range(len(views.hosts(tb))):
            if not lasts_at(tb, whole(h), kind, q_j, then):
                return False
        return True
    for i in range(position, views.control(tb)["changes"]):
        if not lasts_at(tb, whole(views.changes(tb)[i % len(views.changes(tb))]), kind, q_j, then):
            return False
    return True


@kernel
def lasts_until(tb: State, kind: int, q_j: float, fall: float, position: int) -> float:
    """No instance of this kind fits on these hosts before, if they stay as they are; O(instances on them).

    Its metric is at least one that falls from ``q_j`` by ``fall`` a second.
    """
    now, one = views.control(tb)["now"], views.kinds(tb)[kind]
    if views.rules(tb)["pieces_move"] & pieces.LEVEL:
        return now
    reach = FIRST_REACH if one["reach"] == 0.0 else one["reach"]
    for _ in range(TRIES):
        then = now + reach
        if position >= 0:
            then = min(then, one["until"])
        if lasts_until_then(tb, kind, q_j - fall * (then - now) - NEAR, then, position):
            one["reach"] = min(2.0 * reach, LONGEST_REACH)
            return then
        reach = reach / 4.0
        if reach < LEAST_REACH:
            break
    one["reach"] = max(reach, LEAST_REACH)
    return now
