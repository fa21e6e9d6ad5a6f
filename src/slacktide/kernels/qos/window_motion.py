"""How the slack of a promise over a window moves while nothing happens to its request (docs/metric.md).

With the letters of :mod:`.request_windows`: let the present share be r, and let the window that breaks the promise
begin in a piece of history of share m. Then

    dV = (r - m) / (m - rho)    seconds a second, and the beginning moves on by (r - rho) / (m - rho),

until it comes to the end of the piece; R as if rho were 0. All answers are those of
:func:`.metric_dynamics.pace`: a slope, until when it surely holds, and by how much rounding may blur it.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.qos import request_windows
from slacktide.kernels.qos.metric import LONGEST, NEAR, entitled
from slacktide.kernels.qos.request_windows import TIE
from slacktide.kernels.runtime.compiling import kernel, leaf
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State
from slacktide.kernels.tables.window_records import CALENDAR


@leaf
def reaches(gap: float, speed: float, blur: float, now: float) -> float:
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
    until = np.inf if left == np.inf else reaches(left, (rate - rho) / over, blur, now)
    if c > 0.0:  # its line has a kink at 0
        until = min(until, reaches(abs(v), rise if v < 0.0 else -rise, blur, now))
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
    until = min(until, reaches(abs(left), rise if left < 0.0 else -rise, blur, now))
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
        return rise, min(until, reaches(to_go - V, rise + 1.0, blur, now)), blur
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
