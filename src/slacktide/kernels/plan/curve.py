"""Whether the budgets of those kept pay for what is missing: a duration curve, and a condition of Gale and Ryser.

Let v(t) be what those kept would have missed, for the demand of today, had they had the room of then. v* is the same in
descending order: the *duration curve* of the shortage, as power systems draw one of their load. In any time a nobody
is away for longer than a, nor for longer than the m that he may be (:mod:`.members`). So turns exist, in a pool, if and
only if for every a up to the horizon H

    integral of v* from 0 to a  <=  sum over members of size min(m, a)

(D. Gale, "A theorem on flows in networks", 1957; H. J. Ryser, "Combinatorial properties of matrices of zeros and ones",
1957.) It is asked at every H of a ladder. The next H is expected to be like the last H; where the record is shorter,
the H / CAUTION before it count as what today's demand exceeds today's room by.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.plan import record
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State

RUNGS = 12
CAUTION = 10.0


@leaf
def rung(span: float, i: int) -> float:
    """The horizons of a span, the longest first: halves of each other; seconds."""
    return span / 2.0**i


@leaf
def samples_of(tb: State, horizon: float) -> int:
    """How many samples of the record lie in the last ``horizon`` seconds; O(1)."""
    step = views.control(tb)["step"]
    if step <= 0.0:
        return whole(0)
    return min(record.kept_samples(tb), max(whole(1), whole(np.ceil(horizon / step))))


@kernel
def pays(
    base: NDArray[np.float64],
    count: int,
    step: float,
    horizon: float,
    now_missing: float,
    own: float,
    sizes: NDArray[np.float64],
    away: NDArray[np.float64],
    by_away: NDArray[np.int64],
    place: NDArray[np.int64],
    first: int,
) -> bool:
    """Whether the condition holds at one horizon for the members whose ``place`` is ``first`` or later.

    ``base``: ``count`` samples, ``step`` seconds apart, of what was missing without these members, the largest first;
    ``now_missing``: the same of now. ``own``: what these members ask for. ``away``: m of each member, and ``by_away``
    their order by it. O(samples + members).
    """
    seen = min(horizon, count * step)
    over = max(seen, horizon / CAUTION)
    stretch = horizon / over  # what was seen stands for the whole horizon
    pad, scale = over - seen, seen / (count * step) if count > 0 else 0.0
    owed, passed, lent, rate = 0.0, 0.0, 0.0, own
    at, padded, k = whole(0), pad <= 0.0, whole(0)
    while at < count or not padded:
        if not padded and (at == count or now_missing >= base[at]):
            value, length, padded = now_missing, pad, True
        else:
            value, length = base[at], step * scale
            at += 1
        value = min(own, value + own)
        if value <= 0.0:
            return True
        owed += value * length * stretch
        passed += length * stretch
        while k < len(by_away) and away[by_away[k]] <= passed:
            i = by_away[k]
            if place[i] >= first:
                lent += sizes[i] * away[i]
                rate -= sizes[i]
            k += 1
        if owed > lent + rate * passed + 1e-9 * own * horizon:
            return False
    return True
