"""Preempted instances of a simulated cluster that go on for their grace period (docs/semantics.md, 'Grace').

From the decision on they count as on no host, as on a cluster (:func:`.live_events.gone` tells the end there). They
still take what they took, so who comes to their host starts when that is free. All of this is known at the decision:
nothing disturbs them but the failure of their host.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.memo import standstill
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.qos.metric import GRID
from slacktide.kernels.runtime import chance
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import LEAVING, State


@leaf
def grace_of(tb: State, row: int) -> float:
    """Seconds that an instance may take to end; O(1)."""
    return views.kinds(tb)[views.instances(tb)[row]["kind"]]["grace"]


@leaf
def taken_of_grace(tb: State, row: int) -> float:
    """Seconds of its grace period that a preempted instance takes, a drawn share of it; O(1)."""
    shares = views.grace_shares(tb)
    at = chance.draw(views.rules(tb)["seed"], chance.GRACE, row, whole(views.instances(tb)[row]["starts"]))
    return max(1.0, np.rint(grace_of(tb, row) * shares[at % len(shares)] * GRID)) / GRID


@leaf
def lingers(tb: State, row: int) -> bool:
    """Whether an instance goes on for a while when it is preempted; O(1)."""
    return views.rules(tb)["live"] != 0 or grace_of(tb, row) > 0.0


@kernel
def enlist(tb: State, row: int, h: int, now: float) -> float:
    """A preempted instance leaves host ``h``; when its grace period is over, or before, when it completes; O(leavers).

    It must still be there. The decision that is carried out waits for it.
    """
    control, instance = views.control(tb), views.instances(tb)[row]
    kept = whole(0)
    for i in range(control["leavers"]):
        if views.leavers(tb)[i]["until"] > now:
            views.leavers(tb)[kept] = views.leavers(tb)[i]
            kept += 1
    over = now + taken_of_grace(tb, row)
    one = views.leavers(tb)[kept]
    one["row"], one["host"], one["shape"] = row, h, views.kinds(tb)[instance["kind"]]["shape"]
    completes = instance["since"] + instance["startup"] + (views.duration(tb)[row] - instance["running"])
    one["until"] = min(over, completes)
    control["bind_at"] = max(control["bind_at"], one["until"])
    control["leavers"] = kept + 1
    return over


@kernel
def bound_at(tb: State, h: int, shape: int, now: float) -> float:
    """When an instance can start that is about to come to host ``h``, where it fits once all leavers are gone; O(n^2)
    in the leavers of the host.

    When all victims of its decision are gone, and there is room beside those of other decisions that still go.
    """
    control = views.control(tb)
    at = max(now, control["bind_at"])
    control["bind_at"] = -np.inf
    while True:
        after, fits = np.inf, True
        for r in range(views.free(tb).shape[1]):
            left = views.free(tb)[h, r] - views.demand(tb)[shape, r]
            for i in range(control["leavers"]):
                one = views.leavers(tb)[i]
                if one["host"] == h and one["until"] > at:
                    left -= views.demand(tb)[one["shape"], r]
                    after = min(after, one["until"])
            if views.demand(tb)[shape, r] > 0 and left < 0:
                fits = False
        if fits or after == np.inf:
            return at
        at = after


@kernel
def drop_host(tb: State, h: int) -> None:
    """Nothing is on host ``h`` any more; O(leavers)."""
    control = views.control(tb)
    kept = whole(0)
    for i in range(control["leavers"]):
        if views.leavers(tb)[i]["host"] != h:
            views.leavers(tb)[kept] = views.leavers(tb)[i]
            kept += 1
    control["leavers"] = kept


@leaf
def still_goes(tb: State, i: int) -> bool:
    """Whether the instance of an entry of the list goes on; O(1)."""
    return views.instances(tb)[views.leavers(tb)[i]["row"]]["state"] == LEAVING


@kernel
def bring_up_requests(tb: State) -> None:
    """Before a pass: ledgers of requests hold what those received by now who were told to go; O(leavers)."""
    control = views.control(tb)
    for i in range(control["leavers"]):
        q = request_ledger.decider_of(tb, whole(views.leavers(tb)[i]["row"]))
        if q >= 0 and still_goes(tb, whole(i)):
            request_ledger.bring_up_to(tb, q, control["now"])
            standstill.something_happened(tb)
