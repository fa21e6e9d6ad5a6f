"""Who may be planned for, and for how long each may be away: its budget, and what of it comes back in time.

A *member* is an instance whose own ledger decides, or a request of several whose ledger does. Its letters, in seconds:

    V     its slack, were all of it away from now on
    B     the budget of its window, or of what it has lived of it
    back  what returns within the next H: of a rolling window what was lost between t - W and t - W + H, of one that is
          not full yet what it earns by running, of a calendar the next window's budget
    m     V + back - margin B - startup, over 1 + startup / turn: for so long it may be away within H, in turns
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.plan import record, sorting
from slacktide.kernels.plan.record import window_of
from slacktide.kernels.qos import request_ledger, request_windows, window_ledger
from slacktide.kernels.qos.metric import entitled, withheld
from slacktide.kernels.queue import waiting_queue
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.log_records import LEAVES, RETURNS, RETURNS_PREEMPTED
from slacktide.kernels.tables.schema import (
    DONE,
    FUTURE,
    GIVEN_UP,
    LEAVING,
    PLACED,
    REMOVED,
    SHIFT,
    VACANT,
    Records,
    State,
)
from slacktide.kernels.tables.window_records import CALENDAR, LIFETIME, ROLLING

YOUNG = 0.2  # of the window: a budget that has just begun to accrue counts as that of so much of it
TURN = 0.15  # of the budget, by which an equal must have more to give its place
LONGEST_TURN = 0.8
STARTS = 0.1  # start-ups may cost so much of a budget
MARGIN = 0.02  # of the budget is held back; there an equal gives its place that has so much more
AGES = 10  # a class whose members live for less than a window's tenth has jobs


@kernel
def takes_part(tb: State, row: int, known: NDArray[np.int64]) -> bool:
    """Whether an instance that waits is one that room would help; else it is not given up any more; O(1), now and then
    O(hosts)."""
    if record.is_helped_by_room(tb, whole(views.instances(tb)[row]["kind"]), known):
        return True
    if SHIFT * views.instances(tb)[row]["shift"] > GIVEN_UP:
        views.instances(tb)[row]["shift"] = 0
    return False


@kernel
def live_rows(tb: State, rows: NDArray[np.int64]) -> int:
    """All instances that are admitted and not gone into ``rows``, each once; how many; O(instances).

    Not those that wait and that no room would help: they are not given up either. In a live cluster nor those that a
    ledger tells of and that no pod has come for yet: what they ask for is not known.
    """
    control, count, known = views.control(tb), whole(0), np.zeros(len(views.kinds(tb)), np.int64)
    if views.rules(tb)["live"]:
        for row in range(len(views.instances(tb))):
            state = views.instances(tb)[row]["state"]
            is_known = views.owner(tb)[row] >= 0 and views.instances(tb)[row]["kind"] >= 0
            if not is_known or state == FUTURE or state == DONE or state == REMOVED:
                continue
            if state == PLACED or state == LEAVING or takes_part(tb, row, known):
                rows[count] = row
                count += 1
        return count
    for h in range(len(views.hosts(tb))):
        for i in range(views.hosts(tb)[h]["count"]):
            rows[count] = views.slots(tb)[h, i]["row"]
            count += 1
    for i in range(control["queue"] + control["incoming"]):
        row = waiting_queue.entry_at(tb, whole(i))["row"]
        if takes_part(tb, whole(row), known):
            rows[count] = row
            count += 1
    for i in range(control["heap"]):
        event = views.heap(tb)[i]
        instance = views.instances(tb)[event["row"]]
        comes_back = event["kind"] == RETURNS or event["kind"] == RETURNS_PREEMPTED
        is_away = instance["state"] == VACANT and comes_back
        is_leaving = instance["state"] == LEAVING and event["kind"] == LEAVES and event["starts"] == instance["starts"]
        if is_away or is_leaving:
            rows[count] = event["row"]
            count += 1
    return count


@kernel
def by_row(found: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The first ``count`` rows in ascending order; O(n log n)."""
    keys, order, scratch = np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        keys[i] = found[i]
    sorting.order_by(keys, count, order, scratch)
    for i in range(count):
        scratch[i] = found[order[i]]
    return scratch


@leaf
def most_rows(tb: State) -> int:
    """At least as many as :func:`live_rows` may find; O(hosts)."""
    control = views.control(tb)
    if views.rules(tb)["live"]:
        return whole(len(views.instances(tb)))
    count = whole(control["queue"] + control["incoming"] + control["heap"])
    for h in range(len(views.hosts(tb))):
        count += views.hosts(tb)[h]["count"]
    return count


@leaf
def life_of(theirs: Records) -> float:
    """How long the members of a class live: what they have lived so far by those that ended, as for times to a failure
    of which some are not over; while none has, as long as the oldest; O(1)."""
    if theirs["ended"] == 0:
        return theirs["oldest"]
    return (theirs["lived"] + theirs["age"]) / theirs["ended"]


@leaf
def is_short(theirs: Records, longest: float) -> bool:
    """Whether the members of a class live too shortly to be planned for: for less than a tenth of the ``longest`` span
    of any class; O(1)."""
    return (theirs["windowed"] == LIFETIME or theirs["ended"] > 0) and life_of(theirs) * AGES < longest


@leaf
def turns_over(theirs: Records) -> bool:
    """Whether a class promises something over lives, and as many as a tenth of those that live have ended; O(1)."""
    return theirs["windowed"] == LIFETIME and theirs["ended"] * AGES > theirs["alive"]


@leaf
def is_young(theirs: Records) -> bool:
    """Whether a class promises something over lives that have not earned two turns yet; O(1)."""
    earned = (1.0 - theirs["slo"]) * theirs["oldest"]
    return theirs["windowed"] == LIFETIME and theirs["slo"] < 1.0 and earned < 2.0 * theirs["alpha"] / STARTS


@leaf
def span_of(tb: State, cls: int) -> float:
    """Seconds over which a class is planned for: its window, or how long its members live; O(1)."""
    theirs = views.classes(tb)[cls]
    if theirs["windowed"] != LIFETIME:
        return window_of(tb, cls)
    return max(1.0, life_of(theirs))


@leaf
def turn_of(budget: float, startup: float) -> float:
    """By how many seconds of slack an equal must be ahead to give its place, with this budget; O(1)."""
    return min(LONGEST_TURN * budget, max(TURN * budget, startup / STARTS))


@kernel
def slack_alone(tb: State, row: int, cls: int, now: float) -> float:
    """V of an instance whose own ledger decides; O(outages)."""
    alpha = views.classes(tb)[cls]["alpha"]
    if window_ledger.keeps_account(tb, row, cls):
        return window_ledger.slack_at(tb, row, cls, now) + alpha
    lived = now - views.admission(tb)[row]
    return entitled(window_ledger.received_at(tb, row, now), views.classes(tb)[cls]["slo"]) - lived


@kernel
def slack_together(tb: State, q: int, now: float) -> float:
    """V of a request, were all its instances away; O(outages)."""
    request = views.requests(tb)[q]
    if request_windows.is_windowed(tb, q):
        up = whole(request_ledger.counting(request, views.rules(tb)["accounting"]))
        return request_windows.slack(tb, q, up, 0.0, now)
    return request_ledger.ahead(tb, q, now, 0.0) / max(1, request["live"])


@leaf
def lived_of(tb: State, row: int, q: int, now: float) -> float:
    """Seconds that a member has lived: of a request whose window asks for a share of its time, or of one instance
    in the mean; O(1)."""
    if q < 0:
        return now - views.admission(tb)[row]
    lived = request_ledger.owed_lifetime(tb, q, now)
    return lived if request_windows.is_windowed(tb, q) else lived / max(1, views.requests(tb)[q]["live"])


@leaf
def budget_of(tb: State, cls: int, lived: float, now: float) -> float:
    """B of a member of a class that has lived so many seconds; O(1)."""
    theirs = views.classes(tb)[cls]
    span = span_of(tb, cls)
    if theirs["whole_budget"]:
        return theirs["grant"]
    if theirs["windowed"] == CALENDAR:
        lived = min(lived, now - theirs["begins"])
    if theirs["windowed"] != LIFETIME:
        lived = min(lived, span)
    return (1.0 - theirs["slo"]) * max(lived, YOUNG * span)


@kernel
def add_outages(
    tb: State,
    account: Records,
    theirs: Records,
    since: float,
    e: float,
    begun: float,
    late: float,
    now: float,
    ladder: NDArray[np.float64],
    back: NDArray[np.float64],
) -> None:
    """Add to ``back`` what of the outages that count leaves a rolling window within each of ``ladder``; O(outages).

    ``e`` seconds were received ``since`` the history began. ``late`` more were lost when ``begun`` had been received,
    which the account says only when somebody tells it.
    """
    outages, k, before = views.outages(tb), whole(account["head"]), account["dropped"]
    while k != 0:
        at, lost, after = outages[k]["at"], outages[k]["length"], whole(outages[k]["next"])
        if after == 0 and at == begun:
            lost, late = lost + late, 0.0
        before += lost
        if at + theirs["good"] > e:
            add_back(lost, since + at + before + theirs["length"] - now, ladder, back)
        k = after
    if late > 0.0 and begun + theirs["good"] > e:
        add_back(late, since + begun + before + late + theirs["length"] - now, ladder, back)


@leaf
def add_back(lost: float, leaves: float, ladder: NDArray[np.float64], back: NDArray[np.float64]) -> None:
    """An outage leaves the window in so many seconds; O(ladder)."""
    for i in range(len(ladder)):
        if leaves <= ladder[i]:
            back[i] += lost


@kernel
def add_returns(
    tb: State, row: int, q: int, cls: int, now: float, ladder: NDArray[np.float64], back: NDArray[np.float64]
) -> None:
    """Add to ``back`` what of the outages of a member leaves its rolling window, if it has one; O(outages)."""
    theirs = views.classes(tb)[cls]
    if theirs["windowed"] != ROLLING:
        return
    if q >= 0:
        if request_windows.is_windowed(tb, q):
            stretch = views.stretches(tb)[q]
            e = request_windows.received(stretch, now)
            add_outages(tb, views.request_accounts(tb)[q], theirs, stretch["begun"], e, e, 0.0, now, ladder, back)
        return
    account, admission = views.accounts(tb)[row], views.admission(tb)[row]
    e, begun = window_ledger.received_at(tb, row, now), window_ledger.received_at(tb, row, -np.inf)
    late = withheld(now - admission, e) - account["booked"] if e > begun else 0.0
    add_outages(tb, account, theirs, admission, e, begun, late, now, ladder, back)


@kernel
def add_growth(
    tb: State, cls: int, lived: float, slack: float, now: float, ladder: NDArray[np.float64], back: NDArray[np.float64]
) -> None:
    """Add to ``back`` what a budget grows by within each of ``ladder``; O(ladder)."""
    theirs = views.classes(tb)[cls]
    left = np.inf
    if theirs["windowed"] == ROLLING:
        left = max(0.0, theirs["length"] - lived)
    elif theirs["windowed"] == CALENDAR:
        left = theirs["ends"] - now
    for i in range(len(ladder)):
        if not theirs["whole_budget"]:
            back[i] += (1.0 - theirs["slo"]) * max(0.0, min(ladder[i], left) - max(0.0, slack))
        if theirs["windowed"] == CALENDAR and ladder[i] > left:
            over = ladder[i] - left
            back[i] += theirs["next_grant"] if theirs["whole_budget"] else (1.0 - theirs["slo"]) * over


@kernel
def may_be_away(
    tb: State,
    row: int,
    q: int,
    cls: int,
    slack: float,
    budget: float,
    reserve: float,
    now: float,
    ladder: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """M of a member at each horizon into ``out``, seconds; ``reserve`` of its budget is held back; O(outages)."""
    startup, turn = views.classes(tb)[cls]["alpha"], turn_of(budget, views.classes(tb)[cls]["alpha"])
    out[:] = 0.0
    add_returns(tb, row, q, cls, now, ladder, out)
    add_growth(tb, cls, lived_of(tb, row, q, now), slack, now, ladder, out)
    for i in range(len(ladder)):
        least = max(0.0, slack + out[i] - reserve * budget - startup)
        out[i] = least / (1.0 + startup / turn) if turn > 0.0 else 0.0
