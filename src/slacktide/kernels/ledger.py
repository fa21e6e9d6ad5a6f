"""What a request has received so far, kept up to date at each change of its state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels import board, budgets, chance, delay, queue, requests, views, wishes
from slacktide.kernels.compiling import entry, kernel, leaf, whole
from slacktide.kernels.log_records import ADMITTED, DROPPED
from slacktide.kernels.tables import (
    DONE,
    FUTURE,
    LEAVING,
    LOST,
    LOST_BY_KIND,
    NOBODY,
    PLACED,
    RECORD_EVENTS,
    REMOVED,
    VACANT,
    WAITING,
    State,
)

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
    instance, visits = views.instances(tb)[row], views.visits(tb)
    if instance["first_host"] == h:
        return True
    if instance["first_host"] < 0:
        instance["first_host"] = h
        instance["hosts_used"] = 1
        return False
    code = row * len(views.hosts(tb)) + h + 1
    at = visit_place(visits, code)
    if visits[at] == code:
        return True
    visits[at] = code
    views.control(tb)["visits"] += 1
    instance["hosts_used"] += 1
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
    return startup_if(tb, row, ran_here(tb, row, h))


@leaf
def startup_if(tb: State, row: int, hot: bool) -> float:
    """The start-up delay of the next start of ``row``, seconds, on a host where it ran before or not; O(1)."""
    at = chance.draw(views.rules(tb)["seed"], chance.STARTUP, row, whole(views.instances(tb)[row]["starts"]))
    if hot:
        return views.hot(tb)[at % len(views.hot(tb))]
    return views.cold(tb)[at % len(views.cold(tb))]


@kernel
def would_be_ready(tb: State, row: int, h: int) -> bool:
    """Whether a start of ``row`` on host ``h`` would take no time; notes nothing; O(1)."""
    code = row * len(views.hosts(tb)) + h + 1
    first = views.instances(tb)[row]["first_host"] == h
    return startup_if(tb, row, first or views.visits(tb)[visit_place(views.visits(tb), code)] == code) == 0.0


@kernel
def push_completion(tb: State, time: float, row: int, starts: int) -> None:
    """Note a completion, or by ``-1 - row`` the end of a start-up; ``starts`` tells if it became void; O(log n)."""
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
    """Instance ``row`` leaves the queue for host ``h``; O(log)."""
    instance, rules = views.instances(tb)[row], views.rules(tb)
    tau = np.inf if rules["live"] else draw_startup(tb, row, h)
    instance["starts"] += 1
    instance["state"] = PLACED
    instance["host"] = h
    instance["since"] = now
    instance["startup"] = tau
    counts = requests.begins_pending(rules["accounting"], instance["starts"])
    board.add(tb, h, row, whole(instance["kind"]), now + tau if counts else now, now)
    delay.note_image(tb, h, whole(views.kinds(tb)[instance["kind"]]["shape"]))
    q = requests.owner_of(tb, row)
    if q >= 0:
        requests.started(tb, q, row, now)
    if tau == 0.0:
        budgets.change(tb, row, whole(0), whole(1))
    elif tau < np.inf and (requests.decider_of(tb, row) >= 0 or budgets.budget_of(tb, row) >= 0):
        push_completion(tb, now + tau, -1 - row, whole(instance["starts"]))
    views.control(tb)["placed_now"] += 1
    views.control(tb)["placements"] += 1
    finish = now + tau + (views.duration(tb)[row] - instance["running"])
    if finish <= rules["end"] and finish < np.inf:
        push_completion(tb, finish, row, whole(instance["starts"]))


@kernel
def settle(tb: State, row: int, now: float, lose: bool) -> float:
    """Close the books of the present incarnation; the seconds of start-up it spent; O(1)."""
    instance = views.instances(tb)[row]
    ready = instance["since"] + instance["startup"]
    spent = now - instance["since"]
    useful = 0.0
    if now >= ready:
        spent = instance["startup"]
        useful = now - ready
    if instance["starts"] == 1:
        instance["startup_first"] += spent
    else:
        instance["startup_restarts"] += spent
    if lose:
        instance["discarded"] += instance["running"] + useful
        instance["running"] = 0.0
    else:
        instance["running"] += useful
    return spent


@kernel
def loses(tb: State, row: int) -> bool:
    """Whether a stopped instance loses what it had done; O(1)."""
    rule = views.rules(tb)["lost"]
    if rule != LOST_BY_KIND:
        return rule == LOST
    q = requests.owner_of(tb, row)
    return q >= 0 and views.requests(tb)[q]["batch"] != 0


@kernel
def leave_host(tb: State, row: int, now: float) -> None:
    """Take an instance off its host without queueing it."""
    q = requests.owner_of(tb, row)
    if q >= 0:
        requests.left(tb, q, row, now)
    if budgets.is_ready(tb, row, now):
        budgets.change(tb, row, whole(0), whole(-1))
    board.remove(tb, whole(views.instances(tb)[row]["host"]), row)
    views.instances(tb)[row]["host"] = -1
    views.instances(tb)[row]["since"] = now
    views.control(tb)["placed_now"] -= 1
    if len(views.wish(tb)) > 0:
        wishes.grant(tb, row)


@kernel
def stop(tb: State, row: int, now: float, preempted: bool) -> None:
    """Throw instance ``row`` off its host, back into the queue; O(log)."""
    instance = views.instances(tb)[row]
    if views.rules(tb)["live"]:
        tell_to_leave(tb, row, now)
        return
    q = requests.owner_of(tb, row)
    discarded = instance["discarded"]
    spent = settle(tb, row, now, loses(tb, row))
    if preempted:
        instance["overhead"] += spent
        instance["preemptions"] += 1
        views.control(tb)["preemptions"] += 1
    leave_host(tb, row, now)
    if q >= 0:
        requests.pays(tb, q, spent if preempted else 0.0, instance["discarded"] - discarded)
    if views.rules(tb)["recreation"] > 0.0:
        instance["state"] = VACANT
        push_completion(tb, now + views.rules(tb)["recreation"], row, coming(tb, row, preempted))
        return
    instance["state"] = WAITING
    queue.enqueue(tb, row, now)


@leaf
def coming(tb: State, row: int, preempted: bool) -> int:
    """What stands in place of a number of starts where a completion is the return of ``row``."""
    return -1 - 2 * whole(views.instances(tb)[row]["starts"]) - (1 if preempted else 0)


@kernel
def come_back(tb: State, row: int, now: float) -> None:
    """The next incarnation of a stopped instance begins to wait; O(1)."""
    views.instances(tb)[row]["state"] = WAITING
    queue.enqueue(tb, row, now)


@kernel
def tell_to_leave(tb: State, row: int, now: float) -> None:
    """Count an instance of a live cluster as off its host; its books go on until its end is told; O(instances)."""
    instance = views.instances(tb)[row]
    q = requests.owner_of(tb, row)
    if q >= 0:
        requests.left(tb, q, row, now)
        requests.goes_on_leaving(tb, q, row, now, whole(1))
    b = budgets.budget_of(tb, row)
    if b >= 0:  # what is left of a live budget is told from outside, and late
        views.budgets(tb)[b]["amount"] -= 1
        views.control(tb)["tightened"] = views.control(tb)["looks"] + 1
    board.remove(tb, whole(instance["host"]), row)
    instance["state"] = LEAVING
    instance["preemptions"] += 1
    views.control(tb)["preemptions"] += 1
    views.control(tb)["placed_now"] -= 1


@kernel
def complete(tb: State, row: int, now: float) -> None:
    """Instance ``row`` has run its duration; O(log)."""
    settle(tb, row, now, NO)
    leave_host(tb, row, now)
    views.instances(tb)[row]["state"] = DONE
    views.control(tb)["completed"] += 1
    budgets.change(tb, row, whole(-1), whole(0))
    q = requests.owner_of(tb, row)
    if q >= 0:
        requests.departed(tb, q, now)


@kernel
def admit(tb: State, row: int, now: float) -> None:
    """Instance ``row`` begins to wait; O(1)."""
    views.instances(tb)[row]["state"] = WAITING
    views.instances(tb)[row]["since"] = now
    queue.enqueue(tb, row, now)
    budgets.change(tb, row, whole(1), whole(0))
    q = requests.owner_of(tb, row)
    if q >= 0:
        requests.joined(tb, q, now)
    record(tb, ADMITTED, row, NOBODY, NOBODY, np.nan)


@kernel
def remove(tb: State, row: int, now: float) -> None:
    """Instance ``row`` is to be no more; it must be struck off the queue where it waits; O(log)."""
    instance = views.instances(tb)[row]
    host = whole(instance["host"])
    spent = 0.0
    if instance["state"] == PLACED:
        spent = settle(tb, row, now, NO)
        leave_host(tb, row, now)
    instance["startup"] = spent
    instance["state"] = REMOVED
    instance["since"] = now
    budgets.change(tb, row, whole(-1), whole(0))
    requests.departed(tb, requests.owner_of(tb, row), now)
    record(tb, DROPPED, row, host, NOBODY, np.nan)


@entry
def close(tb: State, now: float, pending: NDArray[np.float64], wasted: NDArray[np.float64]) -> None:
    """Bring every ledger to the end of the run: seconds in the queue, start-up seconds wasted, both (n,); O(n).

    Lifetime is all of running, start-up, discarded and pending time, exactly; and all
    start-up was wasted but that of an incarnation that completed or still runs. Rows that
    were never released have no lifetime.
    """
    for q in range(len(views.requests(tb))):
        requests.bring_up_to(tb, q, now)
    for row in range(views.control(tb)["arrived"]):
        instance = views.instances(tb)[row]
        until, spent = now, 0.0
        if instance["state"] == FUTURE:
            pending[row] = wasted[row] = 0.0
            continue
        if instance["state"] == DONE or instance["state"] == REMOVED:
            until, spent = instance["since"], instance["startup"]
        elif instance["state"] == PLACED:
            spent = settle(tb, row, now, NO)
        startup = instance["startup_first"] + instance["startup_restarts"]
        pending[row] = until - views.admission(tb)[row] - instance["running"] - instance["discarded"] - startup
        wasted[row] = startup - spent
