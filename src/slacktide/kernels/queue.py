"""The waiting instances: kept sorted by a key that does not change while they wait.

A waiting metric is ``key - t``, so the order by metric is the order by key and only
the tier (below the margin or not) changes with time (docs/semantics.md, 'A pass').
"""

from __future__ import annotations

from slacktide.kernels import requests, views
from slacktide.kernels.compiling import kernel, whole
from slacktide.kernels.metric import received, waiting_key, withheld
from slacktide.kernels.tables import GONE, OPEN, PRIORITY, Records, State


@kernel
def enqueue(tb: State, row: int, now: float) -> None:
    """Request ``row`` waits from ``now`` on; it joins the queue when the next pass begins; O(1)."""
    control, instance = views.control(tb), views.instances(tb)[row]
    cls = views.kinds(tb)[instance["kind"]]["cls"]
    e = received(instance, views.rules(tb)["accounting"])
    p = withheld(now - views.admission(tb)[row], e)
    entry = views.incoming(tb)[control["incoming"]]
    entry["key"] = waiting_key(e, p, views.classes(tb)[cls]["slo"], views.rules(tb)["alpha"], now)
    entry["admitted"] = views.admission(tb)[row]
    entry["row"] = row
    entry["kind"] = instance["kind"]
    entry["done"] = OPEN
    entry["request"] = requests.decider_of(tb, row)
    control["incoming"] += 1


@kernel
def comes_before(tb: State, a: Records, b: Records) -> bool:
    """The static order: by (rank, admission, row) under the priority policy, else by (key, row); O(1).

    Those that a request's ledger decides for have no key: they stand behind, by (request, row).
    """
    if views.control(tb)["mode"] == PRIORITY:
        rank_a = views.classes(tb)[views.kinds(tb)[a["kind"]]["cls"]]["rank"]
        rank_b = views.classes(tb)[views.kinds(tb)[b["kind"]]["cls"]]["rank"]
        if rank_a != rank_b:
            return rank_a < rank_b
        if a["admitted"] != b["admitted"]:
            return a["admitted"] < b["admitted"]
    elif a["request"] != b["request"]:
        return a["request"] < b["request"]
    elif a["request"] < 0 and a["key"] != b["key"]:
        return a["key"] < b["key"]
    return a["row"] < b["row"]


@kernel
def sort_entries(tb: State, entries: Records, count: int) -> None:
    """Shell sort into the static order; entries have a spare last place; O(n^1.3), O(n log n) when sorted."""
    spare = len(entries) - 1
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            if not comes_before(tb, entries[i], entries[i - gap]):
                continue
            entries[spare] = entries[i]
            k = i
            while k >= gap and comes_before(tb, entries[spare], entries[k - gap]):
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
    control["queue"] = count + new
    control["incoming"] = 0
    at = count + new - 1
    count -= 1
    new -= 1
    while new >= 0:
        if count >= 0 and comes_before(tb, views.incoming(tb)[new], views.queue(tb)[count]):
            views.queue(tb)[at] = views.queue(tb)[count]
            count -= 1
        else:
            views.queue(tb)[at] = views.incoming(tb)[new]
            new -= 1
        at -= 1


@kernel
def with_own_ledger(tb: State, entries: Records, count: int) -> int:
    """How many entries in static order come before those that a request's ledger decides for; O(log n)."""
    if views.control(tb)["mode"] == PRIORITY or len(views.requests(tb)) == 0:
        return count
    low, high = whole(0), whole(count)
    while low < high:
        middle = (low + high) // 2
        if entries[middle]["request"] < 0:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def is_below(tb: State, entry: Records, now: float) -> bool:
    """Whether a waiting instance's metric is below its margin."""
    return entry["key"] - now < views.classes(tb)[views.kinds(tb)[entry["kind"]]["cls"]]["margin"]


@kernel
def arrange(tb: State, entries: Records, count: int) -> None:
    """The order of this pass as places in ``entries``, which must be in static order; O(levels * n)."""
    control = views.control(tb)
    now = control["now"]
    n = 0
    if control["mode"] == PRIORITY or not views.rules(tb)["by_importance"]:
        for i in range(count):
            views.order(tb)[i] = i
        control["order"] = count
        return
    for level in range(views.rules(tb)["levels"]):
        for i in range(count):
            cls = views.classes(tb)[views.kinds(tb)[entries[i]["kind"]]["cls"]]
            if cls["level"] == level and entries[i]["key"] - now < cls["margin"]:
                views.order(tb)[n] = i
                n += 1
    for i in range(count):
        if not is_below(tb, entries[i], now):
            views.order(tb)[n] = i
            n += 1
    control["order"] = n


@kernel
def precedes_now(tb: State, a: Records, b: Records) -> bool:
    """The order of this pass, decided pair by pair; the plain counterpart of :func:`arrange`."""
    now = views.control(tb)["now"]
    if views.control(tb)["mode"] != PRIORITY and views.rules(tb)["by_importance"]:
        below_a, below_b = is_below(tb, a, now), is_below(tb, b, now)
        if below_a != below_b:
            return below_a
        level_a = views.classes(tb)[views.kinds(tb)[a["kind"]]["cls"]]["level"]
        level_b = views.classes(tb)[views.kinds(tb)[b["kind"]]["cls"]]["level"]
        if below_a and level_a != level_b:
            return level_a < level_b
    return comes_before(tb, a, b)


@kernel
def arrange_from_scratch(tb: State, entries: Records, count: int) -> None:
    """As :func:`arrange`, sorting everything in every pass (``optimize.static_order = false``); O(n^1.3)."""
    for i in range(count):
        views.order(tb)[i] = i
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            moved = views.order(tb)[i]
            k = i
            while k >= gap and precedes_now(tb, entries[moved], entries[views.order(tb)[k - gap]]):
                views.order(tb)[k] = views.order(tb)[k - gap]
                k -= gap
            views.order(tb)[k] = moved
        gap //= 3
    views.control(tb)["order"] = count


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
