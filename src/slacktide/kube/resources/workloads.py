"""Controllers of pods, objects that say how many pods of a group start together (Kubernetes' own, and those of
scheduler-plugins), and the cluster's rules about pods: budgets, priorities, namespaces, leases."""

from __future__ import annotations

import msgspec

from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.metadata import Condition, Instant, LabelSelector, Metadata, Part


class TemplateMetadata(Part, frozen=True):
    """What pods of a template are called, as far as their promise needs it."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class TemplateSpec(Part, frozen=True):
    """What pods of a template ask for, as far as their promise needs it."""

    priority_class_name: str = ""


class Template(Part, frozen=True):
    """What a controller makes pods from."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: TemplateSpec = TemplateSpec()


class ReplicasSpec(Part, frozen=True):
    """How many pods a controller wants, and which are its own. Kubernetes fills in 1 where a user wrote none."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Template | None = None


class Conditions(Part, frozen=True):
    """A status of which the conditions are read."""

    conditions: tuple[Condition, ...] = ()


class Replicated(Part, frozen=True):
    """A controller of replicas."""

    metadata: Metadata
    spec: ReplicasSpec = ReplicasSpec()


class StatefulSet(Replicated, frozen=True):
    """A StatefulSet."""


class Deployment(Replicated, frozen=True):
    """A Deployment."""

    status: Conditions = Conditions()


class ReplicaSet(Replicated, frozen=True):
    """A ReplicaSet."""

    status: Conditions = Conditions()


class DaemonSetStatus(Part, frozen=True):
    """On how many nodes a DaemonSet wants a pod."""

    desired_number_scheduled: int = 0


class DaemonSet(Part, frozen=True):
    """A DaemonSet."""

    metadata: Metadata
    spec: ReplicasSpec = ReplicasSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ServiceSpec(Part, frozen=True):
    """Which pods a Service or ReplicationController is for."""

    selector: dict[str, str] = msgspec.field(default_factory=dict)


class Service(Part, frozen=True):
    """A Service."""

    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(Service, frozen=True):
    """A ReplicationController."""


class JobSpec(Part, frozen=True):
    """How many pods a Job runs, and how many of them at once."""

    parallelism: int | None = None
    completions: int | None = None
    selector: LabelSelector | None = None
    suspend: bool = False
    template: Template | None = None


class Job(Part, frozen=True):
    """A Job."""

    metadata: Metadata
    spec: JobSpec = JobSpec()
    status: Conditions = Conditions()


class JobTemplate(Part, frozen=True):
    """What a CronJob makes Jobs from."""

    spec: JobSpec = JobSpec()


class CronJobSpec(Part, frozen=True):
    """Which Jobs a CronJob makes."""

    job_template: JobTemplate = JobTemplate()


class CronJob(Part, frozen=True):
    """A CronJob."""

    metadata: Metadata
    spec: CronJobSpec = CronJobSpec()


class Owner(Part, frozen=True):
    """Any object, known by its metadata alone: the custom owners of pods."""

    metadata: Metadata


class PodDisruptionBudgetSpec(Part, frozen=True):
    """Which pods a budget is about, and what it asks (a number or a percentage); when those that are not ready may be
    evicted: AlwaysAllow, or IfHealthyBudget, which nothing means as well."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Part, frozen=True):
    """What a budget allows now, how many of its pods are ready, and how many should be."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0


class PodDisruptionBudget(Part, frozen=True):
    """A PodDisruptionBudget."""

    metadata: Metadata
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Namespace(Part, frozen=True):
    """A namespace."""

    metadata: Metadata


class LeaseSpec(Part, frozen=True):
    """Who holds a lease; others must wait ``lease_duration_seconds`` without seeing a renewal."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: Instant | None = None
    renew_time: Instant | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Part, frozen=True):
    """A lease."""

    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()


SERVICE = Kind(Service, "v1", "services", namespaced=True)
REPLICATION_CONTROLLER = Kind(ReplicationController, "v1", "replicationcontrollers", namespaced=True)
NAMESPACE = Kind(Namespace, "v1", "namespaces", namespaced=False)
DEPLOYMENT = Kind(Deployment, "apps/v1", "deployments", namespaced=True)
REPLICA_SET = Kind(ReplicaSet, "apps/v1", "replicasets", namespaced=True)
STATEFUL_SET = Kind(StatefulSet, "apps/v1", "statefulsets", namespaced=True)
DAEMON_SET = Kind(DaemonSet, "apps/v1", "daemonsets", namespaced=True)
JOB = Kind(Job, "batch/v1", "jobs", namespaced=True)
CRON_JOB = Kind(CronJob, "batch/v1", "cronjobs", namespaced=True)
POD_DISRUPTION_BUDGET = Kind(PodDisruptionBudget, "policy/v1", "poddisruptionbudgets", namespaced=True)
LEASE = Kind(Lease, "coordination.k8s.io/v1", "leases", namespaced=True)


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


class PodGroup(Part, frozen=True):
    """A group of pods in Kubernetes 1.36 (alpha)."""

    metadata: Metadata
    spec: PodGroupSpec
    status: Conditions = Conditions()


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
