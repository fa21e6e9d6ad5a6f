"""The best host with room, found by branch and bound.

Hosts of equal capacity that satisfy the same terms form a group; each group has a
complete binary tree over its hosts. A node keeps, over the hosts below it, the
largest of each free amount, of the two linear parts of the allocation score (with the
largest tie draw among the hosts that have it), and of the smaller of the free
fractions of CPU and memory: hosts that are full of one but not of the other would
else look roomy together. Built-in scores are ``min(A_h - A_d, B_h - B_d)`` with whole
numbers A, B linear in free fractions (docs/semantics.md), so a node's bound is exact
arithmetic, and equal scores are told apart by the tie draw without visiting all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.builtin import BALANCED, LEAST_REQUESTED, OWN
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.runtime.plugin_calls import score_of
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State

NOWHERE = -(2**60)  # sums and differences of two stay within 64 bits
BEYOND = 2.0**44  # more than any host has, and its multiples stay within 64 bits
A, B, TIE_A, TIE_B, BOTH, AMOUNTS = 0, 1, 2, 3, 4, 5


@leaf
def first_part(score: int, x: int, y: int) -> int:
    """A of docs/semantics.md for free fractions x of CPU and y of memory."""
    if score == LEAST_REQUESTED:
        return x + y
    if score == BALANCED:
        return x - y
    return 3 * y - x


@leaf
def second_part(score: int, x: int, y: int) -> int:
    """B of docs/semantics.md."""
    if score == LEAST_REQUESTED:
        return x + y
    if score == BALANCED:
        return y - x
    return 3 * x - y


@leaf
def fraction(amount: int, scale: float) -> int:
    """An amount as a share of the capacity, in units of 2^-40; a demand beyond any host is one of 16 hosts."""
    return whole(np.rint(min(amount * scale, BEYOND)))


@kernel
def score_by_user(tb: State, h: int, shape: int) -> int:
    """Score of host ``h`` by a user's own function, victims not yet gone counted in ``views.missing(tb)``."""
    count = views.free(tb).shape[1]
    for r in range(count):
        views.amounts(tb)[0, r] = views.capacity(tb)[h, r] * views.unit(tb)[r]
        views.amounts(tb)[1, r] = (views.demand(tb)[shape, r] - views.missing(tb)[r]) * views.unit(tb)[r]
        views.amounts(tb)[2, r] = views.demand(tb)[shape, r] * views.unit(tb)[r]
    score = score_of(views.rules(tb)["own_score"], views.amounts(tb)[0], views.amounts(tb)[1], views.amounts(tb)[2])
    if not abs(score) < float(-NOWHERE):
        views.control(tb)["broken"] = 1
        return whole(NOWHERE)
    return whole(score)


@kernel
def allocation_score(tb: State, h: int, shape: int) -> int:
    """Score of host ``h`` for a demand, when ``views.missing(tb)`` is demand less free amounts; O(1)."""
    score = views.rules(tb)["score"]
    cpu = views.demand(tb)[shape, 0] - views.missing(tb)[0]
    memory = views.demand(tb)[shape, 1] - views.missing(tb)[1]
    if score == OWN:
        return score_by_user(tb, h, shape)
    x = fraction(cpu, views.scale(tb)[h, 0]) - fraction(views.demand(tb)[shape, 0], views.scale(tb)[h, 0])
    y = fraction(memory, views.scale(tb)[h, 1]) - fraction(views.demand(tb)[shape, 1], views.scale(tb)[h, 1])
    return min(first_part(score, x, y), second_part(score, x, y))


@leaf
def has_room(tb: State, h: int, shape: int) -> bool:
    """Whether the free amounts of host ``h`` suffice; leaves demand less free in ``missing``; O(resources)."""
    fits = True
    for r in range(views.free(tb).shape[1]):
        views.missing(tb)[r] = views.demand(tb)[shape, r] - views.free(tb)[h, r]
        if views.missing(tb)[r] > 0:
            fits = False
    return fits


@kernel
def update(tb: State, h: int) -> None:
    """Carry the free amounts of host ``h`` into the index; O(resources * log hosts)."""
    host = views.hosts(tb)[h]
    root = views.groups(tb)[host["group"]]["root"]
    node = whole(host["leaf"])
    tree = views.tree(tb)
    width = tree.shape[1]
    if host["down"]:
        for f in range(width):
            tree[root + node, f] = NOWHERE
    else:
        score = views.rules(tb)["score"]
        x = fraction(views.free(tb)[h, 0], views.scale(tb)[h, 0])
        y = fraction(views.free(tb)[h, 1], views.scale(tb)[h, 1])
        tree[root + node, A] = first_part(score, x, y)
        tree[root + node, B] = second_part(score, x, y)
        tree[root + node, TIE_A] = host["tie"]
        tree[root + node, TIE_B] = host["tie"]
        tree[root + node, BOTH] = min(x, y)
        for r in range(width - AMOUNTS):
            tree[root + node, AMOUNTS + r] = views.free(tb)[h, r]
    node >>= 1
    while node > 0:
        left, right = root + 2 * node, root + 2 * node + 1
        for f in range(BOTH, width):
            tree[root + node, f] = max(tree[left, f], tree[right, f])
        for part in range(2):
            winner = right if tree[right, part] > tree[left, part] else left
            tree[root + node, part] = tree[winner, part]
            tree[root + node, TIE_A + part] = tree[winner, TIE_A + part]
            if tree[right, part] == tree[left, part]:
                tree[root + node, TIE_A + part] = max(tree[left, TIE_A + part], tree[right, TIE_A + part])
        node >>= 1


@leaf
def bound(tree: NDArray[np.int64], node: int, demand: NDArray[np.int64], a: int, b: int, both: int) -> int:
    """No host below ``node`` scores higher; NOWHERE where none can have room."""
    if tree[node, BOTH] < both:
        return NOWHERE
    for r in range(len(demand)):
        if tree[node, AMOUNTS + r] < demand[r]:
            return NOWHERE
    return min(tree[node, A] - a, tree[node, B] - b)


@leaf
def largest_tie(tree: NDArray[np.int64], node: int, a: int, b: int) -> int:
    """No host below ``node`` that reaches its bound has a larger tie draw: it must have the part that limits."""
    if tree[node, A] - a <= tree[node, B] - b:
        return tree[node, TIE_A]
    return tree[node, TIE_B]
