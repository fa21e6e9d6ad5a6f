"""The hosts of each place in a tree, so that delay-aware placement need not look at every host.

Equations are those of Lai, Wang and Wei, 'Delay-Aware Container Scheduling in Kubernetes'.

A node of a place's complete binary tree keeps the fewest instances on a host below it,
which images are present there, and the largest bandwidth and free amounts: no host below
has less contention (equation 18), an image that the node lacks, fetches one faster, is
granted more CPU (equation 9), or has more room.
"""

from __future__ import annotations

from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.network_records import BANDWIDTH, FREE, IMAGES, SERVED
from slacktide.kernels.tables.schema import State

FULL = 2**40  # instances that no host has


@kernel
def update(tb: State, h: int) -> None:
    """Carry what host ``h`` holds into its place's tree as far up as it matters; O(resources * log hosts)."""
    if len(views.site_tree(tb)) == 0:
        return
    root = whole(views.places(tb)[views.place(tb)[h]]["root"])
    tree, node = views.site_tree(tb), whole(views.site_leaf(tb)[h])
    down = views.hosts(tb)[h]["down"] != 0
    tree[root + node, SERVED] = FULL if down else views.hosts(tb)[h]["count"]
    tree[root + node, IMAGES] = views.image_bits(tb)[h]
    network = views.rules(tb)["network"]
    tree[root + node, BANDWIDTH] = views.capacity(tb)[h, network] if network >= 0 else 0
    for r in range(tree.shape[1] - FREE):
        tree[root + node, FREE + r] = NOWHERE if down else max(views.free(tb)[h, r], 0)
    node >>= 1
    while node > 0:
        left, right = root + 2 * node, root + 2 * node + 1
        changed = False
        fewest = min(tree[left, SERVED], tree[right, SERVED])
        if tree[root + node, SERVED] != fewest:
            tree[root + node, SERVED] = fewest
            changed = True
        images = tree[left, IMAGES] | tree[right, IMAGES]
        if tree[root + node, IMAGES] != images:
            tree[root + node, IMAGES] = images
            changed = True
        for f in range(BANDWIDTH, tree.shape[1]):
            most = max(tree[left, f], tree[right, f])
            if tree[root + node, f] != most:
                tree[root + node, f] = most
                changed = True
        if not changed:
            return
        node >>= 1


@leaf
def has_room(tb: State, node: int, shape: int) -> bool:
    """Whether some host below may have room; O(resources)."""
    for r in range(views.demand(tb).shape[1]):
        if views.site_tree(tb)[node, FREE + r] < views.demand(tb)[shape, r]:
            return False
    return True
