"""The best host to preempt on for one of many distinct demands, without a look at every host for each.

The hosts of a group are the leaves of a tree, whose nodes have the best offer of the hosts below (:mod:`.offers`). A
demand goes down from the root, the better child first, and leaves out branches that hold no better host than the one
found. That one is evaluated as any other is: bounds decide nothing but which hosts are not looked at.

It takes some looks to pay for the tree. So the first demands of a class in a pass look at every host (:mod:`.search`).
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.place import offers, ranking, search_free
from slacktide.kernels.place.evaluations import UNSHARED, evaluate, may_use
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State

UNDECIDED = whole(-2)
"""No answer: every host is to be looked at."""
VISITED = 8
"""Where more than one of so many hosts had to be evaluated for one demand, bounds are of no use in this pass."""
FEW = 64


@leaf
def push(tb: State, top: int, node: int, number: int, score: int) -> int:
    """Note a branch to be looked at, unless it offers nothing; how many there are then, less one; O(1)."""
    if number < 0:
        return top
    branches = views.branches(tb)
    branches[top + 1, 0], branches[top + 1, 1], branches[top + 1, 2] = node, number, score
    return top + 1


@kernel
def find_in_group(tb: State, g: int, kind: int, q_j: float, best: int, most: int) -> int:
    """The best host to preempt on in group ``g`` that beats ``best`` (or -1), which was evaluated; best first, depth
    first. UNDECIDED where more than ``most`` operations are done by then."""
    group, control, branches = views.groups(tb)[g], views.control(tb), views.branches(tb)
    root, width = whole(group["root"]), whole(group["width"])
    record = views.kinds(tb)[kind]
    shape, cls = whole(record["shape"]), whole(record["cls"])
    demand = views.demand(tb)[shape]
    a, b, _ = search_free.parts_of(tb, g, kind)
    number, score = offers.best_offer(tb, root + 1, demand, a, b)
    top = push(tb, whole(-1), whole(1), number, score)
    while top >= 0:
        node, number, score = whole(branches[top, 0]), whole(branches[top, 1]), whole(branches[top, 2])
        top -= 1
        if not offers.may_beat(tb, root + node, number, score, best):
            continue
        if node >= width:
            h = whole(views.leaf_host(tb)[group["first"] + node - width])
            if not may_use(tb, h, whole(record["term"]), whole(record["job"])):
                continue
            if control["operations"] >= most:
                return UNDECIDED
            evaluate(tb, UNSHARED, h, shape, cls, q_j)
            if views.shared_limit(tb)[UNSHARED, h] != -np.inf and ranking.beats(tb, UNSHARED, h, best, kind, np.inf):
                best = h
            continue
        control["bounds"] += 2
        first, last = 2 * node, 2 * node + 1
        number, score = offers.best_offer(tb, root + first, demand, a, b)
        other, limit = offers.best_offer(tb, root + last, demand, a, b)
        if number >= 0 and (
            other < 0 or offers.goes_before(tb, root + first, number, score, root + last, other, limit)
        ):
            first, last, number, score, other, limit = last, first, other, limit, number, score
        top = push(tb, top, first, number, score)
        top = push(tb, top, last, other, limit)
    return best


@kernel
def best_group(tb: State, kind: int) -> int:
    """The group whose root makes the best offer, or -1; O(groups)."""
    groups, demand = views.groups(tb), views.demand(tb)[views.kinds(tb)[kind]["shape"]]
    term = views.kinds(tb)[kind]["term"]
    best, number, score = whole(-1), whole(-1), whole(0)
    for g in range(len(groups)):
        if not views.allowed(tb)[term, g]:
            continue
        a, b, _ = search_free.parts_of(tb, whole(g), kind)
        node = whole(groups[g]["root"] + 1)
        theirs, limit = offers.best_offer(tb, node, demand, a, b)
        if theirs < 0:
            continue
        if best < 0 or offers.goes_before(tb, node, theirs, limit, whole(groups[best]["root"] + 1), number, score):
            best, number, score = whole(g), theirs, limit
    return best


@kernel
def find(tb: State, kind: int, q_j: float) -> int:
    """Best host to preempt on, or -1, or UNDECIDED; O(groups + log hosts), as far as bounds tell hosts apart."""
    control, groups = views.control(tb), views.groups(tb)
    if not offers.bring_up_to_date(tb, whole(views.kinds(tb)[kind]["cls"]), q_j):
        return UNDECIDED
    control["looks"] += 1
    first, best = best_group(tb, kind), NOBODY
    if first < 0:
        return best
    most = control["operations"] + len(views.hosts(tb)) // VISITED + FEW
    for turn in range(-1, len(groups)):
        g = first if turn < 0 else turn
        if turn == first or not views.allowed(tb)[views.kinds(tb)[kind]["term"], g]:
            continue
        best = find_in_group(tb, whole(g), kind, q_j, best, whole(most))
        if best == UNDECIDED:
            views.contest(tb)[0]["builds"] = offers.REBUILDS + 1
            return best
    return best
