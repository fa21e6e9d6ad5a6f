"""What a request has received so far, kept up to date at each change of its state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels import board, chance, queue, views
from slacktide.kernels.compiling import entry, kernel, whole
from slacktide.kernels.tables import ALWAYS, DONE, PLACED, RECORD_EVENTS, RESTART, WAITING, State

_ANSWERS: tuple[Any, ...] = (np.bool_(True), np.bool_(False))  # not literals, so that kernels are compiled once
YES, NO = _ANSWERS


@kernel
def record(tb: State, kind: int, row: int, host: int, by: int, qos: float) -> None:
    """Append an event where events are recorded; O(1)."""
    if not views.rules(tb)["record"] & RECORD_EVENTS:
        return
    event = views.events(tb)[views.control(tb)["events"]]
    event["time"] = views.control(tb)["now"]
    event["kind"] = kind
    event["row"] = row
    event["host"] = host
    event["by"] = by
    event["qos"] = qos
    views.control(tb)["events"] += 1


@kernel
def visit_place(visits: NDArray[np.int64], code: int) -> int:
    """Where ``code`` stands in the hash set, or would stand; O(1) while the set is at most half full."""
    mask = len(visits) - 1
    at = whole(chance.mix(np.uint64(code)) & np.uint64(mask))
    while visits[at] != 0 and visits[at] != code:
        at = (at + 1) & mask
    return at


@kernel
def ran_here(tb: State, row: int, h: int) -> bool:
    """Whether the request was started on host ``h`` before, so that its next start is hot; notes the start; O(1)."""
    request, visits = views.requests(tb)[row], views.visits(tb)
    if request["first_host"] == h:
        return True
    if request["first_host"] < 0:
        request["first_host"] = h
        request["hosts_used"] = 1
        return False
    code = row * len(views.hosts(tb)) + h + 1
    at = visit_place(visits, code)
    if visits[at] == code:
        return True
    visits[at] = code
    views.control(tb)["visits"] += 1
    request["hosts_used"] += 1
    return False


@entry
def copy_visits(old: NDArray[np.int64], new: NDArray[np.int64]) -> None:
    """Carry a hash set over into a larger one; O(its size)."""
    for code in old:
        if code != 0:
            new[visit_place(new, code)] = code


@kernel
def draw_startup(tb: State, row: int, h: int) -> float:
    """The start-up delay of the next start of ``row`` on host ``h``, seconds (docs/semantics.md, 'Chance')."""
    request = views.requests(tb)[row]
    at = chance.draw(views.rules(tb)["seed"], chance.STARTUP, row, whole(request["starts"]))
    if ran_here(tb, row, h):
        return views.hot(tb)[at % len(views.hot(tb))]
    return views.cold(tb)[at % len(views.cold(tb))]


@kernel
def push_completion(tb: State, time: float, row: int, starts: int) -> None:
    """Note a completion; preemption makes it void, which its ``starts`` tells; O(log n)."""
    heap = views.heap(tb)
    k = views.control(tb)["heap"]
    views.control(tb)["heap"] += 1
    while k > 0:
        parent = (k - 1) >> 1
        if heap[parent]["time"] < time or (heap[parent]["time"] == time and heap[parent]["row"] <= row):
            break
        heap[k] = heap[parent]
        k = parent
    heap[k]["time"] = time
    heap[k]["row"] = row
    heap[k]["starts"] = starts


@kernel
def start(tb: State, row: int, h: int, now: float) -> None:
    """Request ``row`` leaves the queue for host ``h``; O(log)."""
    request, rules = views.requests(tb)[row], views.rules(tb)
    tau = draw_startup(tb, row, h)
    request["starts"] += 1
    request["state"] = PLACED
    request["host"] = h
    request["since"] = now
    request["startup"] = tau
    counts = rules["accounting"] == ALWAYS or (rules["accounting"] == RESTART and request["starts"] > 1)
    board.add(tb, h, row, whole(request["kind"]), now + tau if counts else now, now)
    views.control(tb)["placed_now"] += 1
    views.control(tb)["placements"] += 1
    finish = now + tau + (views.duration(tb)[row] - request["running"])
    if finish <= rules["end"] and finish < np.inf:
        push_completion(tb, finish, row, whole(request["starts"]))


@kernel
def settle(tb: State, row: int, now: float, lose: bool) -> float:
    """Close the books of the present incarnation; the seconds of start-up it spent; O(1)."""
    request = views.requests(tb)[row]
    ready = request["since"] + request["startup"]
    spent = now - request["since"]
    useful = 0.0
    if now >= ready:
        spent = request["startup"]
        useful = now - ready
    if request["starts"] == 1:
        request["startup_first"] += spent
    else:
        request["startup_restarts"] += spent
    if lose:
        request["discarded"] += request["running"] + useful
        request["running"] = 0.0
    else:
        request["running"] += useful
    return spent


@kernel
def leave_host(tb: State, row: int, now: float) -> None:
    """Take a request off its host without queueing it."""
    board.remove(tb, whole(views.requests(tb)[row]["host"]), row)
    views.requests(tb)[row]["host"] = -1
    views.requests(tb)[row]["since"] = now
    views.control(tb)["placed_now"] -= 1


@kernel
def stop(tb: State, row: int, now: float, preempted: bool) -> None:
    """Throw request ``row`` off its host, back into the queue; O(log)."""
    request = views.requests(tb)[row]
    spent = settle(tb, row, now, views.rules(tb)["lost"] != 0)
    if preempted:
        request["overhead"] += spent
        request["preemptions"] += 1
        views.control(tb)["preemptions"] += 1
    leave_host(tb, row, now)
    request["state"] = WAITING
    queue.enqueue(tb, row, now)


@kernel
def complete(tb: State, row: int, now: float) -> None:
    """Request ``row`` has run its duration; O(log)."""
    settle(tb, row, now, NO)
    leave_host(tb, row, now)
    views.requests(tb)[row]["state"] = DONE
    views.control(tb)["completed"] += 1


@entry
def close(tb: State, now: float, pending: NDArray[np.float64], wasted: NDArray[np.float64]) -> None:
    """Bring every ledger to the end of the run: seconds in the queue, start-up seconds wasted, both (n,); O(requests).

    Lifetime is all of running, start-up, discarded and pending time, exactly; and all
    start-up was wasted but that of an incarnation that completed or still runs.
    """
    for row in range(views.control(tb)["arrived"]):
        request = views.requests(tb)[row]
        until, spent = now, 0.0
        if request["state"] == DONE:
            until, spent = request["since"], request["startup"]
        elif request["state"] == PLACED:
            spent = settle(tb, row, now, NO)
        startup = request["startup_first"] + request["startup_restarts"]
        pending[row] = until - views.admission(tb)[row] - request["running"] - request["discarded"] - startup
        wasted[row] = startup - spent
