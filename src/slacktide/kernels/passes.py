"""One scheduling pass (Q algorithm 1; docs/semantics.md, 'A pass')."""

from __future__ import annotations

import numpy as np

from slacktide.kernels import board, ledger, prospects, queue, search, victims, views
from slacktide.kernels.compiling import entry, kernel, whole
from slacktide.kernels.metric import metric
from slacktide.kernels.tables import (
    BEGUN,
    HELD,
    HYBRID,
    NOBODY,
    PREEMPTED,
    PRIORITY,
    QOS_DRIVEN,
    RECORD_DECISIONS,
    RECORD_PASSES,
    Records,
    State,
)

FINISHED, MORE_SLOTS, MORE_HEAP, MORE_VISITS, MORE_QUEUE, FLUSH, PASS_DUE, OVER, PAUSE = range(9)


@kernel
def lacking(tb: State) -> int:
    """What must grow before another request can be placed, or FINISHED; O(1)."""
    control = views.control(tb)
    widest = views.slots(tb).shape[1] - 1  # the last slot is spare
    if control["most"] + 1 > widest:
        return MORE_SLOTS
    if control["heap"] + 1 >= len(views.heap(tb)):
        return MORE_HEAP
    if 2 * (control["visits"] + 1) >= len(views.visits(tb)):
        return MORE_VISITS
    if control["queue"] + control["incoming"] + widest + 2 >= len(views.queue(tb)):
        return MORE_QUEUE
    full = control["events"] + widest + 2 >= len(views.events(tb)) or control["passes"] + 1 >= len(views.passes(tb))
    if (
        full
        or control["decisions"] + 1 >= len(views.decisions(tb))
        or control["victims"] + widest >= len(views.victims(tb))
    ):
        return FLUSH
    return FINISHED


@kernel
def change_mode(tb: State, mode: int) -> None:
    """Forget all that was sorted or cached for the other way of deciding; O(hosts + queue log queue)."""
    control = views.control(tb)
    control["mode"] = mode
    if control["sorted_for"] == mode:
        return
    control["sorted_for"] = mode
    queue.sort_entries(tb, views.queue(tb), control["queue"])
    for h in range(len(views.hosts(tb))):
        views.hosts(tb)[h]["sorted_until"] = -np.inf
    for k in range(len(views.kinds(tb))):
        views.kinds(tb)[k]["until"] = -np.inf
    for i in range(len(views.shared(tb))):
        views.shared(tb)[i]["batch"] = -1


@kernel
def begin(tb: State) -> None:
    """Sort the queue; O(queue)."""
    control, rules = views.control(tb), views.rules(tb)
    control["batch"] += 1
    mode = rules["policy"]
    if mode == HYBRID:
        short = control["queue"] + control["incoming"] <= rules["queue_limit"]
        mode = QOS_DRIVEN if short else PRIORITY
    change_mode(tb, mode)
    queue.merge_incoming(tb)
    control["pass_queue"] = control["queue"]
    control["pass_operations"] = control["operations"]
    control["pass_placed"] = 0
    control["pass_preempted"] = 0
    control["at"] = 0
    control["phase"] = 1
    control["failed"] = NOBODY
    if rules["static_order"]:
        queue.arrange(tb, views.queue(tb), control["queue"])
    else:
        queue.arrange_from_scratch(tb, views.queue(tb), control["queue"])


@kernel
def known_since(tb: State, kind: Records, key: float) -> int:
    """Place in the change log up to which every host is known to be of no use to this key, or -1; O(1)."""
    control = views.control(tb)
    if not views.rules(tb)["feasible_time"]:
        return -1
    position = whole(-1)
    if kind["batch"] == control["batch"] and key >= kind["pass_key"]:
        position = kind["pass_position"]
    elif key >= kind["key"] and control["now"] < kind["until"]:
        position = kind["position"]
    if position >= 0 and control["changes"] - position > len(views.changes(tb)):
        return -1
    return position


@kernel
def earliest_at_changes(tb: State, kind: int, mine: float, position: int) -> float:
    """As :func:`prospects.earliest_anywhere`, of the hosts that changed since ``position``."""
    until = np.inf
    if views.control(tb)["mode"] == PRIORITY:
        return until
    margin = views.classes(tb)[views.kinds(tb)[kind]["cls"]]["margin"]
    if views.rules(tb)["needed"] and mine >= margin:
        return views.control(tb)["now"] + (mine - margin) - board.NEAR
    for i in range(position, views.control(tb)["changes"]):
        until = min(until, prospects.earliest(tb, whole(views.changes(tb)[i % len(views.changes(tb))]), kind, mine))
    return until - board.NEAR


@kernel
def worth_computing(tb: State, kind: Records) -> bool:
    """Whether to compute how long a failure lasts; after disappointments ever more rarely. Changes no result."""
    if kind["wait"] > 0:
        kind["wait"] -= 1
        return False
    if kind["until"] > -np.inf and kind["until"] <= views.control(tb)["now"]:
        kind["penalty"] = min(2 * kind["penalty"] + 1, 63)
        kind["wait"] = kind["penalty"]
        return False
    kind["penalty"] = 0
    return True


@kernel
def lasts_until(tb: State, k: int, mine: float, position: int) -> float:
    """Until when a failure holds at hosts that do not change; ``position`` as for :func:`note_failure`."""
    now, kind = views.control(tb)["now"], views.kinds(tb)[k]
    if position >= 0:
        return min(kind["until"], earliest_at_changes(tb, k, mine, position)) if kind["until"] > now else now
    margin = views.classes(tb)[kind["cls"]]["margin"]
    simple = views.control(tb)["mode"] == PRIORITY or (views.rules(tb)["needed"] and mine >= margin)
    if simple or worth_computing(tb, kind):
        return prospects.earliest_anywhere(tb, k, mine)
    return -np.inf


@kernel
def note_failure(tb: State, k: int, key: float, mine: float, position: int) -> None:
    """Remember until when looking again is of no use; ``position`` is where the look began, or -1: everywhere."""
    control, kind = views.control(tb), views.kinds(tb)[k]
    if kind["batch"] != control["batch"]:
        until = lasts_until(tb, k, mine, position)
        if views.rules(tb)["expiry"] > 0.0:
            until = max(until, control["now"] + views.rules(tb)["expiry"])
        kind["key"] = key
        kind["until"] = until
        kind["position"] = control["changes"]
        kind["batch"] = control["batch"]
    kind["pass_key"] = key
    kind["pass_position"] = control["changes"]


@kernel
def find_host(tb: State, entry: Records, mine: float) -> int:
    """The host for a waiting request, or -1 with the failure noted."""
    k = whole(entry["kind"])
    key = 0.0 if views.control(tb)["mode"] == PRIORITY else entry["key"]
    position = known_since(tb, views.kinds(tb)[k], key)
    if position >= 0:
        host = search.look_at_changes(tb, k, mine, position)
    elif views.rules(tb)["relaxed"] < 1.0:
        host = search.look_at_random(tb, k, mine, entry["row"])
    else:
        host = search.look_everywhere(tb, k, mine)
    if host < 0 and views.rules(tb)["feasible_time"]:
        note_failure(tb, k, key, mine, position)
    return host


@kernel
def evict(tb: State, h: int, number: int, by: int) -> None:
    """Preempt the chosen victims on host ``h`` for request ``by``; O(victims * log)."""
    control = views.control(tb)
    now = control["now"]
    first = control["victims"]
    for v in range(number):
        slot = views.slots(tb)[h, views.taken(tb)[v]]
        views.victims(tb)[first + v] = slot["row"]
        q = metric(slot, views.classes(tb)[slot["cls"]]["slo"], views.rules(tb)["alpha"], now)
        ledger.record(tb, PREEMPTED, slot["row"], h, by, q)
    for v in range(number):
        ledger.stop(tb, views.victims(tb)[first + v], now, ledger.YES)
    control["pass_preempted"] += number


@kernel
def victims_for(tb: State, kind: Records, h: int, mine: float) -> int:
    """Victims for a request on the host found for it into ``taken``, their number; O(instances).

    Where requests within a tolerance count as one, the choice may have been made for
    the first of them.
    """
    control = views.control(tb)
    number = whole(victims.choose(tb, h, kind["shape"], kind["cls"], mine, control["now"]))
    control["operations"] -= 1  # the choice was counted when it was made
    if number < 0:
        at = views.shared_of_pair(tb)[kind["pair"]]
        first = views.shared(tb)[max(at, 0)]["reference"]
        number = whole(victims.choose(tb, h, kind["shape"], kind["cls"], min(first, mine), control["now"]))
    return number


@kernel
def place(tb: State, entry: Records, h: int, mine: float, may_preempt: bool) -> None:
    """Carry out a decision: preempt on host ``h`` what the request needs and start it there."""
    control = views.control(tb)
    now = control["now"]
    number = whole(0)
    if may_preempt:
        number = victims_for(tb, views.kinds(tb)[entry["kind"]], h, mine)
        if number < 0:
            return
    if views.rules(tb)["record"] & RECORD_DECISIONS:
        decision = views.decisions(tb)[control["decisions"]]
        decision["row"] = entry["row"]
        decision["time"] = now
        decision["metric"] = mine
        decision["batch"] = control["batch"] - 1
        decision["host"] = h
        decision["victims"] = number
        decision["first"] = control["victims"]
        control["decisions"] += 1
    if number > 0:
        evict(tb, h, number, entry["row"])
        if views.rules(tb)["record"] & RECORD_DECISIONS:
            control["victims"] += number
    ledger.start(tb, entry["row"], h, now)
    ledger.record(tb, BEGUN, entry["row"], h, NOBODY, mine)
    control["pass_placed"] += 1
    entry["done"] = 1


@kernel
def prunable(tb: State, entry: Records, last: int) -> bool:
    """Whether it asks for at least as much as the kind ``last`` that failed, with no looser constraints (T 7.1.2)."""
    if last < 0 or not views.rules(tb)["pruning"]:
        return False
    mine, failed = views.kinds(tb)[entry["kind"]], views.kinds(tb)[last]
    if failed["job"] >= 0 and failed["job"] != mine["job"]:
        return False
    if failed["term"] != mine["term"] and failed["term"] != 0:
        return False
    for r in range(views.demand(tb).shape[1]):
        if views.demand(tb)[mine["shape"], r] < views.demand(tb)[failed["shape"], r]:
            return False
    return True


@kernel
def work_off(tb: State, entries: Records) -> int:
    """Try every waiting request in order from where the pass stands; what must grow, or FINISHED."""
    control = views.control(tb)
    while control["at"] < control["order"]:
        code = lacking(tb)
        if code != FINISHED:
            return code
        entry = entries[views.order(tb)[control["at"]]]
        control["at"] += 1
        mine = entry["key"] - control["now"]
        if control["phase"] == 2:
            host = search.find_free(tb, whole(entry["kind"]))
        elif prunable(tb, entry, control["failed"]):
            host = whole(-1)
        else:
            host = find_host(tb, entry, mine)
        if host >= 0:
            place(tb, entry, host, mine, control["phase"] == 1)
        else:
            control["failed"] = entry["kind"]
            ledger.record(tb, HELD, entry["row"], NOBODY, NOBODY, mine)
    return FINISHED


@kernel
def end(tb: State) -> None:
    """Close the books of the pass."""
    control = views.control(tb)
    control["phase"] = 0
    control["last_pass"] = control["now"]
    control["stalled"] = control["pass_placed"] == 0
    control["pass_operations"] = control["operations"] - control["pass_operations"]
    if views.rules(tb)["record"] & RECORD_PASSES:
        row = views.passes(tb)[control["passes"]]
        row["time"] = control["now"]
        row["queue"] = control["pass_queue"]
        row["placed"] = control["pass_placed"]
        row["preempted"] = control["pass_preempted"]
        row["operations"] = control["pass_operations"]
        control["passes"] += 1


@entry
def run_pass(tb: State) -> int:
    """Begin or resume a pass at ``control.now``; what must grow before it can go on, or FINISHED."""
    control = views.control(tb)
    if control["phase"] == 0:
        begin(tb)
    if control["phase"] == 1:
        code = work_off(tb, views.queue(tb))
        if code != FINISHED:
            return code
        control["queue"] = queue.drop_done(views.queue(tb), control["queue"])
        if views.rules(tb)["same_pass"] and control["mode"] != PRIORITY and control["incoming"] > 0:
            queue.sort_entries(tb, views.incoming(tb), control["incoming"])
            queue.arrange(tb, views.incoming(tb), control["incoming"])
            control["at"] = 0
            control["phase"] = 2
    if control["phase"] == 2:
        code = work_off(tb, views.incoming(tb))
        if code != FINISHED:
            return code
        control["incoming"] = queue.drop_done(views.incoming(tb), control["incoming"])
    end(tb)
    return FINISHED
