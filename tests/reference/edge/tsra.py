"""TSRA (Yin et al. 2018): as many tasks as possible within their deadlines.

A task's time is that of its execution on the node, which the node's tasks share
equally, up to each one's limit, and of transmitting its image and its data.
What the source leaves open is chosen thus:

- The pod goes where most tasks of the node keep their deadlines with it
  compared with before; among equals where it is done first, then by a draw.
- Data of users on the node itself need no transmission; others' need the data
  volume over the demanded bandwidth.  Round-trip times do not enter: that is
  what delay-aware scheduling adds.
- Pods without data (those of the cluster itself) have no task to share with.
"""

from __future__ import annotations

from collections.abc import Sequence

from reference.edge.cluster import Cluster, Draw, Node, Pod, best


def task_time(pod: Pod, node: Node, tasks: int, cluster: Cluster) -> float:
    """Execution beside ``tasks - 1`` others plus transmission, seconds."""
    cpu = min(pod.most("cpu"), node.capacity["cpu"] / tasks)
    away = sum(share for login, share in pod.logins if login != node.name)
    bandwidth = pod.demand.get("network", 0.0) or 1.0
    sending = cluster.delay.transfer * pod.data / bandwidth * away
    return cluster.delay.processing * pod.data / cpu + sending + cluster.image_time(pod, node)


def choose(pod: Pod, nodes: Sequence[Node], cluster: Cluster, draw: Draw) -> Node | None:
    def kept(tasks: list[Pod], node: Node) -> int:
        return sum(task_time(task, node, len(tasks), cluster) <= task.deadline for task in tasks)

    def gained(node: Node) -> int:
        tasks = [other for other in node.pods if other.data > 0]
        return kept([*tasks, pod], node) - kept(tasks, node)

    fitting = [node for node in nodes if node.fits(pod)]
    most = max((gained(node) for node in fitting), default=0)

    def time(node: Node) -> float:
        return task_time(pod, node, 1 + sum(other.data > 0 for other in node.pods), cluster)

    return best([node for node in fitting if gained(node) == most], lambda node: -time(node), draw)
