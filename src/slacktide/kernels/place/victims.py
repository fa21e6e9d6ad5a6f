"""Which instances on a host would be preempted, and what that would cost, by the rules of the policy in force."""

from __future__ import annotations

import numpy as np

from slacktide.kernels.builtin import FEWEST_VICTIMS, OF_PIECES, OWN, SLACK
from slacktide.kernels.feasible import (
    disruption_budgets,
    free_index,
    grants,
    host_slots,
    leeway,
    pod_groups,
    room_to_come,
    victim_order,
)
from slacktide.kernels.place import companions
from slacktide.kernels.policies import in_force, pieces, priority, qos_driven
from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.runtime.plugin_calls import cost_of
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State


@leaf
def release(tb: State, slot: Records) -> bool:
    """Take a victim's amounts off ``views.missing(tb)``; whether nothing is missing any more; O(resources)."""
    enough = True
    row, shape = whole(slot["row"]), whole(slot["shape"])
    for r in range(len(views.missing(tb))):
        views.missing(tb)[r] -= grants.taken(tb, row, shape, r)
        if views.missing(tb)[r] > 0:
            enough = False
    return enough


@leaf
def take_back(tb: State, slot: Records) -> bool:
    """The reverse of :func:`release`, of one that stays; whether nothing is missing even so; O(resources)."""
    enough = True
    row, shape = whole(slot["row"]), whole(slot["shape"])
    for r in range(len(views.missing(tb))):
        views.missing(tb)[r] += grants.taken(tb, row, shape, r)
        if views.missing(tb)[r] > 0:
            enough = False
    return enough


@kernel
def take_group(tb: State, h: int, i: int, number: int, cls: int, q_j: float, now: float) -> tuple[int, bool]:
    """Choose the whole group of the instance in slot ``i`` behind the ``number`` chosen, if it may go: how many are
    chosen on host ``h`` then, and whether they suffice; O(group * instances on a host)."""
    chosen, enough = whole(companions.take_if_it_may_go(tb, h, i, number, cls, q_j, now)), False
    if chosen == number and number > 0 and not companions.is_taken(tb, i, number):
        victim_order.note(tb, h)  # perhaps those chosen before it keep it
    for v in range(number, chosen):
        enough = release(tb, views.slots(tb)[h, views.taken(tb)[v]])
    return chosen, enough


@kernel
def choose_by_metric(tb: State, h: int, cls: int, q_j: float, now: float) -> int:
    """Victims on host ``h`` into ``views.taken(tb)``; their number, or -1 where they do not suffice; O(instances)."""
    host_slots.sort_victims(tb, h, now)
    batch = views.control(tb)["batch"]
    number = whole(0)
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        q = in_force.worth(tb, slot, now)
        idle = request_ledger.is_idle(tb, slot)
        if slot["request"] >= 0:
            leeway.keep_eligibility(tb, slot, q, cls, q_j, now)
        if i == 0 and not idle and q >= views.classes(tb)[slot["cls"]]["margin"] and views.rules(tb)["one_margin"]:
            host_slots.lower_ceiling(tb, h, leeway.most_of(tb, slot, q, now), now)
        if in_force.none_after(tb, slot, q, idle, cls, q_j):
            return -1
        if pod_groups.whole_of(tb, whole(slot["row"])) >= 0:
            number, enough = take_group(tb, h, whole(i), number, cls, q_j, now)
            if enough:
                return number
            continue
        if (
            slot["batch"] == batch
            or not in_force.eligible_by_metric(tb, slot, q, cls, q_j, now)
            or disruption_budgets.keeps(tb, h, i, number, now)
        ):
            continue
        views.taken(tb)[number] = i
        number += 1
        if release(tb, slot):
            return number
    return -1


@kernel
def choose_by_priority(tb: State, h: int, cls: int, now: float) -> int:
    """As :func:`choose_by_metric`, where no metric is asked for; O(instances)."""
    host_slots.sort_victims(tb, h, now)
    batch = views.control(tb)["batch"]
    number = whole(0)
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        if not in_force.eligible_by_class(tb, slot, cls):
            if in_force.ends_by_class(tb):
                return -1
            continue
        if pod_groups.whole_of(tb, whole(slot["row"])) >= 0:
            number, enough = take_group(tb, h, whole(i), number, cls, np.inf, now)
            if enough:
                return number
            continue
        if slot["batch"] == batch or disruption_budgets.spared(tb, h, i, number, now):
            continue
        views.taken(tb)[number] = i
        number += 1
        if release(tb, slot):
            return number
    return -1


@leaf
def spares_before_it_compares(tb: State) -> bool:
    """Whether hosts are compared by those victims only who need to go, as in kube-scheduler; O(1)."""
    return views.rules(tb)["as_kube"] != 0 and views.rules(tb)["reprieve"] != 0


@kernel
def spare(tb: State, h: int, number: int) -> int:
    """Of the ``number`` of victims just chosen on host ``h`` let those stay without whom there is room as well, the
    last chosen asked first; how many go. Who goes in company does. O(victims^2)."""
    v = number
    while v > 0 and number > 1:
        v -= 1
        i = whole(views.taken(tb)[v])
        slot = views.slots(tb)[h, i]
        if pod_groups.in_company(tb, whole(slot["row"])):
            continue
        if not take_back(tb, slot):
            release(tb, slot)
            continue
        number -= 1
        for later in range(v, number):
            views.taken(tb)[later] = views.taken(tb)[later + 1]
    return number


@kernel
def choose(tb: State, h: int, shape: int, cls: int, q_j: float, now: float) -> int:
    """Victims that host ``h`` needs for this demand into ``taken``, and whoever must go with them from other hosts into
    ``companions``: 0 or more, or -1: infeasible; O(instances)."""
    views.control(tb)["companions"] = 0
    if views.hosts(tb)[h]["down"]:
        return -1
    views.control(tb)["operations"] += 1
    if free_index.has_room(tb, h, shape):
        return -1 if room_to_come.lacks(tb, h, shape, cls) else 0
    if not in_force.by_metric(tb):
        number = whole(choose_by_priority(tb, h, cls, now))
        return spare(tb, h, number) if spares_before_it_compares(tb) else number
    if qos_driven.can_wait(tb, cls, q_j):
        return -1
    return choose_by_metric(tb, h, cls, q_j, now)


@leaf
def feel(tb: State, slot: Records, at: int, now: float, out: Records) -> int:
    """Add a victim, number ``at`` of them, to the cost; 0 where it is idle, which costs nothing by metric; O(1)."""
    theirs = views.classes(tb)[slot["cls"]]
    views.ranks(tb)[at] = theirs["named_rank"]
    if in_force.by_metric(tb) and request_ledger.is_idle(tb, slot):
        views.slack(tb)[at] = np.inf
        return whole(0)
    if in_force.cost(tb) == OF_PIECES:
        q = in_force.worth(tb, slot, now) if in_force.by_metric(tb) else 0.0
        pieces.feel(tb, slot, q, now, out)
        return whole(1)
    if in_force.cost(tb) == FEWEST_VICTIMS:
        if views.rules(tb)["as_kube"]:
            priority.add_start(out, whole(theirs["level"]), slot["put_at"])
        priority.add_cost(out, theirs["level"])
        out[theirs["level"]] -= window_ledger.further_cost(slot)
        return whole(1)
    slack = request_ledger.metric_of(tb, slot, now) - theirs["margin"]
    views.slack(tb)[at] = slack
    qos_driven.add_cost(out, theirs["level"], slack)
    return whole(1)


@kernel
def feel_groups(tb: State, h: int, number: int, now: float, out: Records) -> int:
    """Add the victims on host ``h`` and their companions to the cost; how many are not idle; O(victims^2).

    Groups in the order of their rows, whichever host is asked, so that what is equal costs the same to the bit.
    """
    felt, at = whole(0), whole(0)
    for v in range(number):
        slot = views.slots(tb)[h, views.taken(tb)[v]]
        if pod_groups.whole_of(tb, whole(slot["row"])) < 0:
            felt += feel(tb, slot, at, now, out)
            at += 1
    for v in range(number):
        g = companions.opens(tb, h, whole(v))
        row = whole(views.pod_groups(tb)[g]["first"]) if g >= 0 else whole(-1)
        while row >= 0:
            theirs = whole(views.instances(tb)[row]["host"])
            felt += feel(tb, views.slots(tb)[theirs, companions.slot_at(tb, row)], at, now, out)
            at += 1
            row = whole(views.next_in_group(tb)[row])
    return felt


@kernel
def preemption_cost(tb: State, h: int, number: int, now: float, out: Records) -> None:
    """The cost tuple of the chosen victims into ``out``, shape (levels + 1,), larger is better; O(victims)."""
    levels = len(out) - 1
    out[:] = 0.0
    cost, felt = in_force.cost(tb), whole(0)
    further = views.control(tb)["companions"] if number > 0 else whole(0)
    if pod_groups.any_whole(tb):
        felt = whole(feel_groups(tb, h, number, now, out))
    else:
        for v in range(number):
            felt += feel(tb, views.slots(tb)[h, views.taken(tb)[v]], whole(v), now, out)
    if (cost == SLACK or cost == OF_PIECES) and felt == 0 and number > 0:
        qos_driven.no_cost(out)
    if cost == OWN and number > 0:
        out[:] = 0.0
        cost_of(views.rules(tb)["own_cost"], views.slack(tb), views.ranks(tb), number + further, out)
        for m in range(levels + 1):
            if np.isnan(out[m]):
                views.control(tb)["broken"] = 1
                out[m] = -np.inf


@kernel
def longest_grace(tb: State, h: int, number: int) -> float:
    """Seconds that the last of the chosen victims on host ``h`` may take to end; O(victims)."""
    longest = 0.0
    for v in range(number):
        row = views.slots(tb)[h, views.taken(tb)[v]]["row"]
        longest = max(longest, views.kinds(tb)[views.instances(tb)[row]["kind"]]["grace"])
    return longest


@kernel
def validity_of(tb: State, slot: Records, cls: int, now: float) -> float:
    """A chosen victim is one for any larger metric clearly below this, too; O(1)."""
    q = in_force.worth(tb, slot, now)
    if not views.classes(tb)[cls]["overloaded"]:
        q = leeway.least_of(tb, slot, q, now)
    return in_force.eligible_below(tb, slot, q, cls, now)


@kernel
def result_validity(tb: State, h: int, number: int, cls: int, now: float) -> float:
    """The chosen victims are also those of any larger metric clearly below this; O(victims)."""
    limit = np.inf
    if not in_force.by_metric(tb):
        return limit
    for v in range(number):
        limit = min(limit, validity_of(tb, views.slots(tb)[h, views.taken(tb)[v]], cls, now))
    for c in range(views.control(tb)["companions"]):
        row = whole(views.companions(tb)[c])
        theirs = whole(views.instances(tb)[row]["host"])
        limit = min(limit, validity_of(tb, views.slots(tb)[theirs, companions.slot_at(tb, row)], cls, now))
    return limit
