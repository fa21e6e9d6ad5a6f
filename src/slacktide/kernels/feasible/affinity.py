"""Affinity: tallies of marks by domain, and whether rules hold and preferences count at a host.

docs/semantics.md, 'Neighbours, preferences and budgets'. Kinds without rules and
preferences never come here, but for counting their marks.
"""

from __future__ import annotations

from slacktide.kernels.builtin import BALANCED, LEAST_REQUESTED, MEAN, PACKED
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.affinity_records import AWAY, NEAR_BY, SPREAD
from slacktide.kernels.tables.schema import Records, State

HOLD, ALONE_AWAY_FAILS, FAIL_FOR_GOOD = range(3)


@leaf
def domain_of(tb: State, counter: int, h: int) -> int:
    """The domain of host ``h`` as a counter sees it, or -1; O(1)."""
    return whole(views.domain(tb)[views.counters(tb)[counter]["topology"], h])


@leaf
def tally(tb: State, counter: int, h: int) -> int:
    """Instances with the counter's mark in the domain of host ``h``; 0 where it lies in none; O(1)."""
    d = domain_of(tb, counter, h)
    return views.tallies(tb)[views.counters(tb)[counter]["first"] + d] if d >= 0 else whole(0)


@kernel
def count(tb: State, kind: int, h: int, by: int) -> None:
    """An instance of this kind goes on host ``h`` (1) or leaves it (-1); O(its counters)."""
    record = views.kinds(tb)[kind]
    for i in range(record["marks_at"], record["marks_at"] + record["marks"]):
        count_one(tb, whole(views.marks(tb)[i]), h, by)


@kernel
def count_one(tb: State, counter: int, h: int, by: int) -> bool:
    """So many more carry the counter's mark on host ``h``, or fewer; whether that counts (``h`` has a domain); O(1)."""
    d = domain_of(tb, counter, h)
    if d >= 0:
        views.tallies(tb)[views.counters(tb)[counter]["first"] + d] += by
        views.counters(tb)[counter]["total"] += by
    return d >= 0


@kernel
def carries(tb: State, kind: int, counter: int) -> bool:
    """Whether instances of a kind carry the counter's mark; O(log of its counters, which ascend)."""
    record = views.kinds(tb)[kind]
    first, end = whole(record["marks_at"]), whole(record["marks_at"] + record["marks"])
    last = end
    while first < last:
        middle = (first + last) // 2
        if views.marks(tb)[middle] < counter:
            first = middle + 1
        else:
            last = middle
    return first < end and views.marks(tb)[first] == counter


@leaf
def involved(tb: State, kind: int) -> bool:
    """Whether a kind has rules or preferences, or never preempts, so that it is looked for on its own; O(1)."""
    record = views.kinds(tb)[kind]
    return record["conditions"] + record["preferences"] > 0 or record["never"] != 0


@kernel
def prepare(tb: State, kind: int) -> None:
    """Find the least tally for each spread rule of a kind, before hosts are asked; O(domains)."""
    record = views.kinds(tb)[kind]
    for i in range(record["conditions_at"], record["conditions_at"] + record["conditions"]):
        condition = views.conditions(tb)[i]
        if condition["rule"] == SPREAD:
            condition["least"] = least_tally(tb, condition, whole(-1), whole(0))


@kernel
def least_tally(tb: State, condition: Records, lowered: int, by: int) -> int:
    """The least tally of all domains, that of domain ``lowered`` taken ``by`` lower; O(domains)."""
    counter = views.counters(tb)[condition["counter"]]
    if counter["domains"] < condition["min_domains"]:
        return whole(0)
    least = whole(2**62)
    for d in range(counter["domains"]):
        here = views.tallies(tb)[counter["first"] + d]
        if d == lowered:
            here -= by
        least = min(least, here)
    return least


@kernel
def nobody_anywhere(tb: State, kind: int, mark: int, gone: int) -> bool:
    """Whether no near rule of the kind about a mark has a carrier in any domain, but for those ``gone``; O(rules)."""
    record = views.kinds(tb)[kind]
    for i in range(record["conditions_at"], record["conditions_at"] + record["conditions"]):
        condition = views.conditions(tb)[i]
        is_kin = condition["rule"] == NEAR_BY and condition["mark"] == mark
        if is_kin and views.counters(tb)[condition["counter"]]["total"] > gone:
            return False
    return True


@kernel
def condition_holds(tb: State, kind: int, condition: Records, h: int, gone: int) -> bool:
    """Whether a near or spread rule of the kind holds at host ``h`` with ``gone`` carriers on it gone.

    O(1), O(rules) where nobody is near, O(domains) for a spread if any is gone.
    """
    c = whole(condition["counter"])
    d = domain_of(tb, c, h)
    if d < 0:
        return False
    here = views.tallies(tb)[views.counters(tb)[c]["first"] + d] - gone
    if condition["rule"] == NEAR_BY:
        return here > 0 or (condition["carried"] != 0 and nobody_anywhere(tb, kind, whole(condition["mark"]), gone))
    least = condition["least"] if gone == 0 else least_tally(tb, condition, d, gone)
    return here + condition["carried"] - least <= condition["skew"]


@kernel
def rules_at(tb: State, kind: int, h: int) -> int:
    """Whether the rules of a kind, prepared, HOLD at host ``h``, fail for good, or for carriers in its domain."""
    record = views.kinds(tb)[kind]
    answer = whole(HOLD)
    for i in range(record["conditions_at"], record["conditions_at"] + record["conditions"]):
        condition = views.conditions(tb)[i]
        if condition["rule"] == AWAY:
            if tally(tb, whole(condition["counter"]), h) > 0:
                answer = whole(ALONE_AWAY_FAILS)
        elif not condition_holds(tb, kind, condition, h, whole(0)):
            return whole(FAIL_FOR_GOOD)
    return answer


@kernel
def in_the_way(tb: State, kind: int, slot: Records, h: int) -> bool:
    """Whether an instance on host ``h`` makes an away rule of the kind fail there; O(rules * log of its counters)."""
    record = views.kinds(tb)[kind]
    theirs = whole(views.instances(tb)[slot["row"]]["kind"])
    for i in range(record["conditions_at"], record["conditions_at"] + record["conditions"]):
        c = whole(views.conditions(tb)[i]["counter"])
        if views.conditions(tb)[i]["rule"] == AWAY and domain_of(tb, c, h) >= 0 and carries(tb, theirs, c):
            return True
    return False


@kernel
def only_these_fail(tb: State, kind: int, h: int) -> bool:
    """Whether all that makes away rules of the kind fail at host ``h`` is on this very host; O(rules * instances)."""
    record = views.kinds(tb)[kind]
    for i in range(record["conditions_at"], record["conditions_at"] + record["conditions"]):
        condition = views.conditions(tb)[i]
        if condition["rule"] == AWAY and carriers_on(tb, whole(condition["counter"]), h) != tally(
            tb, whole(condition["counter"]), h
        ):
            return False
    return True


@kernel
def carriers_on(tb: State, counter: int, h: int) -> int:
    """Instances on host ``h`` that count in the domain there, 0 where it lies in none; O(instances on it)."""
    found = whole(0)
    if domain_of(tb, counter, h) < 0:
        return found
    for i in range(views.hosts(tb)[h]["count"]):
        if carries(tb, whole(views.instances(tb)[views.slots(tb)[h, i]["row"]]["kind"]), counter):
            found += 1
    return found


@kernel
def carriers_among(tb: State, counter: int, h: int, number: int) -> int:
    """How many of the chosen victims on host ``h`` carry the counter's mark; O(victims * their counters)."""
    found = whole(0)
    for v in range(number):
        row = views.slots(tb)[h, views.taken(tb)[v]]["row"]
        if carries(tb, whole(views.instances(tb)[row]["kind"]), counter):
            found += 1
    return found


@kernel
def all_hold_without(tb: State, kind: int, h: int, number: int) -> bool:
    """Whether every rule of the kind, prepared, holds at host ``h`` once the chosen victims are gone."""
    record = views.kinds(tb)[kind]
    for i in range(record["conditions_at"], record["conditions_at"] + record["conditions"]):
        condition = views.conditions(tb)[i]
        c = whole(condition["counter"])
        gone = carriers_among(tb, c, h, number)
        if condition["rule"] == AWAY:
            if tally(tb, c, h) > gone:
                return False
        elif not condition_holds(tb, kind, condition, h, gone):
            return False
    return True


@kernel
def near_without(tb: State, kind: int, h: int, number: int) -> bool:
    """As :func:`all_hold_without`, of near rules alone: only these may cease to hold as somebody leaves host ``h``."""
    record = views.kinds(tb)[kind]
    for i in range(record["conditions_at"], record["conditions_at"] + record["conditions"]):
        condition = views.conditions(tb)[i]
        if condition["rule"] == NEAR_BY:
            gone = carriers_among(tb, whole(condition["counter"]), h, number)
            if not condition_holds(tb, kind, condition, h, gone):
                return False
    return True


@kernel
def hold_without(tb: State, kind: int, h: int, number: int) -> bool:
    """Whether near and spread rules of the kind hold at host ``h`` once the chosen victims are gone."""
    record = views.kinds(tb)[kind]
    for i in range(record["conditions_at"], record["conditions_at"] + record["conditions"]):
        condition = views.conditions(tb)[i]
        if condition["rule"] == AWAY:
            continue
        gone = carriers_among(tb, whole(condition["counter"]), h, number)
        if gone > 0 and not condition_holds(tb, kind, condition, h, gone):
            return False
    return True


@kernel
def points_of(tb: State, kind: int, h: int) -> int:
    """What a kind's preferences say of host ``h``; O(preferences)."""
    record = views.kinds(tb)[kind]
    points = whole(0)
    for i in range(record["preferences_at"], record["preferences_at"] + record["preferences"]):
        preference = views.preferences(tb)[i]
        if preference["counter"] >= 0:
            points += preference["weight"] * tally(tb, whole(preference["counter"]), h)
        elif views.allowed(tb)[preference["term"], views.hosts(tb)[h]["group"]]:
            points += preference["weight"]
    return points


@leaf
def scaled(points: int, least: int, largest: int, score: int) -> int:
    """Points among hosts whose points reach from ``least`` to ``largest``, as 0 to 10 of the allocation score; O(1)."""
    if largest == least:
        return whole(0)
    full = whole(10)
    if score == LEAST_REQUESTED:
        full = whole(1 << 21)
    elif score == BALANCED or score == PACKED:
        full = whole(1 << 20)
    elif score == MEAN:
        full = whole(1 << 22)
    return ((points - least) * (1 << 20) // (largest - least)) * full
