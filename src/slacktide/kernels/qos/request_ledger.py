"""The metric of a request of several instances: a ledger of constant size, whatever their number.

The doctoral thesis behind da Silva et al., "QoS-driven scheduling in the cloud" (2020), takes
their equations over to requests of several instances (its chapters 3 and 7). The letters:

    n       live instances of the request, admitted and not yet gone
    e       running time that counts, seconds, as its approach says (docs/semantics.md)
    T       its lifetime, seconds: the sum of the lifetimes of its instances (in the thesis e + d + p)
    c       instances that go on contributing while the one considered waits
    sigma   SLO of its class; alpha its expected allocation time, seconds

    X = e / sigma - T                                           recoverability, where negative (3.6)
    D = n sigma - c                                             what it loses of X sigma a second
    V = X sigma / D = (e - sigma T) / (n sigma - c)             time to violate (3.3)

    Q = X - alpha   where X < 0                                 (3.7)
    Q = V - alpha   where X >= 0 and D > 0                      (3.4)
    Q = infinite    where X >= 0 and D <= 0: the promise cannot be missed

Sums are as of ``since`` and grow with the counts of live and running instances in between.
A start-up that counts as pending ends with an event of its own, so that counts are constant
between events.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slacktide.kernels.qos import request_windows
from slacktide.kernels.qos.metric import LONGEST, entitled, metric, overhead, promise_of
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.request_records import CONCURRENT, INDEPENDENT
from slacktide.kernels.tables.schema import ALWAYS, NEVER, RESTART, SHIFT, Records, State

_HOW: tuple[Any, ...] = tuple(np.int64(i) for i in range(3))  # not literals, so that kernels are compiled once
CALM, FELL, ROSE = _HOW


@leaf
def owner_of(tb: State, row: int) -> int:
    """The request that keeps a ledger of this instance's, or -1; O(1)."""
    if len(views.owner(tb)) == 0:
        return whole(-1)
    return whole(views.owner(tb)[row])


@leaf
def decider_of(tb: State, row: int) -> int:
    """The request whose ledger decides for this instance, or -1 for its own; O(1)."""
    q = owner_of(tb, row)
    if q >= 0 and views.requests(tb)[q]["approach"] == INDEPENDENT:
        return whole(-1)
    return q


@leaf
def shift_of(tb: State, row: int) -> float:
    """Seconds by which the plan moves the metric of an instance; 0 where it is kept; O(1)."""
    q = decider_of(tb, row)
    return views.requests(tb)[q]["shift"] if q >= 0 else SHIFT * views.instances(tb)[row]["shift"]


@leaf
def slot_shift(tb: State, slot: Records) -> float:
    """The same of an instance on a host; O(1)."""
    return views.requests(tb)[slot["request"]]["shift"] if slot["request"] >= 0 else slot["shift"]


@leaf
def up_now(request: Records, accounting: int) -> int:
    """Live instances that count as running in this accounting."""
    if accounting == ALWAYS:
        return request["up_always"]
    return request["up_restart"] if accounting == RESTART else request["up_never"]


@leaf
def leaving_now(request: Records, accounting: int) -> int:
    """Live instances told to leave that still count as running in this accounting; only in a live cluster."""
    if accounting == ALWAYS:
        return request["leaving_always"]
    return request["leaving_restart"] if accounting == RESTART else request["leaving_never"]


@leaf
def counting(request: Records, accounting: int) -> int:
    """Live instances that count as running in this accounting, whether or not they were told to leave."""
    return up_now(request, accounting) + leaving_now(request, accounting)


@leaf
def together_in(request: Records, accounting: int) -> float:
    """Seconds in which all live instances counted as running, times their number, as of ``since``."""
    if accounting == ALWAYS:
        return request["together_always"]
    return request["together_restart"] if accounting == RESTART else request["together_never"]


@leaf
def together_at(request: Records, accounting: int, now: float) -> float:
    """As :func:`together_in`, at ``now``; those count as running that were told to leave and still run; O(1)."""
    e = together_in(request, accounting)
    if request["live"] > 0 and counting(request, accounting) == request["live"]:
        e += request["live"] * (now - request["since"])
    return e


@kernel
def bring_up_to(tb: State, q: int, now: float) -> None:
    """Carry the ledger's sums forward to ``now``; a change of its counts must follow; O(1)."""
    request = views.requests(tb)[q]
    passed, accounting = now - request["since"], views.rules(tb)["accounting"]
    windowed = request_windows.is_windowed(tb, q)
    request["weighed"] = -np.inf
    if windowed and (request_windows.is_told_anew(tb, q) or passed > 0.0):
        request_windows.extend(tb, q, whole(counting(request, accounting)), request["since"])
    if passed > 0.0:
        request["total"] += request["live"] * passed
        request["received"] += counting(request, accounting) * passed
        request["together_restart"] = together_at(request, RESTART, now)
        request["together_always"] = together_at(request, ALWAYS, now)
        request["together_never"] = together_at(request, NEVER, now)
    if request["leaving_never"] > 0 and request["approach"] != INDEPENDENT and (windowed or passed > 0.0):
        stir(tb, q, ROSE)  # decisions did not expect what these still received, or that they go now
    request["since"] = now


@kernel
def stir(tb: State, q: int, how: int) -> None:
    """Note that the metrics of the request's instances on hosts FELL or ROSE; O(1).

    Where margins differ, or a class is overloaded, a fall can make an instance eligible too: then it counts as a rise.
    """
    request, control = views.requests(tb)[q], views.control(tb)
    if not request["stirred"]:
        views.stirred(tb)[control["stirred"]] = q
        control["stirred"] += 1
    if how == ROSE or not views.rules(tb)["one_margin"] or control["overloaded"] > 0:
        request["stirred"] = ROSE
    elif request["stirred"] == CALM:
        request["stirred"] = FELL


@leaf
def link(tb: State, q: int, row: int) -> None:
    """Add ``row`` to the request's instances on hosts; O(1)."""
    head = whole(views.requests(tb)[q]["head"])
    views.links(tb)[row, 0] = head
    views.links(tb)[row, 1] = -1
    if head >= 0:
        views.links(tb)[head, 1] = row
    views.requests(tb)[q]["head"] = row


@leaf
def unlink(tb: State, q: int, row: int) -> None:
    """Take ``row`` from the request's instances on hosts; O(1)."""
    after, before = whole(views.links(tb)[row, 0]), whole(views.links(tb)[row, 1])
    if before >= 0:
        views.links(tb)[before, 0] = after
    else:
        views.requests(tb)[q]["head"] = after
    if after >= 0:
        views.links(tb)[after, 1] = before


@leaf
def moved(tb: State, q: int, up: int, placed: int, live: int) -> int:
    """Whether metrics FELL, ROSE or neither when the counts changed from these; O(1).

    X keeps its value when counts change and gains ``rate / sigma - live`` a second from then on;
    Q grows with X and falls with D. So Q fell, now and for good, where neither the gain grew nor D
    shrank (docs/metric.md). Idle instances move to the front of the victims: that counts as a rise.
    """
    request = views.requests(tb)[q]
    if request_windows.is_windowed(tb, q):
        ours = whole(up_now(request, views.rules(tb)["accounting"]))
        grew, fell = request_windows.compared(request, whole(up), whole(placed), whole(live), ours)
        return ROSE if grew else FELL if fell else CALM
    sigma, up_then, live_then = views.classes(tb)[request["cls"]]["slo"], up, live
    up, live = up_now(request, views.rules(tb)["accounting"]), request["live"]
    rate_then, rate, c_then, c = up_then, up, up_then, up
    idle_then, idle = False, False
    if request["approach"] == CONCURRENT:
        rate_then = live_then if up_then == live_then else 0
        rate = live if up == live else 0
        c_then = c = 0
        idle_then, idle = placed < live_then, request["placed"] < live
    # what the change adds to the gain of X a second, and to D
    faster = (rate - rate_then) / sigma - (live - live_then)
    wider = (live - live_then) * sigma - (c - c_then)
    if faster > 0.0 or wider < 0.0 or (idle and not idle_then):
        return ROSE
    return FELL if faster < 0.0 or wider > 0.0 or idle != idle_then else CALM


@leaf
def begins_pending(accounting: int, starts: int) -> bool:
    """Whether the start-up of the ``starts``-th start counts as pending."""
    return accounting == ALWAYS or (accounting == RESTART and starts > 1)


@kernel
def count(tb: State, q: int, by: int, starts: int, of_pending: bool, of_running: bool) -> None:
    """Add ``by`` to the running counts where the start-up counts as pending, and where it does not; O(1)."""
    request = views.requests(tb)[q]
    if of_pending if begins_pending(ALWAYS, starts) else of_running:
        request["up_always"] += by
    if of_pending if begins_pending(RESTART, starts) else of_running:
        request["up_restart"] += by
    if of_running:
        request["up_never"] += by


@kernel
def change(tb: State, q: int, by: int, starts: int, of_pending: bool, of_running: bool, placed: int, live: int) -> None:
    """Change the counts of a ledger brought up to now, as :func:`count` does, and who is placed and live; O(1)."""
    request, accounting = views.requests(tb)[q], views.rules(tb)["accounting"]
    up, was_placed, was_live = up_now(request, accounting), request["placed"], request["live"]
    request["weighed"] = -np.inf
    request["placed"] += placed
    request["live"] += live
    if request["approach"] == INDEPENDENT:
        return
    count(tb, q, by, starts, of_pending, of_running)
    how = moved(tb, q, up, was_placed, was_live)
    if how != CALM or views.rules(tb)["piece_metric"] != 0:
        stir(tb, q, how)


@kernel
def joined(tb: State, q: int, now: float) -> None:
    """An instance was admitted; O(1)."""
    bring_up_to(tb, q, now)
    request = views.requests(tb)[q]
    if request["shift"] == 0.0:  # it may have come since the plan was made
        request["shift"] = SHIFT * views.classes(tb)[request["cls"]]["behind"]
    if request_windows.is_windowed(tb, q):
        request_windows.admit(tb, q, now)
    change(tb, q, whole(0), whole(0), False, False, whole(0), whole(1))


@kernel
def started(tb: State, q: int, row: int, now: float) -> None:
    """An instance was put on a host; its own ledger says so already; O(1)."""
    instance = views.instances(tb)[row]
    bring_up_to(tb, q, now)
    link(tb, q, row)
    change(tb, q, whole(1), whole(instance["starts"]), instance["startup"] == 0.0, True, whole(1), whole(0))


@kernel
def became_ready(tb: State, q: int, row: int, now: float) -> None:
    """The start-up of an instance ended; O(1)."""
    bring_up_to(tb, q, now)
    change(tb, q, whole(1), whole(views.instances(tb)[row]["starts"]), True, False, whole(0), whole(0))


@kernel
def left(tb: State, q: int, row: int, now: float) -> None:
    """An instance leaves its host; its own ledger still says that it is there; O(1)."""
    instance = views.instances(tb)[row]
    ready = now >= instance["since"] + instance["startup"]
    bring_up_to(tb, q, now)
    unlink(tb, q, row)
    change(tb, q, whole(-1), whole(instance["starts"]), ready, True, whole(-1), whole(0))


@kernel
def goes_on_leaving(tb: State, q: int, row: int, now: float, by: int) -> None:
    """Count an instance that was told to leave while it goes on (1), or no more (-1); ledger up to now; O(1)."""
    request, instance = views.requests(tb)[q], views.instances(tb)[row]
    ready = now >= instance["since"] + instance["startup"]
    starts = whole(instance["starts"])
    if ready or not begins_pending(ALWAYS, starts):
        request["leaving_always"] += by
    if ready or not begins_pending(RESTART, starts):
        request["leaving_restart"] += by
    request["leaving_never"] += by


@kernel
def pays(tb: State, q: int, startup: float, work: float) -> None:
    """An instance was stopped: the start-up that cost, where it was preempted, and the work lost, seconds; O(1)."""
    request = views.requests(tb)[q]
    request["overhead"] += startup
    request["received"] -= work
    request["weighed"] = -np.inf
    if request["approach"] != INDEPENDENT and (startup > 0.0 or work > 0.0):
        stir(tb, q, FELL)


@kernel
def gets_back(tb: State, q: int, startup: float, work: float) -> None:
    """A stop that was only tried is undone: what the ledger said before of start-ups and work, seconds; O(1)."""
    request = views.requests(tb)[q]
    request["overhead"], request["received"] = startup, work
    request["weighed"] = -np.inf
    if request["approach"] != INDEPENDENT:
        stir(tb, q, ROSE)  # hosts may have been told of the fall


@kernel
def departed(tb: State, q: int, now: float) -> None:
    """An instance that is on no host is live no more; O(1)."""
    bring_up_to(tb, q, now)
    change(tb, q, whole(0), whole(0), False, False, whole(0), whole(-1))


@leaf
def lifetime_of(request: Records, now: float) -> float:
    """T: seconds that all instances of a request have been in the system; O(1)."""
    return request["total"] + request["live"] * (now - request["since"])


@leaf
def ahead(tb: State, q: int, now: float, unearned: float) -> float:
    """X: lifetime for which the request's e, less ``unearned``, keeps the promise, less its lifetime; seconds; O(1)."""
    request = views.requests(tb)[q]
    e = earned(tb, q, now) - unearned
    sigma = views.classes(tb)[request["cls"]]["slo"]
    return entitled(e, sigma) - lifetime_of(request, now)


@leaf
def owed_lifetime(tb: State, q: int, now: float) -> float:
    """Seconds over which a request was promised something: T, or what it has lived of its window; O(1)."""
    if request_windows.is_windowed(tb, q):
        return request_windows.owed_lifetime(tb, q, now)
    return lifetime_of(views.requests(tb)[q], now)


@leaf
def goes_on(request: Records, accounting: int, one_up: int) -> float:
    """c: live instances that go on contributing, one running fewer where ``one_up`` is 1; O(1)."""
    if request["approach"] == CONCURRENT:
        return 0.0
    return float(up_now(request, accounting) - one_up)


@leaf
def gain(request: Records, accounting: int) -> float:
    """By how much the request's e grows a second; O(1)."""
    up = up_now(request, accounting)
    if request["approach"] == CONCURRENT and up < request["live"]:
        return 0.0
    return float(up)


@kernel
def weigh(tb: State, q: int, now: float, one_up: int, unearned: float) -> float:
    """Q of an instance at ``now``, seconds, by the equations at the head of this module, whatever the plan; O(1).

    ``one_up`` is 1 for a running instance under consideration that counts as running,
    ``unearned`` the seconds that stopping it would discard.
    """
    request = views.requests(tb)[q]
    theirs = views.classes(tb)[request["cls"]]
    sigma, alpha = theirs["slo"], theirs["alpha"]
    accounting = views.rules(tb)["accounting"]
    if request_windows.is_windowed(tb, q):
        up, c = whole(counting(request, accounting)), max(0.0, goes_on(request, accounting, one_up))
        V = request_windows.slack(tb, q, up, c, now)
        return float("inf") if V > LONGEST else V - alpha
    X = ahead(tb, q, now, unearned)
    if X < 0.0:
        return X - alpha
    D = request["live"] * sigma - goes_on(request, accounting, one_up)
    if D <= 0.0:
        return float("inf")
    V = X * (sigma / D)
    if V > LONGEST:
        return float("inf")
    return round_to_grid(V) - alpha


@leaf
def round_to_grid(seconds: float) -> float:
    """The nearest time on the grid."""
    return entitled(seconds, 1.0)


@leaf
def counts_as_up(slot: Records, now: float) -> int:
    """1 where the instance on a host counts as running."""
    return whole(1) if now >= slot["on"] else whole(0)


@kernel
def unearned(tb: State, slot: Records, now: float) -> float:
    """Useful running seconds that stopping the instance now would discard (batch); O(1).

    In a live cluster that is also what it did before it was unready for a while.
    """
    request = views.requests(tb)[slot["request"]]
    if not request["loses"]:
        return 0.0
    instance = views.instances(tb)[slot["row"]]
    return instance["running"] + max(0.0, now - (instance["since"] + instance["startup"]))


@kernel
def weigh_running(tb: State, slot: Records, now: float) -> float:
    """Q of an instance on a host that its request's ledger decides for; O(1)."""
    q = whole(slot["request"])
    if views.requests(tb)[q]["loses"]:  # what it would lose is its own
        return weigh(tb, q, now, counts_as_up(slot, now), unearned(tb, slot, now)) + views.requests(tb)[q]["shift"]
    return weigh_keeping_work(tb, slot, now)


@kernel
def weigh_keeping_work(tb: State, slot: Records, now: float) -> float:
    """As :func:`weigh_running`, as if stopping the instance discarded nothing; O(1)."""
    q = whole(slot["request"])
    weigh_siblings(tb, q, now)
    return views.requests(tb)[q]["worth_up"] if now >= slot["on"] else views.requests(tb)[q]["worth_starting"]


@leaf
def weigh_siblings(tb: State, q: int, now: float) -> None:
    """Bring ``worth_up`` and ``worth_starting`` up to date, as if stopping an instance discarded no work; O(1)."""
    request = views.requests(tb)[q]
    if request["weighed"] != now:
        request["weighed"] = now
        request["worth_up"] = weigh(tb, q, now, whole(1), 0.0) + request["shift"]
        request["worth_starting"] = weigh(tb, q, now, whole(0), 0.0) + request["shift"]


@kernel
def weigh_waiting(tb: State, q: int, now: float) -> float:
    """Q of the waiting instances of a request, moved by the plan where it is given up; O(1)."""
    return weigh(tb, q, now, whole(0), 0.0) + views.requests(tb)[q]["shift"]


@leaf
def metric_of(tb: State, slot: Records, now: float) -> float:
    """Q of an instance on a host, by its own ledger or its request's; O(1)."""
    if slot["request"] >= 0:
        return weigh_running(tb, slot, now)
    return metric(slot, promise_of(slot, views.classes(tb)), views.classes(tb)[slot["cls"]]["alpha"], now)


@leaf
def metric_keeping_work(tb: State, slot: Records, q: float, now: float) -> float:
    """Q of an instance on a host as if stopping it discarded nothing; ``q`` is what :func:`metric_of` says; O(1)."""
    if slot["request"] < 0 or not views.requests(tb)[slot["request"]]["loses"]:
        return q
    return weigh_keeping_work(tb, slot, now)


@kernel
def shared_overhead(tb: State, q: int, now: float) -> float:
    """Preemption overhead C of a request (equation 8), in [0, 1]; O(1)."""
    c = views.requests(tb)[q]["overhead"]
    if c == 0.0:
        return 0.0
    return c / (earned(tb, q, now) + c)


@kernel
def earned(tb: State, q: int, now: float) -> float:
    """E of the request's ledger at ``now``, seconds; O(1)."""
    request, accounting = views.requests(tb)[q], views.rules(tb)["accounting"]
    so_far = together_in(request, accounting) if request["approach"] == CONCURRENT else request["received"]
    return so_far + gain(request, accounting) * (now - request["since"])


@leaf
def overhead_of(tb: State, slot: Records, now: float) -> float:
    """Preemption overhead C of an instance on a host, or of its request; O(1)."""
    if slot["request"] >= 0:
        return shared_overhead(tb, whole(slot["request"]), now)
    return overhead(slot, now)


@leaf
def is_idle(tb: State, slot: Records) -> bool:
    """Whether the instance on a host contributes nothing, as another one of its concurrent request waits; O(1)."""
    if slot["request"] < 0:
        return False
    return one_waits(views.requests(tb)[slot["request"]])


@leaf
def one_waits(request: Records) -> bool:
    """Whether an instance of a concurrent request waits, so that the others contribute nothing; O(1)."""
    return request["approach"] == CONCURRENT and request["placed"] < request["live"]
