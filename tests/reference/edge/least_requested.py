"""The default scheduler of Kubernetes, kube-scheduler: least requested, equations 1 and 2, ties by a draw.

The pod to be placed counts as requested already, as in kube-scheduler itself;
the paper's text leaves it open, and on equal nodes it makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from reference.edge.cluster import Cluster, Draw, Node, Pod, best


def choose(pod: Pod, nodes: Sequence[Node], cluster: Cluster, draw: Draw) -> Node | None:
    del cluster

    def left(node: Node, resource: str) -> float:
        capacity = node.capacity[resource]
        return (node.free[resource] - pod.demand[resource]) / capacity if capacity else 0.0

    return best(
        [node for node in nodes if node.fits(pod)],
        lambda node: (left(node, "cpu") + left(node, "memory")) / 2 * 10,
        draw,
    )
