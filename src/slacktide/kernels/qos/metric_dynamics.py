"""How the metric of an instance moves while nothing happens to its request.

Derived in docs/metric.md. With X, D and sigma as in :mod:`.request_ledger`, n live instances
and a running time e that grows by g a second:

    dX = g / sigma - n                    seconds a second
    dQ = dX              where X < 0
    dQ = dX sigma / D    where X >= 0 and D > 0
    dQ = 0               where X >= 0 and D <= 0, at infinity

So Q is linear up to one kink, where X is 0, and a second one where an instance begins to have
work to lose. Metrics are rounded to the grid of times. What is said here of a rounded metric is
true up to a ``blur``, 0 where nothing needs rounding.

The slack of a promise over a window moves otherwise. With the letters of :mod:`.request_windows`: let the present
share be r, and let the window that breaks the promise
begin in a piece of history of share m. Then

    dV = (r - m) / (m - rho)    seconds a second, and the beginning moves on by (r - rho) / (m - rho),

until it comes to the end of the piece; R as if rho were 0. All answers are those of :func:`pace`: a
slope, until when it surely holds, and by how much rounding may blur it.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.qos import request_windows
from slacktide.kernels.qos.metric import LONGEST, NEAR, entitled, metric, promise_of, slope
from slacktide.kernels.qos.request_ledger import (
    ahead,
    counting,
    counts_as_up,
    gain,
    goes_on,
    unearned,
    up_now,
    weigh,
)
from slacktide.kernels.qos.request_windows import TIE
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import FLAT, Records, State
from slacktide.kernels.tables.window_records import CALENDAR


@leaf
def window_reaches(gap: float, speed: float, blur: float, now: float) -> float:
    """When a gap is closed at this speed, rather early; never before ``now``; O(1)."""
    return max(now, now + (gap - blur) / speed - NEAR) if speed > 0.0 else np.inf


@kernel
def motion(tb: State, q: int, up: int, c: float, now: float) -> tuple[float, float, float]:
    """Slope, end and blur of an instance's slack where ``up`` count as running and ``c`` go on; O(outages)."""
    request_windows.settle(tb, q, up, now)
    request = views.requests(tb)[q]
    so_many, of = request_windows.share_of(request, up)
    rate, live = so_many / of, max(1, request["live"])
    if views.classes(tb)[request["cls"]]["windowed"] == CALENDAR:
        return calendar_motion(tb, q, rate, c, now)
    v, share, left, spare = request_windows.walk(tb, q, up, c, now)
    if v == np.inf:
        return 0.0, (now if spare < NEAR else np.inf), NEAR
    rho = c / live if v >= 0.0 else 0.0
    over = share - rho
    rise, blur = (rate - share) / over, NEAR * (1.0 + 2.0 / over)
    if spare < NEAR:
        return rise, now, blur  # rounding may let an earlier window break the promise
    until = np.inf if left == np.inf else window_reaches(left, (rate - rho) / over, blur, now)
    if c > 0.0:  # its line has a kink at 0
        until = min(until, window_reaches(abs(v), rise if v < 0.0 else -rise, blur, now))
    return rise, until, blur


@kernel
def calendar_motion(tb: State, q: int, rate: float, c: float, now: float) -> tuple[float, float, float]:
    """As :func:`motion`, of a calendar window where a share ``rate`` counts; not beyond its end; O(1)."""
    theirs, live = views.classes(tb)[views.requests(tb)[q]["cls"]], max(1, views.requests(tb)[q]["live"])
    lived, e = request_windows.in_window(tb, q, now)
    until, to_go, slo = max(now, theirs["ends"]), theirs["ends"] - now, theirs["slo"]
    if theirs["whole_budget"]:
        left, rise, most, full = theirs["grant"] - (lived - e), rate - 1.0, c >= live, 1.0
    else:
        left, rise, full = entitled(e, slo) - lived, rate / slo - 1.0, slo
        most = c / live >= slo or slo * live - c <= 0.0
    blur = NEAR * (1.0 + 2.0 / full)
    until = min(until, window_reaches(abs(left), rise if left < 0.0 else -rise, blur, now))
    if most and abs(left * full + TIE) < NEAR:
        until = now  # whether it can be missed at all is a matter of rounding
    if left < 0.0 and not (most and left * full >= -TIE):
        return rise, until, blur
    if most:
        return 0.0, until, blur
    factor = full * live / (full * live - c)
    blur *= 1.0 + factor
    V, rise = left * factor, rise * factor
    if abs(V - to_go) < blur:
        return rise, now, blur  # on which side of the window's end it is is a matter of rounding
    if to_go > V:
        return rise, min(until, window_reaches(to_go - V, rise + 1.0, blur, now)), blur
    if theirs["whole_budget"]:
        return beyond_end(theirs["next_grant"] * (live / (live - c)), c / live >= slo, to_go, until, blur, now)
    return -1.0, until, blur


@leaf
def beyond_end(
    more: float, never: bool, to_go: float, until: float, blur: float, now: float
) -> tuple[float, float, float]:
    """As :func:`motion`, of what lasts to the end of the window and ``more`` seconds of the next one; O(1)."""
    if never:
        return 0.0, until, blur
    if to_go + more > LONGEST:
        return 0.0, max(now, min(until, now + (to_go + more - LONGEST) - blur)), blur
    return -1.0, until, blur


@kernel
def pace(tb: State, slot: Records, now: float) -> tuple[float, float, float]:
    """Slope of an instance's metric, until when it surely holds, and by how much rounding may blur it; O(1)."""
    if slot["request"] < 0:
        starting = now < slot["on"]
        exact = starting or slot["request"] == FLAT or views.classes(tb)[slot["cls"]]["whole"]
        return slope(slot, views.classes(tb), now), (slot["on"] if starting else np.inf), (0.0 if exact else NEAR)
    if request_windows.is_windowed(tb, whole(slot["request"])):
        return pace_of_request(tb, whole(slot["request"]), now, counts_as_up(slot, now))
    request = views.requests(tb)[slot["request"]]
    sigma, accounting, live = views.classes(tb)[request["cls"]]["slo"], views.rules(tb)["accounting"], request["live"]
    until, rate = np.inf, gain(request, accounting)
    if request["loses"]:
        instance = views.instances(tb)[slot["row"]]
        ready = instance["since"] + instance["startup"]
        if now >= ready:
            rate -= 1.0
        else:
            until = ready
    X = ahead(tb, whole(slot["request"]), now, unearned(tb, slot, now))
    dX = rate / sigma - live
    D = live * sigma - goes_on(request, accounting, counts_as_up(slot, now))
    rise, until, blur = through_kink(X, dX, sigma, D, now, until)
    if views.classes(tb)[request["cls"]]["whole"] and (X < 0.0 or dX == 0.0):
        blur = 0.0  # X is exact then, and V does not move
    return rise, until, blur


@leaf
def reaches(tb: State, slot: Records, level: float, now: float) -> float:
    """When the metric of an instance that its own ledger decides for reaches ``level`` by running on, inf for never.

    Not later than in truth. Never, too, while nobody knows when it will be ready: that it is changes its host. O(1).
    """
    theirs = views.classes(tb)[slot["cls"]]
    if theirs["slope"] <= 0.0 or slot["request"] == FLAT or slot["on"] == np.inf:
        return np.inf
    start = max(now, slot["on"])
    gap = level - metric(slot, promise_of(slot, views.classes(tb)), theirs["alpha"], start)
    return start + (gap - NEAR) / theirs["slope"]


@kernel
def waiting_pace(tb: State, q: int, now: float) -> tuple[float, float, float]:
    """By how much a second the metric of a request's waiting instances falls, until when, and its blur; O(1).

    0 where it rises: it is above what falls by nothing.
    """
    rise, until, blur = pace_of_request(tb, q, now, whole(0))
    return max(0.0, -rise), until, blur


@kernel
def pace_of_request(tb: State, q: int, now: float, one_up: int) -> tuple[float, float, float]:
    """As :func:`pace`, of an instance whose stop would discard nothing; ``one_up`` as for :func:`weigh`; O(1)."""
    request, accounting = views.requests(tb)[q], views.rules(tb)["accounting"]
    if request_windows.is_windowed(tb, q):
        up, c = whole(counting(request, accounting)), max(0.0, goes_on(request, accounting, one_up))
        return motion(tb, q, up, c, now)
    sigma, live = views.classes(tb)[request["cls"]]["slo"], request["live"]
    D = live * sigma - goes_on(request, accounting, one_up)
    dX = gain(request, accounting) / sigma - live
    return through_kink(ahead(tb, q, now, 0.0), dX, sigma, D, now, np.inf)


@kernel
def bound_of_request(tb: State, q: int, now: float) -> tuple[float, float, float, float]:
    """No instance of the request on a host has a larger metric now, slope, end of both, or blur than these; O(1).

    That of one that counts as running, where all on hosts do, else of one that does not; of a
    batch request as if stopping it discarded nothing.
    """
    request = views.requests(tb)[q]
    up = up_now(request, views.rules(tb)["accounting"])
    one_up = whole(1) if up == request["placed"] else whole(0)
    rise, until, blur = pace_of_request(tb, q, now, one_up)
    if up > 0 and one_up == 0 and request_windows.is_windowed(tb, q):  # each may be at a place of its own in history
        other, ends, blurred = pace_of_request(tb, q, now, whole(1))
        rise, until, blur = max(rise, other), min(until, ends), max(blur, blurred)
    return weigh(tb, q, now, one_up, 0.0) + request["shift"], max(rise, 0.0), until, blur


@leaf
def note_change(tb: State, h: int) -> None:
    """Add host ``h`` to the change log, once a telling; O(1)."""
    control = views.control(tb)
    if views.hosts(tb)[h]["looked"] != control["looks"]:
        views.hosts(tb)[h]["looked"] = control["looks"]
        views.changes(tb)[control["changes"] % len(views.changes(tb))] = h
        control["changes"] += 1


@leaf
def lift_ceiling(tb: State, h: int, now: float, peak: float, rise: float, until: float, blur: float) -> None:
    """Let the bound on host ``h`` also bound a metric of this size and slope; O(1)."""
    ceiling = views.ceilings(tb)[h]
    ceiling["peak"] = max(ceiling_at(ceiling, now), peak)
    ceiling["time"] = now
    ceiling["rise"] = max(ceiling["rise"], rise)
    ceiling["slack"] = max(ceiling["slack"], 4.0 * blur)
    ceiling["until"] = min(ceiling["until"], until)


@leaf
def ceiling_at(ceiling: Records, now: float) -> float:
    """No metric on the host is above this at ``now``; O(1)."""
    passed = now - ceiling["time"]
    if passed == 0.0:
        return ceiling["peak"]
    if now >= ceiling["until"]:
        return np.inf
    return ceiling["peak"] + ceiling["rise"] * passed + ceiling["slack"]


@kernel
def through_kink(X: float, dX: float, sigma: float, D: float, now: float, until: float) -> tuple[float, float, float]:
    """As :func:`pace`, from X, its slope ``dX``, and D; before ``until``; O(1)."""
    if X < 0.0:
        if dX > 0.0:
            until = min(until, kink(-X, dX, now))
        return dX, until, NEAR
    if dX < 0.0:
        until = min(until, kink(X, -dX, now))
    if D <= 0.0:
        return 0.0, until, NEAR
    factor = sigma / D
    blur = NEAR * (1.0 + factor)
    V = X * factor
    if V > LONGEST:
        if dX < 0.0:
            until = min(until, now + (V - LONGEST) / (-dX * factor) - blur)
        return 0.0, max(until, now), blur
    return dX * factor, until, blur


@kernel
def kink(gap: float, speed: float, now: float) -> float:
    """When a gap is closed at this speed, rather early; never before ``now``."""
    return max(now, now + (gap - NEAR) / speed - NEAR)
