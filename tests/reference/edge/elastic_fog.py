"""ElasticFog (Nguyen et al. 2020): an application's pods in proportion to the traffic of each node.

The source resizes a running application: it collects the traffic that enters at
each node and gives the node pods in proportion, at least one.  Here pods come
one after the other and stay, so what it left open is chosen thus:

- Traffic of an application is that of the pods seen so far, this one included:
  one unit each, divided by the shares of its users.
- Traffic of users on a node enters there.  That of a place that is no node (the
  master, a site) enters at all nodes in inverse proportion to their round-trip
  time from it: near nodes carry most of it, and one at no distance all of it.
- The target of a node is its part of the traffic times the pods so far, this
  one included.  The pod goes to the node that lacks most of its target; nodes
  without any pod of the application come first (at least one each).
- Nodes that do not fit are passed over; ties are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from reference.edge.cluster import SAME, Cluster, Draw, Node, Pod, best


def entering(login: str, cluster: Cluster) -> dict[str, float]:
    """By node, which part of a login place's traffic enters there; the parts sum to 1."""
    names = [node.name for node in cluster.nodes]
    if login in names:
        return {login: 1.0}
    near = [1.0 / max(cluster.distance(login, node.place), SAME) for node in cluster.nodes]
    return {name: weight / sum(near) for name, weight in zip(names, near, strict=True)}


def choose(pod: Pod, nodes: Sequence[Node], cluster: Cluster, draw: Draw) -> Node | None:
    seen = [pod] + [other for node in cluster.nodes for other in node.pods if other.application == pod.application]
    traffic = {node.name: 0.0 for node in cluster.nodes}
    for other in seen:
        for login, share in other.logins:
            for name, part in entering(login, cluster).items():
                traffic[name] += share * part

    def lacks(node: Node) -> float:
        there = sum(other.application == pod.application for other in node.pods)
        deficit = traffic[node.name] * len(seen) / (sum(traffic.values()) or 1.0) - there
        return deficit if there else deficit + len(seen) + 1.0

    return best([node for node in nodes if node.fits(pod)], lacks, draw)
