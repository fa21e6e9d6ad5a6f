"""How much room there was: a record of the shortage, as long as the longest window, by level of importance.

A sample says of each level what it and those above could use, and what jobs of it and above asked for; both as shares
of what all hosts have, of the resource of which an instance asks for the largest share. While somebody who is kept
waits, what his level could use is the room that those kept hold: holes in which only others fit do not count. So
fragmentation, rules about neighbours and failures enter as measured.

The record has :data:`SAMPLES` places. While it is younger than the longest window its samples move apart as they become
more, so that half of them at least are always there; later it is a ring.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.feasible import host_slots
from slacktide.kernels.plan import pools, sorting
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.queue import waiting_queue
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import GIVEN_UP, SHIFT, State
from slacktide.kernels.tables.window_records import CALENDAR, ROLLING

SAMPLES = 2048
EXACT = 2.0**36
FIRST_STEP = 1.0  # seconds between the first samples

ByLevel = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Taken of a pool, by level: by those kept, by those given up, by those of both that are not bound, by its jobs."""


@leaf
def size_of(tb: State, shape: int) -> float:
    """What a demand takes of all hosts, as the largest share of any resource; O(resources).

    In steps of which sums are exact, whatever their order.
    """
    most, whole_cluster = 0.0, views.room(tb)
    for r in range(views.demand(tb).shape[1]):
        if whole_cluster[r] > 0.0:
            most = max(most, views.demand(tb)[shape, r] / whole_cluster[r])
    return np.rint(most * EXACT) / EXACT


@kernel
def measure_cluster(tb: State) -> None:
    """Note the most that all hosts ever had together, up or down, by resource: of it everything is a share, so that
    what the record says still holds when hosts have gone; O(hosts * resources)."""
    most, capacity = views.room(tb), views.capacity(tb)
    for r in range(capacity.shape[1]):
        total = 0.0
        for h in range(capacity.shape[0]):
            total += capacity[h, r]
        most[r] = max(most[r], total)


@leaf
def size_in(tb: State, pool: int, shape: int) -> float:
    """The same in a pool: where a resource is scarce that others do not need, of that one; O(resources)."""
    r = views.pools(tb)[pool - 1]["resource"] if pool > 0 else pools.NONE
    if r < 0 or views.room(tb)[r] <= 0.0:
        return size_of(tb, shape)
    return np.rint(views.demand(tb)[shape, r] / views.room(tb)[r] * EXACT) / EXACT


@kernel
def free_share(tb: State, pool: int, inside: NDArray[np.bool_], closed: NDArray[np.int64]) -> float:
    """What is free on hosts of a pool (``inside``) that are up and not of a ``closed`` group, as the least share of any
    resource that hosts have, or of that by which the pool is measured; O(hosts * resources)."""
    whole_cluster, free = views.room(tb), views.free(tb)
    least, only = np.inf, whole(views.pools(tb)[pool - 1]["resource"]) if pool > 0 else whole(pools.NONE)
    for r in range(free.shape[1]):
        if whole_cluster[r] <= 0.0 or (only >= 0 and r != only):
            continue
        total = 0.0
        for h in range(free.shape[0]):
            if inside[h] and not views.hosts(tb)[h]["down"] and not closed[views.hosts(tb)[h]["group"]]:
                total += max(0, free[h, r])
        least = min(least, total / whole_cluster[r])
    return np.rint(least * EXACT) / EXACT if least < np.inf else 0.0


@leaf
def is_given_up(tb: State, row: int) -> bool:
    """Whether the present plan gives up an instance, or the request whose ledger decides for it; O(1)."""
    q = request_ledger.decider_of(tb, row)
    if q >= 0:
        return views.requests(tb)[q]["shift"] > GIVEN_UP
    return SHIFT * views.instances(tb)[row]["shift"] > GIVEN_UP


@leaf
def class_of(tb: State, row: int) -> int:
    """The class of an instance; O(1)."""
    return whole(views.kinds(tb)[views.instances(tb)[row]["kind"]]["cls"])


@kernel
def some_host_holds(tb: State, kind: int) -> bool:
    """Whether a host that is up could take one of a kind, were it empty; O(hosts * resources), most often O(1)."""
    for h in range(len(views.hosts(tb))):
        if not views.hosts(tb)[h]["down"] and host_slots.holds_alone(tb, whole(h), kind):
            return True
    return False


@kernel
def is_helped_by_room(tb: State, kind: int, known: NDArray[np.int64]) -> bool:
    """Whether room would help one of a kind that waits. Where no host is there that could take it, all room is for
    others: it takes no part in a plan, nor in the record. ``known``: what was found, by kind; zeros at first."""
    if known[kind] == 0:
        known[kind] = 1 if some_host_holds(tb, kind) else -1
    return known[kind] > 0


@leaf
def has_just_come(tb: State, row: int) -> bool:
    """Whether one of those who came since the last pass waits for the next one alone: nobody knows yet whether room is
    missing. In a live cluster so do all of these, else whoever was not preempted in that pass; O(1)."""
    return views.rules(tb)["live"] != 0 or views.instances(tb)[row]["since"] > views.control(tb)["last_pass"]


@kernel
def count_placed(tb: State, pool: int, inside: NDArray[np.bool_], outside: pools.Outside, by_level: ByLevel) -> float:
    """What instances on hosts of a pool (``inside``) take, and those that are bound to it and run outside: in all, and
    added ``by_level``; O(hosts + instances)."""
    total = 0.0
    kept, given, others, jobs = by_level
    for h in range(len(views.hosts(tb))):
        for i in range(views.hosts(tb)[h]["count"]):
            slot = views.slots(tb)[h, i]
            is_bound = pools.is_bound(tb, pool, whole(views.instances(tb)[slot["row"]]["kind"]), outside)
            if not inside[h] and not is_bound:
                continue
            theirs, size = views.classes(tb)[slot["cls"]], size_in(tb, pool, whole(slot["shape"]))
            total += size
            if is_given_up(tb, whole(slot["row"])):
                given[theirs["level"]] += size
            else:
                kept[theirs["level"]] += size
            if not is_bound:
                others[theirs["level"]] += size
            elif theirs["job"]:
                jobs[theirs["level"]] += size
    return total


@kernel
def count_waiting(
    tb: State,
    pool: int,
    outside: pools.Outside,
    jobs: NDArray[np.float64],
    known: NDArray[np.int64],
    closed: NDArray[np.int64],
) -> tuple[int, bool]:
    """The most important level of which a service waits that is kept, and whether any such or a job waits, of those who
    are bound to a pool; O(queue).

    What jobs ask for is added to ``jobs``, by level. Where somebody waits who is given up, groups of hosts are
    ``closed`` that would do for none of these. ``known`` as for :func:`is_helped_by_room`.
    """
    control, waits, somebody, given_up = views.control(tb), whole(len(jobs)), False, False
    for place in range(control["queue"] + control["incoming"]):
        entry = waiting_queue.entry_at(tb, whole(place))
        if place >= control["queue"] and has_just_come(tb, whole(entry["row"])):
            continue
        if not is_helped_by_room(tb, whole(entry["kind"]), known):
            continue
        if not pools.is_bound(tb, pool, whole(entry["kind"]), outside):
            continue
        kind = views.kinds(tb)[entry["kind"]]
        theirs = views.classes(tb)[kind["cls"]]
        if theirs["job"]:
            jobs[theirs["level"]] += size_in(tb, pool, whole(kind["shape"]))
        elif is_given_up(tb, whole(entry["row"])):
            if not given_up:
                closed[:] = 1
            given_up = True
            for g in range(len(closed)):
                closed[g] &= 1 - views.allowed(tb)[kind["term"], g]
            continue
        else:
            waits = min(waits, whole(theirs["level"]))
        somebody = True
    return waits, somebody


@kernel
def take_sample(tb: State, pool: int, at: int, known: NDArray[np.int64]) -> None:
    """Write how things stand in a pool into place ``at`` of the record; O(hosts + instances + terms * groups of hosts).

    Those of a level who could run elsewhere, too, make way for those who could not; the more important do not.
    """
    levels, inside, outside = whole(views.usable(tb).shape[1]), pools.hosts_of(tb, pool), pools.outside_of(tb, pool)
    kept, given, others, jobs = np.zeros(levels), np.zeros(levels), np.zeros(levels), np.zeros(levels)
    closed = np.zeros(len(views.groups(tb)), np.int64)
    room = count_placed(tb, pool, inside, outside, (kept, given, others, jobs))
    waits, somebody = count_waiting(tb, pool, outside, jobs, known, closed)
    if not somebody:
        room += free_share(tb, pool, inside, closed)
    held = above = asked = 0.0
    for level in range(levels):
        held += kept[level]
        views.usable(tb)[pool, level, at] = (held if level >= waits else room) - above
        held += given[level]
        above += others[level]
        asked += jobs[level]
        views.jobs_asked(tb)[pool, level, at] = asked


@kernel
def longest_window(tb: State) -> float:
    """Seconds of the longest window of any class that is planned for, inf where that is a lifetime; O(classes)."""
    longest = 0.0
    for c in range(len(views.classes(tb))):
        if views.classes(tb)[c]["planned"]:
            longest = max(longest, window_of(tb, whole(c)))
    return longest if longest > 0.0 else np.inf


@leaf
def window_of(tb: State, cls: int) -> float:
    """Seconds of the window of a class; inf for a lifetime; O(1)."""
    theirs = views.classes(tb)[cls]
    if theirs["windowed"] == ROLLING:
        return theirs["length"]
    if theirs["windowed"] == CALENDAR:
        return theirs["ends"] - theirs["begins"]
    return np.inf


@kernel
def keep_every_other(samples: NDArray[np.float64], oldest: int) -> None:
    """Of a full record every other sample, from the second of a ring that begins at ``oldest`` on; O(samples)."""
    kept = np.empty(SAMPLES // 2)
    for i in range(SAMPLES // 2):
        kept[i] = samples[(oldest + 2 * i + 1) % SAMPLES]
    for i in range(SAMPLES // 2):
        samples[i] = kept[i]


@kernel
def thin_out(tb: State) -> None:
    """The record is full, and the longest window longer: keep every other sample; O(levels * samples)."""
    control, oldest = views.control(tb), whole(views.control(tb)["samples"] % SAMPLES)
    for pool in range(pools.MOST + 1):
        if not pools.is_used(tb, whole(pool)):
            continue
        for level in range(views.usable(tb).shape[1]):
            keep_every_other(views.usable(tb)[pool, level], oldest)
            keep_every_other(views.jobs_asked(tb)[pool, level], oldest)
        if pool > 0:
            views.pools(tb)[pool - 1]["since"] = SAMPLES // 2 - kept_samples(tb, whole(pool)) // 2
    control["samples"] = SAMPLES // 2
    control["step"] *= 2.0


@kernel
def pass_time(tb: State, now: float) -> None:
    """It is ``now``, and since the last change things stood as they do; O(1), with a sample O(hosts + instances)."""
    control = views.control(tb)
    if not views.rules(tb)["plans"] or now <= control["sample_at"]:
        return
    if control["unrecorded"] or control["plans"] == 0:  # before the first plan nobody has measured the cluster
        control["sample_at"] = now
        return
    if control["step"] == 0.0:
        control["step"] = FIRST_STEP
    if control["samples"] >= SAMPLES and control["step"] * SAMPLES < longest_window(tb):
        thin_out(tb)
    first, known = whole(-1), np.zeros(len(views.kinds(tb)), np.int64)
    while control["sample_at"] < now:
        at = whole(control["samples"] % SAMPLES)
        for pool in range(pools.MOST + 1):
            if not pools.is_used(tb, whole(pool)):
                continue
            if first < 0:
                take_sample(tb, whole(pool), at, known)
                continue
            for level in range(views.usable(tb).shape[1]):
                views.usable(tb)[pool, level, at] = views.usable(tb)[pool, level, first]
                views.jobs_asked(tb)[pool, level, at] = views.jobs_asked(tb)[pool, level, first]
        if first < 0:
            first = at
        control["samples"] += 1
        control["sample_at"] += control["step"]
        if control["samples"] == SAMPLES and control["step"] * SAMPLES < longest_window(tb):
            thin_out(tb)
            first = whole(-1)


@leaf
def kept_samples(tb: State, pool: int) -> int:
    """How many samples the record of a pool has; O(1)."""
    since = views.pools(tb)[pool - 1]["since"] if pool > 0 else 0
    return min(whole(views.control(tb)["samples"] - since), whole(SAMPLES))


@kernel
def curve_of(
    tb: State,
    pool: int,
    level: int,
    count: int,
    out: NDArray[np.float64],
    order: NDArray[np.int64],
    scratch: NDArray[np.int64],
) -> None:
    """What was missing in a pool for jobs above ``level`` alone (negative: left for others) in the last ``count``
    samples, the largest first, into ``out``; O(samples log samples)."""
    end, missing = whole(views.control(tb)["samples"]), np.empty(count)
    for i in range(count):
        at = (end - count + i) % SAMPLES
        above = views.jobs_asked(tb)[pool, level - 1, at] if level > 0 else 0.0
        missing[i] = views.usable(tb)[pool, level, at] - above
    sorting.order_by(missing, count, order, scratch)
    for i in range(count):
        out[i] = -missing[order[i]]
