"""The plan: class by class, the fewest are given up with which the others' budgets pay for what is missing.

Each class sees what those above leave, and lends nothing to those below. While a plan is in force (``planned`` of
``control``):

- the more important go first and take the place of anybody less important, as by priority: their margin is FAR;
- an equal takes a place where it has less slack by the *patience* of its class, which is a turn where turns are needed;
- those given up have a metric FAR above all others of their class: they come last, leave first, and take free room.
  Among themselves whoever has most slack comes first, so that outside, too, as many as possible are kept.

Between plans nothing but this says who comes first, so that a pass costs what it costs without.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.builtin import PACKED
from slacktide.kernels.feasible import free_index
from slacktide.kernels.plan import choosing, giving_up, members, pools, record
from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.queue import waiting_queue
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import SHIFT, Records, State
from slacktide.kernels.tables.window_records import LIFETIME

FAR = 2.0**34
"""A margin, or a patience, that no metric reaches."""
BEHIND = 2.0**31
"""Seconds by which the metric of jobs is above that of the services of their level that are kept."""
SCARCE = 2**40
"""By so much a host of a pool scores less: more than any two hosts differ by."""
PLANS = 720  # at least in each window
PARTS = 4.0  # of a turn
SOONEST = 32  # of the time since anybody came: no plan sooner after another than a part of it


@kernel
def interval(tb: State) -> float:
    """Seconds from this plan to the next one; O(classes)."""
    age = views.control(tb)["now"] - views.control(tb)["born"]
    shortest = np.inf
    for c in range(len(views.classes(tb))):
        if views.classes(tb)[c]["planned"]:
            shortest = min(shortest, record.window_of(tb, whole(c)))
    return max(1.0, min(age / SOONEST, shortest / PLANS))


@kernel
def is_due(tb: State) -> bool:
    """Whether a plan is to be made at the beginning of a pass that begins now; O(1), now and then O(queue)."""
    control = views.control(tb)
    if not views.rules(tb)["plans"] or control["now"] < control["plan_soon_at"]:
        return False
    if control["now"] >= control["plan_at"]:
        return True
    return kept_waits(tb, views.queue(tb), whole(control["queue"])) or kept_waits(
        tb, views.incoming(tb), whole(control["incoming"])
    )


@kernel
def kept_waits(tb: State, entries: Records, count: int) -> bool:
    """Whether somebody waits whom the present plan keeps, and whom room would help; O(entries)."""
    known = np.zeros(len(views.kinds(tb)), np.int64)
    for i in range(count):
        kind = whole(entries[i]["kind"])
        planned = views.classes(tb)[views.kinds(tb)[kind]["cls"]]["planned"]
        if (
            planned
            and not record.is_given_up(tb, whole(entries[i]["row"]))
            and record.is_helped_by_room(tb, kind, known)
        ):
            return True
    return False


@kernel
def soonest(tb: State) -> float:
    """Seconds from this plan to the next one where somebody waits whom it keeps: a part of the shortest turn, so that a
    shortage that it does not know has not used up budgets by then; O(classes)."""
    turn = np.inf
    for c in range(len(views.classes(tb))):
        if views.classes(tb)[c]["planned"]:
            turn = min(turn, views.classes(tb)[c]["patience"])
    return max(1.0, turn / PARTS)


@kernel
def take_census(tb: State, rows: NDArray[np.int64], count: int) -> None:
    """Note of each class how many live and how old they are; O(rows)."""
    classes, now = views.classes(tb), views.control(tb)["now"]
    for c in range(len(classes)):
        classes[c]["alive"], classes[c]["age"], classes[c]["oldest"] = 0, 0.0, 0.0
    for i in range(count):
        row = rows[i]
        kind = views.kinds(tb)[views.instances(tb)[row]["kind"]]
        theirs = classes[kind["cls"]]
        theirs["alive"] += 1
        theirs["age"] += now - views.admission(tb)[row]
        theirs["oldest"] = max(theirs["oldest"], now - views.admission(tb)[row])


@kernel
def find_jobs(tb: State) -> bool:
    """Note which classes have jobs; whether the others can be planned for, if there are any; O(classes).

    Promises over lives alone cannot where members come and go, nor before all have earned turns; a promise of 1 never
    earns one.
    """
    classes = views.classes(tb)
    longest, busy, young, windows, services = 0.0, False, False, False, False
    for c in range(len(classes)):
        if classes[c]["alive"] > 0:
            longest = max(longest, members.span_of(tb, whole(c)))
    for c in range(len(classes)):
        classes[c]["job"] = members.is_short(classes[c], longest)
        if classes[c]["alive"] > 0:
            busy = busy or members.turns_over(classes[c])
            young = young or members.is_young(classes[c])
        lasting = classes[c]["alive"] > 0 and not classes[c]["job"]
        services = services or (lasting and (classes[c]["windowed"] != LIFETIME or classes[c]["slo"] < 1.0))
        windows = windows or (lasting and classes[c]["windowed"] != LIFETIME)
    views.control(tb)["unrecorded"] = busy and not windows
    return services and (windows or not (busy or young))


@kernel
def sort_out(tb: State) -> None:
    """Which classes the plan is for, with margins and patience as if nobody takes turns; O(classes^2)."""
    control, classes, rules = views.control(tb), views.classes(tb), views.rules(tb)
    control["planned"] = find_jobs(tb)
    for c in range(len(classes)):
        classes[c]["unsettled"] = 0
    for c in range(len(classes)):
        theirs = classes[c]
        theirs["planned"] = control["planned"] and not theirs["job"]
        theirs["promises"] = theirs["given_up"] = 0
        theirs["margin"], theirs["patience"], theirs["urgent"] = theirs["own_margin"], rules["patience"], -np.inf
        if theirs["planned"]:
            theirs["overloaded"] = 0
            theirs["margin"] = theirs["patience"] = FAR
    for c in range(len(classes)):
        for other in range(len(classes)):
            both = classes[c]["level"] == classes[other]["level"] and classes[c]["planned"] != classes[other]["planned"]
            if both:
                classes[classes[c]["level"]]["unsettled"] = 1
    for c in range(len(classes)):
        theirs = classes[c]
        theirs["behind"] = 0
        if classes[theirs["level"]]["unsettled"] and not theirs["planned"]:
            theirs["behind"], theirs["overloaded"] = whole(BEHIND / SHIFT), 0
            theirs["margin"] = theirs["patience"] = FAR
    rules["one_margin"] = 1
    for c in range(len(classes)):
        if classes[c]["margin"] != classes[0]["margin"]:
            rules["one_margin"] = 0


@kernel
def choose_score(tb: State) -> None:
    """Hosts are compared by another score while a plan is in force; O(hosts log hosts) where that changes."""
    rules = views.rules(tb)
    wanted = rules["planned_score"] if views.control(tb)["planned"] else rules["usual_score"]
    if rules["score"] == wanted:
        return
    rules["score"] = wanted
    for h in range(len(views.hosts(tb))):
        free_index.update(tb, whole(h))


@kernel
def mark_scarce(tb: State) -> None:
    """Where hosts are compared by how full they are, those of pools come last: whoever can run elsewhere leaves them to
    those who cannot; O(pools * hosts), and O(log hosts) for each that changes."""
    scarce = np.zeros(len(views.hosts(tb)), np.int64)
    if views.control(tb)["planned"] and views.rules(tb)["score"] == PACKED:
        for pool in range(1, pools.MOST + 1):
            if pools.is_used(tb, whole(pool)):
                scarce[pools.hosts_of(tb, whole(pool))] = SCARCE
    for h in range(len(scarce)):
        if views.hosts(tb)[h]["scarce"] != scarce[h]:
            views.hosts(tb)[h]["scarce"] = scarce[h]
            free_index.update(tb, whole(h))


@kernel
def make(tb: State) -> None:
    """Make a plan, and let it be in force; O(members log members + levels samples log samples)."""
    control, was = views.control(tb), views.control(tb)["planned"]
    if control["plans"] == 0:
        control["born"] = control["now"]
    control["plans"] += 1
    control["planned_at"] = control["now"]
    control["plan_at"] = control["now"] + interval(tb)
    record.measure_cluster(tb)
    found = np.empty(members.most_rows(tb), np.int64)
    count = whole(members.live_rows(tb, found))
    take_census(tb, found, count)
    sort_out(tb)
    control["plan_soon_at"] = control["plan_at"]
    if not control["planned"] and not was:
        return
    rows = members.by_row(found, count)
    keep_unplanned(tb, rows)
    number = choosing.count_kinds(tb, rows)
    choosing.choose(tb, rows, number)
    plan_levels(tb, rows, number)
    control["plan_soon_at"] = min(control["plan_at"], control["now"] + soonest(tb))
    put_in_force(tb)


@kernel
def keep_unplanned(tb: State, rows: NDArray[np.int64]) -> None:
    """Nobody is given up whose class the plan is not for, nor a request of which nobody takes part; O(rows +
    requests)."""
    takes_part = np.zeros(len(views.requests(tb)), np.int64)
    for i in range(len(rows)):
        theirs, q = views.classes(tb)[record.class_of(tb, rows[i])], request_ledger.decider_of(tb, whole(rows[i]))
        if q >= 0:
            takes_part[q] = 1
        if not theirs["planned"]:
            views.instances(tb)[rows[i]]["shift"] = theirs["behind"]
    for q in range(len(views.requests(tb))):
        request = views.requests(tb)[q]
        theirs = views.classes(tb)[request["cls"]]
        if not takes_part[q] or not theirs["planned"]:
            request["shift"] = SHIFT * theirs["behind"]


@kernel
def plan_levels(tb: State, rows: NDArray[np.int64], number: NDArray[np.int64]) -> None:
    """Plan level by level, the most important first; ``number`` is how many live of each kind."""
    classes, last, levels = views.classes(tb), whole(0), whole(views.rules(tb)["levels"])
    for c in range(len(classes)):
        if classes[c]["planned"]:
            last = max(last, whole(classes[c]["level"]))
    numbers = pools.by_size(tb)
    above, total, room = np.zeros(pools.MOST + 1), np.zeros(pools.MOST + 1), np.zeros(pools.MOST + 1)
    shape = whole(pools.MOST + 1), levels
    rooms, asked, planned = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for pool in numbers:
        outside = pools.outside_of(tb, whole(pool))
        choosing.find_room(tb, whole(pool), outside, rooms[pool])
        choosing.count_asked(tb, number, whole(pool), outside, asked[pool], planned[pool])
    views.control(tb)["given_up"] = 0
    for level in range(levels):
        short = level == last
        for pool in numbers:
            room[pool] = rooms[pool, level]
            total[pool] += asked[pool, level]
            short = short or total[pool] > room[pool]
        giving_up.plan_level(tb, rows, whole(level), numbers, above, room, short)
        for pool in numbers:
            above[pool] += planned[pool, level]


@kernel
def put_in_force(tb: State) -> None:
    """Let slots, queue and memories know of the plan; O(instances + hosts + queue log queue)."""
    control = views.control(tb)
    choose_score(tb)
    mark_scarce(tb)
    for h in range(len(views.hosts(tb))):
        views.hosts(tb)[h]["sorted_until"] = -np.inf
        views.ceilings(tb)[h]["peak"] = np.inf
        for i in range(views.hosts(tb)[h]["count"]):
            slot = views.slots(tb)[h, i]
            if slot["request"] < 0:
                slot["shift"] = window_ledger.slot_shift_of(tb, whole(slot["row"]))
    for q in range(len(views.requests(tb))):
        views.requests(tb)[q]["weighed"] = -np.inf
        views.requests(tb)[q]["told"] = 0
    for k in range(len(views.kinds(tb))):
        views.kinds(tb)[k]["until"] = -np.inf
    for i in range(len(views.shared(tb))):
        views.shared(tb)[i]["batch"] = -1
    waiting_queue.weigh_entries(tb, views.queue(tb), whole(control["queue"]))
    waiting_queue.sort_entries(tb, views.queue(tb), control["queue"])
    control["still_until"] = -np.inf
