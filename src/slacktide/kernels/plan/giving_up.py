"""Whom of a level to give up: the fewest with whom gone the budgets of those kept pay for what is missing.

That they pay is a condition of Gale and Ryser on a duration curve.

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

from slacktide.kernels.plan import members, pools, record, sorting
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import GIVEN_UP, SHIFT, State

RUNGS = 12
CAUTION = 10.0
AWAY = 2.0**32
"""Seconds by which the metric of those given up is above that of others."""
MOST = 2.0**29  # seconds of slack that count when these are told apart

Numbers = NDArray[np.int64]
Seconds = NDArray[np.float64]
Several = tuple[Numbers, Numbers, Seconds, Seconds, Seconds, Numbers]
"""Of members ``who`` they are, their classes, what they ask for, V, B, and their places in the order of giving up."""


@leaf
def rung(span: float, i: int) -> float:
    """The horizons of a span, the longest first: halves of each other; seconds."""
    return span / 2.0**i


@leaf
def samples_of(tb: State, pool: int, horizon: float) -> int:
    """How many samples of the record of a pool lie in the last ``horizon`` seconds; O(1)."""
    step = views.control(tb)["step"]
    if step <= 0.0:
        return whole(0)
    return min(record.kept_samples(tb, pool), max(whole(1), whole(np.ceil(horizon / step))))


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


@leaf
def shift_of(tb: State, who: int) -> float:
    """Seconds by which the metric of a member is moved: of an instance, or of a request as -1 less its number; O(1)."""
    return views.requests(tb)[-1 - who]["shift"] if who < 0 else SHIFT * views.instances(tb)[who]["shift"]


@kernel
def plan_level(
    tb: State,
    rows: NDArray[np.int64],
    level: int,
    numbers: NDArray[np.int64],
    above: NDArray[np.float64],
    room: NDArray[np.float64],
    turns: bool,
) -> None:
    """Choose whom to give up of one level, pool by pool (``numbers``), and by how much an equal must be ahead there;
    O(pools * (members log members + samples log samples))."""
    count = len(rows)
    who, cls_of, sizes = np.empty(count, np.int64), np.empty(count, np.int64), np.empty((len(numbers), count))
    n = whole(find_members(tb, rows, level, numbers, who, cls_of, sizes))
    if n == 0:
        return
    who, cls_of = who[:n], cls_of[:n]
    slack, budget, was = np.empty(n), np.empty(n), np.empty(n, np.int64)
    span = 0.0
    for i in range(n):
        was[i] = weigh_member(tb, whole(who[i]), whole(cls_of[i]), i, slack, budget)
        span = max(span, members.span_of(tb, whole(cls_of[i])))
    place = order_of(sizes[len(numbers) - 1, :n], slack, budget, was)  # the last pool is the whole cluster
    ladder, gone = np.empty(RUNGS), np.zeros(n, np.bool_)
    for i in range(RUNGS):
        ladder[i] = rung(span, whole(i))
    for k in range(len(numbers)):
        pool = whole(numbers[k])
        give_up(
            tb, pool, level, above[pool], room[pool], who, cls_of, sizes[k, :n], slack, budget, was, place, ladder, gone
        )
    for i in range(n):
        settle_member(tb, whole(who[i]), whole(cls_of[i]), slack[i], gone[i])
    views.control(tb)["given_up"] += gone.sum()
    if turns and not gone.all():
        set_patience(tb, level, cls_of, budget)


@kernel
def give_up(
    tb: State,
    pool: int,
    level: int,
    above: float,
    room: float,
    who: NDArray[np.int64],
    cls_of: NDArray[np.int64],
    sizes: NDArray[np.float64],
    slack: NDArray[np.float64],
    budget: NDArray[np.float64],
    was: NDArray[np.int64],
    place: NDArray[np.int64],
    ladder: NDArray[np.float64],
    gone: NDArray[np.bool_],
) -> None:
    """Of those who are bound to a pool (they have a size there) and not ``gone``, add the fewest to these; O(members
    log members + samples log samples)."""
    chosen = np.empty(len(who), np.int64)
    n, before = whole(0), whole(0)
    for i in range(len(who)):
        if sizes[i] >= 0.0 and not gone[i]:
            chosen[n] = i
            n += 1
            before += was[i]
    if n == 0:
        return
    chosen = chosen[:n]
    among = places_among(place, chosen)
    several = (who[chosen], cls_of[chosen], sizes[chosen], slack[chosen], budget[chosen], among)
    count = fewest(tb, pool, level, above, room, several, ladder, members.MARGIN)
    if before > count:
        wary = fewest(tb, pool, level, above, room, several, ladder, members.TURN)
        count = min(before, max(count, wary))
    for i in range(n):
        gone[chosen[i]] = among[i] < count


@kernel
def places_among(place: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of some of the members in the order of giving up, counted among these alone; O(n log n)."""
    n = len(chosen)
    keys, order, found = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        keys[i] = place[chosen[i]]
    sorting.order_by(keys, whole(n), order, found)
    for i in range(n):
        found[order[i]] = i
    return found


@kernel
def find_members(
    tb: State,
    rows: NDArray[np.int64],
    level: int,
    numbers: NDArray[np.int64],
    who: NDArray[np.int64],
    cls_of: NDArray[np.int64],
    sizes: NDArray[np.float64],
) -> int:
    """The members of a level in the order of their first rows, and what they ask for in each pool, -inf where not all
    of one is bound to it; how many; O(pools * (rows + requests + terms * groups of hosts)).

    ``who``: the row of an instance, or -1 - q of request q.
    """
    unit, n = np.full(len(views.requests(tb)), -1, np.int64), whole(0)
    member = np.full(len(rows), -1, np.int64)
    for i in range(len(rows)):
        kind = views.kinds(tb)[views.instances(tb)[rows[i]]["kind"]]
        theirs = views.classes(tb)[kind["cls"]]
        if theirs["level"] != level or not theirs["planned"]:
            continue
        q = whole(request_ledger.decider_of(tb, rows[i]))
        if q >= 0 and unit[q] >= 0:
            member[i] = unit[q]
            continue
        who[n], cls_of[n], sizes[:, n], member[i] = rows[i], kind["cls"], 0.0, n
        if q >= 0:
            unit[q], who[n] = n, -1 - q
        n += 1
    for k in range(len(numbers)):
        add_sizes(tb, rows, member, whole(numbers[k]), sizes[k])
    return n


@kernel
def add_sizes(
    tb: State, rows: NDArray[np.int64], member: NDArray[np.int64], pool: int, sizes: NDArray[np.float64]
) -> None:
    """What members ask for in a pool, -inf where not all of one is bound to it; ``member``: of each row its member, or
    -1; O(rows + terms * groups of hosts)."""
    outside = pools.outside_of(tb, pool)
    for i in range(len(rows)):
        if member[i] >= 0:
            kind = whole(views.instances(tb)[rows[i]]["kind"])
            is_bound = pools.is_bound(tb, pool, kind, outside)
            shape = whole(views.kinds(tb)[kind]["shape"])
            sizes[member[i]] += record.size_in(tb, pool, shape) if is_bound else -np.inf


@kernel
def weigh_member(
    tb: State, who: int, cls: int, i: int, slack: NDArray[np.float64], budget: NDArray[np.float64]
) -> bool:
    """Write V and B of member ``i``; whether the plan before gave it up; O(outages)."""
    now, q = views.control(tb)["now"], whole(-1 - who)
    slack[i] = members.slack_together(tb, q, now) if who < 0 else members.slack_alone(tb, who, cls, now)
    budget[i] = members.budget_of(tb, cls, members.lived_of(tb, who, q, now), now)
    return shift_of(tb, who) > GIVEN_UP


@kernel
def settle_member(tb: State, who: int, cls: int, slack: float, is_gone: bool) -> None:
    """Give a member up or keep it; O(1)."""
    theirs, units = views.classes(tb)[cls], 0.0
    theirs["promises"] += 1
    if is_gone:
        theirs["given_up"] += 1
        units = np.rint((AWAY - 2.0 * max(-MOST, min(MOST, slack))) / SHIFT)
    if who < 0:
        views.requests(tb)[-1 - who]["shift"] = SHIFT * units
    else:
        views.instances(tb)[who]["shift"] = whole(units)


@kernel
def set_patience(tb: State, level: int, cls_of: NDArray[np.int64], budget: NDArray[np.float64]) -> None:
    """By how much more slack an equal gives its place, for each class of a level; O(classes * members)."""
    for c in range(len(views.classes(tb))):
        theirs, total, several = views.classes(tb)[c], 0.0, whole(0)
        if theirs["level"] != level:
            continue
        for i in range(len(budget)):
            if cls_of[i] == c:
                total += budget[i]
                several += 1
        if several == 0 or total <= 0.0:
            continue
        mean, startup = total / several, theirs["alpha"]
        theirs["patience"] = members.turn_of(mean, startup)
        theirs["urgent"] = members.MARGIN * mean + startup
        theirs["pressing"] = min(theirs["patience"], max(members.MARGIN * mean, 3.0 * startup))


@kernel
def order_of(
    sizes: NDArray[np.float64], slack: NDArray[np.float64], budget: NDArray[np.float64], was: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Of each member its place in the order of giving up, the first first: broken ones, then the large, then those that
    were given up before, then who has lost most; O(n log n)."""
    n = len(sizes)
    key = np.empty(n)
    largest = 0.0
    for i in range(n):
        largest = max(largest, sizes[i])
    for i in range(n):
        share = slack[i] / budget[i] if budget[i] > 0.0 else -1.0
        share = max(-10.0, min(1.0, share))
        large = sizes[i] / largest if largest > 0.0 else 0.0
        key[i] = -1e5 * (slack[i] < 0.0) - 1e3 * large * 16.0 - 20.0 * was[i] + share
    place = np.empty(n, np.int64)
    order = np.empty(n, np.int64)
    sorting.order_by(key, whole(n), order, place)
    for i in range(n):
        place[order[i]] = i
    return place


@kernel
def fewest(
    tb: State,
    pool: int,
    level: int,
    above: float,
    room: float,
    several: Several,
    ladder: NDArray[np.float64],
    reserve: float,
) -> int:
    """How many of ``several`` are given up, in their order, so that the budgets of the others pay at every horizon;
    O(members log members + samples log samples)."""
    who, cls_of, sizes, slack, budget, place = several
    n, now = len(sizes), views.control(tb)["now"]
    away, one = np.empty((len(ladder), n)), np.empty(len(ladder))
    for i in range(n):
        q = whole(-1 - who[i]) if who[i] < 0 else whole(-1)
        members.may_be_away(tb, whole(who[i]), q, whole(cls_of[i]), slack[i], budget[i], reserve, now, ladder, one)
        for h in range(len(ladder)):
            away[h, i] = one[h]
    suffix = np.zeros(n + 1)  # what those from a place on ask for
    for i in range(n):
        suffix[place[i]] = sizes[i]
    for i in range(n):
        suffix[n - 1 - i] += suffix[n - i]
    step, gone = views.control(tb)["step"], whole(0)
    base, most = np.empty(record.SAMPLES), max(n, record.SAMPLES)
    by_away, order, scratch = np.empty(n, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    for h in range(len(ladder)):
        count = whole(samples_of(tb, pool, ladder[h]))
        record.curve_of(tb, pool, level, count, base, order, scratch)
        for i in range(count):
            base[i] += above
        most_missing = max(above - room, base[0]) if count > 0 else above - room
        if most_missing + suffix[gone] <= 0.0:
            continue  # nobody would have missed anything
        sorting.order_by(away[h], whole(n), by_away, scratch)
        low, high = gone, whole(n)
        while low < high:
            middle = (low + high) // 2
            if pays(base, count, step, ladder[h], above - room, suffix[middle], sizes, away[h], by_away, place, middle):
                high = middle
            else:
                low = middle + 1
        gone = low
        if gone == n:
            break
    return gone
