"""What a few hours of a cluster's series say: what is new, what changed and what ended in them."""

from __future__ import annotations

import msgspec

INFO = "kube_pod_info"
WISHES = {
    "Deployment": ("kube_deployment_spec_replicas", "deployment", "kube_deployment_created"),
    "StatefulSet": ("kube_statefulset_replicas", "statefulset", "kube_statefulset_created"),
}
"""Which series say how many pods are wanted, the label with the name, and which series says since when it is there."""
NODES: dict[str, tuple[tuple[str, ...], str]] = {
    "kube_node_created": (("node",), ""),
    "kube_node_status_condition": (("node",), 'condition="Ready",status="true"'),
    "kube_node_spec_unschedulable": (("node",), ""),
    "kube_node_spec_taint": (("node", "key", "value", "effect"), ""),
    "kube_node_status_allocatable": (("node", "resource"), 'resource!~"attachable_volumes.*"'),
}
"""Series of nodes, their labels that are asked for, and which of them."""
Moment = tuple[list[str], float, float | None]
"""A label set, from when on, and which value; None: it is not there any more."""


class Chunk(msgspec.Struct):
    """What was found between two instants; times are seconds since 1970.

    ready: ``(uid, at, value)`` of 0: not ready, and 1: ready, ``at`` as near as samples say it, or the instant since
    when it is. going: told to go when, and until when. bound: ``(uid, node, at)``.
    """

    begin: float
    end: float
    pods: list[list[str]] = msgspec.field(default_factory=list)
    created: dict[str, float] = msgspec.field(default_factory=dict)
    owners: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    requests: list[tuple[str, str, str, float]] = msgspec.field(default_factory=list)
    inits: list[tuple[str, str, str, float]] = msgspec.field(default_factory=list)
    sidecars: list[tuple[str, str]] = msgspec.field(default_factory=list)
    totals: list[tuple[str, str, str, str, float]] = msgspec.field(default_factory=list)
    labels: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    selectors: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    tolerations: list[list[str]] = msgspec.field(default_factory=list)
    bound: list[tuple[str, str, float]] = msgspec.field(default_factory=list)
    ready: list[tuple[str, float, int]] = msgspec.field(default_factory=list)
    going: list[tuple[str, float, float]] = msgspec.field(default_factory=list)
    final: list[tuple[str, str, float, str]] = msgspec.field(default_factory=list)
    preempted: list[str] = msgspec.field(default_factory=list)
    gone: dict[str, float] = msgspec.field(default_factory=dict)
    replicasets: list[list[str]] = msgspec.field(default_factory=list)
    jobs: list[list[str]] = msgspec.field(default_factory=list)
    parallel: list[tuple[str, str, float]] = msgspec.field(default_factory=list)
    jobs_over: list[tuple[str, str, float, bool]] = msgspec.field(default_factory=list)
    jobs_gone: list[tuple[str, str, float]] = msgspec.field(default_factory=list)
    wishes: list[tuple[str, str, str, float, float | None]] = msgspec.field(default_factory=list)
    nodes: dict[str, list[Moment]] = msgspec.field(default_factory=dict)
    node_labels: list[tuple[dict[str, str], float]] = msgspec.field(default_factory=list)
    victims: float = 0.0
    budgets: int = 0
    unseen: list[tuple[float, float]] = msgspec.field(default_factory=list)
