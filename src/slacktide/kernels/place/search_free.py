"""The best host with room, of all that a request may use: by the free index, or one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.builtin import OWN
from slacktide.kernels.feasible import free_index, host_slots
from slacktide.kernels.feasible.free_index import (
    NOWHERE,
    TIE_A,
    A,
    B,
    bound,
    first_part,
    fraction,
    largest_tie,
    second_part,
)
from slacktide.kernels.place.scores import comparing
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State

FEW_CHANGES = 64  # beyond, the free index is faster


@kernel
def free_in_group(tb: State, g: int, kind: int, host: int, score: int, stack: NDArray[np.int64]) -> int:
    """Best host with room in group ``g`` that beats ``host`` (or -1) of ``score``; best first, depth first."""
    group = views.groups(tb)[g]
    root, width = group["root"], group["width"]
    tree = views.tree(tb)[root : root + 2 * width]
    demand = views.demand(tb)[views.kinds(tb)[kind]["shape"]]
    h0 = views.leaf_host(tb)[group["first"]]
    x = fraction(demand[0], views.scale(tb)[h0, 0])
    y = fraction(demand[1], views.scale(tb)[h0, 1])
    a, b, both = first_part(views.rules(tb)["score"], x, y), second_part(views.rules(tb)["score"], x, y), min(x, y)
    tie = views.hosts(tb)[host]["tie"] if host >= 0 else whole(-1)
    top = 0
    stack[0] = 1
    while top >= 0:
        node = stack[top]
        top -= 1
        views.control(tb)["bounds"] += 1
        limit = bound(tree, node, demand, a, b, both)
        if limit < score or limit == NOWHERE or (limit == score and largest_tie(tree, node, a, b) <= tie):
            continue
        if node >= width:
            views.control(tb)["operations"] += 1
            h = views.leaf_host(tb)[group["first"] + node - width]
            if not host_slots.has_sibling(tb, h, views.kinds(tb)[kind]["job"]):
                host, score, tie = h, limit, views.hosts(tb)[h]["tie"]
            continue
        left, right = 2 * node, 2 * node + 1
        gain = tree[right, A] + tree[right, B] - tree[left, A] - tree[left, B]
        if gain == 0:  # among equals the one with the largest draw excludes most of the others
            gain = tree[right, TIE_A] - tree[left, TIE_A]
        first = right if gain > 0 else left
        stack[top + 1] = 4 * node + 1 - first
        stack[top + 2] = first
        top += 2
    return host


@kernel
def score_with_room(tb: State, h: int, shape: int) -> int:
    """Allocation score of a host that has room."""
    free_index.has_room(tb, h, shape)
    return comparing.allocation_score(tb, h, shape)


@kernel
def find_free_by_index(tb: State, kind: int) -> int:
    """Best host with room, or -1; O(groups) plus the branches that cannot be excluded."""
    host = NOBODY
    score = whole(NOWHERE)
    stack = np.empty(130, np.int64)
    term = views.kinds(tb)[kind]["term"]
    for g in range(len(views.groups(tb))):
        if views.allowed(tb)[term, g]:
            found = free_in_group(tb, g, kind, host, score, stack)
            if found != host:
                host = found
                score = score_with_room(tb, host, views.kinds(tb)[kind]["shape"])
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
        mine = comparing.allocation_score(tb, h, shape)
        if host < 0 or mine > score or (mine == score and views.hosts(tb)[h]["tie"] > views.hosts(tb)[host]["tie"]):
            host, score = h, mine
    if host >= 0:  # else the search for victims counts the same hosts
        views.control(tb)["operations"] += checked
    return host


@leaf
def indexed(tb: State) -> bool:
    """Whether the free index finds the best host with room; O(1)."""
    return views.rules(tb)["free_index"] and views.rules(tb)["score"] != OWN and not comparing.needed(tb)


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
    if views.rules(tb)["feasible_time"] and record["no_room"] >= 0 and behind <= FEW_CHANGES:
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
