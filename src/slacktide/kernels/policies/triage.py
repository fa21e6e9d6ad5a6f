"""Triage: what ``qos-driven`` does otherwise where a class is overloaded (``policy.overload = triage``).

Serving whoever has the least slack keeps all promises while all can be kept. Where they cannot, it
holds everybody just below the promise. Triage gives some up, so that the others are kept
(docs/overload.md).

    Q_j(t), phi_i   as in :mod:`.qos_driven`
    late            below its margin, and Q < -savable: its promise does not count as one that can
                    still be kept; of a class with an alpha of its own, Q < -savable - (alpha_j - alpha),
                    as far behind as the others
    recovers        a class of which an instance makes up for ``savable`` seconds by running for
                    ``recovery`` seconds at most: savable <= (1 / sigma - 1) recovery
    lost            late, and of a class that recovers: its availability is at least the share
                    ``floor`` of its promise; of one that does not, where it runs: late also if the
                    work counts that stopping it would discard
    savable         below its margin and not lost
    overloaded      classes of one rank, in a pass at whose beginning one of theirs that waits is late

**Order of the queue.** Of an overloaded class, those below their margin go by decreasing Q: the
savable first, and whoever is nearest to its promise first. (:func:`turns_round`)

**Eligibility.** For a waiting j of an overloaded class that is below its margin, k may be preempted
where it is no more important, its overhead is within the limit as ever, and

    j is savable, and k is less important, or lost, or Q_k >= phi_k + patience, or k makes room for two,    or
    j is lost,    and k is less important and lost, or less important and Q_k >= phi_k + patience,
                  or Q_k >= phi_k + overload_patience,
                  or k is less important and the class of j does not recover.

So the lost of a class that recovers take what breaks no promise. A promise of 1 or .999 that was
broken stays so for a day or for ever, and those who wait for it are the most important: they take
the place of anybody less important, as ever. (:func:`recovers`) Nor does it help to spare such a one
for its ``floor``, at the price of others, or to stop a batch instance that has its promise for the
work that it would lose. (:func:`is_lost`, :func:`is_given_up`)

On a cluster, a k that nobody makes again (a bare pod) gives its place to nobody as important, is not
given up, and is the last of its rank in the order of victims, also where that is turned round.

k *makes room for two* where it asks for at least twice of everything that j asks for: of requests
that cannot all be kept, giving up one large one keeps several small ones. (:func:`makes_room_for_two`)

One that is not below its margin preempts nobody. Where ``overload_patience`` is less than
``patience``, the latter takes its place. (:func:`allows`)

**Order of victims.** It mirrors that of the queue, as ever: of an overloaded class, those below
their margin go by increasing Q, so that those furthest from their promise leave first.
(:func:`turns_round`)

Who is eligible depends on Q_j only by whether j is savable or lost, and whoever the lost may
preempt the savable may, too. So in place of their Q the search is given a number below every
metric, which of the savable also says what they ask for. (:func:`standing`)
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State

SAVABLE, LOST = -(2.0**45), -(2.0**44)  # below every metric that is not the last resort of arithmetic: 2^33 s and less
EITHER = -(2.0**43)
ROOMS = 2  # of what one asks for, that a large one makes


@leaf
def recovers(tb: State, cls: int) -> bool:
    """Whether an instance of class ``cls`` makes up for being late within ``recovery`` seconds; O(1)."""
    return views.rules(tb)["savable"] <= views.classes(tb)[cls]["slope"] * views.rules(tb)["recovery"]


@leaf
def is_late(tb: State, cls: int, q: float) -> bool:
    """Whether the promise of one of class ``cls`` with metric ``q`` does not count as one that can be kept; O(1).

    Of a class that is planned for the plan says that.
    """
    theirs = views.classes(tb)[cls]
    if theirs["planned"] or views.classes(tb)[theirs["level"]]["unsettled"]:
        return False
    return q < theirs["margin"] and q < theirs["late_below"]


@leaf
def starves(tb: State, row: int, cls: int, q: float, now: float) -> bool:
    """Whether an instance that misses its promise has less than ``floor`` of it: A < floor sigma; O(1).

    With Q = E / sigma - T - alpha and A = E / T that is Q + alpha < (floor - 1) T. Of a promise over a window T is as
    much of it as it has lived.
    """
    floor, alpha = views.rules(tb)["floor"], views.classes(tb)[cls]["alpha"]
    return floor > 0.0 and q + alpha < (floor - 1.0) * window_ledger.owed_lifetime(tb, row, cls, now)


@leaf
def is_lost(tb: State, row: int, cls: int, q: float, now: float) -> bool:
    """Whether an instance of class ``cls`` is given up: it is late, and has what ``floor`` grants it; O(1)."""
    return is_late(tb, cls, q) and not (recovers(tb, cls) and starves(tb, row, cls, q, now))


@leaf
def is_given_up(tb: State, slot: Records, q_k: float, now: float) -> bool:
    """Whether the instance on a host with metric ``q_k`` is lost; O(1).

    Q counts as gone what stopping a batch instance would discard. Where that can be made up for, it is right so. Where
    not, it would give up whoever has work to lose: then Q is asked for as if nothing were discarded.
    """
    if window_ledger.goes_for_good(slot):
        return False
    if not recovers(tb, whole(slot["cls"])):
        q_k = request_ledger.metric_keeping_work(tb, slot, q_k, now)
    return is_lost(tb, whole(slot["row"]), whole(slot["cls"]), q_k, now)


@leaf
def standing(tb: State, row: int, k: int, q_j: float, now: float) -> float:
    """What decides who is eligible for j of kind ``k``, in place of its Q; O(1).

    SAVABLE less its shape, LOST, or inf for nobody; Q itself where its class is not overloaded.
    """
    kind = views.kinds(tb)[k]
    cls = whole(kind["cls"])
    if not views.classes(tb)[cls]["overloaded"]:
        return q_j
    if not q_j < views.classes(tb)[cls]["margin"]:
        return np.inf
    return LOST if is_lost(tb, row, cls, q_j, now) else SAVABLE - kind["shape"]


@leaf
def makes_room_for_two(tb: State, slot: Records, shape: int) -> bool:
    """Whether the instance on a host asks for at least twice of everything that the shape asks for; O(resources)."""
    for r in range(views.demand(tb).shape[1]):
        if views.demand(tb)[slot["shape"], r] < ROOMS * views.demand(tb)[shape, r]:
            return False
    return True


@leaf
def allows(tb: State, slot: Records, q_k: float, cls: int, stands: float, now: float) -> bool:
    """Whether k may be preempted for one of the overloaded class ``cls`` that ``stands`` so, overhead apart.

    O(resources).
    """
    if allows_any(tb, slot, q_k, cls, stands, now):
        return True
    equal = views.classes(tb)[slot["cls"]]["rank"] == views.classes(tb)[cls]["rank"]
    return (
        equal
        and not window_ledger.goes_for_good(slot)
        and stands < LOST
        and makes_room_for_two(tb, slot, whole(SAVABLE - stands))
    )


@leaf
def allows_any(tb: State, slot: Records, q_k: float, cls: int, stands: float, now: float) -> bool:
    """As :func:`allows`, whatever j asks for; O(1)."""
    k, j = views.classes(tb)[slot["cls"]], views.classes(tb)[cls]
    if k["rank"] < j["rank"] or stands > LOST:
        return False
    if k["rank"] > j["rank"] and (stands < LOST or not recovers(tb, cls)):
        return True
    if k["rank"] == j["rank"] and stands == LOST:
        return q_k >= k["margin"] + views.rules(tb)["overload_patience"]
    spare = q_k >= k["margin"] + views.rules(tb)["patience"]
    return spare or is_given_up(tb, slot, q_k, now)


@leaf
def allows_below(tb: State, slot: Records, q_k: float, cls: int, now: float) -> float:
    """As :func:`.qos_driven.eligible_below`, of one that :func:`allows` allowed: the savable only, or the lost too."""
    return EITHER if allows(tb, slot, q_k, cls, LOST, now) else (SAVABLE + LOST) / 2.0


@leaf
def excludes(tb: State, most: float, least: int, cls: int, stands: float) -> bool:
    """Whether :func:`allows` allows nobody where no metric is above ``most``, no rank number above ``least``; O(1)."""
    if most == np.inf:
        return False  # nothing is known of the host, nor of its ranks
    rank = views.classes(tb)[cls]["rank"]
    return least < rank or (stands == LOST and least == rank and most < views.rules(tb)["spare_from"])


@leaf
def none_after(tb: State, slot: Records, q_k: float, cls: int, stands: float) -> bool:
    """Whether :func:`allows` allows neither k nor anybody after it in the order of victims; k is not idle; O(1).

    First come those at or above their margin, by decreasing metric, then the others, the least important first.
    """
    k, j = views.classes(tb)[slot["cls"]], views.classes(tb)[cls]
    if q_k < k["margin"]:
        return k["rank"] < j["rank"] or (stands == LOST and k["rank"] == j["rank"])
    last = j["level"] == views.rules(tb)["levels"] - 1  # nobody is less important
    return stands == LOST and last and q_k < views.rules(tb)["spare_from"]


@leaf
def turns_round(tb: State, cls: int) -> bool:
    """Whether the order by Q, of queue and victims, is turned round for those below the margin of ``cls``; O(1)."""
    return views.classes(tb)[cls]["overloaded"] != 0


@kernel
def tell_overload(tb: State) -> bool:
    """Mark the classes of every rank of which ``some_lost`` says that one waits; whether that is a change.

    Forgets ``some_lost``. O(classes).
    """
    classes = views.classes(tb)
    changed, overloaded = False, 0
    for c in range(len(classes)):
        classes[c]["tier_lost"] = 0
    for c in range(len(classes)):
        if classes[c]["some_lost"]:
            classes[classes[c]["level"]]["tier_lost"] = 1
        classes[c]["some_lost"] = 0
    for c in range(len(classes)):
        found = classes[classes[c]["level"]]["tier_lost"]
        changed = changed or classes[c]["overloaded"] != found
        classes[c]["overloaded"] = found
        overloaded += found
    views.control(tb)["overloaded"] = overloaded
    return changed
