"""What pods' priorities say, and which pods belong to the system."""

from __future__ import annotations

from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.owners import controlling

DAEMON_SET = "DaemonSet"
BOUND_TO_NODES = (DAEMON_SET, "Node")
"""Owners of pods that every node has; such a pod returns to the node that it left. A static pod's is its Node."""
CRITICAL = 2_000_000_000
"""Priorities from here on are those of system-cluster-critical and system-node-critical: users may not have them."""
CRITICAL_CLASSES = {"system-cluster-critical": CRITICAL, "system-node-critical": CRITICAL + 1000}
"""The priorities that every API server gives to the PriorityClasses that it makes itself."""


def is_bound_to_its_node(pod: Pod) -> bool:
    """Whether a pod is a static one, or a DaemonSet's: whoever sends it away has it back there."""
    owner = controlling(pod.metadata)
    return owner is not None and owner.kind in BOUND_TO_NODES


def is_of_the_system(pod: Pod, services: bool = False) -> bool:
    """Whether a pod is bound to its node, or is critical for the cluster or its node; ``services``: those of DaemonSets
    count as bound no more than others."""
    owner = controlling(pod.metadata)
    serves = services and owner is not None and owner.kind == DAEMON_SET
    return (is_bound_to_its_node(pod) and not serves) or priority_of(pod) >= CRITICAL


def priority_of(pod: Pod) -> int:
    """A pod's priority. The API server sets it from the pod's PriorityClass, or from the cluster's ``globalDefault``;
    without either it is 0."""
    return pod.spec.priority or 0
