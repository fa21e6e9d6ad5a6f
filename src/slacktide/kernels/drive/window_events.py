"""What time alone does to promises over a window: old outages leave it, and calendar windows begin."""

from __future__ import annotations

import numpy as np

from slacktide.kernels.drive import event_heap
from slacktide.kernels.feasible import host_slots
from slacktide.kernels.qos import request_ledger, request_windows, window_ledger, window_outages
from slacktide.kernels.queue import waiting_queue
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.log_records import RETURNS, RETURNS_PREEMPTED, WINDOW_MOVES
from slacktide.kernels.tables.request_records import CONCURRENT
from slacktide.kernels.tables.schema import DONE, FUTURE, LEAVING, PLACED, REMOVED, Records, State
from slacktide.kernels.tables.window_records import CALENDAR, LIFETIME, NOT_YET, OPEN


@leaf
def class_of(tb: State, row: int) -> int:
    """The class of an instance; in a live cluster that of its controller, which may have no pod for it; O(1)."""
    if views.rules(tb)["live"]:
        return whole(views.requests(tb)[views.owner(tb)[row]]["cls"])
    return whole(views.kinds(tb)[views.instances(tb)[row]["kind"]]["cls"])


@leaf
def keeps_account(tb: State, row: int) -> bool:
    """Whether an instance decides by its own ledger, and its promise is over a window; O(1)."""
    return len(views.accounts(tb)) > 0 and window_ledger.keeps_account(tb, row, class_of(tb, row))


@kernel
def begin(tb: State, row: int, now: float) -> None:
    """An instance is admitted, or is of another class than it may have been; O(outages) where it is."""
    if len(views.accounts(tb)) == 0 or request_ledger.decider_of(tb, row) >= 0:
        return
    account, cls = views.accounts(tb)[row], class_of(tb, row)
    kind = views.classes(tb)[cls]["windowed"]
    if account["cls"] == 0:
        if kind != LIFETIME and views.classes(tb)[cls]["whole_budget"]:
            window_ledger.count_anew(tb, row, cls)
        elif kind == LIFETIME and not views.rules(tb)["live"]:
            return  # an account that nobody touches takes no memory
    elif kind != account["kind"]:
        window_ledger.begin_anew(tb, row, cls, now)
    elif account["cls"] != cls + 1:
        window_ledger.count_anew(tb, row, cls)
    if views.rules(tb)["live"]:
        account["cls"], account["kind"] = cls + 1, kind


@kernel
def begin_request(tb: State, q: int, now: float) -> None:
    """In a live cluster: a request is of another class than it may have been, from ``now`` on; O(outages)."""
    account, request = views.request_accounts(tb)[q], views.requests(tb)[q]
    kind = views.classes(tb)[request["cls"]]["windowed"] if request_windows.is_windowed(tb, q) else LIFETIME
    if account["kind"] == kind and (kind == LIFETIME or account["cls"] == request["cls"] + 1):
        account["cls"] = request["cls"] + 1
        return
    request_ledger.bring_up_to(tb, q, now)
    if kind != account["kind"]:
        request_windows.begin_anew(tb, q, up_of(tb, q), now)
    else:
        request_windows.count_anew(tb, q)
    account["cls"], account["kind"] = request["cls"] + 1, kind
    request_ledger.stir(tb, q, request_ledger.ROSE)


@kernel
def take_back_startup(tb: State, q: int, seconds: float, live: int, now: float) -> None:
    """Of a request of ``live`` instances one was not in a start-up after all that had counted as running for so many
    seconds up to ``now``; what of that lies before the last change of its counts is not taken back; O(1)."""
    if request_windows.is_windowed(tb, q) and views.stretches(tb)[q]["open"] == OPEN:
        share = seconds if views.requests(tb)[q]["approach"] == CONCURRENT else seconds / live
        request_windows.end_stretch(tb, q, request_ledger.round_to_grid(share), now)


@kernel
def end_request(tb: State, q: int) -> None:
    """In a live cluster: a request is no more; O(its outages)."""
    account = views.request_accounts(tb)[q]
    window_outages.free_all(tb, account)
    account["cls"] = account["kind"] = 0
    views.stretches(tb)[q]["open"] = NOT_YET


@kernel
def book(tb: State, row: int, now: float) -> None:
    """The state of an instance is about to change; O(1) amortised."""
    if keeps_account(tb, row):
        window_ledger.book(tb, row, class_of(tb, row), now)


@kernel
def settled(tb: State, row: int) -> None:
    """The ledger of an instance was brought up to now; O(1) amortised."""
    if keeps_account(tb, row):
        window_ledger.forget(tb, row, class_of(tb, row), window_ledger.received_at(tb, row, -np.inf))


@kernel
def end(tb: State, row: int, now: float) -> None:
    """An instance is no more; its ledger is settled; O(its outages)."""
    if keeps_account(tb, row):
        if views.classes(tb)[class_of(tb, row)]["windowed"] == CALENDAR:
            theirs = views.classes(tb)[class_of(tb, row)]
            length, e = theirs["ends"] - theirs["begins"], window_ledger.received_at(tb, row, -np.inf)
            window_ledger.note_calendar(tb, row, class_of(tb, row), theirs["begins"], length, now, e)
        window_ledger.close_account(tb, row)


@kernel
def expect(tb: State, row: int) -> None:
    """Note when the metric of an instance on a host leaves its straight line; its slot must be filled; O(log)."""
    if not keeps_account(tb, row):
        return
    instance = views.instances(tb)[row]
    h = whole(instance["host"])
    slot = views.slots(tb)[h, host_slots.slot_of(tb, h, row)]
    at = window_ledger.next_move(tb, row, slot)
    views.accounts(tb)[row]["due"] = at
    if views.rules(tb)["live"]:
        views.control(tb)["moves_at"] = min(views.control(tb)["moves_at"], at)
    elif at < np.inf and at <= views.rules(tb)["end"]:
        event_heap.push(tb, WINDOW_MOVES, at, row, whole(instance["starts"]))


@kernel
def move(tb: State, row: int, now: float) -> None:
    """The metric of an instance on a host leaves its straight line; O(instances on the host + log)."""
    cls = class_of(tb, row)
    window_ledger.book(tb, row, cls, now)
    window_ledger.forget(tb, row, cls, window_ledger.received_at(tb, row, now))
    rewrite(tb, row, now)


@kernel
def rewrite(tb: State, row: int, now: float) -> None:
    """Fill the slot of an instance on a host anew, as its account has changed; O(instances on the host + log)."""
    instance = views.instances(tb)[row]
    h = whole(instance["host"])
    slot = views.slots(tb)[h, host_slots.slot_of(tb, h, row)]
    window_ledger.fill_slot(tb, row, slot, instance["since"], window_ledger.runs_from(tb, row))
    if views.classes(tb)[class_of(tb, row)]["windowed"] == CALENDAR:
        window_ledger.outlast_window(tb, row, slot, now)
    views.hosts(tb)[h]["fell"] = views.control(tb)["told"] = views.control(tb)["looks"] + 1
    host_slots.look_again(tb, h)
    expect(tb, row)


@kernel
def catch_up(tb: State, now: float) -> None:
    """In a live cluster: all that time alone did by ``now``; O(1), O(instances) where that is anything."""
    control = views.control(tb)
    turn_due(tb, now)
    if not control["moves_at"] <= now:
        return
    control["moves_at"] = np.inf
    for row in range(len(views.accounts(tb))):
        if views.instances(tb)[row]["state"] != PLACED or not keeps_account(tb, whole(row)):
            continue
        if views.accounts(tb)[row]["due"] <= now:
            move(tb, whole(row), now)
        else:
            control["moves_at"] = min(control["moves_at"], views.accounts(tb)[row]["due"])


@kernel
def turn_due(tb: State, now: float) -> bool:
    """Let all calendar windows begin that do by ``now``; whether any did; O(instances) where one did."""
    control, found = views.control(tb), False
    while control["turns_at"] <= now:
        at = control["turns_at"]
        for c in range(len(views.classes(tb))):
            if has_next(views.classes(tb)[c]) and views.classes(tb)[c]["ends"] <= at:
                turn_class(tb, whole(c), at)
        tell_next_turn(tb)
        found = True
    if found:
        waiting_queue.weigh_entries(tb, views.queue(tb), whole(control["queue"]))
        waiting_queue.weigh_entries(tb, views.incoming(tb), whole(control["incoming"]))
        waiting_queue.sort_entries(tb, views.queue(tb), control["queue"])
    return found


@leaf
def has_next(theirs: Records) -> bool:
    """Whether it is known when the calendar windows after the present one of a class begin and end; O(1)."""
    return theirs["windowed"] == CALENDAR and theirs["turn"] + 3 < theirs["last_turn"]


@kernel
def turn_class(tb: State, cls: int, now: float) -> None:
    """The next calendar window of a class begins at ``now``; O(instances + requests)."""
    theirs, turns, begun = views.classes(tb)[cls], views.turns(tb), views.classes(tb)[cls]["begins"]
    theirs["turn"] += 1
    theirs["begins"], theirs["ends"] = turns[theirs["turn"]], turns[theirs["turn"] + 1]
    theirs["grant"] = theirs["next_grant"]
    if theirs["whole_budget"]:
        theirs["next_grant"] = budget_of(theirs, turns[theirs["turn"] + 2] - theirs["ends"])
    turn_requests(tb, cls, begun, now)
    if views.rules(tb)["live"]:
        for row in range(len(views.instances(tb))):
            turn_row(tb, whole(row), cls, begun, now)
        return
    for h in range(len(views.hosts(tb))):
        for i in range(views.hosts(tb)[h]["count"]):
            turn_row(tb, whole(views.slots(tb)[h, i]["row"]), cls, begun, now)
    for i in range(views.control(tb)["queue"]):
        turn_row(tb, whole(views.queue(tb)[i]["row"]), cls, begun, now)
    for i in range(views.control(tb)["incoming"]):
        turn_row(tb, whole(views.incoming(tb)[i]["row"]), cls, begun, now)
    for i in range(views.control(tb)["leavers"]):
        if views.instances(tb)[views.leavers(tb)[i]["row"]]["state"] == LEAVING:
            turn_row(tb, whole(views.leavers(tb)[i]["row"]), cls, begun, now)
    for i in range(views.control(tb)["heap"]):
        event = views.heap(tb)[i]
        if event["kind"] == RETURNS or event["kind"] == RETURNS_PREEMPTED:
            turn_row(tb, whole(event["row"]), cls, begun, now)


@kernel
def turn_requests(tb: State, cls: int, begun: float, now: float) -> None:
    """As :func:`turn_class`, of requests whose ledger decides; O(requests)."""
    for q in range(len(views.request_accounts(tb))):
        ours = views.requests(tb)[q]["cls"] == cls and request_windows.is_windowed(tb, whole(q))
        if ours:
            turn_request(tb, whole(q), begun, now)


@kernel
def turn_request(tb: State, q: int, begun: float, now: float) -> None:
    """As :func:`turn_class`, of one request; the window before began at ``begun``; O(outages)."""
    if views.stretches(tb)[q]["open"] != OPEN:
        return
    request_windows.turn(tb, q, up_of(tb, q), begun, now)
    views.requests(tb)[q]["weighed"] = -np.inf
    request_ledger.stir(tb, q, request_ledger.ROSE)


@leaf
def up_of(tb: State, q: int) -> int:
    """Instances of a request that count as running in decisions, be they told to leave or not; O(1)."""
    return whole(request_ledger.counting(views.requests(tb)[q], views.rules(tb)["accounting"]))


@kernel
def close_request(tb: State, q: int, now: float) -> None:
    """The run is over at ``now``; O(outages)."""
    if request_windows.is_windowed(tb, q) and views.stretches(tb)[q]["open"]:
        request_windows.close(tb, q, up_of(tb, q), now)


@kernel
def turn_row(tb: State, row: int, cls: int, begun: float, now: float) -> None:
    """As :func:`turn_class`, of one instance if it is live and of this class; the window before began at ``begun``;
    O(instances on its host + log)."""
    if not is_of(tb, row, cls):
        return
    e = window_ledger.received_at(tb, row, now)
    window_ledger.note_calendar(tb, row, cls, begun, now - begun, now, e)
    window_ledger.turn_account(tb, row, cls, now)
    if views.instances(tb)[row]["state"] == PLACED:
        rewrite(tb, row, now)


@leaf
def budget_of(theirs: Records, seconds: float) -> float:
    """Seconds that may be lost in a window of so many; O(1)."""
    return seconds - request_ledger.round_to_grid(seconds * theirs["slo"])


@leaf
def is_of(tb: State, row: int, cls: int) -> bool:
    """Whether a live instance is of this class and keeps an account; O(1)."""
    state = views.instances(tb)[row]["state"]
    if state == FUTURE or state == DONE or state == REMOVED:
        return False
    return class_of(tb, row) == cls and request_ledger.decider_of(tb, row) < 0


@kernel
def tell_next_turn(tb: State) -> None:
    """Note when the next calendar window of any class begins; O(classes)."""
    at = np.inf
    for c in range(len(views.classes(tb))):
        theirs = views.classes(tb)[c]
        if has_next(theirs):
            at = min(at, theirs["ends"])
    views.control(tb)["turns_at"] = at
