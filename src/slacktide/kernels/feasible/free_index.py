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

from slacktide.kernels.builtin import BALANCED, LEAST_REQUESTED, OWN, PACKED
from slacktide.kernels.feasible import own_numbers
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.runtime.plugin_calls import score_of
from slacktide.kernels.runtime.prefetching import prefetch
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State

NOWHERE = -(2**60)  # sums and differences of two stay within 64 bits
PLENTY = 2**58
"""More than any part of a score or amount; sums and differences of two stay within 64 bits."""
BEYOND = 2.0**44  # more than any host has, and its multiples stay within 64 bits
A, B, TIE_A, TIE_B, BOTH, AMOUNTS = 0, 1, 2, 3, 4, 5
LEAN, FREE, ROOM = 20, 20, 26
"""Bits by which A - B and what is free are rounded in the order of leaves, and bits that the latter has there."""
LOW = 6
"""Levels of a tree from its leaves on that are looked for in time."""
SEARCHED = 64
"""Bound checks a host that pay for putting the leaves in order."""


@leaf
def first_part(score: int, x: int, y: int) -> int:
    """A of docs/semantics.md for free fractions x of CPU and y of memory."""
    if score == LEAST_REQUESTED:
        return x + y
    if score == BALANCED:
        return x - y
    if score == PACKED:
        return -y
    return 3 * y - x


@leaf
def second_part(score: int, x: int, y: int) -> int:
    """B of docs/semantics.md."""
    if score == LEAST_REQUESTED:
        return x + y
    if score == BALANCED:
        return y - x
    if score == PACKED:
        return -x
    return 3 * x - y


@leaf
def fraction(amount: int, scale: float) -> int:
    """An amount as a share of the capacity, in units of 2^-40; what is beyond 16 hosts, be it demanded or lacking, is
    16 hosts."""
    return whole(np.rint(max(min(amount * scale, BEYOND), -BEYOND)))


@kernel
def score_by_user(tb: State, h: int, shape: int) -> int:
    """Score of host ``h`` by a user's own function, victims not yet gone counted in ``views.missing(tb)``."""
    count = views.free(tb).shape[1]
    for r in range(count):
        views.amounts(tb)[0, r] = views.capacity(tb)[h, r] * views.unit(tb)[r]
        views.amounts(tb)[1, r] = (views.demand(tb)[shape, r] - views.missing(tb)[r]) * views.unit(tb)[r]
        views.amounts(tb)[2, r] = views.demand(tb)[shape, r] * views.unit(tb)[r]
    own_numbers.fill(tb, h)
    score = score_of(
        views.rules(tb)["own_score"],
        views.amounts(tb)[0],
        views.amounts(tb)[1],
        views.amounts(tb)[2],
        views.numbers(tb),
    )
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
    return min(first_part(score, x, y), second_part(score, x, y)) - views.hosts(tb)[h]["scarce"]


@leaf
def short_of(demand: int, free: int) -> int:
    """Demand less what is free; more than 0 only where something is demanded: who asks for none of it lacks none."""
    return demand - free if demand > 0 else min(-free, whole(0))


@leaf
def has_room(tb: State, h: int, shape: int) -> bool:
    """Whether the free amounts of host ``h`` suffice; leaves what is :func:`short_of` in ``missing``."""
    fits = True
    for r in range(views.free(tb).shape[1]):
        views.missing(tb)[r] = short_of(whole(views.demand(tb)[shape, r]), whole(views.free(tb)[h, r]))
        if views.missing(tb)[r] > 0:
            fits = False
    return fits


@leaf
def prefetch_path(tb: State, h: int) -> None:
    """What :func:`update` will look at on its way up from host ``h``, but for the top, which is at hand; O(1)."""
    root, node = whole(views.groups(tb)[views.hosts(tb)[h]["group"]]["root"]), whole(views.hosts(tb)[h]["leaf"])
    for _ in range(LOW):
        prefetch(views.tree(tb)[root + (node ^ 1)], whole(0))
        node >>= 1


@kernel
def update(tb: State, h: int) -> None:
    """Carry the free amounts of host ``h`` into the index; O(resources * log hosts)."""
    host = views.hosts(tb)[h]
    root = whole(views.groups(tb)[host["group"]]["root"])
    node = whole(host["leaf"])
    tree = views.tree(tb)
    width = tree.shape[1]
    if host["down"]:
        for f in range(width):
            tree[root + node, f] = NOWHERE
    else:
        score = views.rules(tb)["score"]
        x = fraction(max(views.free(tb)[h, 0], 0), views.scale(tb)[h, 0])
        y = fraction(max(views.free(tb)[h, 1], 0), views.scale(tb)[h, 1])
        tree[root + node, A] = first_part(score, x, y) - host["scarce"]
        tree[root + node, B] = second_part(score, x, y) - host["scarce"]
        tree[root + node, TIE_A] = host["tie"]
        tree[root + node, TIE_B] = host["tie"]
        tree[root + node, BOTH] = min(x, y)
        for r in range(width - AMOUNTS):
            tree[root + node, AMOUNTS + r] = max(views.free(tb)[h, r], 0)
    if width == AMOUNTS + 2:
        climb_with_two(tree, root, node)
        return
    node >>= 1
    while node > 0 and combine(tree, root, node):  # what did not change changes nothing above
        node >>= 1


@kernel
def climb_with_two(tree: NDArray[np.int64], root: int, node: int) -> None:
    """Carry a leaf upwards, as far as it changes anything, where there is CPU and memory only; O(log hosts).

    As :func:`combine`, node by node, but what holds below the node it comes from is at hand.
    """
    at = root + node
    a, b, tie_a, tie_b = tree[at, A], tree[at, B], tree[at, TIE_A], tree[at, TIE_B]
    both, cpu, memory = tree[at, BOTH], tree[at, AMOUNTS], tree[at, AMOUNTS + 1]
    while node > 1:
        at = root + (node ^ 1)
        tie = tree[at, TIE_A]
        tie_a = max(tie, tie_a) if tree[at, A] == a else tie if tree[at, A] > a else tie_a
        tie = tree[at, TIE_B]
        tie_b = max(tie, tie_b) if tree[at, B] == b else tie if tree[at, B] > b else tie_b
        a, b, both = max(a, tree[at, A]), max(b, tree[at, B]), max(both, tree[at, BOTH])
        cpu, memory = max(cpu, tree[at, AMOUNTS]), max(memory, tree[at, AMOUNTS + 1])
        node >>= 1
        at = root + node
        changed = (tree[at, A] ^ a) | (tree[at, B] ^ b) | (tree[at, TIE_A] ^ tie_a) | (tree[at, TIE_B] ^ tie_b)
        changed |= (tree[at, BOTH] ^ both) | (tree[at, AMOUNTS] ^ cpu) | (tree[at, AMOUNTS + 1] ^ memory)
        if changed == 0:
            return
        tree[at, A], tree[at, B], tree[at, TIE_A], tree[at, TIE_B] = a, b, tie_a, tie_b
        tree[at, BOTH], tree[at, AMOUNTS], tree[at, AMOUNTS + 1] = both, cpu, memory


@leaf
def keep(tree: NDArray[np.int64], at: int, f: int, value: int) -> bool:
    """Set a field of a node; whether it was another; O(1)."""
    other = tree[at, f] != value
    tree[at, f] = value
    return other


@leaf
def combine(tree: NDArray[np.int64], root: int, node: int) -> bool:
    """What holds below ``node`` of the tree at ``root``, from its two children; whether it changed; O(resources)."""
    at, left, right = root + node, root + 2 * node, root + 2 * node + 1
    changed = False
    for f in range(BOTH, tree.shape[1]):
        changed = keep(tree, at, f, max(tree[left, f], tree[right, f])) or changed
    for part in range(2):
        winner = right if tree[right, part] > tree[left, part] else left
        tie = tree[winner, TIE_A + part]
        if tree[right, part] == tree[left, part]:
            tie = max(tree[left, TIE_A + part], tree[right, TIE_A + part])
        changed = keep(tree, at, part, tree[winner, part]) or changed
        changed = keep(tree, at, TIE_A + part, tie) or changed
    return changed


@leaf
def place_in_order(tree: NDArray[np.int64], at: int) -> int:
    """Where the host of the leaf ``at`` belongs among those of its group: by A - B, then by what is free; O(1)."""
    if tree[at, BOTH] == NOWHERE:
        return whole(NOWHERE)  # it is down
    return (((tree[at, A] - tree[at, B]) >> LEAN) << ROOM) + (tree[at, BOTH] >> FREE)


@leaf
def sift(keys: NDArray[np.int64], order: NDArray[np.int64], at: int, count: int) -> None:
    """Bring the place ``at`` of a heap of ``count``, the largest key first, to where it belongs; O(log count)."""
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and keys[order[child + 1]] > keys[order[child]]:
            child += 1
        if keys[order[child]] <= keys[order[at]]:
            return
        order[at], order[child] = order[child], order[at]
        at = child


@kernel
def order_by(keys: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    """Fill ``order`` with the places of ``keys``, the smallest key first; O(n log n)."""
    count = len(keys)
    for i in range(count):
        order[i] = i
    at = count // 2
    while at > 0:
        at -= 1
        sift(keys, order, at, count)
    end = count - 1
    while end > 0:
        order[0], order[end] = order[end], order[0]
        sift(keys, order, whole(0), end)
        end -= 1


@kernel
def arrange_group(tb: State, g: int, count: int) -> None:
    """Put the leaves of the ``count`` hosts of group ``g`` in order; O(hosts * log hosts)."""
    tree, group = views.tree(tb), views.groups(tb)[g]
    first, leaves = whole(group["first"]), whole(group["root"] + group["width"])
    keys, order, hosts = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        keys[i] = place_in_order(tree, leaves + i)
    order_by(keys, order)
    rows = np.empty((count, tree.shape[1]), np.int64)
    for i in range(count):
        hosts[i] = views.leaf_host(tb)[first + order[i]]
        for f in range(tree.shape[1]):
            rows[i, f] = tree[leaves + order[i], f]
    for i in range(count):
        views.leaf_host(tb)[first + i] = hosts[i]
        views.hosts(tb)[hosts[i]]["leaf"] = group["width"] + i
        for f in range(tree.shape[1]):
            tree[leaves + i, f] = rows[i, f]
    node = whole(group["width"] - 1)
    while node > 0:
        combine(tree, whole(group["root"]), node)
        node -= 1


@kernel
def arrange(tb: State) -> None:
    """Put the leaves of all groups in order again, where many hosts changed and as much was spent on searches since.

    Bounds are exact where the hosts below a node are alike. Which host is found does not depend on the order. It takes
    O(hosts * log hosts), about as long as ``SEARCHED`` bound checks a host.
    """
    control, count = views.control(tb), len(views.hosts(tb))
    if control["changes"] - control["arranged"] <= count // 4:
        return
    if control["bounds"] - control["arranged_bounds"] <= SEARCHED * count:
        return
    control["arranged"], control["arranged_bounds"] = control["changes"], control["bounds"]
    groups = views.groups(tb)
    for g in range(len(groups)):
        end = whole(groups[g + 1]["first"]) if g + 1 < len(groups) else count
        if end - groups[g]["first"] > 2:
            arrange_group(tb, g, whole(end - groups[g]["first"]))


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
    by_a, by_b = tree[node, A] - a, tree[node, B] - b
    if by_a == by_b:
        return min(tree[node, TIE_A], tree[node, TIE_B])
    return tree[node, TIE_A] if by_a < by_b else tree[node, TIE_B]
