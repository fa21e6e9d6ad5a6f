"""One scheduling pass (Q algorithm 1; docs/semantics.md, 'A pass')."""

from __future__ import annotations

import numpy as np

from slacktide.kernels import gang, ledger, motion, prospects, queue, requests, search, streams, victims, views
from slacktide.kernels.compiling import entry, kernel, whole
from slacktide.kernels.motion import NEAR
from slacktide.kernels.tables import (
    BEGUN,
    GONE,
    HELD,
    HYBRID,
    NOBODY,
    OPEN,
    PREEMPTED,
    PRIORITY,
    QOS_DRIVEN,
    RECORD_DECISIONS,
    RECORD_PASSES,
    SERVED,
    Records,
    State,
)

MANY = 64
FINISHED, MORE_SLOTS, MORE_HEAP, MORE_VISITS, MORE_QUEUE, FLUSH, PASS_DUE, OVER, PAUSE, MORE_ACTS = range(10)


@kernel
def lacking(tb: State) -> int:
    """What must grow before another request can be placed, or FINISHED; O(1)."""
    control = views.control(tb)
    widest = views.slots(tb).shape[1] - 1  # the last slot is spare
    if control["most"] + 1 > widest:
        return MORE_SLOTS
    if control["heap"] + 2 >= len(views.heap(tb)):
        return MORE_HEAP
    if 2 * (control["visits"] + 1) >= len(views.visits(tb)):
        return MORE_VISITS
    if control["queue"] + control["incoming"] + widest + 2 >= len(views.queue(tb)):
        return MORE_QUEUE
    more = widest + len(views.excess(tb)) + 2  # events that one host's worth of evictions, or a scale event, can cause
    full = control["events"] + more >= len(views.events(tb)) or control["passes"] + 1 >= len(views.passes(tb))
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
    control["phase"] = 1
    control["failed"] = NOBODY
    line_up(tb, views.queue(tb), whole(control["queue"]))


@kernel
def line_up(tb: State, entries: Records, count: int) -> None:
    """Arrange the entries, which are in static order, for their turns; O(n) where the order is static."""
    alone = whole(queue.with_own_ledger(tb, entries, count))
    if views.rules(tb)["static_order"]:
        queue.arrange(tb, entries, alone)
    else:
        queue.arrange_from_scratch(tb, entries, alone)
    views.control(tb)["at"] = 0
    views.control(tb)["gang"] = NOBODY
    streams.open_streams(tb, entries, alone, count)


@kernel
def on_path(tb: State, mine: float, fall: float) -> float:
    """What stays the same while a metric falls by ``fall`` a second; by priority metrics do not matter: 0; O(1)."""
    if views.control(tb)["mode"] == PRIORITY:
        return 0.0
    return mine + fall * views.control(tb)["now"]


@kernel
def known_since(tb: State, kind: Records, mine: float) -> int:
    """Place in the change log up to which every host is known to be of no use to this metric, or -1; O(1)."""
    control = views.control(tb)
    if not views.rules(tb)["feasible_time"]:
        return -1
    position = whole(-1)
    if kind["batch"] == control["batch"] and on_path(tb, mine, 1.0) >= kind["pass_key"]:
        position = kind["pass_position"]
    elif control["now"] < kind["until"] and on_path(tb, mine, kind["fall"]) >= kind["key"] - kind["slop"]:
        position = kind["position"]
    if position >= 0 and control["changes"] - position > min(len(views.changes(tb)), 2 * len(views.hosts(tb)) + MANY):
        return -1  # there is less to look at everywhere
    return position


@kernel
def earliest_at_changes(tb: State, kind: int, mine: float, fall: float, position: int) -> float:
    """As :func:`prospects.earliest_anywhere`, of the hosts that changed since ``position``."""
    until = np.inf
    if views.control(tb)["mode"] == PRIORITY or mine == np.inf:
        return until
    now, margin = views.control(tb)["now"], views.classes(tb)[views.kinds(tb)[kind]["cls"]]["margin"]
    if views.rules(tb)["needed"] and mine >= margin:
        return now + (mine - margin) / fall - NEAR
    by_ceiling = views.rules(tb)["ceilings"] and mine >= margin
    if by_ceiling:
        until = now + (mine - margin) / fall
    for i in range(position, views.control(tb)["changes"]):
        h = whole(views.changes(tb)[i % len(views.changes(tb))])
        if by_ceiling:
            until = min(until, prospects.meets_ceiling(tb, h, mine, fall, now))
        else:
            until = min(until, prospects.earliest(tb, h, kind, mine, fall))
        if until <= now:
            break
    return max(until, now) - NEAR


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
def lasts_until(tb: State, k: int, mine: float, fall: float, position: int) -> float:
    """Until when a failure holds at hosts that do not change; ``position`` as for :func:`note_failure`."""
    now, kind = views.control(tb)["now"], views.kinds(tb)[k]
    if position >= 0:
        return min(kind["until"], earliest_at_changes(tb, k, mine, fall, position)) if kind["until"] > now else now
    margin = views.classes(tb)[kind["cls"]]["margin"]
    simple = views.control(tb)["mode"] == PRIORITY or (views.rules(tb)["needed"] and mine >= margin)
    if simple or worth_computing(tb, kind):
        return prospects.earliest_anywhere(tb, k, mine, fall)
    return -np.inf


@kernel
def note_failure(tb: State, entry: Records, mine: float, position: int) -> None:
    """Remember until when looking again is of no use; ``position`` is where the look began, or -1: everywhere.

    What an earlier failure proved for a metric that falls at its speed is kept at that speed.
    """
    k = whole(entry["kind"])
    control, kind = views.control(tb), views.kinds(tb)[k]
    if kind["batch"] != control["batch"]:
        fall, kink, slop = 1.0, np.inf, 0.0
        if position >= 0:
            fall, slop = kind["fall"], kind["slop"]
        elif entry["request"] >= 0 and control["mode"] != PRIORITY:
            fall, kink, slop = motion.waiting_pace(tb, whole(entry["request"]), control["now"])
        until = min(kink, lasts_until(tb, k, mine - 2.0 * slop, fall, position))
        if views.rules(tb)["expiry"] > 0.0:
            until = max(until, control["now"] + views.rules(tb)["expiry"])
        kind["key"] = on_path(tb, mine, fall)
        kind["fall"], kind["slop"], kind["until"] = fall, slop, until
        kind["position"] = control["changes"]
        kind["batch"] = control["batch"]
    kind["pass_key"] = on_path(tb, mine, 1.0)
    kind["pass_position"] = control["changes"]


@kernel
def find_host(tb: State, entry: Records, mine: float) -> int:
    """The host for a waiting instance, or -1 with the failure noted."""
    k = whole(entry["kind"])
    position = known_since(tb, views.kinds(tb)[k], mine)
    if position >= 0 and not search.can_still_wait(tb, k, mine):
        search.bring_metrics_up_to_date(tb)
        position = known_since(tb, views.kinds(tb)[k], mine)  # unless the log could not hold it all
    if position >= 0:
        host = search.look_at_changes(tb, k, mine, position)
    elif views.rules(tb)["relaxed"] < 1.0:
        host = search.look_at_random(tb, k, mine, entry["row"])
    else:
        host = search.look_everywhere(tb, k, mine)
    if host < 0 and views.rules(tb)["feasible_time"]:
        note_failure(tb, entry, mine, position)
    return host


@kernel
def evict(tb: State, entries: Records, h: int, number: int, by: int) -> None:
    """Preempt the chosen victims on host ``h`` for instance ``by``; O(victims * log)."""
    control = views.control(tb)
    now = control["now"]
    first = control["victims"]
    for v in range(number):
        slot = views.slots(tb)[h, views.taken(tb)[v]]
        views.victims(tb)[first + v] = slot["row"]
        ledger.record(tb, PREEMPTED, slot["row"], h, by, requests.metric_of(tb, slot, now))
    for v in range(number):
        row = whole(views.victims(tb)[first + v])
        ledger.stop(tb, row, now, ledger.YES)
        streams.weigh_stream(tb, entries, requests.decider_of(tb, row))
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
def place(tb: State, entries: Records, at: int, h: int, mine: float, may_preempt: bool) -> None:
    """Carry out a decision: preempt on host ``h`` what the instance needs and start it there."""
    entry = entries[at]
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
        evict(tb, entries, h, number, entry["row"])
        if views.rules(tb)["record"] & RECORD_DECISIONS:
            control["victims"] += number
    ledger.start(tb, entry["row"], h, now)
    ledger.record(tb, BEGUN, entry["row"], h, NOBODY, mine)
    control["pass_placed"] += 1
    entry["done"] = GONE
    streams.weigh_stream(tb, entries, whole(entry["request"]))


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
def next_place(tb: State, entries: Records, count: int) -> int:
    """Place of the entry whose turn it is, or -1: all had theirs."""
    control = views.control(tb)
    if control["gang"] >= 0:
        at = whole(gang.next_member(entries, control["gang"], whole(0), count))
        if at >= 0:
            return at
        control["gang"] = NOBODY
    while control["at"] < control["order"] or control["streams"] > 0:
        if control["streams"] > 0 and (
            control["at"] >= control["order"] or streams.comes_first(tb, entries[views.order(tb)[control["at"]]])
        ):
            return whole(views.streams(tb)[0]["at"])
        at = whole(views.order(tb)[control["at"]])
        if entries[at]["done"] == OPEN:
            return at
        control["at"] += 1
    return whole(-1)


@kernel
def find_in_phase(tb: State, entry: Records, mine: float) -> int:
    """The host for a waiting instance by the rules of the present phase, or -1."""
    if views.control(tb)["phase"] == 2:
        return search.find_free(tb, whole(entry["kind"]))
    if prunable(tb, entry, views.control(tb)["failed"]):
        return whole(-1)
    return find_host(tb, entry, mine)


@kernel
def serve(tb: State, entries: Records, at: int) -> None:
    """The entry's turn: a host is found for it, or it is held."""
    control = views.control(tb)
    entry = entries[at]
    mine = streams.metric_of_entry(tb, entry, control["now"])
    host = whole(-1)
    if control["gang"] < 0 or control["gang_starts"]:
        host = whole(find_in_phase(tb, entry, mine))
    if host >= 0:
        place(tb, entries, at, host, mine, control["phase"] == 1)
    else:
        if control["gang"] < 0:
            control["failed"] = entry["kind"]
        ledger.record(tb, HELD, entry["row"], NOBODY, NOBODY, mine)
    if control["gang"] >= 0 and entry["done"] == OPEN:
        entry["done"] = SERVED


@kernel
def pass_on(tb: State, entries: Records, at: int) -> None:
    """The turn goes from the entry to the next one."""
    q = whole(entries[at]["request"])
    if views.control(tb)["gang"] >= 0:
        return
    if q >= 0 and views.requests(tb)[q]["stream"] >= 0:
        streams.go_on(tb, entries, q)
    else:
        views.control(tb)["at"] += 1


@kernel
def work_off(tb: State, entries: Records, count: int) -> int:
    """Give every waiting instance its turn from where the pass stands; what must grow, or FINISHED."""
    control = views.control(tb)
    while True:
        code = lacking(tb)
        if code != FINISHED:
            return code
        at = whole(next_place(tb, entries, count))
        if at < 0:
            return FINISHED
        q = whole(entries[at]["request"])
        if control["gang"] < 0 and gang.goes_in_gang(tb, q):
            code = try_gang(tb, entries, q, count)
            if code != FINISHED:
                return code
            control["gang"] = q
            if views.requests(tb)[q]["stream"] >= 0:
                streams.close_stream(tb, q)
            continue
        serve(tb, entries, at)
        pass_on(tb, entries, at)


@kernel
def try_gang(tb: State, entries: Records, q: int, count: int) -> int:
    """Whether all waiting instances of a request can start, into ``gang_starts``; what must grow, or FINISHED."""
    control = views.control(tb)
    control["gang_starts"] = 0
    control["acts"] = 0
    if not gang.all_are_here(tb, entries, q, count):
        return FINISHED
    at = whole(gang.next_member(entries, q, whole(0), count))
    code = FINISHED
    possible = True
    while at >= 0 and possible and code == FINISHED:
        code = lacking(tb)
        if code == FINISHED and control["acts"] + views.slots(tb).shape[1] >= len(views.acts(tb)):
            code = MORE_ACTS
        if code == FINISHED:
            possible = try_member(tb, entries[at])
            at = whole(gang.next_member(entries, q, at + 1, count))
    gang.undo(tb, control["now"])
    control["gang_starts"] = possible
    return code


@kernel
def try_member(tb: State, entry: Records) -> bool:
    """Place an instance for the time of the trial; whether there is a host for it."""
    control = views.control(tb)
    mine = streams.metric_of_entry(tb, entry, control["now"])
    h = whole(find_in_phase(tb, entry, mine))
    if h < 0:
        return False
    number = whole(0)
    if control["phase"] == 1:
        number = victims_for(tb, views.kinds(tb)[entry["kind"]], h, mine)
        if number < 0:
            return False
    first = whole(control["victims"])
    for v in range(number):
        views.victims(tb)[first + v] = views.slots(tb)[h, views.taken(tb)[v]]["row"]
    for v in range(number):
        gang.take_off(tb, h, whole(views.victims(tb)[first + v]), control["now"])
    gang.put_on(tb, h, whole(entry["row"]), control["now"])
    return True


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
        code = work_off(tb, views.queue(tb), whole(control["queue"]))
        if code != FINISHED:
            return code
        control["queue"] = queue.drop_done(views.queue(tb), control["queue"])
        if views.rules(tb)["same_pass"] and control["mode"] != PRIORITY and control["incoming"] > 0:
            queue.sort_entries(tb, views.incoming(tb), control["incoming"])
            line_up(tb, views.incoming(tb), whole(control["incoming"]))
            control["phase"] = 2
    if control["phase"] == 2:
        code = work_off(tb, views.incoming(tb), whole(control["incoming"]))
        if code != FINISHED:
            return code
        control["incoming"] = queue.drop_done(views.incoming(tb), control["incoming"])
    end(tb)
    return FINISHED
