"""What a request has received so far, kept up to date at each change of its state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.drive import event_heap, leavers, pending_resize, window_events
from slacktide.kernels.feasible import disruption_budgets, disruption_limits, host_slots
from slacktide.kernels.place.scores import delay_aware
from slacktide.kernels.qos import request_ledger, slo_status
from slacktide.kernels.qos.metric import GRID
from slacktide.kernels.queue import waiting_queue
from slacktide.kernels.runtime import chance
from slacktide.kernels.runtime.compiling import entry, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.log_records import (
    ADMITTED,
    DROPPED,
    LEAVES,
    RETURNS,
    RETURNS_PREEMPTED,
    RUN_ENDS,
    STARTUP_ENDS,
)
from slacktide.kernels.tables.schema import (
    ALWAYS,
    DONE,
    FUTURE,
    LEAVING,
    LOST,
    LOST_BY_KIND,
    NOBODY,
    PLACED,
    RECORD_EVENTS,
    REMOVED,
    RESTART,
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
    event["received"] = 0.0
    views.control(tb)["events"] += 1


@kernel
def visit_index(visits: NDArray[np.int64], code: int) -> int:
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
    at = visit_index(visits, code)
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
            new[visit_index(new, code)] = code


@kernel
def draw_startup(tb: State, row: int, h: int) -> float:
    """The start-up delay of the next start of ``row`` on host ``h``, seconds (docs/semantics.md, 'Chance')."""
    return startup_if(tb, row, ran_here(tb, row, h))


@leaf
def startup_if(tb: State, row: int, hot: bool) -> float:
    """The start-up delay of the next start of ``row``, seconds, on a host where it ran before or not; O(1).

    None where it was there before the run begins and has its place at once: then it has been running.
    """
    if views.admission(tb)[row] < 0.0 and views.instances(tb)[row]["starts"] == 0 and views.control(tb)["now"] == 0.0:
        return 0.0
    at = chance.draw(views.rules(tb)["seed"], chance.STARTUP, row, whole(views.instances(tb)[row]["starts"]))
    if hot:
        return views.hot(tb)[at % len(views.hot(tb))]
    return views.cold(tb)[at % len(views.cold(tb))]


@kernel
def would_be_ready(tb: State, row: int, h: int) -> bool:
    """Whether a start of ``row`` on host ``h`` would take no time; notes nothing; O(1)."""
    code = row * len(views.hosts(tb)) + h + 1
    first = views.instances(tb)[row]["first_host"] == h
    return startup_if(tb, row, first or views.visits(tb)[visit_index(views.visits(tb), code)] == code) == 0.0


@kernel
def start(tb: State, row: int, h: int, now: float) -> None:
    """Instance ``row`` leaves the queue for host ``h``; O(log)."""
    instance, rules = views.instances(tb)[row], views.rules(tb)
    window_events.book(tb, row, now)
    tau = np.inf
    if not rules["live"]:
        tau = draw_startup(tb, row, h)
        if views.control(tb)["leavers"] > 0:
            shape = whole(views.kinds(tb)[instance["kind"]]["shape"])
            tau += leavers.bound_at(tb, h, shape, now) - now
    instance["starts"] += 1
    instance["state"] = PLACED
    instance["host"] = h
    instance["since"] = now
    instance["startup"] = tau
    begin_anew(tb, row)
    counts = request_ledger.begins_pending(rules["accounting"], instance["starts"])
    host_slots.add(tb, h, row, whole(instance["kind"]), now + tau if counts else now, now)
    delay_aware.note_image(tb, h, whole(views.kinds(tb)[instance["kind"]]["shape"]))
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.started(tb, q, row, now)
    if tau == 0.0:
        disruption_budgets.change(tb, row, whole(0), whole(1))
        disruption_limits.over(tb, row, now)
    elif tau < np.inf and asks_for_readiness(tb, row):
        event_heap.push(tb, STARTUP_ENDS, now + tau, row, whole(instance["starts"]))
    window_events.expect(tb, row)
    views.control(tb)["placed_now"] += 1
    views.control(tb)["placements"] += 1
    finish = now + tau + (views.duration(tb)[row] - instance["running"])
    if finish <= rules["end"] and finish < np.inf:
        event_heap.push(tb, RUN_ENDS, finish, row, whole(instance["starts"]))


@leaf
def begin_anew(tb: State, row: int) -> None:
    """The incarnation of an instance has ended, or begins: it has had no start-up; O(1)."""
    if len(views.startups_before(tb)) > 0:
        views.startups_before(tb)[row] = 0.0


@leaf
def asks_for_readiness(tb: State, row: int) -> bool:
    """Whether the end of an instance's start-up is an event; O(1)."""
    if request_ledger.decider_of(tb, row) >= 0 or disruption_budgets.budget_of(tb, row) >= 0:
        return True
    return disruption_limits.recovers(tb, row)


@kernel
def settle(tb: State, row: int, now: float, lose: bool) -> float:
    """Close the ledger of the present incarnation; the seconds of start-up it spent; O(1)."""
    instance = views.instances(tb)[row]
    window_events.book(tb, row, now)
    spent = slo_status.startup_spent(instance, now)
    useful = now - instance["since"] - spent
    slo_status.add_startup(instance, instance["starts"], spent)
    if lose:
        instance["discarded"] += instance["running"] + useful
        instance["running"] = 0.0
    else:
        instance["running"] += useful
    window_events.settled(tb, row)
    return spent


@leaf
def is_batch(tb: State, row: int) -> bool:
    """Whether an instance is one of a batch request; O(1)."""
    q = request_ledger.owner_of(tb, row)
    return q >= 0 and views.requests(tb)[q]["batch"] != 0


@kernel
def loses(tb: State, row: int) -> bool:
    """Whether a stopped instance loses what it had done; O(1)."""
    rule = views.rules(tb)["lost"]
    return rule == LOST if rule != LOST_BY_KIND else is_batch(tb, row)


@leaf
def away_for(tb: State, row: int) -> float:
    """Seconds after which a stopped instance comes again; O(1)."""
    table = views.batch_returns(tb)
    if len(table) == 0 or not is_batch(tb, row):
        return views.rules(tb)["recreation"]
    at = chance.draw(views.rules(tb)["seed"], chance.RETURN, row, whole(views.instances(tb)[row]["starts"]))
    return table[at % len(table)]


@kernel
def leave_host(tb: State, row: int, now: float) -> None:
    """Take an instance off its host without queueing it."""
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.left(tb, q, row, now)
    if disruption_budgets.is_ready(tb, row, now):
        disruption_budgets.change(tb, row, whole(0), whole(-1))
    host_slots.remove(tb, whole(views.instances(tb)[row]["host"]), row)
    views.instances(tb)[row]["host"] = -1
    views.instances(tb)[row]["since"] = now
    views.control(tb)["placed_now"] -= 1
    if len(views.resize_of(tb)) > 0:
        pending_resize.grant(tb, row)


@kernel
def stop(tb: State, row: int, now: float, preempted: bool) -> None:
    """Throw instance ``row`` off its host, back into the queue; O(log)."""
    instance = views.instances(tb)[row]
    if views.rules(tb)["live"] or (preempted and leavers.lingers(tb, row)):
        tell_to_leave(tb, row, now)
        return
    q = request_ledger.owner_of(tb, row)
    discarded = instance["discarded"]
    spent = settle(tb, row, now, loses(tb, row))
    if preempted:
        disruption_limits.begin(tb, row, now)
        instance["overhead"] += spent
        instance["preemptions"] += 1
        views.control(tb)["preemptions"] += 1
    leave_host(tb, row, now)
    if q >= 0:
        request_ledger.pays(tb, q, spent if preempted else 0.0, instance["discarded"] - discarded)
    wait_again(tb, row, now, RETURNS_PREEMPTED if preempted else RETURNS)


@kernel
def wait_again(tb: State, row: int, now: float, returns: int) -> None:
    """A stopped instance waits, at once or after some seconds (``returns``: what event that is then); O(log)."""
    instance = views.instances(tb)[row]
    begin_anew(tb, row)
    away = away_for(tb, row)
    if away > 0.0:
        instance["state"] = VACANT
        event_heap.push(tb, returns, now + away, row, whole(instance["starts"]))
        return
    instance["state"] = WAITING
    waiting_queue.enqueue(tb, row, now)


@kernel
def come_back(tb: State, row: int, now: float) -> None:
    """The next incarnation of a stopped instance begins to wait; O(1)."""
    views.instances(tb)[row]["state"] = WAITING
    waiting_queue.enqueue(tb, row, now)


@kernel
def tell_to_leave(tb: State, row: int, now: float) -> None:
    """Count an instance as off its host; its ledger goes on until its end, which on a cluster is told; O(instances)."""
    instance, live = views.instances(tb)[row], views.rules(tb)["live"] != 0
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.left(tb, q, row, now)
        go_on_leaving(tb, row, now, whole(1))
    b = disruption_budgets.budget_of(tb, row)
    if b >= 0 and live:  # what is left of a live budget is told from outside, and late
        views.budgets(tb)[b]["amount"] -= 1
        views.control(tb)["tightened"] = views.control(tb)["looks"] + 1
    elif not live and disruption_budgets.is_ready(tb, row, now):
        disruption_budgets.change(tb, row, whole(0), whole(-1))
    disruption_limits.begin(tb, row, now)
    host_slots.remove(tb, whole(instance["host"]), row)
    if not live:
        over = leavers.enlist(tb, row, whole(instance["host"]), now)
        event_heap.push(tb, LEAVES, over, row, whole(instance["starts"]))
    instance["state"] = LEAVING
    if len(views.resize_of(tb)) > 0:
        pending_resize.grant(tb, row)
    instance["preemptions"] += 1
    views.control(tb)["preemptions"] += 1
    views.control(tb)["placed_now"] -= 1


@kernel
def go_on_leaving(tb: State, row: int, now: float, by: int) -> None:
    """In its request, count an instance that was told to leave while it goes on (1), or no more (-1); O(1).

    In a simulation only where the request's ledger decides: of others nobody is told when their start-ups end.
    """
    q = request_ledger.owner_of(tb, row)
    if views.rules(tb)["live"] or request_ledger.decider_of(tb, row) >= 0:
        request_ledger.goes_on_leaving(tb, q, row, now, by)


@kernel
def readies_leaving(tb: State, row: int, now: float) -> None:
    """The start-up of an instance ended that was told to leave, in a simulation; O(1)."""
    q = request_ledger.decider_of(tb, row)
    if q >= 0:
        request, starts = views.requests(tb)[q], whole(views.instances(tb)[row]["starts"])
        request_ledger.bring_up_to(tb, q, now)
        request["leaving_always"] += request_ledger.begins_pending(ALWAYS, starts)
        request["leaving_restart"] += request_ledger.begins_pending(RESTART, starts)


@kernel
def end_leaving(tb: State, row: int, now: float, lose: bool, preempted: bool) -> None:
    """The incarnation of a LEAVING instance has ended; it is on no host then; O(1).

    ``lose``: what it had done is lost; ``preempted``: its start-up counts as overhead.
    """
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.bring_up_to(tb, q, now)
        go_on_leaving(tb, row, now, whole(-1))
    account_for(tb, row, now, lose, preempted)
    instance["host"] = -1
    instance["since"] = now


@kernel
def account_for(tb: State, row: int, now: float, lose: bool, preempted: bool) -> float:
    """Close the ledger of an incarnation that has ended, and charge its request; the start-up that it spent; O(1)."""
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    discarded = instance["discarded"]
    spent = settle(tb, row, now, lose)
    if preempted:
        instance["overhead"] += spent
    if q >= 0:
        request_ledger.pays(tb, q, spent if preempted else 0.0, instance["discarded"] - discarded)
    return spent


@kernel
def goes(tb: State, row: int, now: float) -> None:
    """The grace period of a preempted instance is over, or its host is down, in a simulation: it waits; O(log)."""
    end_leaving(tb, row, now, loses(tb, row), YES)
    wait_again(tb, row, now, RETURNS_PREEMPTED)


@leaf
def note_life(tb: State, row: int, now: float) -> None:
    """An instance is no more: note of its class how long it lived; O(1)."""
    q = request_ledger.owner_of(tb, row)
    if views.rules(tb)["live"] and (q < 0 or not views.requests(tb)[q]["batch"]):
        return  # a service whose pods are replaced goes on
    if views.rules(tb)["live"]:  # it may have had no pod, and so no kind
        cls = whole(views.requests(tb)[q]["cls"])
    else:
        cls = whole(views.kinds(tb)[views.instances(tb)[row]["kind"]]["cls"])
    theirs = views.classes(tb)[cls]
    theirs["ended"] += 1
    theirs["lived"] += now - views.admission(tb)[row]


@kernel
def complete(tb: State, row: int, now: float) -> None:
    """Instance ``row`` has run its duration; O(log)."""
    if views.instances(tb)[row]["state"] == LEAVING:
        end_leaving(tb, row, now, NO, YES)
    else:
        settle(tb, row, now, NO)
        leave_host(tb, row, now)
    views.instances(tb)[row]["state"] = DONE
    window_events.end(tb, row, now)
    views.control(tb)["completed"] += 1
    note_life(tb, row, now)
    disruption_budgets.change(tb, row, whole(-1), whole(0))
    disruption_limits.over(tb, row, now)
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.departed(tb, q, now)


@kernel
def admit(tb: State, row: int, now: float) -> None:
    """Instance ``row`` begins to wait; O(1)."""
    views.instances(tb)[row]["state"] = WAITING
    views.instances(tb)[row]["since"] = now
    window_events.begin(tb, row, now)
    waiting_queue.enqueue(tb, row, now)
    disruption_budgets.change(tb, row, whole(1), whole(0))
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.joined(tb, q, now)
    record(tb, ADMITTED, row, NOBODY, NOBODY, np.nan)


@kernel
def remove(tb: State, row: int, now: float) -> None:
    """Instance ``row`` is to be no more; it must be struck off the queue where it waits; O(log)."""
    instance = views.instances(tb)[row]
    host = whole(instance["host"])
    window_events.book(tb, row, now)
    spent = 0.0
    if instance["state"] == PLACED:
        spent = settle(tb, row, now, NO)
        leave_host(tb, row, now)
    elif instance["state"] == LEAVING:
        spent = slo_status.startup_spent(instance, now)
        end_leaving(tb, row, now, NO, YES)
    instance["startup"] = spent
    instance["state"] = REMOVED
    instance["since"] = now
    window_events.end(tb, row, now)
    note_life(tb, row, now)
    disruption_budgets.change(tb, row, whole(-1), whole(0))
    disruption_limits.over(tb, row, now)
    request_ledger.departed(tb, request_ledger.owner_of(tb, row), now)
    record(tb, DROPPED, row, host, NOBODY, np.nan)


@entry
def close(tb: State, now: float, begin: int, pending: NDArray[np.float64], wasted: NDArray[np.float64]) -> None:
    """Bring ledgers to the end of the run: seconds in the queue, start-up seconds wasted, both (n,); O(n).

    Of the n rows from ``begin`` on; those of requests with the first rows. Every row is closed once. Lifetime is all
    of running, start-up, discarded and pending time, exactly; and all start-up was wasted but that of an incarnation
    that completed or still runs, however often it was not ready. Rows that were never released have no lifetime. One
    that never had a host has waited for one step of the grid of times at least, so that it does not look as if nothing
    had been owed.
    """
    if begin == 0:
        for q in range(len(views.requests(tb))):
            window_events.close_request(tb, whole(q), now)
            request_ledger.bring_up_to(tb, q, now)
    for place in range(len(pending)):
        row = begin + place
        instance = views.instances(tb)[row]
        until, spent = now, 0.0
        if instance["state"] == FUTURE:
            pending[place] = wasted[place] = 0.0
            continue
        if instance["state"] == DONE or instance["state"] == REMOVED:
            until, spent = instance["since"], instance["startup"]
        else:
            window_events.book(tb, row, now)
            here = instance["state"] == PLACED or instance["state"] == LEAVING
            spent = settle(tb, row, now, NO) if here else 0.0
            window_events.end(tb, row, now)
        startup = instance["startup_first"] + instance["startup_restarts"]
        pending[place] = until - views.admission(tb)[row] - instance["running"] - instance["discarded"] - startup
        if instance["starts"] == 0 and instance["running"] == 0.0 and instance["state"] != REMOVED:
            pending[place] = max(pending[place], 1.0 / GRID)  # who got nothing was owed something
        if len(views.startups_before(tb)) > 0:
            spent += views.startups_before(tb)[row]
        wasted[place] = startup - spent
