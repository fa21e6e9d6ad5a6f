"""Pods and nodes: the fields that a scheduler reads."""

from __future__ import annotations

import msgspec

from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.metadata import (
    Condition,
    Instant,
    LabelSelector,
    Metadata,
    NodeSelector,
    NodeSelectorTerm,
    Part,
    Reference,
)


class Resources(Part, frozen=True):
    """Requests and limits by resource name, as quantities; ``claims`` name dynamic resources."""

    requests: dict[str, str] = msgspec.field(default_factory=dict)
    limits: dict[str, str] = msgspec.field(default_factory=dict)


class ContainerPort(Part, frozen=True):
    """A container's port; ``host_port`` 0 takes none of the node's."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(name="hostIP", default="")


class RestartRule(Part, frozen=True):
    """What happens when a container ends in a certain way; of the rule only what it does."""

    action: str = ""


class Container(Part, frozen=True):
    """A container; an init container with ``restart_policy`` Always is a sidecar."""

    name: str = ""
    image: str = ""
    resources: Resources | None = None
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()
    ports: tuple[ContainerPort, ...] = ()


class PreferredNodes(Part, frozen=True):
    """A node term that counts ``weight`` (1 to 100) where it matches."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Part, frozen=True):
    """Nodes a pod must or would rather run on."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: tuple[PreferredNodes, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class PodAffinityTerm(Part, frozen=True):
    """Pods selected by labels and namespaces, seen within one value of ``topology_key``."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PreferredPods(Part, frozen=True):
    """A pod term that counts ``weight`` (1 to 100) where it matches."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Part, frozen=True):
    """Pods that a pod must or would rather be near, or away from (anti-affinity has the same form)."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[PreferredPods, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(Part, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Part, frozen=True):
    """Taints a pod tolerates; ``operator`` is Equal where absent, an empty effect means all."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(Part, frozen=True):
    """How evenly pods that match the selector must lie over the values of ``topology_key``."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""
    match_label_keys: tuple[str, ...] = ()


class SystemSpread(TopologySpreadConstraint, frozen=True, tag="system"):
    """One that kube-scheduler adds by default: nodes without the keys of the others count for it all the same."""


class SchedulingGate(Part, frozen=True):
    """A pod with any of these is not to be scheduled yet."""

    name: str


class ClaimVolume(Part, frozen=True):
    """A volume that is a PersistentVolumeClaim of the pod's namespace."""

    claim_name: str


class EphemeralVolume(Part, frozen=True):
    """A volume whose claim, named POD-VOLUME, is made with the pod; only its presence matters."""


class Volume(Part, frozen=True):
    """A volume: what ties the pod to nodes. Of volumes from other sources only the name is decoded."""

    name: str
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None


class PodResourceClaim(Part, frozen=True):
    """A claim on dynamic resources: one that is there, or one that is made for the pod from a template."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Part, frozen=True):
    """The group a pod is to be scheduled with (Kubernetes 1.36)."""

    pod_group_name: str | None = None


class WorkloadReference(Part, frozen=True):
    """The group a pod is to be scheduled with (Kubernetes 1.35): one of a Workload's, and which replica of it."""

    name: str
    pod_group: str
    pod_group_replica_key: str = ""


class PodSpec(Part, frozen=True):
    """What a pod asks for."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    restart_policy: str = ""
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] = msgspec.field(default_factory=dict)
    resources: Resources | None = None
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: int | None = None


class Waiting(Part, frozen=True):
    """Why a container does not run yet, in a word of the kubelet's."""

    reason: str = ""


class Running(Part, frozen=True):
    """Since when a container runs."""

    started_at: Instant | None = None


class Terminated(Part, frozen=True):
    """When a container that has ended ran, and how it ended."""

    started_at: Instant | None = None
    finished_at: Instant | None = None
    exit_code: int = 0


class ContainerState(Part, frozen=True):
    """What a container does: one of these, or nothing that is known."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part, frozen=True):
    """How a container is; ``allocated_resources`` is what the node set aside, while a resize is under way.

    ``last_state`` is how its run before this one ended.
    """

    name: str
    ready: bool = False
    allocated_resources: dict[str, str] = msgspec.field(default_factory=dict)
    resources: Resources | None = None
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class MadeClaim(Part, frozen=True):
    """Which claim was made from a template for the pod's claim ``name``; None where none was needed."""

    name: str
    resource_claim_name: str | None = None


class ExtendedClaim(Part, frozen=True):
    """Which claim was made for the extended resources of a pod."""

    resource_claim_name: str = ""


class PodStatus(Part, frozen=True):
    """How a pod is. ``reason`` says why the kubelet refused one (OutOfcpu, ...)."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] = ()
    resources: Resources | None = None
    allocated_resources: dict[str, str] = msgspec.field(default_factory=dict)
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[MadeClaim, ...] = ()
    extended_resource_claim_status: ExtendedClaim | None = None


class Pod(Part, frozen=True):
    """A pod."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = PodStatus()


def condition_of(pod: Pod, name: str) -> tuple[bool, float | None]:
    """Whether a condition is true, and since when it is as it is, seconds since 1970; None where that is not said."""
    for one in pod.status.conditions:
        if one.type == name:
            return one.status == "True", one.last_transition_time
    return False, None


POD = Kind(Pod, "v1", "pods", namespaced=True)


def pod_reference(pod: Pod) -> Reference:
    """Points at a pod, for events."""
    metadata = pod.metadata
    return Reference("v1", "Pod", metadata.namespace, metadata.name, metadata.uid)


class Taint(Part, frozen=True):
    """Keeps pods without a matching toleration away; effect NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Part, frozen=True):
    """What an operator said about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeImage(Part, frozen=True):
    """An image on a node, by all its names, and its size in bytes."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(Part, frozen=True):
    """What a node has, by resource name, as quantities; ``allocatable`` is for pods. ``declared_features`` are those
    of its kubelet that pods may need (Kubernetes 1.36)."""

    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    images: tuple[NodeImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(Part, frozen=True):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


NODE = Kind(Node, "v1", "nodes", namespaced=False)
