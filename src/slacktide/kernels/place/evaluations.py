"""What preempting on a host would cost, kept for all who ask the same in sets of evaluations, one host each."""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible import host_slots, lendable, pod_groups, victim_order
from slacktide.kernels.place import ranking, victims
from slacktide.kernels.policies import in_force
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State

UNSHARED = whole(0)  # the set of evaluations that nobody else may read


@kernel
def evaluate(tb: State, at: int, h: int, shape: int, cls: int, q_j: float) -> None:
    """Keep in set ``at`` what preempting on host ``h`` would cost; O(instances on it)."""
    now = views.control(tb)["now"]
    number = victims.choose(tb, h, shape, cls, q_j, now)
    if number < 0:
        views.shared_limit(tb)[at, h] = -np.inf
        if views.control(tb)["order_mattered"]:
            views.shared(tb)[at]["order_mattered"] = victim_order.mark(tb)
        return
    if not views.shared_listed(tb)[at, h]:
        ranking.enlist(tb, at, h)
    victims.preemption_cost(tb, h, number, now, views.shared_cost(tb)[at, h])
    views.shared_wait(tb)[at, h] = victims.longest_grace(tb, h, number)
    ranking.note_score(tb, at, h, shape)
    views.shared_limit(tb)[at, h] = victims.result_validity(tb, h, number, cls, now)
    views.shared_look(tb)[at, h] = views.control(tb)["looks"]
    ranking.settle(tb, at, h)


@kernel
def lasting(tb: State) -> bool:
    """Whether evaluations outlive a pass, as they depend on nothing but a host's contents (the *score cache*)."""
    return in_force.by_contents(tb) and len(views.budgets(tb)) == 0 and not pod_groups.any_whole(tb)


@kernel
def set_for(tb: State, pair: int) -> int:
    """The set that keeps the evaluations of a pair, taken from the least recently used where it has none; O(sets)."""
    views.control(tb)["looks"] += 1
    at = whole(views.shared_of_pair(tb)[pair])
    if at < 0 or views.shared(tb)[at]["pair"] != pair:
        at = whole(1)
        for i in range(2, len(views.shared(tb))):
            if views.shared(tb)[i]["used"] < views.shared(tb)[at]["used"]:
                at = whole(i)
        views.shared(tb)[at]["pair"] = pair
        views.shared(tb)[at]["batch"] = -1
        views.shared_of_pair(tb)[pair] = at
    views.shared(tb)[at]["used"] = views.control(tb)["looks"]
    return at


@kernel
def forget(tb: State, at: int) -> None:
    """Empty a set's list of feasible hosts; O(its length)."""
    record = views.shared(tb)[at]
    for i in range(record["feasible"]):
        views.shared_listed(tb)[at, views.shared_hosts(tb)[at, i]] = 0
    record["feasible"] = record["heaped"] = record["scans"] = record["order_mattered"] = 0


@leaf
def shown_hopeless(tb: State, h: int, shape: int, cls: int, q_j: float) -> bool:
    """Whether bounds show that those eligible on host ``h`` do not suffice; O(resources), now and then more."""
    control = views.control(tb)
    if not in_force.by_metric(tb) or views.rules(tb)["naive"]:
        return False
    control["bounds"] += 1
    if views.classes(tb)[cls]["overloaded"] and lendable.too_little(tb, h, shape, cls, q_j, control["now"]):
        return True
    return host_slots.hopeless(tb, h, cls, q_j, control["now"])


@kernel
def skip_or_evaluate(tb: State, at: int, h: int, kind: int, q_j: float) -> None:
    """Evaluate host ``h`` into set ``at`` unless bounds show that those eligible do not suffice; O(instances on it).

    A host with room is of no interest here: whoever may use it has found it before.
    """
    shape, cls = whole(views.kinds(tb)[kind]["shape"]), whole(views.kinds(tb)[kind]["cls"])
    if shown_hopeless(tb, h, shape, cls, q_j):
        views.shared_limit(tb)[at, h] = -np.inf
        return
    evaluate(tb, at, h, shape, cls, q_j)


@leaf
def may_use(tb: State, h: int, term: int, job: int) -> bool:
    """Whether host ``h`` satisfies a term and runs no instance of an anti-affine job; O(instances on it)."""
    return views.allowed(tb)[term, views.hosts(tb)[h]["group"]] and not host_slots.has_sibling(tb, h, job)
