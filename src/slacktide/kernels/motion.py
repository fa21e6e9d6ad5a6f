"""How the metric of an instance moves while nothing happens to its request (docs/metric.md).

It is linear up to one kink, where the request's availability crosses its SLO, and a
second where an instance begins to have work to lose. The rounding of metrics to the
grid of times makes all of it true up to a ``blur``.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels import views
from slacktide.kernels.compiling import kernel, whole
from slacktide.kernels.metric import entitled, slope
from slacktide.kernels.requests import (
    LONGEST,
    counts_as_up,
    earned,
    unearned,
    up_now,
)
from slacktide.kernels.tables import CONCURRENT, Records, State

NEAR = 4e-6  # seconds; more than two metrics rounded to the grid of times can be off by, so that rounding cannot matter


@kernel
def pace(tb: State, slot: Records, now: float) -> tuple[float, float, float]:
    """Slope of an instance's metric, until when it surely holds, and by how much rounding may blur it; O(1)."""
    if slot["request"] < 0:
        return slope(slot, views.classes(tb), now), (slot["on"] if now < slot["on"] else np.inf), NEAR
    request = views.requests(tb)[slot["request"]]
    slo, live = views.classes(tb)[request["cls"]]["slo"], float(request["live"])
    up = up_now(request, views.rules(tb)["accounting"])
    until, goes_on, rate = np.inf, 0.0, 0.0
    if request["approach"] == CONCURRENT:
        rate = live if up == request["live"] else 0.0
    else:
        rate, goes_on = float(up), float(up - counts_as_up(slot, now))
    lost = unearned(tb, slot, now)
    if request["batch"] and request["loses"]:
        instance = views.instances(tb)[slot["row"]]
        ready = instance["since"] + instance["startup"]
        if now >= ready:
            rate -= 1.0
        else:
            until = ready
    q = whole(slot["request"])
    total = request["total"] + live * (now - request["since"])
    short = entitled(earned(tb, q, now) - lost, slo) - total
    drift = rate / slo - live
    return through_kink(short, drift, slo, live * slo - goes_on, now, until)


@kernel
def through_kink(
    short: float, drift: float, slo: float, falls: float, now: float, until: float
) -> tuple[float, float, float]:
    """As :func:`pace`, from X = ``short``, its slope, and D = ``falls``; before ``until``; O(1)."""
    if short < 0.0:
        if drift > 0.0:
            until = min(until, kink(-short, drift, now))
        return drift, until, NEAR
    if drift < 0.0:
        until = min(until, kink(short, -drift, now))
    if falls <= 0.0:
        return 0.0, until, NEAR
    factor = slo / falls
    blur = NEAR * (1.0 + factor)
    v = short * factor
    if v > LONGEST:
        if drift < 0.0:
            until = min(until, now + (v - LONGEST) / (-drift * factor) - blur)
        return 0.0, max(until, now), blur
    return drift * factor, until, blur


@kernel
def kink(gap: float, speed: float, now: float) -> float:
    """When a gap is closed at this speed, rather early; never before ``now``."""
    return max(now, now + (gap - NEAR) / speed - NEAR)
