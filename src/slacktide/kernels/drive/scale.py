"""How many instances a request has: releasing the rows of a batch request, and scaling services."""

from __future__ import annotations

from slacktide.kernels.drive import instance_ledger
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.queue import waiting_queue
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.buffer_capacity import FINISHED, lacking
from slacktide.kernels.tables.schema import GONE, LEAVING, VACANT, WAITING, Records, State


@kernel
def holds_back(tb: State, row: int) -> bool:
    """Whether a row must wait for its release, as its batch request has as many instances as it may; O(1)."""
    q = request_ledger.owner_of(tb, row)
    if q < 0:
        return False
    request = views.requests(tb)[q]
    if request["window"] == 0 or request["live"] < request["window"]:
        return False
    if request["held"] == 0:
        request["release"] = row
    request["held"] += 1
    return True


@kernel
def release_next(tb: State, q: int, now: float) -> None:
    """An instance of a batch request has completed: admit the next row, unless this is the end; O(rows between)."""
    if q < 0 or views.requests(tb)[q]["held"] == 0 or now >= views.rules(tb)["end"]:
        return
    request = views.requests(tb)[q]
    row = whole(request["release"])
    request["held"] -= 1
    if request["held"] > 0:
        request["release"] += 1
        while request_ledger.owner_of(tb, whole(request["release"])) != q:
            request["release"] += 1
    views.admission(tb)[row] = now
    instance_ledger.admit(tb, row, now)


@kernel
def scale_due(tb: State, now: float) -> bool:
    """Remove what scale events find in excess; whether there were any. Further instances are admitted as rows are."""
    control = views.control(tb)
    found = False
    while control["scaled"] < len(views.scalings(tb)) and views.scalings(tb)[control["scaled"]]["time"] <= now:
        event = views.scalings(tb)[control["scaled"]]
        control["scaled"] += 1
        found = True
        q = whole(event["request"])
        excess = views.requests(tb)[q]["live"] - event["replicas"]
        if excess > 0:
            remove_some(tb, q, excess, now)
        if lacking(tb) != FINISHED:
            break
    return found


@kernel
def remove_some(tb: State, q: int, number: int, now: float) -> None:
    """Remove ``number`` instances in the order of Kubernetes (docs/semantics.md).

    O(queue * waiting ones among them + n^1.3 + n * instances of a host).
    """
    control = views.control(tb)
    waiting = collect_waiting(tb, views.queue(tb), control["queue"], q, whole(0))
    waiting = collect_waiting(tb, views.incoming(tb), control["incoming"], q, waiting)
    if views.rules(tb)["recreation"] > 0.0 or len(views.batch_returns(tb)) > 0 or views.control(tb)["leavers"] > 0:
        waiting = collect_vacant(tb, q, waiting)
    count = collect_placed(tb, q, waiting, now)
    sort_excess(views.excess(tb), count)
    for i in range(number):
        row = whole(views.excess(tb)[i]["row"])
        if views.instances(tb)[row]["state"] == WAITING:
            waiting_queue.entry_at(tb, waiting_queue.position_of(tb, row))["done"] = GONE
        instance_ledger.remove(tb, row, now)
    control["queue"] = waiting_queue.drop_done(views.queue(tb), control["queue"])
    control["incoming"] = waiting_queue.drop_done(views.incoming(tb), control["incoming"])


@kernel
def collect_waiting(tb: State, entries: Records, length: int, q: int, count: int) -> int:
    """Add the waiting instances of the request to ``excess``; the new count."""
    for i in range(length):
        row = whole(entries[i]["row"])
        if request_ledger.owner_of(tb, row) == q:
            one = views.excess(tb)[count]
            one["row"], one["stage"], one["siblings"], one["at"] = row, 2, 0, entries[i]["admitted"]
            count += 1
    return count


@kernel
def collect_vacant(tb: State, q: int, count: int) -> int:
    """Add the request's instances whose next incarnation has not come yet to ``excess``; the new count; O(rows).

    So have those that were told to leave.
    """
    for row in range(views.control(tb)["arrived"]):
        state = views.instances(tb)[row]["state"]
        if (state == VACANT or state == LEAVING) and request_ledger.owner_of(tb, row) == q:
            one = views.excess(tb)[count]
            one["row"], one["stage"], one["siblings"], one["at"] = row, 2, 0, views.admission(tb)[row]
            count += 1
    return count


@kernel
def collect_placed(tb: State, q: int, count: int, now: float) -> int:
    """Add the request's instances on hosts to ``excess``; the new count."""
    row = whole(views.requests(tb)[q]["head"])
    while row >= 0:
        instance = views.instances(tb)[row]
        one = views.excess(tb)[count]
        ready = instance["since"] + instance["startup"]
        one["row"], one["at"] = row, ready
        one["stage"] = 1 if now < ready else 0
        one["siblings"] = 0
        for i in range(views.hosts(tb)[instance["host"]]["count"]):
            other = whole(views.slots(tb)[instance["host"], i]["row"])
            one["siblings"] += request_ledger.owner_of(tb, other) == q
        count += 1
        row = whole(views.links(tb)[row, 0])
    return count


@kernel
def goes_first(a: Records, b: Records) -> bool:
    """Whether ``a`` is removed before ``b``; O(1)."""
    if a["stage"] != b["stage"]:
        return a["stage"] > b["stage"]
    if a["siblings"] != b["siblings"]:
        return a["siblings"] > b["siblings"]
    if a["at"] != b["at"]:
        return a["at"] > b["at"]
    return a["row"] > b["row"]


@kernel
def sort_excess(excess: Records, count: int) -> None:
    """Shell sort; ``excess`` has a spare last element; O(n^1.3)."""
    spare = len(excess) - 1
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            excess[spare] = excess[i]
            k = i
            while k >= gap and goes_first(excess[spare], excess[k - gap]):
                excess[k] = excess[k - gap]
                k -= gap
            excess[k] = excess[spare]
        gap //= 3
