"""The simulator's clock: events in their total order, passes where they are due."""

from __future__ import annotations

import numpy as np

from slacktide.kernels import board, budgets, ledger, passes, requests, resize, scale, search, views
from slacktide.kernels.compiling import entry, kernel, whole
from slacktide.kernels.log_records import COMPLETED, EVICTED, HOST_DOWN, HOST_UP
from slacktide.kernels.room import FINISHED, LOOK, OVER, PASS_DUE, PAUSE, lacking
from slacktide.kernels.tables import NOBODY, PLACED, REPAIR, VACANT, State


@kernel
def pop_completion(tb: State) -> None:
    """Remove the earliest completion; O(log n)."""
    heap = views.heap(tb)
    views.control(tb)["heap"] -= 1
    n = views.control(tb)["heap"]
    time, row = heap[n]["time"], heap[n]["row"]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        right = child + 1
        if right < n and (
            heap[right]["time"] < heap[child]["time"]
            or (heap[right]["time"] == heap[child]["time"] and heap[right]["row"] < heap[child]["row"])
        ):
            child = right
        if time < heap[child]["time"] or (time == heap[child]["time"] and row <= heap[child]["row"]):
            break
        heap[k] = heap[child]
        k = child
    heap[k] = heap[n]


@kernel
def next_completion(tb: State) -> float:
    """The instant of the next completion or end of a start-up that no stop has made void, inf for none."""
    while views.control(tb)["heap"] > 0:
        top = views.heap(tb)[0]
        row = top["row"]
        instance = views.instances(tb)[row if row >= 0 else -1 - row]
        if instance["state"] == PLACED and instance["starts"] == top["starts"]:
            return top["time"]
        if instance["state"] == VACANT and top["starts"] < 0 and (-1 - top["starts"]) // 2 == instance["starts"]:
            return top["time"]  # it comes back
        pop_completion(tb)
    return np.inf


@kernel
def next_event(tb: State) -> float:
    """When a completion, host change, scale event, resize or admission happens next, inf for never."""
    control = views.control(tb)
    at = next_completion(tb)
    if control["happened"] < len(views.happenings(tb)):
        at = min(at, views.happenings(tb)[control["happened"]]["time"])
    if control["scaled"] < len(views.scalings(tb)):
        at = min(at, views.scalings(tb)[control["scaled"]]["time"])
    if control["resized"] < len(views.resizings(tb)):
        at = min(at, views.resizings(tb)[control["resized"]]["time"])
    if control["arrived"] < len(views.admission(tb)):
        at = min(at, views.admission(tb)[control["arrived"]])
    if control["triggered"] < len(views.triggers(tb)):
        at = min(at, views.triggers(tb)[control["triggered"]])
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
    """When the watchdog fires, inf where nobody waits or nothing can change any more (docs/semantics.md, 'The end')."""
    control = views.control(tb)
    if control["queue"] + control["incoming"] + control["open_resizes"] == 0 or len(views.triggers(tb)) > 0:
        return np.inf
    idle = control["stalled"] and control["placed_now"] == 0 and control["incoming"] == 0
    if idle and event == np.inf and views.rules(tb)["end"] == np.inf:
        return np.inf
    return max(control["now"], control["last_pass"] + views.rules(tb)["watchdog"])


@kernel
def finish_due(tb: State, now: float) -> bool:
    """Complete all that is due, end start-ups, and let stopped ones come again; whether that calls for a pass.

    A preempted one that comes again calls for one only where there is room: else each preemption would lead to others.
    """
    found = False
    while next_completion(tb) <= now:
        row, preempted = whole(views.heap(tb)[0]["row"]), views.heap(tb)[0]["starts"] % 2 == 0
        pop_completion(tb)
        if row < 0:
            row = -1 - row
            if requests.decider_of(tb, row) >= 0:
                requests.became_ready(tb, requests.owner_of(tb, row), row, now)
            budgets.change(tb, row, whole(0), whole(1))
            continue
        if views.instances(tb)[row]["state"] == VACANT:
            ledger.come_back(tb, row, now)
            found = found or not preempted or search.find_free(tb, whole(views.instances(tb)[row]["kind"])) >= 0
            if lacking(tb) != FINISHED:
                break
            continue
        host = whole(views.instances(tb)[row]["host"])
        ledger.complete(tb, row, now)
        ledger.record(tb, COMPLETED, row, host, NOBODY, np.nan)
        scale.release_next(tb, requests.owner_of(tb, row), now)
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
        ledger.admit(tb, row, now)
        found = True
        if lacking(tb) != FINISHED:
            break
    return found


@kernel
def happen_due(tb: State, now: float) -> bool:
    """Take hosts down or bring them up; whether anything changed."""
    control = views.control(tb)
    found = False
    while control["happened"] < len(views.happenings(tb)) and views.happenings(tb)[control["happened"]]["time"] <= now:
        event = views.happenings(tb)[control["happened"]]
        control["happened"] += 1
        host, h = views.hosts(tb)[event["host"]], whole(event["host"])
        down = event["kind"] != REPAIR
        if down == (host["down"] != 0):
            continue
        host["down"] = down
        ledger.record(tb, HOST_DOWN if down else HOST_UP, NOBODY, h, NOBODY, np.nan)
        while down and host["count"] > 0:
            row = views.slots(tb)[h, 0]["row"]
            ledger.stop(tb, row, now, ledger.NO)
            ledger.record(tb, EVICTED, row, h, NOBODY, np.nan)
        board.note_release(tb, h)
        board.touch(tb, h)
        found = True
        if lacking(tb) != FINISHED:
            break
    return found


@kernel
def happen(tb: State, now: float) -> None:
    """Everything that is due at ``now`` in its order, and whether it calls for a pass."""
    control = views.control(tb)
    due = finish_due(tb, now)
    if lacking(tb) == FINISHED:  # else the rest of the instant comes when there is room again
        due = happen_due(tb, now) or due
    if lacking(tb) == FINISHED:
        due = scale.scale_due(tb, now) or due
    if lacking(tb) == FINISHED:
        due = resize.resize_due(tb, now) or due
    if lacking(tb) == FINISHED:
        due = admit_due(tb, now) or due
    if len(views.triggers(tb)) > 0:
        due = trigger_due(tb, now)
    if due:
        control["due"] = 1


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
        watchdog = watchdog_at(tb, event)
        now = min(event, watchdog)
        if views.rules(tb)["observe"] < min(now, final) < np.inf:
            return LOOK
        if now == np.inf or now > final:
            return OVER
        if now == final:  # only completions still count
            if next_completion(tb) > final:
                return OVER
            control["now"] = final
            finish_due(tb, final)
            continue
        control["now"] = now
        if watchdog <= now:
            control["due"] = 1
        happen(tb, now)


@entry
def run(tb: State, budget: int) -> int:
    """Advance and pass until something must be done outside, or ``budget`` passes are over (PAUSE)."""
    for _ in range(budget):
        if views.control(tb)["phase"] == 0:
            code = advance(tb)
            if code != PASS_DUE:
                return code
        code = passes.run_pass(tb)
        if code != FINISHED:
            return code
    return PAUSE
