"""What a promise over a window means, second by second, for one instance: no formula, nothing remembered.

``up[i]`` says whether it was delivering from second ``i`` to second ``i + 1`` after its admission. Promises are read
off these seconds; between whole seconds everything is a straight line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import inf

from slacktide.model import Window


def first_below(value: Callable[[int], float], most: int) -> float:
    """The first instant from 0 on at which a broken line through ``value`` of whole seconds falls below 0."""
    if value(0) < -1e-9:
        return -inf
    for v in range(most):
        here, there = value(v), value(v + 1)
        if there < -1e-9:
            return v + max(0.0, here) / (here - there)
    return inf


def rolling_slack(up: Sequence[bool], window: Window, slo: float) -> float:
    """Seconds until less than ``slo`` of the last ``window.rolling`` seconds were delivered, if nothing is from now on.

    What the window has before the admission counts as delivered (``whole``), or as just what is promised (``accrued``).
    Where too little was delivered: minus the seconds by which the window would have to begin earlier to hold enough.
    """
    assert window.rolling is not None
    now, length = len(up), round(window.rolling)
    before = 1.0 if window.budget == "whole" else slo
    delivered = [0.0, *accumulate(float(one) for one in up)]

    def until(t: int) -> float:
        """Delivered from the admission until then; negative before it."""
        return t * before if t < 0 else delivered[min(t, now)]

    found = first_below(lambda v: until(now + v) - until(now + v - length) - slo * length, 2 * length)
    if found != -inf:
        return found
    wanted = until(now) - slo * length
    begin = now - length
    while until(begin) > wanted + 1e-9:
        begin -= 1
    if until(begin + 1) > until(begin):  # the latest begin that holds enough lies within this second
        return begin + (wanted - until(begin)) / (until(begin + 1) - until(begin)) - (now - length)
    return begin - (now - length)


def rolling_share(up: Sequence[bool], window: Window) -> float:
    """What share of the last ``window.rolling`` seconds was delivered; of a shorter life under ``accrued``, of that."""
    assert window.rolling is not None
    length = round(window.rolling)
    lost = sum(not one for one in up[-length:])
    over = length if window.budget == "whole" else min(length, len(up))
    return 1.0 - lost / over if over else 1.0


def calendar_slack(up: Sequence[bool], window: Window, slo: float, begins: Sequence[int]) -> float:
    """As :func:`rolling_slack`, of windows that begin at these seconds, the first not after the admission."""
    now = len(up)

    def left(begin: int, end: int, t: int) -> float:
        """What may still be lost at ``t`` of the window from ``begin`` to ``end``, of which nothing follows ``now``."""
        since = max(begin, 0)
        lost = (t - since) - sum(up[since : min(t, now)])
        return (1.0 - slo) * (end - begin if window.budget == "whole" else t - since) - lost

    for begin, end in pairwise(begins):
        if end <= now:
            continue
        here, at = left(begin, end, max(now, begin)), max(now, begin)
        if here < -1e-9:  # only of the present window: one that has just begun has lost nothing
            return here if window.budget == "whole" else here / slo
        there = left(begin, end, end)
        if there < -1e-9:
            return at - now + here * (end - at) / (here - there)
    return inf
