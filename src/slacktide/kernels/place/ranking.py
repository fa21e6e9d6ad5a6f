"""Which host is the best one to preempt on, of those that a set of evaluations lists.

Whoever looks the first time in a pass goes through the list. Where many look one after the other, as the instances of
a large request do, only the hosts change on which somebody was placed. So after two looks that found nothing to
evaluate anew the list becomes a heap, best host first: then a look costs the logarithm of its length.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.builtin import OF_PIECES, OWN
from slacktide.kernels.place.scores import comparing
from slacktide.kernels.policies import in_force
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State


@leaf
def note_score(tb: State, at: int, h: int, shape: int) -> None:
    """Keep the score of host ``h`` in set ``at``; where it depends on the users, the missing CPU, of which it follows
    for everybody's. ``views.missing(tb)`` is demand less free amounts; O(1)."""
    if views.rules(tb)["placer_score"] != 0:
        views.shared_score(tb)[at, h] = views.missing(tb)[0]
    else:
        views.shared_score(tb)[at, h] = comparing.allocation_score(tb, h, shape)


@leaf
def noted_score(tb: State, at: int, h: int, shape: int) -> int:
    """The score of host ``h`` by set ``at`` for users of the shape; O(logins)."""
    kept = whole(views.shared_score(tb)[at, h])
    if views.rules(tb)["placer_score"] == 0:
        return kept
    views.missing(tb)[0] = kept
    return comparing.allocation_score(tb, h, shape)


@leaf
def spare_time(tb: State, cls: int, stands: float) -> float:
    """Seconds for which one of class ``cls`` that stands so (:func:`.in_force.standing`) can wait for victims to go.

    inf: it makes no difference how long they take: all would take as long, or the cost does not go by ranks; O(1).
    """
    own = in_force.cost(tb) == OWN or in_force.cost(tb) == OF_PIECES
    if not views.control(tb)["graces"] or own or not in_force.by_metric(tb):
        return np.inf
    return 0.0 if views.classes(tb)[cls]["overloaded"] else max(0.0, stands)


@leaf
def lateness(tb: State, at: int, h: int, spare: float) -> float:
    """Seconds by which the victims of host ``h`` take longer to go than one of so much spare time can wait; O(1)."""
    return max(0.0, views.shared_wait(tb)[at, h] - spare)


@kernel
def beats(tb: State, at: int, h: int, best: int, kind: int, spare: float) -> bool:
    """Whether host ``h`` is a better one to preempt on for the kind than ``best`` (or -1), by the evaluations of set
    ``at``. How late the kind would be counts directly after its own rank; O(levels + logins)."""
    if best < 0:
        return True
    level, shape = (
        whole(views.classes(tb)[views.kinds(tb)[kind]["cls"]]["level"]),
        whole(views.kinds(tb)[kind]["shape"]),
    )
    for m in range(views.shared_cost(tb).shape[2]):
        if views.shared_cost(tb)[at, h, m] != views.shared_cost(tb)[at, best, m]:
            return views.shared_cost(tb)[at, h, m] > views.shared_cost(tb)[at, best, m]
        if m == level and lateness(tb, at, h, spare) != lateness(tb, at, best, spare):
            return lateness(tb, at, h, spare) < lateness(tb, at, best, spare)
    mine, theirs = noted_score(tb, at, h, shape), noted_score(tb, at, best, shape)
    if mine != theirs:
        return mine > theirs
    return views.hosts(tb)[h]["tie"] > views.hosts(tb)[best]["tie"]


@kernel
def enlist(tb: State, at: int, h: int) -> None:
    """Add host ``h`` at the end of the list of set ``at``; O(1)."""
    record = views.shared(tb)[at]
    views.shared_hosts(tb)[at, record["feasible"]] = h
    record["feasible"] += 1
    views.shared_listed(tb)[at, h] = record["feasible"]


@kernel
def stands_before(tb: State, at: int, a: int, b: int) -> bool:
    """Whether host ``a`` is a better one to preempt on than ``b``, as both were evaluated; O(levels).

    As :func:`beats`, where the score does not depend on the users, and nobody on how long victims take.
    """
    costs = views.shared_cost(tb)
    for m in range(costs.shape[2]):
        if costs[at, a, m] != costs[at, b, m]:
            return costs[at, a, m] > costs[at, b, m]
    mine, theirs = views.shared_score(tb)[at, a], views.shared_score(tb)[at, b]
    if mine != theirs:
        return mine > theirs
    return views.shared_tie(tb)[at, a] > views.shared_tie(tb)[at, b]


@leaf
def put(tb: State, at: int, i: int, h: int) -> None:
    """Write host ``h`` to position ``i`` of the list; O(1)."""
    views.shared_hosts(tb)[at, i] = h
    views.shared_listed(tb)[at, h] = i + 1


@kernel
def rise(tb: State, at: int, i: int) -> None:
    """Move the host at position ``i`` of the heap towards its top, as far as it is better; O(log hosts)."""
    hosts = views.shared_hosts(tb)
    h = whole(hosts[at, i])
    while i > 0 and stands_before(tb, at, h, whole(hosts[at, (i - 1) >> 1])):
        put(tb, at, i, whole(hosts[at, (i - 1) >> 1]))
        i = (i - 1) >> 1
    put(tb, at, i, h)


@kernel
def sink(tb: State, at: int, i: int) -> None:
    """Move the host at position ``i`` away from the top, as far as others below are better; O(log hosts)."""
    hosts, count = views.shared_hosts(tb), views.shared(tb)[at]["feasible"]
    h = whole(hosts[at, i])
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and stands_before(tb, at, whole(hosts[at, child + 1]), whole(hosts[at, child])):
            child += 1
        if not stands_before(tb, at, whole(hosts[at, child]), h):
            break
        put(tb, at, i, whole(hosts[at, child]))
        i = child
    put(tb, at, i, h)


@kernel
def settle(tb: State, at: int, h: int) -> None:
    """Host ``h``, which is listed, was evaluated anew: move it where the list is a heap; O(log hosts)."""
    record = views.shared(tb)[at]
    views.shared_tie(tb)[at, h] = views.hosts(tb)[h]["tie"]
    record["least_limit"] = min(record["least_limit"], views.shared_limit(tb)[at, h])
    if record["heaped"]:
        rise(tb, at, whole(views.shared_listed(tb)[at, h] - 1))
        sink(tb, at, whole(views.shared_listed(tb)[at, h] - 1))


@kernel
def arrange(tb: State, at: int) -> None:
    """Make the list of set ``at`` a heap, where the score does not depend on the users; O(hosts)."""
    record, hosts = views.shared(tb)[at], views.shared_hosts(tb)
    if views.rules(tb)["placer_score"] != 0:
        return
    least = np.inf
    for i in range(record["feasible"]):
        h = whole(hosts[at, i])
        put(tb, at, whole(i), h)
        least = min(least, views.shared_limit(tb)[at, h])
    record["least_limit"] = least
    for k in range(record["feasible"] >> 1):
        sink(tb, at, whole((record["feasible"] >> 1) - 1 - k))
    record["heaped"] = 1


@kernel
def first(tb: State, at: int) -> int:
    """The best host of the heap, or -1; those that proved infeasible leave it here; O(log hosts) for each."""
    record, hosts = views.shared(tb)[at], views.shared_hosts(tb)
    while record["feasible"] > 0:
        h = whole(hosts[at, 0])
        if views.shared_limit(tb)[at, h] != -np.inf:
            return h
        views.shared_listed(tb)[at, h] = 0
        record["feasible"] -= 1
        last = whole(hosts[at, record["feasible"]])
        if last != h:
            put(tb, at, whole(0), last)
            sink(tb, at, whole(0))
    return NOBODY
