"""A policy of a user's own from pieces: four compiled functions of named numbers in place of the rules of a policy.

**Order of the queue**: a number, or two; the least first, of equal ones the lowest row. (:func:`place_entry`)

**Eligibility**: k may be preempted for j where Q_j is below the *level* that the function says of k and of the class of
j; or, as the function says it, always (inf) or never (-inf). (:func:`level`, :func:`may_go`)

**Order of victims**: a number, or two; the least leaves first, of equal ones a random one. (:func:`place_victim`)

**Cost of a preemption**: each victim adds to places that are compared from the left; the largest wins. (:func:`feel`)

**Metric**: availability as ever, or of the user's own: of what was received, of lifetime and of how many instances
there are. (:func:`metric_at`, :func:`metric_of_waiting`) Beside it stands by how much a second it falls at most while
one waits, and nothing else happens. (:func:`fall_of_waiting`)

All else is as for the built-in policies, which follows from what a level is: whoever may be preempted for one may be
for whoever has less slack, so that a failure is one of every larger metric as well. How long it lasts follows from two
things that are asked of the function (docs/own-policies.md): while the metric of k rises or falls, its level is largest
at one end or the other; and less overhead makes it no smaller. Where no piece asks for what time changes, and
eligibility is always or never, the policy is one by class.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.qos.metric import received
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.runtime.plugin_calls import piece_of
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State

QUEUE, LEVEL, LEAVES, COST = 1, 2, 4, 8
"""The pieces, as bits of what they ask for."""

OF_CLASS = ("slo", "margin", "rank", "level", "levels", "overhead_limit", "alpha")
"""Numbers of a class, by their places in ``class_numbers``."""
OF_INSTANCE = ("admitted", "age", "preemptions", "cpu", "memory")
"""Numbers of an instance, by their places in ``piece_numbers``; beside these its metric, slack and overhead."""
OF_STATE = ("instances", "others")
"""Numbers of a request, or of an instance by itself, by their places in ``piece_state``; beside these what it received
and its lifetime, in place of metric and overhead."""
LOWEST, HIGHEST = -(2.0**40), 2.0**40
"""Below and above every metric that is not infinite: 2^33 s and less."""
STEP, HALVES = 2.0**-10, 50
"""Then both ends are some milliseconds apart."""


@leaf
def decide(tb: State) -> bool:
    """Whether the policy is one from pieces; O(1)."""
    return views.rules(tb)["piece_level"] != 0


@leaf
def look(tb: State, row: int, shape: int, piece: int) -> None:
    """Write numbers of an instance for a piece that asks for some of them; O(1)."""
    if not views.rules(tb)["pieces_look"] & piece:
        return
    numbers, admitted = views.piece_numbers(tb), views.admission(tb)[row]
    numbers[0], numbers[1] = admitted, views.control(tb)["now"] - admitted
    numbers[2] = float(views.instances(tb)[row]["preemptions"])
    numbers[3] = views.demand(tb)[shape, 0] * views.unit(tb)[0]
    numbers[4] = views.demand(tb)[shape, 1] * views.unit(tb)[1]


@leaf
def ask(tb: State, address: int, q: float, overhead: float, cls: int, other: int, out: Records) -> float:
    """What a piece says of one of class ``cls``; where that is no number the run ends; O(the piece)."""
    numbers, classes = views.piece_numbers(tb), views.class_numbers(tb)
    found = piece_of(address, q, overhead, numbers, classes[cls], classes[other], out)
    if np.isnan(found):
        views.control(tb)["broken"] = 1
    return found


@leaf
def weigh(tb: State) -> bool:
    """Whether the policy has a metric of its own; O(1)."""
    return views.rules(tb)["piece_metric"] != 0


@leaf
def ask_metric(tb: State, address: int, e: float, lifetime: float, live: float, others: float, cls: int) -> float:
    """What a function of a user's metric says of ``e`` seconds received in this lifetime; O(the function)."""
    state, classes = views.piece_state(tb), views.class_numbers(tb)
    state[0], state[1] = live, others
    found = piece_of(address, e, lifetime, state, classes[cls], classes[cls], views.piece_more(tb))
    if np.isnan(found):
        views.control(tb)["broken"] = 1
    return found


@kernel
def metric_at(tb: State, slot: Records, then: float) -> float:
    """A user's own metric of an instance on a host at ``then``, if nothing happens before; O(1)."""
    address, accounting, cls = views.rules(tb)["piece_metric"], views.rules(tb)["accounting"], whole(slot["cls"])
    if slot["request"] >= 0:
        q = whole(slot["request"])
        request = views.requests(tb)[q]
        e = request_ledger.earned(tb, q, then) - request_ledger.unearned(tb, slot, then)
        others = request_ledger.goes_on(request, accounting, request_ledger.counts_as_up(slot, then))
        lifetime = request_ledger.lifetime_of(request, then)
        return ask_metric(tb, address, e, lifetime, float(request["live"]), others, cls)
    runs = max(0.0, then - slot["on"])
    if window_ledger.has_window(tb, cls):  # then ``e`` and ``p`` of the slot are of the window
        row = whole(slot["row"])
        e, lifetime = received(views.instances(tb)[row], accounting) + runs, then - views.admission(tb)[row]
    else:
        e = slot["e"] + runs
        lifetime = slot["e"] + slot["p"] + (then - slot["since"])
    return ask_metric(tb, address, e, lifetime, 1.0, 0.0, cls)


@kernel
def of_waiting(tb: State, address: int, row: int, cls: int) -> float:
    """What a function of a user's metric says of a waiting instance now; O(1)."""
    now, accounting, q = views.control(tb)["now"], views.rules(tb)["accounting"], request_ledger.decider_of(tb, row)
    if q >= 0:
        request = views.requests(tb)[q]
        e, others = request_ledger.earned(tb, q, now), request_ledger.goes_on(request, accounting, whole(0))
        lifetime = request_ledger.lifetime_of(request, now)
        return ask_metric(tb, address, e, lifetime, float(request["live"]), others, cls)
    instance = views.instances(tb)[row]
    if window_ledger.has_window(tb, cls):
        e, lifetime = received(instance, accounting), now - views.admission(tb)[row]
    else:
        e, p = window_ledger.own_seconds(tb, row, cls, instance["since"])
        lifetime = e + p + (now - instance["since"])
    return ask_metric(tb, address, e, lifetime, 1.0, 0.0, cls)


@kernel
def metric_of_waiting(tb: State, row: int, k: int) -> float:
    """A user's own metric of a waiting instance of kind ``k``; O(1)."""
    return of_waiting(tb, views.rules(tb)["piece_metric"], row, whole(views.kinds(tb)[k]["cls"]))


@kernel
def fall_of_waiting(tb: State, row: int, k: int) -> float:
    """By how much a second that falls at most, while nothing happens; O(1)."""
    return max(0.0, of_waiting(tb, views.rules(tb)["piece_falls"], row, whole(views.kinds(tb)[k]["cls"])))


@leaf
def overhead_for(tb: State, slot: Records, piece: int, now: float) -> float:
    """The overhead of an instance on a host, for a piece that asks for it; O(1)."""
    return request_ledger.overhead_of(tb, slot, now) if views.rules(tb)["pieces_overhead"] & piece else 0.0


@kernel
def place_entry(tb: State, entry: Records, q_j: float) -> None:
    """Write where a waiting instance with metric ``q_j`` stands in the queue into its entry; O(1)."""
    kind, more = views.kinds(tb)[entry["kind"]], views.piece_more(tb)
    cls = whole(kind["cls"])
    if weigh(tb):
        q_j = metric_of_waiting(tb, whole(entry["row"]), whole(entry["kind"]))
    look(tb, whole(entry["row"]), whole(kind["shape"]), QUEUE)
    entry["first"] = ask(tb, views.rules(tb)["piece_queue"], q_j, 0.0, cls, cls, more)
    entry["second"] = more[0]


@leaf
def comes_before(a: Records, b: Records) -> bool:
    """The order of the queue, of entries that have their places; O(1)."""
    if a["first"] != b["first"]:
        return a["first"] < b["first"]
    if a["second"] != b["second"]:
        return a["second"] < b["second"]
    return a["row"] < b["row"]


@leaf
def level(tb: State, slot: Records, q_k: float, cls: int, now: float) -> float:
    """Below this metric one of class ``cls`` may preempt the instance on a host with metric ``q_k``; O(1)."""
    look(tb, whole(slot["row"]), whole(slot["shape"]), LEVEL)
    overhead = overhead_for(tb, slot, LEVEL, now)
    return ask(tb, views.rules(tb)["piece_level"], q_k, overhead, whole(slot["cls"]), cls, views.piece_more(tb))


@leaf
def may_go(tb: State, slot: Records, q_k: float, cls: int, q_j: float, now: float) -> bool:
    """Whether instance k, on a host with metric ``q_k``, may be preempted for one of class ``cls``; by metric nobody is
    for whoever cannot miss its promise; O(1)."""
    return q_j < level(tb, slot, q_k, cls, now)


@kernel
def place_victim(tb: State, slot: Records, q: float, at: int, now: float) -> None:
    """Write where an instance on a host stands in the order of victims into place ``at`` of scratch; O(1)."""
    look(tb, whole(slot["row"]), whole(slot["shape"]), LEAVES)
    overhead, cls, more = overhead_for(tb, slot, LEAVES, now), whole(slot["cls"]), views.piece_more(tb)
    views.victim_first(tb)[at] = ask(tb, views.rules(tb)["piece_leaves"], q, overhead, cls, cls, more)
    views.victim_second(tb)[at] = more[0]


@leaf
def leaves_later(tb: State, a: int, tie_a: int, b: int, tie_b: int) -> bool:
    """Whether one whose place is that at ``a`` comes after that at ``b`` in the order of victims; O(1)."""
    first, second = views.victim_first(tb), views.victim_second(tb)
    if first[a] != first[b]:
        return first[a] > first[b]
    if second[a] != second[b]:
        return second[a] > second[b]
    return tie_a < tie_b


@kernel
def feel(tb: State, slot: Records, q: float, now: float, out: Records) -> None:
    """Add a victim with metric ``q`` to the cost; O(1)."""
    look(tb, whole(slot["row"]), whole(slot["shape"]), COST)
    overhead, cls = overhead_for(tb, slot, COST, now), whole(slot["cls"])
    ask(tb, views.rules(tb)["piece_cost"], q, overhead, cls, cls, out)


@leaf
def highest(tb: State, of: int, least: float, most: float, overhead: float, cls: int) -> float:
    """No level of one of class ``of`` for class ``cls`` is above this while its metric is between two; O(1)."""
    address, out = views.rules(tb)["piece_level"], views.piece_more(tb)
    low = ask(tb, address, least, overhead, of, cls, out)
    return max(low, ask(tb, address, most, overhead, of, cls, out))


@leaf
def exclude(tb: State, most: float, cls: int, q_j: float) -> bool:
    """Whether nobody is eligible where no metric is above ``most``; O(1), for another ``q_j`` O(classes)."""
    theirs = views.classes(tb)[cls]
    if theirs["bounded"] == 0 or theirs["bounded_for"] != q_j:
        theirs["lends_above"] = lends_above(tb, cls, q_j)
        theirs["bounded"], theirs["bounded_for"] = 1, q_j
    return most <= theirs["lends_above"]


@kernel
def lends_above(tb: State, cls: int, q_j: float) -> float:
    """Nobody gives way to one of class ``cls`` with metric ``q_j`` who has a metric up to this, or -inf; O(classes).

    From the lowest metric on levels fall at first, if at all, and rise then: so this is looked for by halves. Often it
    is ``q_j`` itself.
    """
    if views.rules(tb)["pieces_look"] & LEVEL or not all_at_most(tb, cls, q_j, LOWEST):
        return -np.inf
    low, high = LOWEST, HIGHEST
    if all_at_most(tb, cls, q_j, q_j):
        low = q_j
        if not all_at_most(tb, cls, q_j, q_j + STEP):
            return low
    if all_at_most(tb, cls, q_j, high):
        return high
    for _ in range(HALVES):
        middle = (low + high) / 2.0
        if all_at_most(tb, cls, q_j, middle):
            low = middle
        else:
            high = middle
    return low


@kernel
def all_at_most(tb: State, cls: int, q_j: float, q_k: float) -> bool:
    """Whether nobody with metric ``q_k`` gives way to one of class ``cls`` with ``q_j``; O(classes)."""
    for of in range(len(views.classes(tb))):
        above = ask(tb, views.rules(tb)["piece_level"], q_k, 0.0, whole(of), cls, views.piece_more(tb))
        if q_j < above or above == np.inf:
            return False
    return True
