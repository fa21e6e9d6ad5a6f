"""Where an instance goes whose kind has rules or preferences: every host is asked, one by one.

See docs/semantics.md, 'Neighbours, preferences and budgets'. What happens in one domain
changes what other hosts are worth. So nothing is kept from one search to the next, but
that nothing has changed.
"""

from __future__ import annotations

from slacktide.kernels.feasible import (
    affinity,
    disruption_budgets,
    free_index,
    host_slots,
    pod_groups,
    room_to_come,
    victim_order,
)
from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.place import ranking, search, victims
from slacktide.kernels.place.evaluations import UNSHARED, shown_hopeless
from slacktide.kernels.place.scores import comparing
from slacktide.kernels.policies import in_force
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State

ONE_BY_ONE, TOGETHER = whole(0), whole(1)
"""How victims are chosen on each host."""


@kernel
def open_to(tb: State, h: int, kind: int) -> bool:
    """Whether host ``h`` is up, satisfies the kind's term and runs no instance of its anti-affine job."""
    record = views.kinds(tb)[kind]
    host = views.hosts(tb)[h]
    if host["down"] or not views.allowed(tb)[record["term"], host["group"]]:
        return False
    return not host_slots.has_sibling(tb, h, whole(record["job"]))


@kernel
def best_score(tb: State, kind: int, least: int, largest: int) -> int:
    """The best of the hosts whose points, from ``least`` to ``largest``, are not NOWHERE, or -1; O(hosts)."""
    host, tie, score = NOBODY, whole(-1), whole(NOWHERE)
    shape, likings = views.kinds(tb)[kind]["shape"], views.kinds(tb)[kind]["preferences"]
    for h in range(len(views.hosts(tb))):
        points = views.points(tb)[h]
        if points == NOWHERE:
            continue
        free_index.has_room(tb, h, shape)
        mine = comparing.allocation_score(tb, h, shape)
        if likings > 0:
            mine += affinity.scaled(points, least, largest, whole(views.rules(tb)["score"]))
        if host < 0 or mine > score or (mine == score and views.hosts(tb)[h]["tie"] > tie):
            host, score, tie = h, mine, views.hosts(tb)[h]["tie"]
    return host


@kernel
def find_free(tb: State, kind: int) -> int:
    """Best host with room on which the kind's rules hold, or -1; O(hosts * (rules + preferences) + domains)."""
    shape, likings = views.kinds(tb)[kind]["shape"], views.kinds(tb)[kind]["preferences"]
    affinity.prepare(tb, kind)
    least, largest = whole(2**62), whole(-(2**62))
    checked = 0
    for h in range(len(views.hosts(tb))):
        views.points(tb)[h] = NOWHERE
        if not open_to(tb, h, kind):
            continue
        checked += 1
        if not free_index.has_room(tb, h, shape) or affinity.rules_at(tb, kind, h) != affinity.HOLD:
            continue
        if room_to_come.lacks(tb, whole(h), whole(shape), whole(views.kinds(tb)[kind]["cls"])):
            continue
        points = whole(0)
        if likings > 0:
            points = affinity.points_of(tb, kind, h)
            least, largest = min(least, points), max(largest, points)
        views.points(tb)[h] = points
    host = whole(comparing.choose(tb, kind)) if comparing.needed(tb) else whole(best_score(tb, kind, least, largest))
    if host >= 0:  # else the search for victims counts the same hosts
        views.control(tb)["operations"] += checked
    return host


@kernel
def may_take(tb: State, h: int, i: int, number: int, cls: int, q_j: float, now: float) -> bool:
    """Whether the instance in slot ``i`` is eligible by itself, ``number`` of others chosen; O(chosen)."""
    slot = views.slots(tb)[h, i]
    if slot["batch"] == views.control(tb)["batch"] or not in_force.eligible(tb, slot, cls, q_j, now):
        return False
    return not disruption_budgets.keeps(tb, h, i, number, now)


@kernel
def a_carrier_stays(tb: State, h: int, kind: int, q_j: float, now: float) -> bool:
    """Whether an instance on host ``h`` that makes away rules fail is not eligible: most often the first one, and what
    else would be asked of all of them takes long; O(instances on it * rules)."""
    cls = whole(views.kinds(tb)[kind]["cls"])
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        chosen = slot["batch"] == views.control(tb)["batch"]
        if affinity.in_the_way(tb, kind, slot, h) and (chosen or not in_force.eligible(tb, slot, cls, q_j, now)):
            return True
    return False


@kernel
def take_carriers(tb: State, h: int, kind: int, q_j: float, now: float) -> int:
    """Choose all instances on host ``h`` that make away rules fail; their number, or -1 where one is not eligible."""
    cls = whole(views.kinds(tb)[kind]["cls"])
    number = whole(0)
    for i in range(views.hosts(tb)[h]["count"]):
        if not affinity.in_the_way(tb, kind, views.slots(tb)[h, i], h):
            continue
        if not may_take(tb, h, i, number, cls, q_j, now):
            return whole(-1)
        views.taken(tb)[number] = i
        number += 1
        victims.release(tb, views.slots(tb)[h, i])
    return number


@kernel
def take_others(tb: State, h: int, kind: int, q_j: float, now: float, number: int) -> int:
    """Choose further victims behind the ``number`` chosen until the demand fits; how many are chosen then, or -1.

    Whole groups go for kinds without rules only: what their companions leave behind may break a rule elsewhere.
    """
    cls = whole(views.kinds(tb)[kind]["cls"])
    forced, free_of_rules = number, views.kinds(tb)[kind]["conditions"] == 0
    for i in range(views.hosts(tb)[h]["count"]):
        if free_of_rules and pod_groups.whole_of(tb, whole(views.slots(tb)[h, i]["row"])) >= 0:
            number, enough = victims.take_group(tb, h, whole(i), number, cls, q_j, now)
            if enough:
                return number
            continue
        chosen = False
        for v in range(forced):
            chosen = chosen or views.taken(tb)[v] == i
        if chosen or not may_take(tb, h, i, number, cls, q_j, now):
            continue
        views.taken(tb)[number] = i
        number += 1
        if victims.release(tb, views.slots(tb)[h, i]):
            return number
    return whole(-1)


@kernel
def fits_now(tb: State) -> bool:
    """Whether ``missing`` says that the demand fits; O(resources)."""
    for r in range(len(views.missing(tb))):
        if views.missing(tb)[r] > 0:
            return False
    return True


@kernel
def choose(tb: State, h: int, kind: int, q_j: float, now: float) -> int:
    """As :func:`.victims.choose`, for a kind with rules, prepared; host ``h`` must be open to it."""
    record = views.kinds(tb)[kind]
    views.control(tb)["operations"] += 1
    views.control(tb)["companions"] = 0
    answer = affinity.rules_at(tb, kind, h)
    if answer == affinity.FAIL_FOR_GOOD:
        return whole(-1)
    fits = free_index.has_room(tb, h, whole(record["shape"]))
    if fits and room_to_come.lacks(tb, h, whole(record["shape"]), whole(record["cls"])):
        return whole(-1)
    if fits and answer == affinity.HOLD:
        return whole(0)
    if search.can_still_wait(tb, kind, q_j):
        return whole(-1)
    host_slots.sort_victims(tb, h, now)
    number = whole(0)
    if answer != affinity.HOLD:
        if a_carrier_stays(tb, h, kind, q_j, now) or not affinity.only_these_fail(tb, kind, h):
            return whole(-1)
        number = take_carriers(tb, h, kind, q_j, now)
        if number < 0:
            return whole(-1)
    if not fits_now(tb):
        number = take_others(tb, h, kind, q_j, now, number)
    if number < 0 or affinity.hold_without(tb, kind, h, number):
        return number
    if number > 0:
        victim_order.note(tb, h)
    return whole(-1)


@kernel
def choose_together(tb: State, h: int, kind: int, q_j: float, now: float) -> int:
    """As :func:`choose`, where it finds nobody: victims for room and for rules of every kind together.

    All less important ones that are eligible are taken, but for those that the instance must stay near to; if that
    serves, those that need not go are given back, the last in the order of victims first.
    O(victims * rules * (victims + domains)).
    """
    if views.kinds(tb)[kind]["conditions"] == 0 or search.can_still_wait(tb, kind, q_j):
        return whole(-1)
    views.control(tb)["companions"] = 0
    free_index.has_room(tb, h, whole(views.kinds(tb)[kind]["shape"]))
    host_slots.sort_victims(tb, h, now)
    number, cls = whole(0), whole(views.kinds(tb)[kind]["cls"])
    for i in range(views.hosts(tb)[h]["count"]):
        less = views.classes(tb)[views.slots(tb)[h, i]["cls"]]["rank"] > views.classes(tb)[cls]["rank"]
        if less and may_take(tb, h, i, number, cls, q_j, now):
            views.taken(tb)[number] = i
            if affinity.near_without(tb, kind, h, number + 1):
                number += 1
                victims.release(tb, views.slots(tb)[h, i])
            elif number > 0:
                victim_order.note(tb, h)
    if number == 0 or not fits_now(tb) or not affinity.all_hold_without(tb, kind, h, number):
        return whole(-1)
    return reprieve(tb, h, kind, number)


@kernel
def reprieve(tb: State, h: int, kind: int, number: int) -> int:
    """Of the ``number`` of victims just chosen on host ``h`` for a kind, prepared, let those stay without whom room and
    rules are there as well, the last chosen asked first; how many go. Who goes in company does. O(victims^2 * rules).
    """
    v = number
    while v > 0 and number > 1:
        v -= 1
        if not pod_groups.in_company(tb, whole(views.slots(tb)[h, views.taken(tb)[v]]["row"])):
            number = give_back(tb, h, kind, number, v)
    return number


@kernel
def give_back(tb: State, h: int, kind: int, number: int, v: int) -> int:
    """Let victim ``v`` of the ``number`` chosen stay where room and rules allow it; how many are chosen then."""
    i = whole(views.taken(tb)[v])
    for later in range(v, number - 1):
        views.taken(tb)[later] = views.taken(tb)[later + 1]
    if victims.take_back(tb, views.slots(tb)[h, i]) and affinity.all_hold_without(tb, kind, h, number - 1):
        return number - 1
    victims.release(tb, views.slots(tb)[h, i])
    for later in range(number - 1, v, -1):
        views.taken(tb)[later] = views.taken(tb)[later - 1]
    views.taken(tb)[v] = i
    return number


@kernel
def choose_either(tb: State, h: int, kind: int, q_j: float, now: float) -> int:
    """Victims on host ``h`` for an instance of a kind, prepared, as they were found: one by one, else together."""
    number = whole(choose(tb, h, kind, q_j, now))
    return number if number >= 0 else whole(choose_together(tb, h, kind, q_j, now))


@kernel
def find_with_victims(tb: State, kind: int, q_j: float, how: int) -> int:
    """Best host to preempt on, or -1, by :func:`choose` (ONE_BY_ONE) or :func:`choose_together`; O(all instances)."""
    control, best = views.control(tb), NOBODY
    now = control["now"]
    control["looks"] += 1
    affinity.prepare(tb, kind)
    shape = whole(views.kinds(tb)[kind]["shape"])
    cls = whole(views.kinds(tb)[kind]["cls"])
    spare = ranking.spare_time(tb, cls, q_j)
    for h in range(len(views.hosts(tb))):
        if not open_to(tb, h, kind) or shown_hopeless(tb, h, shape, cls, q_j):
            continue
        control["residents"] += views.hosts(tb)[h]["count"] * views.kinds(tb)[kind]["conditions"]
        number = choose_together(tb, h, kind, q_j, now) if how == TOGETHER else choose(tb, h, kind, q_j, now)
        if number < 0:
            continue
        if number > 1 and victims.spares_before_it_compares(tb):
            number = whole(reprieve(tb, h, kind, number))
        victims.preemption_cost(tb, h, number, now, views.shared_cost(tb)[UNSHARED, h])
        views.shared_wait(tb)[UNSHARED, h] = victims.longest_grace(tb, h, number)
        ranking.note_score(tb, UNSHARED, h, shape)
        if ranking.beats(tb, UNSHARED, h, best, kind, spare):
            best = h
    return best


@kernel
def find(tb: State, kind: int, q_j: float) -> int:
    """Best host for an instance of a kind with rules or preferences, or -1."""
    host = find_free(tb, kind)
    if host >= 0 or search.can_still_wait(tb, kind, q_j):
        return host
    search.bring_metrics_up_to_date(tb)
    host = whole(find_with_victims(tb, kind, q_j, ONE_BY_ONE))
    if host >= 0 or views.kinds(tb)[kind]["conditions"] == 0:
        return host
    return find_with_victims(tb, kind, q_j, TOGETHER)
