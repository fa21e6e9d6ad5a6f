"""The simulator's clock: events in their total order, passes where they are due."""

from __future__ import annotations

import numpy as np

from slacktide.kernels.drive import (
    event_heap,
    host_amounts,
    instance_ledger,
    leavers,
    resize,
    scale,
    scheduling_pass,
    unreadiness,
    window_events,
)
from slacktide.kernels.feasible import disruption_budgets, disruption_limits, host_slots
from slacktide.kernels.memo import standstill
from slacktide.kernels.place import search_free
from slacktide.kernels.plan import record as shortage
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.queue import crossing
from slacktide.kernels.runtime.compiling import entry, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.buffer_capacity import FINISHED, LOOK, OVER, PASS_DUE, PAUSE, lacking
from slacktide.kernels.tables.log_records import (
    COMPLETED,
    EVICTED,
    HOST_DOWN,
    HOST_UP,
    LEAVES,
    RETURNS,
    RUN_ENDS,
    STARTUP_ENDS,
    WINDOW_MOVES,
)
from slacktide.kernels.tables.schema import CAPACITY, LEAVING, MARKS, NOBODY, OTHERS, REPAIR, WAITING, State


@kernel
def next_event(tb: State) -> float:
    """When a completion, host change, scale event, resize or admission happens next, inf for never."""
    control = views.control(tb)
    at = event_heap.next_due(tb)
    if control["happened"] < len(views.happenings(tb)):
        at = min(at, views.happenings(tb)[control["happened"]]["time"])
    if control["scaled"] < len(views.scalings(tb)):
        at = min(at, views.scalings(tb)[control["scaled"]]["time"])
    if control["resized"] < len(views.resizings(tb)):
        at = min(at, views.resizings(tb)[control["resized"]]["time"])
    if control["spelled"] < len(views.spells(tb)) and control["placed_now"] > 0:  # else it is void when it comes
        at = min(at, views.spells(tb)[control["spelled"]]["time"])
    if control["arrived"] < len(views.admission(tb)):
        at = min(at, max(control["now"], views.admission(tb)[control["arrived"]]))  # some came before the run begins
    if control["triggered"] < len(views.triggers(tb)):
        at = min(at, views.triggers(tb)[control["triggered"]])
    if at < views.rules(tb)["end"] or control["placed_now"] > 0:  # else the calendar would go on for ever
        at = min(at, control["turns_at"])
    return at


@kernel
def trigger_due(tb: State, now: float) -> bool:
    """Whether a pass is to happen by now, where passes happen at given instants."""
    control = views.control(tb)
    found = False
    while control["triggered"] < len(views.triggers(tb)) and views.triggers(tb)[control["triggered"]] <= now:
        control["triggered"] += 1
        found = True
    return found


@kernel
def watchdog_at(tb: State, event: float) -> float:
    """When the watchdog fires, or somebody who waits has met its margin; inf where nobody waits or nothing can change
    any more (docs/semantics.md, 'The end')."""
    control = views.control(tb)
    if control["queue"] + control["incoming"] + control["open_resizes"] == 0 or len(views.triggers(tb)) > 0:
        return np.inf
    idle = control["stalled"] and control["placed_now"] == 0 and control["incoming"] == 0
    if idle and event == np.inf and views.rules(tb)["end"] == np.inf:
        return np.inf
    at = control["last_pass"] + views.rules(tb)["watchdog"]
    if control["queue"] + control["incoming"] > 0:
        at = min(at, crossing.pass_at(tb))
    return max(control["now"], at)


@kernel
def finish_due(tb: State, now: float) -> bool:
    """Complete all that is due, end start-ups, and let stopped ones come again; whether that calls for a pass.

    A preempted one that comes again calls for one only where there is room: else each preemption would lead to others.
    """
    found = False
    while event_heap.next_due(tb) <= now:
        row, kind = whole(views.heap(tb)[0]["row"]), whole(views.heap(tb)[0]["kind"])
        event_heap.pop(tb)
        if kind == WINDOW_MOVES:
            window_events.move(tb, row, now)
            if lacking(tb) != FINISHED:  # each may note an outage
                break
            continue
        if kind == STARTUP_ENDS:
            if views.instances(tb)[row]["state"] == LEAVING:
                instance_ledger.readies_leaving(tb, row, now)
                continue
            if request_ledger.decider_of(tb, row) >= 0:
                request_ledger.became_ready(tb, request_ledger.owner_of(tb, row), row, now)
            disruption_budgets.change(tb, row, whole(0), whole(1))
            disruption_limits.over(tb, row, now)
            continue
        if kind != RUN_ENDS:
            if kind == LEAVES:
                instance_ledger.goes(tb, row, now)
            else:
                instance_ledger.come_back(tb, row, now)
            if not found and views.instances(tb)[row]["state"] == WAITING:
                k = whole(views.instances(tb)[row]["kind"])
                found = kind == RETURNS or search_free.find_free(tb, k) >= 0
            found = found or (kind == LEAVES and views.rules(tb)["as_kube"] != 0)  # others waited for its room
            if lacking(tb) != FINISHED:
                break
            continue
        host = whole(views.instances(tb)[row]["host"])
        instance_ledger.complete(tb, row, now)
        instance_ledger.record(tb, COMPLETED, row, host, NOBODY, np.nan)
        scale.release_next(tb, request_ledger.owner_of(tb, row), now)
        found = True
        if lacking(tb) != FINISHED:
            break
    return found


@kernel
def admit_due(tb: State, now: float) -> bool:
    """Queue all instances admitted by now; whether there were any."""
    control = views.control(tb)
    found = False
    while control["arrived"] < len(views.admission(tb)) and views.admission(tb)[control["arrived"]] <= now:
        row = whole(control["arrived"])
        control["arrived"] += 1
        if scale.holds_back(tb, row):
            continue
        instance_ledger.admit(tb, row, now)
        found = True
        if lacking(tb) != FINISHED:
            break
    return found


@kernel
def happen_due(tb: State, now: float) -> bool:
    """Take hosts down or bring them up, and change what they have and who else is there; whether that is news to who
    waits: something became free, somebody had to go, or others' marks count in rules."""
    control = views.control(tb)
    found = False
    while control["happened"] < len(views.happenings(tb)) and views.happenings(tb)[control["happened"]]["time"] <= now:
        event = views.happenings(tb)[control["happened"]]
        control["happened"] += 1
        host, h = views.hosts(tb)[event["host"]], whole(event["host"])
        if event["kind"] == CAPACITY or event["kind"] == OTHERS:
            found = host_amounts.change(tb, h, whole(event["kind"]), whole(event["amounts"])) or found
            continue
        if event["kind"] == MARKS:
            found = host_amounts.change_marks(tb, h, whole(event["amounts"])) or found
            continue
        down = event["kind"] != REPAIR
        if down == (host["down"] != 0):
            continue
        host["down"] = down
        host["failures"] += down
        instance_ledger.record(tb, HOST_DOWN if down else HOST_UP, NOBODY, h, NOBODY, np.nan)
        while down and host["count"] > 0:
            row = host_slots.least_row(tb, h)
            instance_ledger.stop(tb, row, now, instance_ledger.NO)
            instance_ledger.record(tb, EVICTED, row, h, NOBODY, np.nan)
        if down:
            end_leavers(tb, h, now)
        host_slots.note_release(tb, h)
        host_slots.touch(tb, h)
        found = True
        if lacking(tb) != FINISHED:
            break
    return found


@kernel
def end_leavers(tb: State, h: int, now: float) -> None:
    """Who was told to leave host ``h``, which goes down, is gone; O(leavers)."""
    for i in range(views.control(tb)["leavers"]):
        one = views.leavers(tb)[i]
        if one["host"] == h and one["until"] > now and leavers.still_goes(tb, whole(i)):
            instance_ledger.goes(tb, whole(one["row"]), now)
    leavers.drop_host(tb, h)


@kernel
def happen(tb: State, now: float) -> None:
    """Everything that is due at ``now`` in its order, and whether it calls for a pass."""
    control = views.control(tb)
    due = window_events.turn_due(tb, now)
    due = finish_due(tb, now) or due
    if lacking(tb) == FINISHED:  # else the rest of the instant comes when there is room again
        due = happen_due(tb, now) or due
    if lacking(tb) == FINISHED:
        due = scale.scale_due(tb, now) or due
    if lacking(tb) == FINISHED:
        due = resize.resize_due(tb, now) or due
    if lacking(tb) == FINISHED:
        unreadiness.spells_due(tb, now)
    if lacking(tb) == FINISHED:
        due = admit_due(tb, now) or due
    if len(views.triggers(tb)) > 0:
        due = trigger_due(tb, now)
    if due:
        control["due"] = 1


@leaf
def come_to(tb: State, now: float, event: float, watchdog: float) -> None:
    """It is ``now``: the watchdog calls for a pass, and after an event a pass may find what the last one did not."""
    control = views.control(tb)
    shortage.pass_time(tb, now)
    control["now"] = now
    if watchdog <= now:
        control["due"] = 1
    if event <= now:
        standstill.something_happened(tb)


@entry
def advance(tb: State) -> int:
    """Let time pass until a pass is due (PASS_DUE), nothing is left (OVER), something must grow, or somebody wants to
    see how things stand at ``rules.observe`` (LOOK; whoever calls sets the next instant, and nothing else changes)."""
    control, final = views.control(tb), views.rules(tb)["end"]
    while True:
        code = lacking(tb)
        if code != FINISHED:
            return code
        event = next_event(tb)
        if control["due"] and event > control["now"]:
            if control["deferred"] > 0:
                code = resize.retry(tb, control["now"])
                if code != FINISHED:
                    return code
                event = next_event(tb)  # of who moved the start-up ends, too
            control["due"] = 0
            if control["queue"] + control["incoming"] > 0:
                return PASS_DUE
        if control["crossing_moved"] and event > control["now"]:
            leavers.bring_up_requests(tb)
            crossing.look(tb)
        watchdog = watchdog_at(tb, event)
        now = min(event, watchdog)
        if views.rules(tb)["observe"] < min(now, final) < np.inf:
            return LOOK
        if now == np.inf or now > final:
            return OVER
        if now == final:  # only completions still count
            if event_heap.next_due(tb) > final:
                return OVER
            control["now"] = final
            finish_due(tb, final)
            continue
        come_to(tb, now, event, watchdog)
        happen(tb, now)


@entry
def run(tb: State, budget: int) -> int:
    """Advance and pass until something must be done outside, or ``budget`` passes are over (PAUSE)."""
    for _ in range(budget):
        if views.control(tb)["phase"] == 0:
            code = advance(tb)
            if code != PASS_DUE:
                return code
        code = scheduling_pass.run_pass(tb)
        if code != FINISHED:
            return code
    return PAUSE
