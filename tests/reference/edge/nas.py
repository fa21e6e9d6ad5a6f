"""Network-aware scheduling (NAS; Santos et al. 2019): the preferred node while it fits, then by distance to it.

What the source leaves open: among nodes at one distance (all nodes of the
preferred site, for one) a draw decides, and so it does when a pod prefers none.
The source's check of bandwidth is the fit of resource ``network``.
"""

from __future__ import annotations

from collections.abc import Sequence

from reference.edge.cluster import Cluster, Draw, Node, Pod, best


def choose(pod: Pod, nodes: Sequence[Node], cluster: Cluster, draw: Draw) -> Node | None:
    def distance(node: Node) -> float:
        if not pod.preferred:
            return 0.0
        rtt = cluster.from_login(node, pod.preferred)
        return -1.0 if rtt is None else rtt  # the preferred node itself comes before all others

    return best([node for node in nodes if node.fits(pod)], lambda node: -distance(node), draw)
