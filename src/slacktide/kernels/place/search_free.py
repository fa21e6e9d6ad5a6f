"""The best host with room, of all that a request may use: by the free index, or one by one."""

from __future__ import annotations

from slacktide.kernels.builtin import OWN
from slacktide.kernels.feasible import free_index, host_slots, room_to_come
from slacktide.kernels.feasible.free_index import (
    NOWHERE,
    bound,
    first_part,
    fraction,
    largest_tie,
    second_part,
)
from slacktide.kernels.place.scores import comparing
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.runtime.prefetching import prefetch
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State

FEW_CHANGES = 64  # beyond, the free index is faster


@leaf
def parts_of(tb: State, g: int, kind: int) -> tuple[int, int, int]:
    """What a demand takes of A, of B, and of the smaller free fraction, on the hosts of group ``g``; O(1)."""
    demand = views.demand(tb)[views.kinds(tb)[kind]["shape"]]
    h = views.leaf_host(tb)[views.groups(tb)[g]["first"]]
    x = fraction(demand[0], views.scale(tb)[h, 0])
    y = fraction(demand[1], views.scale(tb)[h, 1])
    score = views.rules(tb)["score"]
    return first_part(score, x, y), second_part(score, x, y), min(x, y)


@kernel
def limit_of_group(tb: State, g: int, kind: int) -> int:
    """No host of group ``g`` scores higher; NOWHERE where none can have room; O(resources)."""
    views.control(tb)["bounds"] += 1
    a, b, both = parts_of(tb, g, kind)
    demand = views.demand(tb)[views.kinds(tb)[kind]["shape"]]
    return bound(views.tree(tb), whole(views.groups(tb)[g]["root"] + 1), demand, a, b, both)


@kernel
def free_in_group(tb: State, g: int, kind: int, host: int, score: int) -> int:
    """Best host with room in group ``g`` that beats ``host`` (or -1) of ``score``; best first, depth first.

    Of two children the one with the better bound comes first.
    """
    group, control = views.groups(tb)[g], views.control(tb)
    root, width = group["root"], group["width"]
    tree, branches = views.tree(tb), views.branches(tb)
    demand = views.demand(tb)[views.kinds(tb)[kind]["shape"]]
    a, b, both = parts_of(tb, g, kind)
    tie = views.hosts(tb)[host]["tie"] if host >= 0 else whole(-1)
    top = 0
    branches[0, 0], branches[0, 1] = 1, group["limit"]
    while top >= 0:
        node, limit = branches[top, 0], branches[top, 1]
        top -= 1
        if limit < score or limit == NOWHERE or (limit == score and largest_tie(tree, root + node, a, b) <= tie):
            continue
        if node >= width:
            control["operations"] += 1
            h = views.leaf_host(tb)[group["first"] + node - width]
            record = views.kinds(tb)[kind]
            held = room_to_come.lacks(tb, h, whole(record["shape"]), whole(record["cls"]))
            if not held and not host_slots.has_sibling(tb, h, record["job"]):
                host, score, tie = h, limit, views.hosts(tb)[h]["tie"]
            continue
        control["bounds"] += 2
        first, last = 2 * node, 2 * node + 1
        if 4 * node < width:
            prefetch(tree[root + 4 * node], whole(0))
            prefetch(tree[root + 4 * node + 1], whole(0))
            prefetch(tree[root + 4 * node + 2], whole(0))
            prefetch(tree[root + 4 * node + 3], whole(0))
        at_first, at_last = bound(tree, root + first, demand, a, b, both), bound(tree, root + last, demand, a, b, both)
        gain = at_last - at_first
        if gain == 0:  # among equals the one with the largest draw excludes most of the others
            gain = largest_tie(tree, root + last, a, b) - largest_tie(tree, root + first, a, b)
        if gain > 0:
            first, last, at_first, at_last = last, first, at_last, at_first
        if at_last != NOWHERE:
            top += 1
            branches[top, 0], branches[top, 1] = last, at_last
        if at_first != NOWHERE:
            top += 1
            branches[top, 0], branches[top, 1] = first, at_first
    return host


@kernel
def score_with_room(tb: State, h: int, shape: int) -> int:
    """Allocation score of a host that has room."""
    free_index.has_room(tb, h, shape)
    return comparing.allocation_score(tb, h, shape)


@kernel
def find_free_by_index(tb: State, kind: int) -> int:
    """Best host with room, or -1; O(groups) plus the branches that cannot be excluded.

    The group with the best bound comes first, then the others, of which it excludes most.
    """
    free_index.arrange(tb)
    host, best = NOBODY, NOBODY
    score, most = whole(NOWHERE), whole(NOWHERE)
    groups = views.groups(tb)
    shape, term = views.kinds(tb)[kind]["shape"], views.kinds(tb)[kind]["term"]
    for g in range(len(groups)):
        groups[g]["limit"] = limit_of_group(tb, g, kind) if views.allowed(tb)[term, g] else whole(NOWHERE)
        if groups[g]["limit"] > most:
            best, most = g, groups[g]["limit"]
    if best < 0:
        return host
    for turn in range(-1, len(groups)):
        g = best if turn < 0 else turn
        if groups[g]["limit"] == NOWHERE or groups[g]["limit"] < score or turn == best:
            continue
        found = free_in_group(tb, g, kind, host, score)
        if found != host:
            host = found
            score = score_with_room(tb, host, shape)
    return host


@kernel
def find_free_one_by_one(tb: State, kind: int) -> int:
    """Best host with room, or -1; O(hosts)."""
    host = NOBODY
    score = whole(NOWHERE)
    shape, term, job = views.kinds(tb)[kind]["shape"], views.kinds(tb)[kind]["term"], views.kinds(tb)[kind]["job"]
    checked = 0
    for h in range(len(views.hosts(tb))):
        if not views.allowed(tb)[term, views.hosts(tb)[h]["group"]] or views.hosts(tb)[h]["down"]:
            continue
        checked += 1
        if not free_index.has_room(tb, h, shape) or host_slots.has_sibling(tb, h, job):
            continue
        if room_to_come.lacks(tb, whole(h), whole(shape), whole(views.kinds(tb)[kind]["cls"])):
            continue
        mine = comparing.allocation_score(tb, h, shape)
        if host < 0 or mine > score or (mine == score and views.hosts(tb)[h]["tie"] > views.hosts(tb)[host]["tie"]):
            host, score = h, mine
    if host >= 0:  # else the search for victims counts the same hosts
        views.control(tb)["operations"] += checked
    return host


@leaf
def indexed(tb: State) -> bool:
    """Whether the free index finds the best host with room; O(1)."""
    return views.rules(tb)["score"] != OWN and not comparing.needed(tb) and not views.rules(tb)["naive"]


@kernel
def find_free(tb: State, kind: int) -> int:
    """Best host with room that the request may use, or -1."""
    if comparing.needed(tb):
        return comparing.find_free(tb, kind)
    if indexed(tb):
        return find_free_by_index(tb, kind)
    return find_free_one_by_one(tb, kind)


@kernel
def find_free_anew(tb: State, kind: int) -> int:
    """As :func:`find_free`; where an earlier search found no room, only hosts that something left; O(these)."""
    control, record = views.control(tb), views.kinds(tb)[views.kinds(tb)[kind]["alike"]]
    behind = control["releases"] - record["no_room"]
    if record["no_room"] >= 0 and behind <= FEW_CHANGES and not views.rules(tb)["naive"]:
        room = False
        for i in range(record["no_room"], control["releases"]):
            h = whole(views.releases(tb)[i % len(views.releases(tb))])
            room = room or (not views.hosts(tb)[h]["down"] and free_index.has_room(tb, h, record["shape"]))
        control["bounds"] += behind
        if not room:
            record["no_room"] = control["releases"]
            return -1
    host = find_free(tb, kind)
    record["no_room"] = -1 if host >= 0 else control["releases"]
    return host
