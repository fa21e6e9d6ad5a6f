"""Who is on which host: adding, removing, and the order in which victims are taken."""

from __future__ import annotations

import numpy as np

from slacktide.kernels import chance, free_index
from slacktide.kernels import views
from slacktide.kernels.compiling import entry, kernel
from slacktide.kernels.metric import metric, slope
from slacktide.state.tables import PRIORITY, Records, State

NEAR = 1e-6  # seconds; metrics closer than this are sorted anew each time, so that rounding cannot matter


@entry
def touch(tb: State, h: int) -> None:
    """Note that the contents of host ``h`` changed; O(log hosts)."""
    host = views.hosts(tb)[h]
    host["version"] += 1
    host["tie"] = chance.draw(tb["rules"]["seed"], chance.HOST_TIE, h, host["version"])
    host["sorted_until"] = -np.inf
    control = tb["control"]
    views.changes(tb)[control["changes"] % len(views.changes(tb))] = h
    control["changes"] += 1
    free_index.update(tb, h)


@kernel
def add(tb: State, h: int, row: int, kind: int, on: float, now: float) -> None:
    """Put request ``row`` on host ``h``; its ledger must be up to date; O(resources + log hosts)."""
    host = views.hosts(tb)[h]
    request = views.requests(tb)[row]
    slot = views.slots(tb)[h, host["count"]]
    slot["row"] = row
    slot["e"] = request["e"]
    slot["p"] = request["p"]
    slot["since"] = now
    slot["on"] = on
    slot["overhead"] = request["overhead"]
    slot["admitted"] = views.admission(tb)[row]
    slot["tie"] = chance.draw(tb["rules"]["seed"], chance.VICTIM_TIE, row, request["starts"])
    slot["batch"] = tb["control"]["batch"]
    slot["cls"] = views.kinds(tb)[kind]["cls"]
    slot["shape"] = views.kinds(tb)[kind]["shape"]
    slot["job"] = views.kinds(tb)[kind]["job"]
    host["count"] += 1
    if host["count"] > tb["control"]["most"]:
        tb["control"]["most"] = host["count"]
    for r in range(views.free(tb).shape[1]):
        views.free(tb)[h, r] -= views.demand(tb)[slot["shape"], r]
    touch(tb, h)


@kernel
def remove(tb: State, h: int, row: int) -> None:
    """Take request ``row`` off host ``h``, keeping the others' order; O(instances on it + log hosts)."""
    host = views.hosts(tb)[h]
    count = host["count"]
    at = 0
    while views.slots(tb)[h, at]["row"] != row:
        at += 1
    shape = views.slots(tb)[h, at]["shape"]
    for r in range(views.free(tb).shape[1]):
        views.free(tb)[h, r] += views.demand(tb)[shape, r]
    for i in range(at, count - 1):
        views.slots(tb)[h, i] = views.slots(tb)[h, i + 1]
    host["count"] = count - 1
    touch(tb, h)


@kernel
def has_sibling(tb: State, h: int, job: int) -> bool:
    """Whether host ``h`` runs an instance of the anti-affine job; O(instances on it)."""
    if job < 0:
        return False
    for i in range(views.hosts(tb)[h]["count"]):
        if views.slots(tb)[h, i]["job"] == job:
            return True
    return False


@kernel
def later_by_priority(a: Records, b: Records, classes: Records) -> bool:
    """Whether ``a`` comes after ``b`` as a victim under the priority policy."""
    rank_a, rank_b = classes[a["cls"]]["rank"], classes[b["cls"]]["rank"]
    if rank_a != rank_b:
        return rank_a < rank_b
    if a["admitted"] != b["admitted"]:
        return a["admitted"] < b["admitted"]
    return a["tie"] < b["tie"]


@kernel
def sort_by_priority(tb: State, h: int) -> None:
    """Victims of host ``h``: least important first, then latest admitted; O(n^2), O(n) when nearly sorted."""
    for i in range(1, views.hosts(tb)[h]["count"]):
        k = i
        while k > 0 and later_by_priority(views.slots(tb)[h, k - 1], views.slots(tb)[h, k], views.classes(tb)):
            swap(tb, h, k)
            k -= 1


@kernel
def swap(tb: State, h: int, k: int) -> None:
    """Exchange slots k - 1 and k of host ``h``."""
    end = views.slots(tb).shape[1] - 1
    views.slots(tb)[h, end] = views.slots(tb)[h, k - 1]
    views.slots(tb)[h, k - 1] = views.slots(tb)[h, k]
    views.slots(tb)[h, k] = views.slots(tb)[h, end]


@kernel
def stays_before(a: Records, b: Records, gap: float, classes: Records, now: float) -> float:
    """Until when an instance ``a`` whose metric is ``gap`` >= 0 above ``b``'s surely stays before it; O(1).

    Metrics are linear between the ends of start-ups (docs/metric.md), so two of
    them meet once at the most before the next such end.
    """
    if gap < NEAR:
        same = a["e"] == b["e"] and a["p"] == b["p"] and a["since"] == b["since"] and a["on"] == b["on"]
        return np.inf if same and a["cls"] == b["cls"] else now
    until = np.inf
    if now < a["on"]:
        until = a["on"]
    if now < b["on"] and b["on"] < until:
        until = b["on"]
    closing = slope(b, classes, now) - slope(a, classes, now)
    if closing > 0.0:
        meet = now + gap / closing - NEAR
        if meet < until:
            until = meet
    return until


@kernel
def sort_by_metric(tb: State, h: int, now: float) -> None:
    """Victims of host ``h``: largest metric first, ties by their draw; notes how long the order holds; O(n^2)."""
    alpha = tb["rules"]["alpha"]
    count = views.hosts(tb)[h]["count"]
    q = np.empty(count)
    for i in range(count):
        slot = views.slots(tb)[h, i]
        mine = metric(slot, views.classes(tb)[slot["cls"]]["slo"], alpha, now)
        tie = slot["tie"]
        k = i
        while k > 0 and (q[k - 1] < mine or (q[k - 1] == mine and views.slots(tb)[h, k - 1]["tie"] < tie)):
            swap(tb, h, k)
            q[k] = q[k - 1]
            k -= 1
        q[k] = mine
    until = np.inf
    for i in range(1, count):
        meet = stays_before(views.slots(tb)[h, i - 1], views.slots(tb)[h, i], q[i - 1] - q[i], views.classes(tb), now)
        if meet < until:
            until = meet
    views.hosts(tb)[h]["sorted_until"] = until


@kernel
def sort_victims(tb: State, h: int, now: float) -> None:
    """Bring the slots of host ``h`` into victim order where they are not; O(1) when nothing can have changed."""
    if tb["rules"]["sorted_hosts"] and now < views.hosts(tb)[h]["sorted_until"]:
        return
    if tb["control"]["mode"] == PRIORITY:
        sort_by_priority(tb, h)
        views.hosts(tb)[h]["sorted_until"] = np.inf
    else:
        sort_by_metric(tb, h, now)
