"""Delay-aware container scheduling (DACS): algorithms 1 and 2, ties by a draw."""

from __future__ import annotations

from collections.abc import Sequence

from reference.edge import equations
from reference.edge.cluster import Cluster, Draw, Node, Pod, best


def network_delay(pod: Pod, node: Node, cluster: Cluster) -> float:
    """Equations 10 and 11, by the share of users at each login place, seconds."""
    image = cluster.image_time(pod, node)
    data = cluster.delay.transfer * pod.data
    bandwidth = pod.demand.get("network", 0.0) or 1.0
    delay = equations.local_delay(image, data, bandwidth)
    for login, share in pod.logins:
        rtt = cluster.from_login(node, login)
        if rtt is not None:
            delay += share * (equations.remote_delay(0.0, 0.0, bandwidth, rtt, cluster.deviation(node)))
    return delay


def omega(pod: Pod, node: Node, cluster: Cluster) -> float:
    """Lines 2 to 9 of algorithm 2, seconds."""
    delay = cluster.delay
    cpu = equations.granted(pod.demand["cpu"], pod.most("cpu"), node.free["cpu"], delay.phi)
    processing = delay.processing * equations.processing_delay(pod.data, cpu) if pod.data else 0.0
    gamma = equations.contention(len(node.pods), delay.context_switch, delay.competition)
    return equations.omega(delay.alpha, processing, network_delay(pod, node, cluster), gamma)


def rank(delays: Sequence[tuple[float, Node]], cluster: Cluster, draw: Draw) -> Node | None:
    """Of the nodes hardly slower than the fastest, the one with the largest smaller residual (lines 10 to 18)."""
    if not delays:
        return None
    reference = min(value for value, _ in delays)
    final = [node for value, node in delays if equations.acceptable(value, reference, cluster.delay.tolerance)]
    return best(final, lambda node: min(node.free["cpu"], node.free["memory"] / cluster.delay.memory_per_cpu), draw)


def choose(pod: Pod, nodes: Sequence[Node], cluster: Cluster, draw: Draw) -> Node | None:
    return rank([(omega(pod, node, cluster), node) for node in nodes if node.fits(pod)], cluster, draw)
