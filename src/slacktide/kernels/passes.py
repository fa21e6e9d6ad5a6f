"""One scheduling pass (Q algorithm 1; docs/semantics.md, 'A pass')."""

from __future__ import annotations

import numpy as np

from slacktide.kernels import gang, queue, streams, turns, views
from slacktide.kernels.compiling import entry, kernel, whole
from slacktide.kernels.room import FINISHED, lacking
from slacktide.kernels.tables import (
    HYBRID,
    NOBODY,
    PRIORITY,
    QOS_DRIVEN,
    RECORD_PASSES,
    Records,
    State,
)


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
def work_off(tb: State, entries: Records, count: int) -> int:
    """Give every waiting instance its turn from where the pass stands; what must grow, or FINISHED."""
    control = views.control(tb)
    while True:
        code = lacking(tb)
        if code != FINISHED:
            return code
        at = whole(turns.next_place(tb, entries, count))
        if at < 0:
            return FINISHED
        q = whole(entries[at]["request"])
        if control["gang"] < 0 and gang.goes_in_gang(tb, q):
            code = turns.try_gang(tb, entries, q, count)
            if code != FINISHED:
                return code
            control["gang"] = q
            if views.requests(tb)[q]["stream"] >= 0:
                streams.close_stream(tb, q)
            continue
        turns.serve(tb, entries, at)
        turns.pass_on(tb, entries, at)


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
