"""What a promise over a window asks of a request of several instances: its history, and where that breaks the promise.

The letters, time in seconds (docs/metric.md, 'Windows of requests'):

    s(t)    the share of a request that counts: of an aggregated one (instances that count as running) / (live ones), of
            a concurrent one 1 where all live ones count as running, else 0; 1 where none is live
    E(t)    the integral of s from the first admission on; before that it grows by sigma, or by 1 where the budget
            is ``whole``
    W, good the length of a rolling window, and sigma W on the grid of times
    rho     the share that goes on while the instance considered is stopped, 0 where the request is concurrent
    y       E(t) - good
    x       the largest instant with E(x) <= y

    R = x + W - t                               where that is negative: the promise is broken
    V = the first v from which on  E(t) + rho v - E(t - W + v) < good,  else infinite

A *stretch* is a time of constant share. Those before the present one are kept as outages, in which ``width`` seconds
were received and ``length`` lost, evenly. In between all counted. So E is made of straight *pieces*: the time before
the first admission, and by turns a run without loss and an outage, of which the present stretch is the last.

A calendar window begins with what it has: its E and its time are those since its beginning, or the admission.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slacktide.kernels.qos import window_outages
from slacktide.kernels.qos.metric import entitled
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.log_records import OF_REQUEST
from slacktide.kernels.tables.request_records import CONCURRENT, INDEPENDENT
from slacktide.kernels.tables.schema import Records, State
from slacktide.kernels.tables.window_records import CALENDAR, LIFETIME, NOT_YET, OPEN, ROLLING

_STAGES: tuple[Any, ...] = tuple(np.int64(i) for i in range(3))  # not literals, so that kernels are compiled once
BEFORE, RUN, OUTAGE = _STAGES

TIE = 2.0**-17
"""Seconds that a window may lack and have its promise: more than rounding to the grid of times can take. Else nine of
ten instances would keep a promise of .9 for ever at one instant, and break it at the next."""


@leaf
def is_windowed(tb: State, q: int) -> bool:
    """Whether the ledger of a request decides, and its promise is over a window; O(1). A batch request's never is."""
    if len(views.request_accounts(tb)) == 0:
        return False
    request = views.requests(tb)[q]
    if request["batch"] != 0 or request["approach"] == INDEPENDENT:
        return False
    return views.classes(tb)[request["cls"]]["windowed"] != LIFETIME


@leaf
def share_of(request: Records, up: int) -> tuple[int, int]:
    """The share of a request that counts where ``up`` instances count as running: so many, of so many; O(1)."""
    if request["approach"] == CONCURRENT or request["live"] == 0:
        return (whole(1) if up == request["live"] else whole(0)), whole(1)
    return whole(up), whole(request["live"])


@leaf
def compared(request: Records, up_then: int, placed_then: int, live_then: int, up: int) -> tuple[bool, bool]:
    """Whether slack grew when the counts changed from these, or only fell; O(1).

    What a window has to spare grows with the share that counts and with that which goes on, whichever instance is
    stopped. So it fell, now and for good, where none of them grew. Idle instances move to the front of the victims:
    that counts as growth.
    """
    live = request["live"]
    if request["approach"] == CONCURRENT:
        idle_then, idle = placed_then < live_then, request["placed"] < live
        grew = (up == live and up_then < live_then) or (idle and not idle_then)
        return grew, (up < live and up_then == live_then) or idle != idle_then
    if live == 0 or live_then == 0:
        return True, False
    grew = up * live_then > up_then * live or (up - 1) * live_then > (up_then - 1) * live
    return grew, up != up_then or live != live_then


@leaf
def received(stretch: Records, now: float) -> float:
    """E at ``now``, which the stretch has reached; seconds; O(1)."""
    return stretch["received"] + entitled(stretch["up"] * (now - stretch["since"]) / stretch["live"], 1.0)


@kernel
def admit(tb: State, q: int, now: float) -> None:
    """An instance of the request was admitted; with the first of all its history begins; O(1)."""
    if views.stretches(tb)[q]["open"] == NOT_YET:
        open_stretch(tb, q, now)


@kernel
def open_stretch(tb: State, q: int, now: float) -> None:
    """The history of a request begins at ``now``; O(1)."""
    stretch = views.stretches(tb)[q]
    stretch["open"] = OPEN
    stretch["begun"] = stretch["since"] = now
    stretch["up"] = stretch["live"] = 1
    stretch["received"] = 0.0


@kernel
def extend(tb: State, q: int, up: int, since: float) -> None:
    """From ``since`` on ``up`` instances count as running, and time has passed with that; O(1), seldom
    O(MOST_OUTAGES)."""
    stretch = views.stretches(tb)[q]
    so_many, of = share_of(views.requests(tb)[q], up)
    if stretch["open"] != OPEN or (stretch["up"] == so_many and stretch["live"] == of):
        return
    end_stretch(tb, q, 0.0, since)
    stretch["up"], stretch["live"] = so_many, of


@kernel
def end_stretch(tb: State, q: int, less: float, now: float) -> None:
    """Keep what the present stretch lost up to ``now``, and let the next one begin, as if ``less`` seconds of what it
    received had been lost, or all of it; O(1), seldom O(MOST_OUTAGES)."""
    stretch = views.stretches(tb)[q]
    e = max(stretch["received"], received(stretch, now) - less)
    width = e - stretch["received"]
    length = (now - stretch["since"]) - width
    if length > 0.0:
        lose(tb, q, e, length, width, now)
    stretch["since"], stretch["received"] = now, e


@leaf
def is_told_anew(tb: State, q: int) -> bool:
    """Whether this is the first change of a request's counts in an operation of a live cluster; O(1).

    Before each of these somebody may have asked for the slack. So that questions leave no trace it ends the stretch
    before it, be it told for the same instant.
    """
    stretch, told = views.stretches(tb)[q], views.control(tb)["told_operations"]
    if stretch["told"] == told:
        return False
    stretch["told"] = told
    return True


@leaf
def settle(tb: State, q: int, up: int, now: float) -> None:
    """Let the present stretch be that of ``now``, where time has passed since the counts last changed; O(1)."""
    if now > views.requests(tb)[q]["since"]:
        extend(tb, q, up, views.requests(tb)[q]["since"])


@kernel
def lose(tb: State, q: int, e: float, length: float, width: float, until: float) -> None:
    """Keep what a stretch lost that ended at ``until``, and forget what no window needs any more; O(outages)."""
    account, theirs = views.request_accounts(tb)[q], views.classes(tb)[views.requests(tb)[q]["cls"]]
    window_outages.record(tb, q, OF_REQUEST, until, length, width)
    if theirs["windowed"] != ROLLING:
        return
    outages = views.outages(tb)
    pass_by(tb, account, e - theirs["good"])
    begun = views.stretches(tb)[q]["begun"]
    while account["head"] != account["cursor"]:
        k = whole(account["head"])
        if begun + outages[k]["at"] + account["dropped"] + outages[k]["length"] > until - theirs["length"]:
            break
        account["dropped"] += outages[k]["length"]
        account["head"] = outages[k]["next"]
        account["count"] -= 1
        if account["tail"] == k:
            account["tail"] = 0
        window_outages.free(tb, k)
    tail = whole(account["tail"])
    if width == 0.0 and tail != 0 and outages[tail]["at"] == e and outages[tail]["width"] == 0.0:
        outages[tail]["length"] += length
    else:
        window_outages.append(tb, account, e, length, width)
    note_rolling(tb, q, until)


@kernel
def note_rolling(tb: State, q: int, until: float) -> None:
    """Remember the share of the rolling window which ends with an outage at ``until`` that was lost; O(outages)."""
    account, theirs = views.request_accounts(tb)[q], views.classes(tb)[views.requests(tb)[q]["cls"]]
    account["short"] = max(account["short"], kept_since(tb, q, until - theirs["length"], until) / theirs["length"])


@kernel
def kept_since(tb: State, q: int, begin: float, now: float) -> float:
    """Seconds that a request lost from ``begin`` on in stretches that are over at ``now``; O(outages)."""
    account = views.request_accounts(tb)[q]
    before, lost, k = account["dropped"], 0.0, whole(account["head"])
    while k != 0:
        s0, _, s1, _, _ = piece(tb, q, k, before, now)
        length = views.outages(tb)[k]["length"]
        if s1 > begin:
            lost += length * ((s1 - max(s0, begin)) / (s1 - s0))
        before += length
        k = whole(views.outages(tb)[k]["next"])
    return lost


@kernel
def lost_in_window(tb: State, q: int, up: int, now: float) -> tuple[float, float]:
    """Seconds by the clock that a request lost in the window that ends at ``now``, and of how many; ``up`` count as
    running; O(outages)."""
    theirs, stretch = views.classes(tb)[views.requests(tb)[q]["cls"]], views.stretches(tb)[q]
    if stretch["open"] != OPEN:
        return 0.0, 0.0
    settle(tb, q, up, now)
    if theirs["windowed"] == CALENDAR:
        lived, e = in_window(tb, q, now)
        return lived - e, theirs["ends"] - theirs["begins"] if theirs["whole_budget"] else lived
    begin = now - theirs["length"]
    lost = kept_since(tb, q, begin, now)
    s0, e0, s1, e1, _ = piece(tb, q, whole(0), 0.0, now)
    if s1 > s0:
        lost += ((s1 - s0) - (e1 - e0)) * ((s1 - max(s0, begin)) / (s1 - s0))
    return lost, theirs["length"] if theirs["whole_budget"] else min(theirs["length"], now - stretch["begun"])


@kernel
def note_calendar(tb: State, q: int, begun: float, length: float, now: float) -> None:
    """Remember the share that was lost of the calendar window which began at ``begun``, up to ``now``; O(1)."""
    account, stretch = views.request_accounts(tb)[q], views.stretches(tb)[q]
    lived = now - max(begun, stretch["begun"])
    owed = length if views.classes(tb)[views.requests(tb)[q]["cls"]]["whole_budget"] else lived
    if owed > 0.0:
        account["short"] = max(account["short"], (lived - (received(stretch, now) - account["base"])) / owed)


@kernel
def close(tb: State, q: int, up: int, now: float) -> None:
    """The run is over at ``now``: what was lost up to then is noted; O(outages)."""
    theirs = views.classes(tb)[views.requests(tb)[q]["cls"]]
    settle(tb, q, up, now)
    if theirs["windowed"] == CALENDAR:
        note_calendar(tb, q, theirs["begins"], theirs["ends"] - theirs["begins"], now)
    end_stretch(tb, q, 0.0, now)


@leaf
def pass_by(tb: State, account: Records, y: float) -> None:
    """Let the cursor pass outages that ended before ``y`` seconds had been received; ``forgiven`` is what they lost;
    O(1) amortised."""
    account["cursor"], account["forgiven"] = after(tb, account, y)


@leaf
def after(tb: State, account: Records, y: float) -> tuple[int, float]:
    """The oldest outage that did not end before ``y`` seconds had been received, and the seconds lost before it; O(1)
    amortised.

    Whoever only asks leaves the cursor where it is: what a live cluster tells next may have happened before that.
    """
    k, before = whole(account["cursor"]), account["forgiven"]
    while k != 0 and views.outages(tb)[k]["at"] <= y:
        before += views.outages(tb)[k]["length"]
        k = whole(views.outages(tb)[k]["next"])
    return k, before


@leaf
def piece(tb: State, q: int, k: int, before: float, now: float) -> tuple[float, float, float, float, float]:
    """Outage ``k``, with ``before`` seconds lost before it, or (0) the present stretch; O(1).

    When it began, and E then; when it ended, and E then; the share that counted.
    """
    stretch = views.stretches(tb)[q]
    if k == 0:
        e = stretch["received"]
        return stretch["since"], e, now, received(stretch, now), stretch["up"] / stretch["live"]
    outage, begun = views.outages(tb)[k], stretch["begun"]
    began = outage["at"] - outage["width"]
    share = outage["width"] / (outage["width"] + outage["length"])
    return begun + began + before, began, begun + outage["at"] + (before + outage["length"]), outage["at"], share


@leaf
def is_steady(tb: State, q: int, up: int) -> bool:
    """Whether the present stretch goes on as it is where ``up`` instances count as running; O(1)."""
    so_many, of = share_of(views.requests(tb)[q], up)
    return views.stretches(tb)[q]["up"] == so_many and views.stretches(tb)[q]["live"] == of


@kernel
def walk(tb: State, q: int, up: int, c: float, now: float) -> tuple[float, float, float, float]:
    """Slack of a rolling window at ``now``, while ``c`` instances go on, and where it is; O(outages that count).

    V or R, seconds; the share of the piece of history in which the window then begins, and the seconds from there to
    the piece's end, infinite where that moves along; the least by which any comparison on the way would have come out
    otherwise.
    """
    account, stretch = views.request_accounts(tb)[q], views.stretches(tb)[q]
    theirs = views.classes(tb)[views.requests(tb)[q]["cls"]]
    live = max(1, views.requests(tb)[q]["live"])
    e, start = received(stretch, now), now - theirs["length"]
    y = e - theirs["good"]
    k, before = after(tb, account, y)
    s0, e0, s1, e1, share = piece(tb, q, k, before, now)
    last = whole(0) if is_steady(tb, q, up) else whole(-1)  # the outage whose end moves along
    if y < 0.0:
        stage, end, e_end, slope = BEFORE, stretch["begun"], 0.0, theirs["slo"]
        v = entitled(e, theirs["slo"]) - (now - stretch["begun"])
        if theirs["whole_budget"]:
            slope = 1.0
            v = (theirs["length"] - (now - stretch["begun"])) + y
    elif y < e0:
        stage, end, e_end, slope = RUN, s0, e0, 1.0
        v = (s0 - (e0 - y)) - start
    else:
        stage, end, e_end, slope = OUTAGE, s1, e1, share
        x = entitled(s0 + (y - e0) / share, 1.0) if share < 1.0 else s1 - (e1 - y)
        v = x - start
    if c == 0.0 or v * slope < -TIE:
        spare = np.inf if c == 0.0 else -TIE - v * slope
        return v, slope, (np.inf if stage == OUTAGE and k == last else end - start - v), spare
    spare, v = TIE + v * slope, max(v, 0.0)
    rho, left = c / live, c * v / live
    while True:
        at = end - start
        then = (y - e_end) + c * at / live
        if then < -TIE and slope > rho:
            found = min(max(entitled(v + left / (slope - rho), 1.0), v), at)
            return found, slope, (np.inf if stage == OUTAGE and k == last else at - found), spare
        if stage == OUTAGE and k == 0:
            return np.inf, 1.0, np.inf, spare
        v, left, spare = at, then, min(spare, TIE + then)
        if stage == RUN:
            stage, end, e_end, slope = OUTAGE, s1, e1, share
            continue
        if stage == OUTAGE:
            before += views.outages(tb)[k]["length"]
            k = whole(views.outages(tb)[k]["next"])
            s0, e0, s1, e1, share = piece(tb, q, k, before, now)
        stage, end, e_end, slope = RUN, s0, e0, 1.0


@kernel
def slack(tb: State, q: int, up: int, c: float, now: float) -> float:
    """V or R of an instance at ``now``, seconds, where ``up`` count as running and ``c`` go on; O(outages)."""
    if views.stretches(tb)[q]["open"] != OPEN:
        return np.inf
    settle(tb, q, up, now)
    if views.classes(tb)[views.requests(tb)[q]["cls"]]["windowed"] == CALENDAR:
        return calendar_slack(tb, q, c, now)
    return walk(tb, q, up, c, now)[0]


@leaf
def in_window(tb: State, q: int, now: float) -> tuple[float, float]:
    """Seconds of the present calendar window that a request has lived, and what it received in them; O(1)."""
    account, stretch = views.request_accounts(tb)[q], views.stretches(tb)[q]
    return now - max(account["begun"], stretch["begun"]), received(stretch, now) - account["base"]


@kernel
def calendar_slack(tb: State, q: int, c: float, now: float) -> float:
    """As :func:`slack`, of a calendar window; what lasts to its end counts with the budget of the next one; O(1)."""
    theirs, live = views.classes(tb)[views.requests(tb)[q]["cls"]], max(1, views.requests(tb)[q]["live"])
    lived, e = in_window(tb, q, now)
    to_go = theirs["ends"] - now
    if not theirs["whole_budget"]:
        X, D = entitled(e, theirs["slo"]) - lived, theirs["slo"] * live - c
        never = c / live >= theirs["slo"] or D <= 0.0
        if X < 0.0 and not (never and X * theirs["slo"] >= -TIE):
            return X
        return np.inf if never else min(entitled(X * (theirs["slo"] * live / D), 1.0), to_go)
    left = theirs["grant"] - (lived - e)
    if left < 0.0:
        return left
    if c < live:
        V = entitled(left * (live / (live - c)), 1.0)
        if to_go > V:
            return V
    if c / live >= theirs["slo"]:
        return np.inf
    return to_go + entitled(theirs["next_grant"] * (live / (live - c)), 1.0)


@kernel
def turn(tb: State, q: int, up: int, begun: float, now: float) -> None:
    """A calendar window began at ``now``, as the class says already, and ended one that had ``begun``; O(1)."""
    settle(tb, q, up, now)
    note_calendar(tb, q, begun, now - begun, now)
    account = views.request_accounts(tb)[q]
    account["base"], account["begun"] = received(views.stretches(tb)[q], now), now


@kernel
def begin_anew(tb: State, q: int, up: int, now: float) -> None:
    """What a request was promised is of another kind from ``now`` on, up to which its sums are: what was before counts
    no more; O(outages)."""
    account, request, stretch = views.request_accounts(tb)[q], views.requests(tb)[q], views.stretches(tb)[q]
    window_outages.free_all(tb, account)
    account["base"] = account["forgiven"] = account["dropped"] = account["begun"] = account["short"] = 0.0
    stretch["open"] = NOT_YET
    if is_windowed(tb, q) and (request["live"] > 0 or request["total"] > 0.0):
        open_stretch(tb, q, now)
        stretch["up"], stretch["live"] = share_of(request, up)


@leaf
def count_anew(tb: State, q: int) -> None:
    """Let an account count as the class of its request says now, from what it has kept; O(1)."""
    account = views.request_accounts(tb)[q]
    account["cursor"], account["forgiven"] = account["head"], account["dropped"]


@leaf
def owed_lifetime(tb: State, q: int, now: float) -> float:
    """Seconds, by the clock, over which the request was promised something; O(1)."""
    theirs, lived = views.classes(tb)[views.requests(tb)[q]["cls"]], now - views.stretches(tb)[q]["begun"]
    if theirs["windowed"] == ROLLING:
        return min(lived, theirs["length"])
    return min(lived, now - theirs["begins"])
