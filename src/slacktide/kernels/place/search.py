"""Where a waiting request goes: the best host with room, else the best with victims.

Four ways lead to the same host. Everywhere, one by one; everywhere, sharing the
evaluations of requests of equal demand and class within a pass; in a tournament of
what hosts offer, where many distinct demands ask; or, when an earlier failure proved
that nothing else can have become feasible yet, at changed hosts only.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible import free_index, host_slots, leeway, lendable, victim_order
from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.place import offers, ranking, search_free, tournament
from slacktide.kernels.place.evaluations import (
    UNSHARED,
    evaluate,
    forget,
    lasting,
    may_use,
    set_for,
    shown_hopeless,
    skip_or_evaluate,
)
from slacktide.kernels.place.scores import comparing
from slacktide.kernels.place.search_free import FEW_CHANGES
from slacktide.kernels.policies import in_force
from slacktide.kernels.qos.metric import NEAR
from slacktide.kernels.runtime import chance
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State

MANY = 64  # changed hosts that are few even in a small cluster


@kernel
def evaluate_everywhere(tb: State, at: int, kind: int, q_j: float) -> None:
    """Evaluate all hosts into set ``at``; O(instances on them), less where blocks of hosts have bounds."""
    control, limits, count = views.control(tb), views.shared_limit(tb), len(views.hosts(tb))
    shape, cls = whole(views.kinds(tb)[kind]["shape"]), whole(views.kinds(tb)[kind]["cls"])
    blocks = views.classes(tb)[cls]["overloaded"] and not views.rules(tb)["naive"]
    h = whole(0)
    while h < count:
        if blocks and h % lendable.BLOCK == 0:
            control["bounds"] += 1
            if lendable.block_lends_nothing(tb, h, shape, cls, q_j):
                end = min(h + lendable.BLOCK, count)
                limits[at, h:end] = -np.inf
                h = whole(end)
                continue
        if at != UNSHARED or views.allowed(tb)[views.kinds(tb)[kind]["term"], views.hosts(tb)[h]["group"]]:
            skip_or_evaluate(tb, at, h, kind, q_j)
        else:
            limits[at, h] = -np.inf
        h += 1


@kernel
def bring_up_to_date(tb: State, at: int, kind: int, q_j: float) -> None:
    """Evaluate in set ``at`` the hosts that changed since, all where time has moved on; O(changed hosts)."""
    control, record = views.control(tb), views.shared(tb)[at]
    behind = control["changes"] - record["position"]
    current = record["batch"] == control["batch"] or (lasting(tb) and record["batch"] >= 0)
    if in_force.by_metric(tb) and q_j < record["latest"]:
        current = False  # a request that fell behind what it was worth when others were served
    if record["loosened"] != control["loosened"]:
        current = False
    if not victim_order.says_the_same(tb, record["order_mattered"], q_j == record["latest"]):
        current = False
    at_most = len(views.changes(tb))
    if lasting(tb) and record["batch"] != control["batch"]:
        at_most = min(at_most, 2 * len(views.hosts(tb)) + MANY)  # beyond, there is less to look at everywhere
    if at != UNSHARED and current and behind <= at_most:
        for i in range(record["position"], control["changes"]):
            skip_or_evaluate(tb, at, views.changes(tb)[i % len(views.changes(tb))], kind, q_j)
    else:
        record["reference"] = q_j
        forget(tb, at)
        evaluate_everywhere(tb, at, kind, q_j)
    if record["order_mattered"]:
        control["order_mattered"] = 1
    record["batch"] = control["batch"]
    record["loosened"] = control["loosened"]
    record["latest"] = q_j
    record["position"] = control["changes"]


@kernel
def still_feasible(tb: State, at: int, h: int, kind: int, q_j: float) -> bool:
    """Whether the request can preempt on a listed host, evaluated anew where its metric may make a difference."""
    limit = views.shared_limit(tb)[at, h]
    if limit == -np.inf:
        return False
    lenient = q_j <= views.shared(tb)[at]["reference"] + views.rules(tb)["tolerance"]
    looked = views.shared_look(tb)[at, h]
    fell = views.hosts(tb)[h]["fell"] > looked or views.control(tb)["tightened"] > looked
    if not fell and (q_j < limit - NEAR or lenient):
        return True
    views.shared(tb)[at]["changed"] = 1
    evaluate(tb, at, h, views.kinds(tb)[kind]["shape"], views.kinds(tb)[kind]["cls"], q_j)
    return views.shared_limit(tb)[at, h] != -np.inf


@kernel
def all_still_feasible(tb: State, at: int, q_j: float) -> bool:
    """Whether :func:`still_feasible` would evaluate no listed host anew, as none did before; O(1)."""
    control, record = views.control(tb), views.shared(tb)[at]
    if control["told"] > record["sound"] or control["tightened"] > record["sound"]:
        return False
    lenient = q_j <= record["reference"] + views.rules(tb)["tolerance"]
    return lenient or q_j < record["least_limit"] - NEAR


@kernel
def pick(tb: State, at: int, kind: int, q_j: float) -> int:
    """Best host to preempt on by the evaluations of set ``at``, or -1; O(feasible hosts), O(1) with a heap of them."""
    record, hosts = views.shared(tb)[at], views.shared_hosts(tb)
    term, job = views.kinds(tb)[kind]["term"], views.kinds(tb)[kind]["job"]
    spare = ranking.spare_time(tb, whole(views.kinds(tb)[kind]["cls"]), q_j)
    if record["heaped"] and spare == np.inf and all_still_feasible(tb, at, q_j):
        best = ranking.first(tb, at)
        if best < 0 or may_use(tb, best, term, job):
            return best
        record["scans"] = -FEW_CHANGES  # a heap is of little use to those who may not use all hosts
    elif record["heaped"]:
        record["scans"] = 0
    best = NOBODY
    kept, looks, count = whole(0), views.control(tb)["looks"], record["feasible"]
    record["heaped"], record["changed"] = 0, 0
    for i in range(count):
        h = whole(hosts[at, i])
        if not still_feasible(tb, at, h, kind, q_j):
            views.shared_listed(tb)[at, h] = 0
            continue
        hosts[at, kept] = h
        kept += 1
        allowed = views.allowed(tb)[term, views.hosts(tb)[h]["group"]]
        if allowed and ranking.beats(tb, at, h, best, kind, spare) and not host_slots.has_sibling(tb, h, job):
            best = h
    record["feasible"] = kept
    record["sound"] = looks
    record["scans"] += 1
    if at != UNSHARED and record["scans"] > 1 and not record["changed"] and spare == np.inf:
        ranking.arrange(tb, at)
    return best


@leaf
def can_still_wait(tb: State, kind: int, q_j: float) -> bool:
    """Whether it may preempt nobody with this metric, by the settings or as nobody's is larger; O(1)."""
    if views.kinds(tb)[kind]["never"]:
        return True
    return in_force.can_still_wait(tb, views.kinds(tb)[kind]["cls"], q_j)


@leaf
def bring_metrics_up_to_date(tb: State) -> None:
    """Before looking for victims: hosts forget the metrics that changed from elsewhere."""
    if views.control(tb)["stirred"] > 0 and not lasting(tb):
        leeway.tell_hosts(tb)


@kernel
def look_everywhere(tb: State, kind: int, q_j: float) -> int:
    """Best host of all for a waiting request, or -1."""
    host = search_free.find_free_anew(tb, kind)
    if host >= 0:
        return host
    control, rules, pair = views.control(tb), views.rules(tb), views.kinds(tb)[kind]["pair"]
    if can_still_wait(tb, kind, q_j):
        return -1
    bring_metrics_up_to_date(tb)
    cls = whole(views.kinds(tb)[kind]["cls"])
    if views.classes(tb)[cls]["overloaded"] and not rules["naive"]:
        control["bounds"] += 1
        if lendable.nobody_lends(tb, whole(views.kinds(tb)[kind]["shape"]), cls, q_j):
            return -1
    if offers.worthwhile(tb, kind, q_j):
        host = tournament.find(tb, kind, q_j)
        if host != tournament.UNDECIDED:
            return host
    at = set_for(tb, pair) if rules["shared"] else whole(UNSHARED)
    bring_up_to_date(tb, at, kind, q_j)
    return pick(tb, at, kind, q_j)


@kernel
def look_at_changes(tb: State, kind: int, q_j: float, position: int) -> int:
    """Best of the hosts that changed since ``position`` of the change log, or -1; O(changed hosts).

    Hosts that did not change have no room. So the best of all that have room is the best of the changed ones, and where
    many changed the free index finds it sooner.
    """
    control = views.control(tb)
    if search_free.indexed(tb) and control["changes"] - position > FEW_CHANGES:
        host = search_free.find_free_anew(tb, kind)
        if host >= 0 or can_still_wait(tb, kind, q_j):
            return host
    control["looks"] += 1
    look = control["looks"]
    shape, cls = views.kinds(tb)[kind]["shape"], views.kinds(tb)[kind]["cls"]
    term, job = views.kinds(tb)[kind]["term"], views.kinds(tb)[kind]["job"]
    free_best, best = NOBODY, NOBODY
    score, spare = whole(NOWHERE), ranking.spare_time(tb, whole(cls), q_j)
    for i in range(position, control["changes"]):
        h = whole(views.changes(tb)[i % len(views.changes(tb))])
        host = views.hosts(tb)[h]
        if host["looked"] == look or host["down"] or not views.allowed(tb)[term, host["group"]]:
            continue
        host["looked"] = look
        if host_slots.has_sibling(tb, h, job):
            continue
        if free_index.has_room(tb, h, shape):
            control["operations"] += 1
            mine_here = comparing.allocation_score(tb, h, shape)
            if (
                free_best < 0
                or mine_here > score
                or (mine_here == score and host["tie"] > views.hosts(tb)[free_best]["tie"])
            ):
                free_best, score = h, mine_here
        elif free_best < 0 and not shown_hopeless(tb, h, whole(shape), whole(cls), q_j):
            evaluate(tb, UNSHARED, h, shape, cls, q_j)
            if views.shared_limit(tb)[UNSHARED, h] != -np.inf and ranking.beats(tb, UNSHARED, h, best, kind, spare):
                best = h
    if free_best >= 0 and comparing.needed(tb):
        return search_free.find_free(tb, kind)
    return free_best if free_best >= 0 else best


@kernel
def look_at_random(tb: State, kind: int, q_j: float, row: int) -> int:
    """Best of the first ``relaxed`` share of hosts that prove feasible, in random order, or -1."""
    control, count = views.control(tb), len(views.hosts(tb))
    shape, cls = views.kinds(tb)[kind]["shape"], views.kinds(tb)[kind]["cls"]
    term, job = views.kinds(tb)[kind]["term"], views.kinds(tb)[kind]["job"]
    bring_metrics_up_to_date(tb)
    enough = np.ceil(views.rules(tb)["relaxed"] * count)
    h = chance.draw(views.rules(tb)["seed"], chance.SEARCH_START, row, control["batch"]) % count
    free_best, best, found = NOBODY, NOBODY, 0
    score, spare = whole(NOWHERE), ranking.spare_time(tb, whole(cls), q_j)
    for i in range(count):
        if i > 0:
            h = (h + views.rules(tb)["stride"]) % count
        host = views.hosts(tb)[h]
        if not views.allowed(tb)[term, host["group"]] or host["down"] or host_slots.has_sibling(tb, h, job):
            continue
        evaluate(tb, UNSHARED, h, shape, cls, q_j)
        if views.shared_limit(tb)[UNSHARED, h] == -np.inf:
            continue
        found += 1
        if free_index.has_room(tb, h, shape):
            here = comparing.allocation_score(tb, h, shape)
            if free_best < 0 or here > score or (here == score and host["tie"] > views.hosts(tb)[free_best]["tie"]):
                free_best, score = h, here
        elif ranking.beats(tb, UNSHARED, h, best, kind, spare):
            best = h
        if found >= enough:
            break
    return free_best if free_best >= 0 else best
