"""Who is next in a pass, where decisions change what waiting instances are worth.

All waiting instances of a request whose ledger decides have one metric. So the request stands
once in a heap by (tier, metric, row), with its waiting instances in order of row. A decision
that changes the request's metric moves it in the heap. All other instances keep the order that
they had when the pass began.
"""

from __future__ import annotations

from slacktide.kernels.policies import pieces, qos_driven, triage
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State


@leaf
def stands_before(a: Records, b: Records) -> bool:
    """Whether request ``a`` is served before ``b``; O(1)."""
    if a["tier"] != b["tier"]:
        return a["tier"] < b["tier"]
    if a["metric"] != b["metric"]:
        return a["metric"] < b["metric"]
    return a["row"] < b["row"]


@kernel
def swap(tb: State, i: int, k: int) -> None:
    """Exchange two requests in the heap; its last element is spare."""
    heap = views.request_heap(tb)
    spare = len(heap) - 1
    heap[spare] = heap[i]
    heap[i] = heap[k]
    heap[k] = heap[spare]
    views.requests(tb)[heap[i]["request"]]["heap_at"] = i
    views.requests(tb)[heap[k]["request"]]["heap_at"] = k


@kernel
def sift(tb: State, i: int) -> None:
    """Move the request at position ``i`` of the heap to where it belongs; O(log requests)."""
    heap, count = views.request_heap(tb), views.control(tb)["request_heap"]
    while i > 0 and stands_before(heap[i], heap[(i - 1) >> 1]):
        swap(tb, i, (i - 1) >> 1)
        i = (i - 1) >> 1
    while True:
        child = 2 * i + 1
        if child >= count:
            return
        if child + 1 < count and stands_before(heap[child + 1], heap[child]):
            child += 1
        if not stands_before(heap[child], heap[i]):
            return
        swap(tb, i, child)
        i = child


@kernel
def empty(tb: State) -> None:
    """Take all requests out of the heap; O(requests in it)."""
    for i in range(views.control(tb)["request_heap"]):
        views.requests(tb)[views.request_heap(tb)[i]["request"]]["heap_at"] = -1
    views.control(tb)["request_heap"] = 0


@kernel
def build(tb: State, entries: Records, first: int, count: int) -> None:
    """The heap of the entries from ``first`` on, which are in order of (request, row); O(n + requests log requests)."""
    control = views.control(tb)
    empty(tb)  # of those of a pass whose decisions came from outside
    at = first
    while at < count:
        q = whole(entries[at]["request"])
        stop = at + 1
        while stop < count and entries[stop]["request"] == q:
            stop += 1
        one = views.request_heap(tb)[control["request_heap"]]
        one["request"], one["at"], one["stop"] = q, at, stop
        views.requests(tb)[q]["heap_at"] = control["request_heap"]
        control["request_heap"] += 1
        reweigh(tb, entries, q)
        at = stop


@kernel
def reweigh(tb: State, entries: Records, q: int) -> None:
    """Weigh a request afresh and move it; O(log requests)."""
    at = whole(views.requests(tb)[q]["heap_at"])
    one = views.request_heap(tb)[at]
    cls, q_j = whole(views.requests(tb)[q]["cls"]), request_ledger.weigh_waiting(tb, q, views.control(tb)["now"])
    if pieces.decide(tb):
        first = entries[one["at"]]
        pieces.place_entry(tb, first, q_j)
        one["tier"], one["metric"] = first["first"], first["second"]
    else:
        one["tier"] = qos_driven.queue_tier(tb, cls, q_j)
        one["metric"] = in_tier(tb, cls, whole(one["tier"]), q_j)
    one["row"] = entries[one["at"]]["row"]
    sift(tb, at)


@kernel
def drop(tb: State, q: int) -> None:
    """Take a request out of the heap; O(log requests)."""
    control = views.control(tb)
    at = whole(views.requests(tb)[q]["heap_at"])
    last = whole(control["request_heap"] - 1)
    if at != last:
        swap(tb, at, last)
    control["request_heap"] = last
    views.requests(tb)[q]["heap_at"] = -1
    if at != last:
        sift(tb, at)


@kernel
def reorder(tb: State, entries: Records, q: int) -> None:
    """A decision of this pass concerned the request: move it where it is in the heap; O(log requests)."""
    if q >= 0 and views.requests(tb)[q]["heap_at"] >= 0:
        reweigh(tb, entries, q)


@kernel
def advance(tb: State, entries: Records, q: int) -> None:
    """The first waiting instance of a request has been served; O(log requests)."""
    one = views.request_heap(tb)[views.requests(tb)[q]["heap_at"]]
    one["at"] += 1
    if one["at"] >= one["stop"]:
        drop(tb, q)
    else:
        reweigh(tb, entries, q)


@kernel
def first_is_before(tb: State, entry: Records) -> bool:
    """Whether the first request is served before this entry, which its own ledger decides for; O(1)."""
    first = views.request_heap(tb)[0]
    if pieces.decide(tb):
        if first["tier"] != entry["first"]:
            return first["tier"] < entry["first"]
        if first["metric"] != entry["second"]:
            return first["metric"] < entry["second"]
        return first["row"] < entry["row"]
    q_j = entry["key"] - views.control(tb)["now"]
    tier = qos_driven.queue_tier(tb, whole(views.kinds(tb)[entry["kind"]]["cls"]), q_j)
    if first["tier"] != tier:
        return first["tier"] < tier
    q_j = in_tier(tb, whole(views.kinds(tb)[entry["kind"]]["cls"]), tier, q_j)
    if first["metric"] != q_j:
        return first["metric"] < q_j
    return first["row"] < entry["row"]


@leaf
def in_tier(tb: State, cls: int, tier: int, metric: float) -> float:
    """What orders the waiting within a tier, the least first: the metric, or minus it (triage); O(1)."""
    return -metric if tier < views.rules(tb)["levels"] and triage.turns_round(tb, cls) else metric


@kernel
def metric_of_entry(tb: State, entry: Records, now: float) -> float:
    """Q of a waiting instance, seconds; O(1)."""
    if entry["request"] >= 0:
        return request_ledger.weigh_waiting(tb, whole(entry["request"]), now)
    return entry["key"] - now
