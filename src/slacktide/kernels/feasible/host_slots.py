"""Who is on which host: adding, removing, and the order in which victims are taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.feasible import affinity, free_index, grants, leeway, lendable, pod_groups, site_tree, sparing
from slacktide.kernels.policies import in_force, pieces, qos_driven, triage
from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.qos.metric import NEAR, running, slope
from slacktide.kernels.qos.metric_dynamics import ceiling_at, pace
from slacktide.kernels.runtime import chance
from slacktide.kernels.runtime.compiling import entry, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import FLAT, Records, State

INSTANT = 2.0**-21  # seconds; times are multiples of twice that, so that what holds so long holds now only


@kernel
def touch(tb: State, h: int) -> None:
    """Note that the contents of host ``h`` changed; O(log hosts)."""
    host = views.hosts(tb)[h]
    set_version(tb, h, host["version"] + 1)


@kernel
def set_version(tb: State, h: int, version: int) -> None:
    """As :func:`touch`, with the number of changes given: undoing a trial brings the old one back; O(log hosts)."""
    host = views.hosts(tb)[h]
    host["version"] = version
    host["tie"] = chance.draw(views.rules(tb)["seed"], chance.HOST_TIE, h, version)
    look_again(tb, h)
    free_index.update(tb, h)
    site_tree.update(tb, h)


@kernel
def look_again(tb: State, h: int) -> None:
    """Note that metrics on host ``h`` changed, in whatever direction; O(1)."""
    views.hosts(tb)[h]["sorted_until"] = -np.inf
    if in_force.ever_by_metric(tb):
        views.ceilings(tb)[h]["peak"] = np.inf
    lendable.forget(tb, h)
    sparing.look_through(tb, h)
    control = views.control(tb)
    views.changes(tb)[control["changes"] % len(views.changes(tb))] = h
    control["changes"] += 1


@kernel
def wake(tb: State) -> None:
    """Hosts that spare one less by now count as changed; O(instances + log hosts) for each."""
    while sparing.next_instant(tb) <= views.control(tb)["now"]:
        look_again(tb, whole(sparing.first_host(tb)))


@kernel
def note_release(tb: State, h: int) -> None:
    """Note that host ``h`` may have room for more than before; O(1)."""
    control = views.control(tb)
    views.releases(tb)[control["releases"] % len(views.releases(tb))] = h
    control["releases"] += 1


@kernel
def add(tb: State, h: int, row: int, kind: int, on: float, now: float) -> None:
    """Put instance ``row`` on host ``h``; its ledger must be up to date; O(resources + log hosts)."""
    instance = views.instances(tb)[row]
    free_index.prefetch_path(tb, h)
    slot = views.slots(tb)[h, views.hosts(tb)[h]["count"]]
    slot["row"] = row
    slot["admitted"] = views.admission(tb)[row]
    slot["tie"] = chance.draw(views.rules(tb)["seed"], chance.VICTIM_TIE, row, whole(instance["starts"]))
    slot["batch"] = views.control(tb)["batch"]
    slot["put_at"] = now
    slot["cls"] = views.kinds(tb)[kind]["cls"]
    slot["shape"] = views.kinds(tb)[kind]["shape"]
    slot["job"] = views.member(tb)[row] if len(views.member(tb)) > 0 else views.kinds(tb)[kind]["job"]
    slot["request"] = request_ledger.decider_of(tb, row)
    window_ledger.fill_slot(tb, row, slot, now, on)
    if len(views.granted(tb)) > 0:
        grants.take(tb, row, h, whole(slot["shape"]))
    occupy(tb, h)


@kernel
def occupy(tb: State, h: int) -> None:
    """Count the instance written to the slot behind the last of host ``h``; O(resources + log hosts)."""
    host = views.hosts(tb)[h]
    slot = views.slots(tb)[h, host["count"]]
    host["count"] += 1
    if host["count"] > views.control(tb)["most"]:
        views.control(tb)["most"] = host["count"]
    if slot["request"] >= 0:
        host["shared"] += 1
    row, shape = whole(slot["row"]), whole(slot["shape"])
    pod_groups.count(tb, row, whole(1))
    pod_groups.has_changed(tb, slot["request"] >= 0)
    for r in range(views.free(tb).shape[1]):
        views.free(tb)[h, r] -= grants.taken(tb, row, shape, r)
    if len(views.counters(tb)) > 0:
        affinity.count(tb, whole(views.instances(tb)[row]["kind"]), h, whole(1))
    touch(tb, h)


@kernel
def remove(tb: State, h: int, row: int) -> None:
    """Take instance ``row`` off host ``h``, keeping the others' order; O(instances on it + log hosts)."""
    host = views.hosts(tb)[h]
    free_index.prefetch_path(tb, h)
    count = host["count"]
    at = slot_of(tb, h, row)
    shape = whole(views.slots(tb)[h, at]["shape"])
    pod_groups.count(tb, row, whole(-1))
    pod_groups.has_changed(tb, views.slots(tb)[h, at]["request"] >= 0)
    if views.slots(tb)[h, at]["request"] >= 0:
        host["shared"] -= 1
    for r in range(views.free(tb).shape[1]):
        views.free(tb)[h, r] += grants.taken(tb, row, shape, r)
    if len(views.counters(tb)) > 0:
        affinity.count(tb, whole(views.instances(tb)[row]["kind"]), h, whole(-1))
    for i in range(at, count - 1):
        views.slots(tb)[h, i] = views.slots(tb)[h, i + 1]
    host["count"] = count - 1
    note_release(tb, h)
    touch(tb, h)


@kernel
def slot_of(tb: State, h: int, row: int) -> int:
    """The slot of an instance that is on host ``h``; O(instances on it)."""
    at = whole(0)
    while views.slots(tb)[h, at]["row"] != row:
        at += 1
    return at


@kernel
def least_row(tb: State, h: int) -> int:
    """The least row of the instances on host ``h``, which must have one; O(instances on it).

    The slots of a host are in the order in which somebody last looked for victims, if anybody did.
    """
    row = whole(views.slots(tb)[h, 0]["row"])
    for i in range(1, views.hosts(tb)[h]["count"]):
        row = min(row, whole(views.slots(tb)[h, i]["row"]))
    return row


@kernel
def has_sibling(tb: State, h: int, job: int) -> bool:
    """Whether host ``h`` runs an instance of the anti-affine job; O(instances on it)."""
    if job < 0:
        return False
    for i in range(views.hosts(tb)[h]["count"]):
        if views.slots(tb)[h, i]["job"] == job:
            return True
    return False


@kernel
def sort_by_priority(tb: State, h: int) -> None:
    """Bring host ``h`` into victim order, where no metric is asked for; O(n^2), O(n) when nearly sorted."""
    slots, spare = views.slots(tb), views.slots(tb).shape[1] - 1
    for i in range(1, views.hosts(tb)[h]["count"]):
        k = i
        while k > 0 and in_force.later_victim_by_class(tb, slots[h, k - 1], slots[h, i]):
            k -= 1
        if k == i:
            continue
        slots[h, spare] = slots[h, i]
        for at in range(i, k, -1):
            slots[h, at] = slots[h, at - 1]
        slots[h, k] = slots[h, spare]


@kernel
def swap(tb: State, h: int, k: int) -> None:
    """Exchange slots k - 1 and k of host ``h``."""
    end = views.slots(tb).shape[1] - 1
    views.slots(tb)[h, end] = views.slots(tb)[h, k - 1]
    views.slots(tb)[h, k - 1] = views.slots(tb)[h, k]
    views.slots(tb)[h, k] = views.slots(tb)[h, end]


@kernel
def moves_alike(a: Records, b: Records, classes: Records, now: float) -> bool:
    """Whether the metrics of two instances keep their distance to the bit until a start-up ends; O(1)."""
    if now < a["on"] or now < b["on"]:
        return now < a["on"] and now < b["on"]
    if a["request"] == FLAT or b["request"] == FLAT:
        return a["request"] == b["request"]
    if a["cls"] != b["cls"]:
        return False
    return classes[a["cls"]]["whole"] or running(a, now) == running(b, now)


@kernel
def stays_before(a: Records, b: Records, gap: float, classes: Records, now: float) -> float:
    """Until when the metric of ``a``, now ``gap`` >= 0 above ``b``'s, surely stays above it; O(1).

    Metrics are linear between the ends of start-ups (docs/metric.md), so two of
    them meet once at the most before the next such end.
    """
    if moves_alike(a, b, classes, now):
        return np.inf
    if gap < NEAR:
        return now
    closing = slope(b, classes, now) - slope(a, classes, now)
    return now + (gap - NEAR) / closing - NEAR if closing > 0.0 else np.inf


@kernel
def keeps_tier(tb: State, slot: Records, q: float, now: float) -> float:
    """Until when an instance surely moves as now and stays on its side of its margin; O(1)."""
    until = slot["on"] if now < slot["on"] else np.inf
    if not views.rules(tb)["mirrored"]:
        return until
    gap = views.classes(tb)[slot["cls"]]["margin"] - q
    rise = slope(slot, views.classes(tb), now)
    if (gap > 0.0 and rise > 0.0) or (gap <= 0.0 and rise < 0.0):
        return min(until, now + (abs(gap) - NEAR) / abs(rise) - NEAR)
    return until


@leaf
def is_turned(tb: State, slot: Records, tier: int) -> bool:
    """Whether those of a victim's tier go by increasing metric; O(1)."""
    return tier > 0 and triage.turns_round(tb, slot["cls"]) and not window_ledger.goes_for_good(slot)


@leaf
def is_turned_between(tb: State, a: Records, b: Records, tier: int) -> bool:
    """The same of two of one tier: those that nobody makes again come behind all of it; O(1)."""
    return is_turned(tb, b, tier) and not window_ledger.goes_for_good(a)


@kernel
def order_by_metric(tb: State, h: int, now: float, q: NDArray[np.float64], tiers: NDArray[np.int64]) -> None:
    """Sort the slots of host ``h``, their metrics and tiers into victim order; O(n^2), O(n) when nearly sorted."""
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        mine = request_ledger.metric_of(tb, slot, now)
        low, tie = qos_driven.victim_tier(tb, slot, mine), slot["tie"]
        turned = is_turned(tb, slot, low)
        k = i
        while k > 0 and qos_driven.later_victim(
            tiers[k - 1], q[k - 1], views.slots(tb)[h, k - 1]["tie"], low, mine, tie,
            turned and not window_ledger.goes_for_good(views.slots(tb)[h, k - 1]),
        ):  # fmt: skip
            swap(tb, h, k)
            q[k], tiers[k] = q[k - 1], tiers[k - 1]
            k -= 1
        q[k], tiers[k] = mine, low


@kernel
def sort_by_metric(tb: State, h: int, now: float) -> None:
    """Bring host ``h`` into victim order and note how long it holds; O(n^2), O(n) when nearly sorted."""
    count = views.hosts(tb)[h]["count"]
    q, tiers = views.slack(tb), views.ranks(tb)  # scratch that nobody else needs now
    order_by_metric(tb, h, now, q, tiers)
    if views.hosts(tb)[h]["shared"] > 0:
        for i in range(1, count):
            if tiers[i - 1] == tiers[i]:
                leeway.keep_order(tb, views.slots(tb)[h, i - 1], views.slots(tb)[h, i], q[i - 1], q[i], now)
        if views.hosts(tb)[h]["moves_at"] == now:
            note_this_instant(tb, h, now, q)
        else:
            note_shared_motion(tb, h, now, q, tiers)
        return
    until, peak = np.inf, -np.inf
    for i in range(count):
        slot = views.slots(tb)[h, i]
        peak = max(peak, q[i])
        until = min(until, keeps_tier(tb, slot, q[i], now))
        if i > 0 and tiers[i - 1] == tiers[i]:
            before = views.slots(tb)[h, i - 1]
            if is_turned_between(tb, before, slot, tiers[i]):
                meet = stays_before(slot, before, q[i] - q[i - 1], views.classes(tb), now)
            else:
                meet = stays_before(before, slot, q[i - 1] - q[i], views.classes(tb), now)
            until = min(until, meet)
    views.hosts(tb)[h]["sorted_until"] = until
    note_ceiling(tb, h, peak, now)


@kernel
def note_shared_motion(tb: State, h: int, now: float, q: NDArray[np.float64], tiers: NDArray[np.int64]) -> None:
    """How long the order of host ``h`` holds, and its ceiling, where requests' ledgers decide; O(instances on it)."""
    ceiling, classes = views.ceilings(tb)[h], views.classes(tb)
    views.hosts(tb)[h]["moves_at"] = now
    until, steady, rise, most, peak, least = np.inf, np.inf, 0.0, NEAR, -np.inf, whole(0)
    above, above_blur = 0.0, 0.0
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        mine, holds, blur = pace(tb, slot, now)
        steady, rise, most = min(steady, holds), max(rise, mine), max(most, blur)
        peak = max(peak, leeway.most_of(tb, slot, q[i], now))
        least = max(least, classes[slot["cls"]]["rank"])
        if views.rules(tb)["mirrored"] and tiers[i] >= 0:
            until = min(until, meets(abs(classes[slot["cls"]]["margin"] - q[i]), blur, mine, q[i], slot, tb, now))
        if (
            i > 0
            and tiers[i - 1] == tiers[i]
            and not moves_as_one(views.slots(tb)[h, i - 1], slot, q[i - 1], q[i], mine == above)
        ):
            gap, closing, blurred = q[i - 1] - q[i], mine - above, blur + above_blur
            if is_turned_between(tb, views.slots(tb)[h, i - 1], slot, tiers[i]):
                gap, closing = -gap, -closing
            if not gap >= blurred:
                until = now
            elif closing > 0.0:
                until = min(until, now + (gap - blurred) / closing - NEAR)
        above, above_blur = mine, blur
    views.hosts(tb)[h]["sorted_until"] = min(until, steady)
    ceiling["rise"], ceiling["slack"], ceiling["least"], ceiling["until"] = rise, 4.0 * most, least, steady
    lower_ceiling(tb, h, peak, now)


@kernel
def note_this_instant(tb: State, h: int, now: float, q: NDArray[np.float64]) -> None:
    """The order of host ``h`` and its ceiling hold now; how long is not worth computing twice at one instant."""
    ceiling, peak, least = views.ceilings(tb)[h], -np.inf, whole(0)
    for i in range(views.hosts(tb)[h]["count"]):
        peak = max(peak, leeway.most_of(tb, views.slots(tb)[h, i], q[i], now))
        least = max(least, views.classes(tb)[views.slots(tb)[h, i]["cls"]]["rank"])
    views.hosts(tb)[h]["sorted_until"] = ceiling["until"] = now + INSTANT
    ceiling["least"] = least
    lower_ceiling(tb, h, peak, now)


@kernel
def order_by_pieces(tb: State, h: int, now: float, metrics: bool) -> float:
    """Sort the slots of host ``h`` as a user's own policy says, idle ones first where metrics matter; the largest
    metric. O(n^2), O(n) when nearly sorted."""
    first, second, peak = views.victim_first(tb), views.victim_second(tb), -np.inf
    spare = whole(len(first) - 1)
    for i in range(views.hosts(tb)[h]["count"]):
        slot = views.slots(tb)[h, i]
        q = in_force.worth(tb, slot, now) if metrics else 0.0
        peak = max(peak, q)
        pieces.place_victim(tb, slot, q, spare, now)
        if metrics and request_ledger.is_idle(tb, slot):
            first[spare], second[spare] = -np.inf, -q
        tie, k = slot["tie"], whole(i)
        while k > 0 and pieces.leaves_later(tb, k - 1, views.slots(tb)[h, k - 1]["tie"], spare, tie):
            swap(tb, h, k)
            first[k], second[k] = first[k - 1], second[k - 1]
            k -= 1
        first[k], second[k] = first[spare], second[spare]
    return peak


@kernel
def sort_by_pieces(tb: State, h: int, now: float) -> None:
    """Bring host ``h`` into the order of victims of a user's own policy, and note how long it holds: for this instant,
    or while contents stay; O(n^2), O(n) when nearly sorted."""
    metrics, ceiling = in_force.by_metric(tb), views.ceilings(tb)[h]
    peak = order_by_pieces(tb, h, now, metrics)
    if metrics and (views.hosts(tb)[h]["shared"] > 0 or pieces.weigh(tb)):
        ceiling["until"] = now + INSTANT
        lower_ceiling(tb, h, peak, now)
    elif metrics and ceiling["peak"] < np.inf and ceiling["until"] == np.inf:
        lower_ceiling(tb, h, peak, now)
    elif metrics:
        note_ceiling(tb, h, peak, now)
    moves = metrics and views.rules(tb)["pieces_move"] & pieces.LEAVES
    views.hosts(tb)[h]["sorted_until"] = now + INSTANT if moves else np.inf


@leaf
def meets(gap: float, blur: float, rise: float, q: float, slot: Records, tb: State, now: float) -> float:
    """Until when an instance ``gap`` away from its margin surely stays on its side; O(1)."""
    below = q < views.classes(tb)[slot["cls"]]["margin"]
    if (below and rise > 0.0) or (not below and rise < 0.0):
        return max(now, now + (gap - blur) / abs(rise) - NEAR)
    return now if gap < blur else np.inf


@leaf
def moves_as_one(a: Records, b: Records, q_a: float, q_b: float, alike: bool) -> bool:
    """Whether two instances keep their order as far as it is known; one infinitely far above stays above; O(1).

    Two of one request that are equal and move ``alike`` stay equal to the bit.
    """
    same = a["request"] >= 0 and a["request"] == b["request"] and alike
    return q_a == np.inf or (same and q_a == q_b)


@kernel
def note_ceiling(tb: State, h: int, peak: float, now: float) -> None:
    """Bound the metrics on host ``h`` from now on by a line through the largest; O(instances on it)."""
    classes, ceiling = views.classes(tb), views.ceilings(tb)[h]
    rise, slack, least = 0.0, 0.0, whole(0)
    for i in range(views.hosts(tb)[h]["count"]):
        theirs = classes[views.slots(tb)[h, i]["cls"]]
        rise = max(rise, theirs["slope"])
        least = max(least, theirs["rank"])
        if not theirs["whole"]:
            slack = 4.0 * NEAR
    ceiling["rise"] = rise
    ceiling["until"] = np.inf
    ceiling["slack"] = slack
    ceiling["least"] = least
    lower_ceiling(tb, h, peak, now)


@leaf
def lower_ceiling(tb: State, h: int, peak: float, now: float) -> None:
    """Draw the bound on host ``h`` through its largest metric of this instant, while its contents stay; O(1)."""
    views.ceilings(tb)[h]["peak"] = peak
    views.ceilings(tb)[h]["time"] = now


@leaf
def holds_alone(tb: State, h: int, k: int) -> bool:
    """Whether host ``h``, up or down, would do for one of kind ``k`` with nobody else on it; O(resources)."""
    kind = views.kinds(tb)[k]
    fits = views.allowed(tb)[kind["term"], views.hosts(tb)[h]["group"]] != 0
    for r in range(views.capacity(tb).shape[1]):
        fits = fits and views.demand(tb)[kind["shape"], r] <= views.capacity(tb)[h, r]
    return fits


@leaf
def hopeless(tb: State, h: int, cls: int, q_j: float, now: float) -> bool:
    """Whether metrics and ranks on host ``h`` show that nobody is eligible for one of class ``cls``; O(1)."""
    ceiling = views.ceilings(tb)[h]
    return in_force.excludes(tb, ceiling_at(ceiling, now), whole(ceiling["least"]), cls, q_j)


@kernel
def sort_victims(tb: State, h: int, now: float) -> None:
    """Bring the slots of host ``h`` into victim order where they are not; O(1) when nothing can have changed."""
    if now < views.hosts(tb)[h]["sorted_until"] and not views.rules(tb)["naive"]:
        return
    if pieces.decide(tb):
        sort_by_pieces(tb, h, now)
    elif in_force.by_metric(tb):
        sort_by_metric(tb, h, now)
    else:
        sort_by_priority(tb, h)
        views.hosts(tb)[h]["sorted_until"] = np.inf


@entry
def fill(tb: State) -> None:
    """Bring every host into the free index before anything happens; O(hosts * log hosts)."""
    for h in range(len(views.hosts(tb))):
        host = views.hosts(tb)[h]
        host["tie"] = chance.draw(views.rules(tb)["seed"], chance.HOST_TIE, h, host["version"])
        host["sorted_until"] = -np.inf
        views.ceilings(tb)[h]["peak"] = np.inf
        free_index.update(tb, h)
        site_tree.update(tb, h)
        sparing.look_through(tb, whole(h))
