"""KCSS (Menouer 2021): TOPSIS over the states that the nodes would be in with the pod.

Each criterion is a column, normalised by its Euclidean length; a node's value is
its distance from the worst of all columns over the sum of its distances from
worst and best.  Weights are equal.  What the source or the data leave open:

- CPU and memory utilisation: more is better (it packs).  Running containers: fewer is better, they are a load.
- Disk utilisation: hosts have no disk here; it would be equal and decide nothing.
- Power: less is better, the usual straight line from half of the peak when idle
  to the peak when busy; peaks are proportional to CPU capacity.
- Image transfer time: less is better, none where the image is present.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from reference.edge.cluster import Cluster, Draw, Node, Pod, best

IDLE = 0.5
"""Power of an idle host as a part of its peak."""


def criteria(pod: Pod, node: Node, cluster: Cluster) -> tuple[float, ...]:
    """CPU and memory utilisation, containers, power and image time with the pod; costs are negative."""
    cpu, memory = (
        node.used(resource) + (pod.demand[resource] / node.capacity[resource] if node.capacity[resource] else 0.0)
        for resource in ("cpu", "memory")
    )
    power = node.capacity["cpu"] * (IDLE + (1 - IDLE) * cpu)
    return cpu, memory, -len(node.pods) - 1.0, -power, -cluster.image_time(pod, node)


def topsis(rows: Sequence[tuple[float, ...]]) -> list[float]:
    """Closeness to the best, 0 to 1, by row; rows that are all alike: 0."""
    lengths = [sqrt(sum(value * value for value in column)) or 1.0 for column in zip(*rows, strict=True)]
    scaled = [[value / length for value, length in zip(row, lengths, strict=True)] for row in rows]
    top, bottom = (tuple(map(pick, zip(*scaled, strict=True))) for pick in (max, min))

    def away(row: Sequence[float], point: Sequence[float]) -> float:
        return sqrt(sum((a - b) ** 2 for a, b in zip(row, point, strict=True)))

    sums = [(away(row, bottom), away(row, bottom) + away(row, top)) for row in scaled]
    return [from_worst / both if both else 0.0 for from_worst, both in sums]


def choose(pod: Pod, nodes: Sequence[Node], cluster: Cluster, draw: Draw) -> Node | None:
    fitting = [node for node in nodes if node.fits(pod)]
    if not fitting:
        return None
    values = topsis([criteria(pod, node, cluster) for node in fitting])
    chosen = best(range(len(fitting)), values.__getitem__, draw)
    return None if chosen is None else fitting[chosen]
