"""What each host offers to a class, whatever the demand: bounds by which most hosts need no look (:mod:`.tournament`).

Whom a host would give up, one after the other, depends on the class that asks and on its metric; the demand says only
after how many of them there is room. So for a class each host has a row of offers: what is free, what it costs and how
it scores after one, two, ... victims, and after more than ``EXACT`` a bound of all three. The hosts of a group are the
leaves of the tree that they are in the free index; a node has the best of each of these below it.

A larger metric makes fewer eligible, the last of a host's victims first, where all classes have one
margin and victims go in the mirror of the queue order: then what was worked out for a smaller metric is a bound still.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.builtin import FEWEST_VICTIMS, OWN
from slacktide.kernels.feasible import disruption_budgets, disruption_limits, grants, host_slots, pod_groups
from slacktide.kernels.feasible.free_index import NOWHERE, PLENTY, first_part, fraction, second_part
from slacktide.kernels.place import ranking
from slacktide.kernels.place.evaluations import UNSHARED
from slacktide.kernels.place.scores import comparing
from slacktide.kernels.policies import in_force, pieces, priority, qos_driven
from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State

EXACT = 4
"""Numbers of victims of which each has an offer of its own; one more offer is for all larger numbers."""
OFFERS = EXACT + 1
PART_A, PART_B, ROOM = 0, 1, 2
"""Of an offer: the parts of the score, then the amount of each resource."""
REBUILDS = 4
"""So often in a pass the tree is made anew for a smaller metric; who then still has one looks at every host."""


@leaf
def applies(tb: State, kind: int, q_j: float) -> bool:
    """Whether offers are bounds by the rules in force; O(1)."""
    rules, cls = views.rules(tb), views.kinds(tb)[kind]["cls"]
    if len(views.contest(tb)) == 0 or not rules["shared"] or rules["tolerance"] > 0.0 or rules["as_kube"]:
        return False
    if (
        rules["score"] == OWN
        or in_force.cost(tb) == OWN
        or pieces.decide(tb)
        or rules["placer_score"] != 0
        or comparing.needed(tb)
    ):
        return False
    if views.classes(tb)[cls]["overloaded"] or disruption_limits.any_limits(tb):
        return False
    if not in_force.by_metric(tb):
        return True
    alike = rules["one_margin"] != 0 and rules["mirrored"] != 0
    return alike and ranking.spare_time(tb, whole(cls), q_j) == np.inf


@kernel
def worthwhile(tb: State, kind: int, q_j: float) -> bool:
    """Whether to find the best host by the tree: enough of this class looked at every host in this pass; O(1)."""
    if not applies(tb, kind, q_j):
        return False
    control, record, pair = views.control(tb), views.contest(tb)[0], views.kinds(tb)[kind]["pair"]
    at = whole(views.shared_of_pair(tb)[pair])
    if at >= 0 and views.shared(tb)[at]["pair"] == pair and views.shared(tb)[at]["batch"] == control["batch"]:
        return False  # only what changed since is to be looked at
    cls = views.kinds(tb)[kind]["cls"]
    if record["batch"] != control["batch"] or record["cls"] != cls:
        record["batch"], record["cls"] = control["batch"], cls
        record["looks"], record["builds"] = 0, 0
        record["reference"] = np.inf
    record["looks"] += 1
    return record["looks"] > record["after"] and record["builds"] <= REBUILDS


@leaf
def add_cost(tb: State, out: NDArray[np.float64], slot: Records, now: float) -> None:
    """Add a victim to the cost of those before it, as :func:`.victims.preemption_cost` does; O(1)."""
    theirs = views.classes(tb)[slot["cls"]]
    if in_force.cost(tb) == FEWEST_VICTIMS:
        priority.add_cost(out, theirs["level"])
        out[theirs["level"]] -= window_ledger.further_cost(slot)
    else:
        qos_driven.add_cost(out, theirs["level"], request_ledger.metric_of(tb, slot, now) - theirs["margin"])


@leaf
def would_go(tb: State, h: int, i: int, number: int, cls: int, q_j: float, now: float) -> int:
    """Whether the instance in slot ``i`` of host ``h`` is a victim, ``number`` before it: 1, 0, or -1: nobody is from
    here on; O(1)."""
    slot = views.slots(tb)[h, i]
    if not in_force.by_metric(tb):
        if not in_force.eligible_by_class(tb, slot, cls):
            return whole(-1)
    else:
        q = request_ledger.metric_of(tb, slot, now)
        if in_force.none_after(tb, slot, q, False, cls, q_j):
            return whole(-1)
        if not in_force.eligible_by_metric(tb, slot, q, cls, q_j, now):
            return whole(0)
    if slot["batch"] == views.control(tb)["batch"] or disruption_budgets.spared(tb, h, i, number, now):
        return whole(0)
    return whole(1)


@kernel
def open_offer(tb: State, node: int, number: int) -> None:
    """An offer, of so many victims more than one, that nobody makes; O(resources)."""
    views.offers(tb)[node, number, :] = NOWHERE
    views.offer_costs(tb)[node, number, :] = -np.inf


@kernel
def offer_anything(tb: State, node: int, number: int) -> None:
    """An offer that is no worse than any: whoever gets here looks at the host; O(resources)."""
    views.offers(tb)[node, number, :] = PLENTY
    views.offer_costs(tb)[node, number, :] = np.inf


@kernel
def offer_more(tb: State, node: int, h: int) -> None:
    """A bound of what host ``h`` offers for more than ``EXACT`` victims; O(instances)."""
    offer, cost = views.offers(tb)[node, EXACT], views.offer_costs(tb)[node, EXACT]
    offer[PART_A] = offer[PART_B] = PLENTY
    for r in range(views.free(tb).shape[1]):
        offer[ROOM + r] = views.free(tb)[h, r]
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        for r in range(views.free(tb).shape[1]):
            offer[ROOM + r] += grants.taken(tb, whole(slot["row"]), whole(slot["shape"]), r)
    for m in range(len(cost)):
        cost[m] = views.offer_costs(tb)[node, EXACT - 1, m]  # no further victim makes a sum for a class larger
    if in_force.cost(tb) != FEWEST_VICTIMS:
        cost[len(cost) - 1] = np.inf


@kernel
def score_offer(tb: State, node: int, number: int, h: int) -> None:
    """Work out the parts of the score from the amounts of an offer, none less than for any demand; O(1).

    Who demands nothing of an overcommitted resource finds more of it than others do (:func:`.free_index.short_of`).
    """
    offer, score, free = views.offers(tb)[node, number], views.rules(tb)["score"], views.free(tb)[h]
    less = views.hosts(tb)[h]["scarce"]
    x = fraction(offer[ROOM], views.scale(tb)[h, 0])
    y = fraction(offer[ROOM + 1], views.scale(tb)[h, 1])
    offer[PART_A], offer[PART_B] = first_part(score, x, y) - less, second_part(score, x, y) - less
    if free[0] >= 0 and free[1] >= 0:
        return
    more_x = fraction(offer[ROOM] - min(free[0], 0), views.scale(tb)[h, 0])
    more_y = fraction(offer[ROOM + 1] - min(free[1], 0), views.scale(tb)[h, 1])
    for one in range(1, 4):
        x_there, y_there = more_x if one & 1 else x, more_y if one & 2 else y
        offer[PART_A] = max(offer[PART_A], first_part(score, x_there, y_there) - less)
        offer[PART_B] = max(offer[PART_B], second_part(score, x_there, y_there) - less)


@kernel
def make_offers(tb: State, node: int, h: int, cls: int, q_j: float) -> None:
    """Work out what host ``h`` offers, into its leaf; O(instances on it)."""
    now, host = views.control(tb)["now"], views.hosts(tb)[h]
    offers, costs = views.offers(tb)[node], views.offer_costs(tb)[node]
    for number in range(OFFERS):
        open_offer(tb, node, whole(number))
    views.offer_tie(tb)[node] = host["tie"]
    if host["down"]:
        return
    if host["shared"] > 0:
        offer_anything(tb, node, whole(EXACT))  # metrics on it change without its contents
        return
    if in_force.by_metric(tb) and host_slots.hopeless(tb, h, cls, q_j, now):
        return
    host_slots.sort_victims(tb, h, now)
    number = whole(0)
    for i in range(host["count"]):
        slot = views.slots(tb)[h, i]
        row, shape = whole(slot["row"]), whole(slot["shape"])
        if disruption_budgets.budget_of(tb, row) >= 0 or pod_groups.whole_of(tb, row) >= 0:
            offer_anything(tb, node, whole(EXACT))  # what its budget or its group allows changes without its contents
            return
        goes = would_go(tb, h, whole(i), number, cls, q_j, now)
        if goes < 0:
            return
        if goes == 0:
            continue
        if number == EXACT:
            offer_more(tb, node, h)
            return
        views.taken(tb)[number] = i
        for r in range(views.free(tb).shape[1]):
            before = whole(offers[number - 1, ROOM + r]) if number > 0 else whole(views.free(tb)[h, r])
            offers[number, ROOM + r] = before + grants.taken(tb, row, shape, r)
        for m in range(costs.shape[1]):
            costs[number, m] = costs[number - 1, m] if number > 0 else 0.0
        add_cost(tb, costs[number], slot, now)
        score_offer(tb, node, number, h)
        number += 1


@leaf
def compare(a: NDArray[np.float64], b: NDArray[np.float64]) -> int:
    """Whether costs ``a`` are better than ``b`` (1), worse (-1) or the same (0); O(levels)."""
    for m in range(len(a)):
        if a[m] != b[m]:
            return whole(1) if a[m] > b[m] else whole(-1)
    return whole(0)


@kernel
def combine(tb: State, root: int, node: int) -> None:
    """The best of each offer below a node, from its two children; O(offers * (resources + levels))."""
    offers, costs, ties = views.offers(tb), views.offer_costs(tb), views.offer_tie(tb)
    at, left, right = root + node, root + 2 * node, root + 2 * node + 1
    ties[at] = max(ties[left], ties[right])
    for number in range(OFFERS):
        for f in range(offers.shape[2]):
            offers[at, number, f] = max(offers[left, number, f], offers[right, number, f])
        better = right if compare(costs[right, number], costs[left, number]) > 0 else left
        for m in range(costs.shape[2]):
            costs[at, number, m] = costs[better, number, m]


@kernel
def build(tb: State, cls: int, q_j: float) -> None:
    """Work out the offers of all hosts; O(instances + hosts * (resources + levels))."""
    groups = views.groups(tb)
    for g in range(len(groups)):
        root, width = whole(groups[g]["root"]), whole(groups[g]["width"])
        end = whole(groups[g + 1]["first"]) if g + 1 < len(groups) else len(views.hosts(tb))
        for i in range(width):
            if groups[g]["first"] + i < end:
                make_offers(tb, root + width + i, whole(views.leaf_host(tb)[groups[g]["first"] + i]), cls, q_j)
                continue
            for number in range(OFFERS):
                open_offer(tb, root + width + i, whole(number))
            views.offer_tie(tb)[root + width + i] = -1
        node = width - 1
        while node > 0:
            combine(tb, root, node)
            node -= 1


@kernel
def renew(tb: State, h: int, cls: int, q_j: float) -> None:
    """Contents of host ``h`` changed: its offers, and what follows above; O(instances on it + log hosts)."""
    root, node = whole(views.groups(tb)[views.hosts(tb)[h]["group"]]["root"]), whole(views.hosts(tb)[h]["leaf"])
    make_offers(tb, root + node, h, cls, q_j)
    node >>= 1
    while node > 0:
        combine(tb, root, node)
        node >>= 1


@kernel
def bring_up_to_date(tb: State, cls: int, q_j: float) -> bool:
    """Offers as they are now; whether there are any: not where metrics came down too often. O(changed hosts * log)."""
    control, record, changes = views.control(tb), views.contest(tb)[0], views.changes(tb)
    stands = q_j if in_force.by_metric(tb) else 0.0
    behind = control["changes"] - record["position"]
    moved = record["arranged"] != control["arranged"]  # other leaves
    if stands < record["reference"] or behind > len(changes) or moved:
        record["builds"] += 1
        if record["builds"] > REBUILDS:
            return False
        control["bounds"] += len(views.hosts(tb))
        build(tb, cls, q_j)
    else:
        for i in range(record["position"], control["changes"]):
            renew(tb, whole(changes[i % len(changes)]), cls, q_j)
    record["reference"], record["position"], record["arranged"] = stands, control["changes"], control["arranged"]
    return True


@kernel
def best_offer(tb: State, node: int, demand: NDArray[np.int64], a: int, b: int) -> tuple[int, int]:
    """Of the offers of a node that may suffice the best, or -1, and no host below that makes it scores higher."""
    offers, costs = views.offers(tb)[node], views.offer_costs(tb)[node]
    best, score = whole(-1), whole(NOWHERE)
    for number in range(OFFERS):
        enough = costs[number, 0] > -np.inf
        for r in range(len(demand)):
            enough = enough and (demand[r] == 0 or offers[number, ROOM + r] >= demand[r])
        if not enough:
            continue
        limit = whole(min(offers[number, PART_A] - a, offers[number, PART_B] - b))
        order = whole(1) if best < 0 else compare(costs[number], costs[best])
        if order > 0 or (order == 0 and limit > score):
            best, score = whole(number), limit
    return best, score


@leaf
def goes_before(tb: State, node: int, number: int, score: int, other: int, theirs: int, limit: int) -> bool:
    """Whether an offer of a node is better than one of another; O(levels)."""
    order = compare(views.offer_costs(tb)[node, number], views.offer_costs(tb)[other, theirs])
    if order != 0:
        return order > 0
    if score != limit:
        return score > limit
    return views.offer_tie(tb)[node] > views.offer_tie(tb)[other]


@leaf
def may_beat(tb: State, node: int, number: int, score: int, host: int) -> bool:
    """Whether a host below a node may be better than ``host`` (or -1), which was evaluated; O(levels)."""
    if host < 0:
        return True
    order = compare(views.offer_costs(tb)[node, number], views.shared_cost(tb)[UNSHARED, host])
    if order != 0:
        return order > 0
    if score != views.shared_score(tb)[UNSHARED, host]:
        return score > views.shared_score(tb)[UNSHARED, host]
    return views.offer_tie(tb)[node] > views.hosts(tb)[host]["tie"]
