"""The waiting instances: kept sorted by a key that does not change while they wait.

A waiting metric is ``key - t``, so the order by metric is the order by key and only
the tier (below the margin or not) changes with time (docs/semantics.md, 'A pass').
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.policies import in_force, pieces, qos_driven, triage
from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.queue import backoff, request_heap
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import GONE, OPEN, RECORD_EVENTS, Records, State


@kernel
def enqueue(tb: State, row: int, now: float) -> None:
    """Request ``row`` waits from ``now`` on; it joins the queue when the next pass begins; O(1)."""
    control, instance = views.control(tb), views.instances(tb)[row]
    cls = views.kinds(tb)[instance["kind"]]["cls"]
    if views.classes(tb)[cls]["behind"] != 0 and instance["shift"] == 0:  # it has come since the plan was made
        instance["shift"] = views.classes(tb)[cls]["behind"]
    entry = views.incoming(tb)[control["incoming"]]
    entry["key"] = window_ledger.own_key(tb, row, whole(cls), now) + window_ledger.shift_of(tb, row)
    entry["admitted"] = views.admission(tb)[row]
    entry["row"] = row
    entry["kind"] = instance["kind"]
    entry["done"] = OPEN
    entry["told"] = 0
    entry["first"], entry["second"] = 0.0, 0.0
    entry["request"] = request_ledger.decider_of(tb, row)
    if pieces.decide(tb) and not in_force.ever_by_metric(tb):
        pieces.place_entry(tb, entry, 0.0)
    control["incoming"] += 1
    control["crossing_moved"] = 1


@kernel
def weigh_entries(tb: State, entries: Records, count: int) -> None:
    """Compute the keys of the first ``count`` entries again; O(n)."""
    for i in range(count):
        row = whole(entries[i]["row"])
        cls = whole(views.kinds(tb)[entries[i]["kind"]]["cls"])
        key = window_ledger.own_key(tb, row, cls, views.instances(tb)[row]["since"])
        entries[i]["key"] = key + window_ledger.shift_of(tb, row)
        if pieces.decide(tb) and not in_force.ever_by_metric(tb):
            pieces.place_entry(tb, entries[i], 0.0)


@kernel
def position_of(tb: State, row: int) -> int:
    """Where a waiting instance stands in the queue or, behind it, among the incoming; -1: nowhere; O(queue)."""
    count = whole(views.control(tb)["queue"])
    for i in range(count):
        if views.queue(tb)[i]["row"] == row:
            return whole(i)
    for i in range(views.control(tb)["incoming"]):
        if views.incoming(tb)[i]["row"] == row:
            return count + i
    return whole(-1)


@leaf
def entry_at(tb: State, position: int) -> Records:
    """The entry at a position as :func:`position_of` tells it; O(1)."""
    count = views.control(tb)["queue"]
    return views.queue(tb)[position] if position < count else views.incoming(tb)[position - count]


@kernel
def change_kind(tb: State, row: int, kind: int) -> None:
    """A waiting instance asks for something else now; O(queue), and more where it stands elsewhere by class then."""
    entry = entry_at(tb, position_of(tb, row))
    entry["kind"] = kind
    if pieces.decide(tb) and not in_force.ever_by_metric(tb):
        pieces.place_entry(tb, entry, 0.0)
        sort_entries(tb, views.queue(tb), views.control(tb)["queue"])


@kernel
def sort_entries(tb: State, entries: Records, count: int) -> None:
    """Shell sort into the static order; entries have a spare last element; O(n^1.3), O(n log n) when sorted."""
    spare = len(entries) - 1
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            if not in_force.comes_before(tb, entries[i], entries[i - gap]):
                continue
            entries[spare] = entries[i]
            k = i
            while k >= gap and in_force.comes_before(tb, entries[spare], entries[k - gap]):
                entries[k] = entries[k - gap]
                k -= gap
            entries[k] = entries[spare]
        gap //= 3


@kernel
def merge_incoming(tb: State) -> None:
    """Bring those who came since the last pass into the queue; O(queue + incoming)."""
    control = views.control(tb)
    count, new = control["queue"], control["incoming"]
    sort_entries(tb, views.incoming(tb), new)
    if views.rules(tb)["as_kube"]:
        backoff.number_new(tb, views.incoming(tb), whole(new))
        backoff.weigh(tb, views.queue(tb), whole(count))
        sort_entries(tb, views.queue(tb), count)
    control["queue"] = count + new
    control["incoming"] = 0
    at = count + new - 1
    count -= 1
    new -= 1
    while new >= 0:
        if count >= 0 and in_force.comes_before(tb, views.incoming(tb)[new], views.queue(tb)[count]):
            views.queue(tb)[at] = views.queue(tb)[count]
            count -= 1
        else:
            views.queue(tb)[at] = views.incoming(tb)[new]
            new -= 1
        at -= 1


@kernel
def with_own_ledger(tb: State, entries: Records, count: int) -> int:
    """How many entries in static order come before those that a request's ledger decides for; O(log n)."""
    if not in_force.by_metric(tb) or len(views.requests(tb)) == 0:
        return count
    low, high = whole(0), whole(count)
    while low < high:
        middle = (low + high) // 2
        if entries[middle]["request"] < 0:
            low = middle + 1
        else:
            high = middle
    return low


@leaf
def tier(tb: State, entry: Records, now: float) -> int:
    """The tier of a waiting instance that its own ledger decides for; O(1)."""
    return qos_driven.queue_tier(tb, whole(views.kinds(tb)[entry["kind"]]["cls"]), entry["key"] - now)


@kernel
def take_stock(tb: State, entries: Records, count: int) -> None:
    """Count by kind and by class those who have their turn in the round that begins; O(n)."""
    control, kinds, classes = views.control(tb), views.kinds(tb), views.classes(tb)
    events = views.rules(tb)["record"] & RECORD_EVENTS != 0
    control["rounds"] += 1
    control["ahead"], control["untold"] = count, 0
    for c in range(len(classes)):
        classes[c]["waits"] = 0
    for i in range(count):
        kind = kinds[entries[i]["kind"]]
        if kind["counted"] != control["rounds"]:
            kind["counted"], kind["ahead"] = control["rounds"], 0
        kind["ahead"] += 1
        classes[kind["cls"]]["waits"] += 1
        control["untold"] += events and entries[i]["told"] == 0


@leaf
def note_if_late(tb: State, entry: Records) -> None:
    """Note of the class of one that waits whether it is late; O(1)."""
    cls = whole(views.kinds(tb)[entry["kind"]]["cls"])
    if not views.classes(tb)[cls]["some_lost"]:
        mine = request_heap.metric_of_entry(tb, entry, views.control(tb)["now"])
        views.classes(tb)[cls]["some_lost"] = triage.is_late(tb, cls, mine)


@kernel
def find_late_alone(tb: State, entries: Records, count: int) -> None:
    """Note of the classes of entries by key whether one of it is late: none is whose first is not; O(n)."""
    classes = views.classes(tb)
    seen, unseen = np.zeros(len(classes), np.int64), whole(0)
    for c in range(len(classes)):
        unseen += classes[c]["waits"] > 0
    for i in range(count):
        cls = views.kinds(tb)[entries[i]["kind"]]["cls"]
        if seen[cls]:
            continue
        seen[cls] = 1
        note_if_late(tb, entries[i])
        unseen -= 1
        if unseen == 0:
            return


@kernel
def find_overloaded(tb: State) -> bool:
    """Mark the classes of which one that waits is late, and all of their rank; whether marks changed.

    Those with a ledger of their own come by metric. O(queue), but as a rule it ends with the first of each class.
    """
    if in_force.by_metric(tb):
        queue, count = views.queue(tb), whole(views.control(tb)["queue"])
        alone = whole(with_own_ledger(tb, queue, count))
        find_late_alone(tb, queue, alone)
        for i in range(alone, count):
            if i == alone or queue[i]["request"] != queue[i - 1]["request"]:
                note_if_late(tb, queue[i])
    return triage.tell_overload(tb)


@kernel
def arrange_turned(tb: State, entries: Records, count: int, turn: int, n: int) -> None:
    """Write the places of a tier into the order from ``n`` on, by decreasing metric, of equal ones by row; O(n)."""
    stop = whole(count)
    while stop > 0:
        first = stop - 1
        while first > 0 and entries[first - 1]["key"] == entries[stop - 1]["key"]:
            first -= 1
        for i in range(first, stop):
            if entries[i]["tier"] == turn:
                views.order(tb)[n] = i
                n += 1
        stop = first


@kernel
def find_turned(tb: State) -> None:
    """Note at the place of each tier in ``classes`` that nobody is in it yet, and whether it is turned; O(classes)."""
    classes = views.classes(tb)
    for c in range(len(classes)):
        classes[c]["in_tier"], classes[c]["tier_turned"] = 0, 0
    for c in range(len(classes)):
        if triage.turns_round(tb, whole(c)):
            classes[classes[c]["level"]]["tier_turned"] = 1


@kernel
def sort_order(tb: State, entries: Records, begin: int, end: int) -> None:
    """Shell sort of the places in the order from ``begin`` to ``end``, by a user's own order; O(n) when sorted."""
    order = views.order(tb)
    at = whole(begin + 1)
    while at < end and not pieces.comes_before(entries[order[at]], entries[order[at - 1]]):
        at += 1
    if at >= end:
        return
    gap = whole(1)
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            mine, k = whole(order[i]), whole(i)
            while k >= begin + gap and pieces.comes_before(entries[mine], entries[order[k - gap]]):
                order[k] = order[k - gap]
                k -= gap
            order[k] = mine
        gap //= 3


@kernel
def find_firsts(tb: State, entries: Records, count: int, firsts: NDArray[np.float64]) -> int:
    """The different first numbers of the entries' places into ``firsts``, ascending; how many, or one more than there
    is room for; O(n * firsts)."""
    found = whole(0)
    for i in range(count):
        mine, at = entries[i]["first"], found
        while at > 0 and firsts[at - 1] > mine:
            at -= 1
        if at > 0 and firsts[at - 1] == mine:
            continue
        if found == len(firsts):
            return found + 1
        for k in range(found, at, -1):
            firsts[k] = firsts[k - 1]
        firsts[at] = mine
        found += 1
    return found


FIRSTS = 16
"""As a rule the first of two numbers has few values, and of each of them those that wait are by metric already."""


@kernel
def arrange_by_pieces(tb: State, entries: Records, count: int) -> None:
    """The order of this pass by a user's own policy; O(n * first numbers), else O(n^1.3)."""
    control, order, firsts = views.control(tb), views.order(tb), np.zeros(FIRSTS)
    for i in range(count):
        pieces.place_entry(tb, entries[i], entries[i]["key"] - control["now"])
    control["order"] = count
    found = whole(find_firsts(tb, entries, count, firsts))
    if found > FIRSTS:
        for i in range(count):
            order[i] = i
        sort_order(tb, entries, whole(0), whole(count))
    else:
        n = whole(0)
        for b in range(found):
            begin = n
            for i in range(count):
                if entries[i]["first"] == firsts[b]:
                    order[n] = i
                    n += 1
            sort_order(tb, entries, begin, n)
    control["ordered"] = not pieces.weigh(tb) and len(views.requests(tb)) == 0 and goes_by_metric(tb, entries, count)


@kernel
def goes_by_metric(tb: State, entries: Records, count: int) -> bool:
    """Whether those of each kind have their turns by increasing metric, as the built-in policies serve them; O(n)."""
    rounds = views.control(tb)["rounds"]
    for i in range(count):
        entry = entries[views.order(tb)[i]]
        kind = views.kinds(tb)[views.kinds(tb)[entry["kind"]]["alike"]]
        if kind["seen_in"] == rounds and entry["key"] < kind["seen_key"]:
            return False
        kind["seen_in"], kind["seen_key"] = rounds, entry["key"]
    return True


@kernel
def arrange(tb: State, entries: Records, count: int) -> None:
    """The order of this pass as positions in ``entries``, which must be in static order; O(n + classes), O(n) more for
    each tier that is turned."""
    n, now, levels = whole(0), views.control(tb)["now"], whole(views.rules(tb)["levels"])
    if in_force.by_metric(tb) and pieces.decide(tb):
        arrange_by_pieces(tb, entries, count)
        return
    if not in_force.has_tiers(tb):
        for i in range(count):
            views.order(tb)[i] = i
        views.control(tb)["order"] = count
        return
    classes, order = views.classes(tb), views.order(tb)
    first_above = whole(reached(tb, entries, count, least_margin(tb)))
    last_below = whole(reached(tb, entries, count, largest_margin(tb)))
    find_turned(tb)
    for i in range(last_below):
        level = whole(tier(tb, entries[i], now))
        entries[i]["tier"] = level
        if level < levels:
            classes[level]["in_tier"] += 1
    for level in range(levels):  # from here on ``in_tier`` is where the next one goes
        here = whole(classes[level]["in_tier"])
        classes[level]["in_tier"] = n
        if here > 0 and classes[level]["tier_turned"]:
            arrange_turned(tb, entries, last_below, whole(level), n)
        n += here
    for i in range(last_below):
        level = whole(entries[i]["tier"])
        if level < levels and not classes[level]["tier_turned"]:
            order[classes[level]["in_tier"]] = i
            classes[level]["in_tier"] += 1
    for i in range(first_above, count):
        if i >= last_below or entries[i]["tier"] == levels:
            order[n] = i
            n += 1
    views.control(tb)["order"] = n


@leaf
def least_margin(tb: State) -> float:
    """Who is below this is below its margin, whatever its class; O(classes)."""
    found = np.inf
    for c in range(len(views.classes(tb))):
        found = min(found, views.classes(tb)[c]["margin"])
    return found


@leaf
def largest_margin(tb: State) -> float:
    """Who is not below this is not below its margin, whatever its class; O(classes)."""
    found = -np.inf
    for c in range(len(views.classes(tb))):
        found = max(found, views.classes(tb)[c]["margin"])
    return found


@kernel
def reached(tb: State, entries: Records, count: int, metric: float) -> int:
    """How many entries by key have a metric below this; O(log n)."""
    now, low, high = views.control(tb)["now"], whole(0), whole(count)
    while low < high:
        middle = (low + high) // 2
        if entries[middle]["key"] - now < metric:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def drop_done(entries: Records, count: int) -> int:
    """Close the gaps that placed instances left; the new length; O(n)."""
    kept = 0
    for i in range(count):
        if entries[i]["done"] != GONE:
            if kept != i:
                entries[kept] = entries[i]
            entries[kept]["done"] = OPEN
            kept += 1
    return kept
