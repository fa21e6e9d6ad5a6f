"""Objects that say how many pods of a group start together: Kubernetes' own, and those of scheduler-plugins."""

from __future__ import annotations

import msgspec

from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.metadata import Condition, Metadata, Part


class GangPolicy(Part, frozen=True):
    """None of a group's pods starts before ``min_count`` can."""

    min_count: int


class GroupPolicy(Part, frozen=True):
    """How a group's pods start: as a gang, or else one by one."""

    gang: GangPolicy | None = None


class TopologyConstraint(Part, frozen=True):
    """All pods of a group are to lie in one domain of the node label ``key``."""

    key: str


class GroupConstraints(Part, frozen=True):
    """Where a group's pods are to lie."""

    topology: tuple[TopologyConstraint, ...] = ()


class GroupClaim(Part, frozen=True):
    """A claim on dynamic resources that a group's pods share."""

    name: str


class PodGroupSpec(Part, frozen=True):
    """What Kubernetes 1.36 says of a group."""

    scheduling_policy: GroupPolicy = GroupPolicy()
    scheduling_constraints: GroupConstraints | None = None
    resource_claims: tuple[GroupClaim, ...] = ()
    disruption_mode: str = ""
    priority: int | None = None
    """Which the API server sets from ``priorityClassName``, where it reads that at all."""


class PodGroupStatus(Part, frozen=True):
    """What schedulers have written about a group."""

    conditions: tuple[Condition, ...] = ()


class PodGroup(Part, frozen=True):
    """A group of pods in Kubernetes 1.36 (alpha)."""

    metadata: Metadata
    spec: PodGroupSpec
    status: PodGroupStatus = PodGroupStatus()


class WorkloadGroup(Part, frozen=True):
    """A group of a workload; each replica of it is a group of its own."""

    name: str
    policy: GroupPolicy = GroupPolicy()


class WorkloadSpec(Part, frozen=True):
    """The groups of a workload."""

    pod_groups: tuple[WorkloadGroup, ...] = ()


class Workload(Part, frozen=True):
    """Groups of pods in Kubernetes 1.35 (alpha)."""

    metadata: Metadata
    spec: WorkloadSpec


class CoschedulingSpec(Part, frozen=True):
    """What scheduler-plugins' coscheduling says of a group."""

    min_member: int = 0


class CoschedulingGroup(Part, frozen=True):
    """A group of pods of scheduler-plugins' coscheduling."""

    metadata: Metadata
    spec: CoschedulingSpec = msgspec.field(default_factory=CoschedulingSpec)


POD_GROUP = Kind(PodGroup, "scheduling.k8s.io/v1alpha2", "podgroups", namespaced=True)
WORKLOAD = Kind(Workload, "scheduling.k8s.io/v1alpha1", "workloads", namespaced=True)
COSCHEDULING = Kind(CoschedulingGroup, "scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup", namespaced=True)
