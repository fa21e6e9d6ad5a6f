"""One scheduling pass: every waiting instance has its turn (docs/semantics.md, 'A pass').

Algorithm 1 of da Silva et al., "QoS-driven scheduling in the cloud" (2020). In what order, and
who may be preempted, is the policy's to say (:mod:`slacktide.kernels.policies`).
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.drive import gang, leavers, scheduling_cycle
from slacktide.kernels.feasible import disruption_limits, host_slots, room_to_come
from slacktide.kernels.memo import hopeless_kinds, standstill
from slacktide.kernels.place import nominations
from slacktide.kernels.plan import making
from slacktide.kernels.policies import in_force, pieces
from slacktide.kernels.queue import backoff, crossing, request_heap, waiting_queue
from slacktide.kernels.runtime.compiling import entry, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.buffer_capacity import FINISHED, PAUSE, lacking
from slacktide.kernels.tables.schema import NOBODY, RECORD_PASSES, Records, State


@kernel
def change_mode(tb: State, mode: int) -> None:
    """Forget all that was sorted or cached for the other way of deciding; O(hosts + queue log queue)."""
    control = views.control(tb)
    control["mode"] = mode
    if control["sorted_for"] == mode:
        return
    control["sorted_for"] = mode
    waiting_queue.sort_entries(tb, views.queue(tb), control["queue"])
    for h in range(len(views.hosts(tb))):
        views.hosts(tb)[h]["sorted_until"] = -np.inf
    for k in range(len(views.kinds(tb))):
        views.kinds(tb)[k]["until"] = -np.inf
    for i in range(len(views.shared(tb))):
        views.shared(tb)[i]["batch"] = -1


@kernel
def weigh_overload(tb: State) -> None:
    """Which classes are overloaded in this pass; where that changes, all victims are sorted anew; O(queue + hosts)."""
    if not views.rules(tb)["triage"]:
        return
    if waiting_queue.find_overloaded(tb):
        for h in range(len(views.hosts(tb))):
            views.hosts(tb)[h]["sorted_until"] = -np.inf


@kernel
def give_turns_back(tb: State) -> None:
    """Whom the last pass placed may be preempted from now on. By a user's own policy by class the order of the queue
    does not say for whom: where somebody looked after that who may, the host counts as changed.

    O(changes since that pass began * (instances on a host + classes)).
    """
    control, changes = views.control(tb), views.changes(tb)
    begin, end = whole(control["pass_from"]), whole(control["changes"])
    if pieces.decide(tb) and not in_force.by_metric(tb):
        for i in range(max(begin, end - len(changes)), end):
            h = whole(changes[i % len(changes)])
            if opens_late(tb, h, whole(i)):
                host_slots.look_again(tb, h)
    control["pass_from"] = control["changes"]


@kernel
def opens_late(tb: State, h: int, position: int) -> bool:
    """Whether one that the last pass placed on host ``h`` is eligible for a class of which somebody looked after this
    position of the change log; O(instances on it, and classes for each that was placed)."""
    classes, control = views.classes(tb), views.control(tb)
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        if slot["batch"] != control["batch"]:
            continue
        for cls in range(len(classes)):
            looked = classes[cls]["looked_in"] == control["batch"] and classes[cls]["looked_at"] > position
            if looked and in_force.eligible_by_class(tb, slot, whole(cls)):
                return True
    return False


@kernel
def begin(tb: State) -> None:
    """Sort the queue; O(queue)."""
    control = views.control(tb)
    change_mode(tb, in_force.of_next_pass(tb))
    give_turns_back(tb)
    backoff.begin(tb)
    waiting_queue.merge_incoming(tb)
    if making.is_due(tb) and in_force.by_metric(tb):
        making.make(tb)
    disruption_limits.pass_begins(tb)
    count(tb)
    waiting_queue.take_stock(tb, views.queue(tb), whole(control["queue"]))
    weigh_overload(tb)
    control["phase"] = 1
    control["failed"] = NOBODY
    line_up(tb, views.queue(tb), whole(control["queue"]))
    control["grouped"] = gang.somebody_waits(tb, views.queue(tb), whole(control["queue"]))


@leaf
def count(tb: State) -> None:
    """A pass has a number, and what it does is counted from here."""
    control = views.control(tb)
    crossing.pass_begins(tb)
    control["batch"] += 1
    control["pass_queue"] = control["queue"]
    control["pass_operations"] = control["operations"]
    control["pass_placed"] = 0
    control["pass_preempted"] = 0


@kernel
def line_up(tb: State, entries: Records, count: int) -> None:
    """Arrange the entries, which are in static order, for their turns; O(n)."""
    alone = whole(waiting_queue.with_own_ledger(tb, entries, count))
    waiting_queue.arrange(tb, entries, alone)
    views.control(tb)["at"] = 0
    views.control(tb)["gang"] = NOBODY
    request_heap.build(tb, entries, alone, count)


@leaf
def work(tb: State) -> int:
    """A count of work that goes on as time does: hosts that were weighed, branches that were looked at, and residents
    of hosts that were asked about rules, which takes less each; O(1)."""
    control = views.control(tb)
    return control["operations"] + control["bounds"] + control["residents"] // 8


@kernel
def work_off(tb: State, entries: Records, count: int) -> int:
    """Give every waiting instance its turn from where the pass stands; what must grow, PAUSE, or FINISHED.

    Between two turns all that is to be kept is in the tables, so there the pass can be left. At least one instance
    has its turn, so that every call goes on.
    """
    control = views.control(tb)
    until = whole(work(tb)) + control["allowance"]
    turns = whole(0)
    while True:
        if control["allowance"] > 0 and turns > 0 and work(tb) + turns >= until:
            return PAUSE
        turns += 1
        code = lacking(tb)
        if code != FINISHED:
            return code
        at = whole(scheduling_cycle.next_place(tb, entries, count))
        if at < 0:
            return FINISHED
        who = whole(gang.of(tb, entries[at])) if control["gang"] < 0 else whole(NOBODY)
        if who >= 0:
            code = scheduling_cycle.try_gang(tb, entries, who, count)
            if code != FINISHED:
                return code
            control["gang"] = who
            q = whole(gang.request_of(who))
            if q >= 0 and views.requests(tb)[q]["heap_at"] >= 0:
                request_heap.drop(tb, q)
            continue
        scheduling_cycle.serve(tb, entries, at)
        scheduling_cycle.pass_on(tb, entries, at)


@kernel
def end(tb: State) -> None:
    """Count what the pass did, and end it."""
    control = views.control(tb)
    nominations.give_back(tb)
    control["phase"] = 0
    control["last_pass"] = control["now"]
    control["stalled"] = control["pass_placed"] == 0
    control["most_queue"] = max(control["most_queue"], control["queue"] + control["incoming"])
    crossing.look(tb)
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
    """Begin or resume a pass at ``control.now``; what must grow before it can go on, PAUSE, or FINISHED.

    PAUSE: it has done ``control.allowance`` of work (:func:`work`). Whoever resumes it must have left the tables alone.
    """
    control = views.control(tb)
    if control["phase"] == 0:
        leavers.bring_up_requests(tb)
        room_to_come.comes(tb)
        if not in_force.by_metric_next(tb):
            host_slots.wake(tb)
        if standstill.lasts(tb) and not making.is_due(tb) and lacking(tb) == FINISHED:
            count(tb)
            end(tb)
            return FINISHED
        begin(tb)
        hopeless_kinds.begin(tb)
        standstill.begin(tb)  # not where a plan is carried out: whose it is, that one knows what it depends on
    if control["phase"] == 1:
        code = work_off(tb, views.queue(tb), whole(control["queue"]))
        if code != FINISHED:
            return code
        if control["pass_placed"] > 0 or views.rules(tb)["gang"] or len(views.pod_groups(tb)) > 0:
            control["queue"] = waiting_queue.drop_done(views.queue(tb), control["queue"])
        if views.rules(tb)["as_kube"]:
            backoff.end(tb, views.queue(tb), whole(control["queue"]))
        control["leaving"] = 0  # who looks for what is free now finds it, whatever failed before
        if views.rules(tb)["same_pass"] and in_force.by_metric(tb) and control["incoming"] > 0:
            waiting_queue.sort_entries(tb, views.incoming(tb), control["incoming"])
            waiting_queue.take_stock(tb, views.incoming(tb), whole(control["incoming"]))
            line_up(tb, views.incoming(tb), whole(control["incoming"]))
            control["phase"] = 2
    if control["phase"] == 2:
        code = work_off(tb, views.incoming(tb), whole(control["incoming"]))
        if code != FINISHED:
            return code
        control["incoming"] = waiting_queue.drop_done(views.incoming(tb), control["incoming"])
    standstill.end(tb)
    end(tb)
    return FINISHED
