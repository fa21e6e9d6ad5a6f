"""Controllers of pods, and the cluster's rules about pods: budgets, priorities, namespaces, leases."""

from __future__ import annotations

import msgspec

from slacktide.kube.client.metadata import Condition, LabelSelector, Metadata, Part
from slacktide.kube.client.timestamps import Instant


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


class ReplicasStatus(Part, frozen=True):
    """The state of a Deployment or ReplicaSet."""

    conditions: tuple[Condition, ...] = ()


class Deployment(Part, frozen=True):
    """A Deployment."""

    metadata: Metadata
    spec: ReplicasSpec = ReplicasSpec()
    status: ReplicasStatus = ReplicasStatus()


class ReplicaSet(Part, frozen=True):
    """A ReplicaSet."""

    metadata: Metadata
    spec: ReplicasSpec = ReplicasSpec()
    status: ReplicasStatus = ReplicasStatus()


class StatefulSet(Part, frozen=True):
    """A StatefulSet."""

    metadata: Metadata
    spec: ReplicasSpec = ReplicasSpec()


class DaemonSetSpec(Part, frozen=True):
    """What a DaemonSet makes its pods from."""

    template: Template | None = None


class DaemonSetStatus(Part, frozen=True):
    """On how many nodes a DaemonSet wants a pod."""

    desired_number_scheduled: int = 0


class DaemonSet(Part, frozen=True):
    """A DaemonSet."""

    metadata: Metadata
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ServiceSpec(Part, frozen=True):
    """Which pods a Service or ReplicationController is for."""

    selector: dict[str, str] = msgspec.field(default_factory=dict)


class Service(Part, frozen=True):
    """A Service."""

    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(Part, frozen=True):
    """A ReplicationController."""

    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class JobSpec(Part, frozen=True):
    """How many pods a Job runs, and how many of them at once."""

    parallelism: int | None = None
    completions: int | None = None
    selector: LabelSelector | None = None
    suspend: bool = False
    template: Template | None = None


class JobStatus(Part, frozen=True):
    """The state of a Job."""

    conditions: tuple[Condition, ...] = ()


class Job(Part, frozen=True):
    """A Job."""

    metadata: Metadata
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


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


class PriorityClass(Part, frozen=True):
    """A PriorityClass."""

    metadata: Metadata
    value: int = 0
    preemption_policy: str = ""


class NamespaceStatus(Part, frozen=True):
    """Active or Terminating."""

    phase: str = ""


class Namespace(Part, frozen=True):
    """A namespace."""

    metadata: Metadata
    status: NamespaceStatus = NamespaceStatus()


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
