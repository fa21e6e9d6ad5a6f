"""Every object slacktide reads, with its kind, and the bodies it sends: one place to import from."""

from __future__ import annotations

from slacktide.kube.client.kinds import HasMetadata, Identity, Kind, Listing, Malformed, Status, WatchEvent, encode
from slacktide.kube.client.metadata import (
    Condition,
    LabelSelector,
    Metadata,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    Reference,
    Requirement,
)
from slacktide.kube.client.timestamps import Instant, rfc3339, unix_seconds
from slacktide.kube.resources.bodies import encode_annotations, encode_binding, encode_eviction, encode_pod_status
from slacktide.kube.resources.custom_resources import (
    API_VERSION,
    Availability,
    AvailabilityStatus,
    DisruptionsSpec,
    HoursSpec,
    MaintenanceWindow,
    MaintenanceWindowSpec,
    PromiseQuota,
    ServiceClass,
    ServiceClassSpec,
    Tier,
    WindowSpec,
)
from slacktide.kube.resources.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from slacktide.kube.resources.nodes import Node, Taint
from slacktide.kube.resources.pods import (
    Affinity,
    Container,
    ContainerPort,
    ContainerStatus,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PreferredNodes,
    PreferredPods,
    Resources,
    SystemSpread,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from slacktide.kube.resources.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from slacktide.kube.resources.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    Lease,
    LeaseSpec,
    Namespace,
    Owner,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

POD = Kind(Pod, "v1", "pods", namespaced=True)
NODE = Kind(Node, "v1", "nodes", namespaced=False)
SERVICE = Kind(Service, "v1", "services", namespaced=True)
REPLICATION_CONTROLLER = Kind(ReplicationController, "v1", "replicationcontrollers", namespaced=True)
NAMESPACE = Kind(Namespace, "v1", "namespaces", namespaced=False)
PERSISTENT_VOLUME = Kind(PersistentVolume, "v1", "persistentvolumes", namespaced=False)
PERSISTENT_VOLUME_CLAIM = Kind(PersistentVolumeClaim, "v1", "persistentvolumeclaims", namespaced=True)
STORAGE_CLASS = Kind(StorageClass, "storage.k8s.io/v1", "storageclasses", namespaced=False)
CSI_NODE = Kind(CSINode, "storage.k8s.io/v1", "csinodes", namespaced=False)
CSI_DRIVER = Kind(CSIDriver, "storage.k8s.io/v1", "csidrivers", namespaced=False)
CSI_STORAGE_CAPACITY = Kind(CSIStorageCapacity, "storage.k8s.io/v1", "csistoragecapacities", namespaced=True)
VOLUME_ATTACHMENT = Kind(VolumeAttachment, "storage.k8s.io/v1", "volumeattachments", namespaced=False)
DEVICE_CLASS = Kind(DeviceClass, "resource.k8s.io/v1", "deviceclasses", namespaced=False)
DEVICE_TAINT_RULE = Kind(DeviceTaintRule, "resource.k8s.io/v1beta2", "devicetaintrules", namespaced=False)
RESOURCE_SLICE = Kind(ResourceSlice, "resource.k8s.io/v1", "resourceslices", namespaced=False)
RESOURCE_CLAIM = Kind(ResourceClaim, "resource.k8s.io/v1", "resourceclaims", namespaced=True)
DEPLOYMENT = Kind(Deployment, "apps/v1", "deployments", namespaced=True)
REPLICA_SET = Kind(ReplicaSet, "apps/v1", "replicasets", namespaced=True)
STATEFUL_SET = Kind(StatefulSet, "apps/v1", "statefulsets", namespaced=True)
DAEMON_SET = Kind(DaemonSet, "apps/v1", "daemonsets", namespaced=True)
JOB = Kind(Job, "batch/v1", "jobs", namespaced=True)
CRON_JOB = Kind(CronJob, "batch/v1", "cronjobs", namespaced=True)
POD_DISRUPTION_BUDGET = Kind(PodDisruptionBudget, "policy/v1", "poddisruptionbudgets", namespaced=True)
PRIORITY_CLASS = Kind(PriorityClass, "scheduling.k8s.io/v1", "priorityclasses", namespaced=False)
LEASE = Kind(Lease, "coordination.k8s.io/v1", "leases", namespaced=True)
SERVICE_CLASS = Kind(ServiceClass, API_VERSION, "serviceclasses", namespaced=False)
MAINTENANCE_WINDOW = Kind(MaintenanceWindow, API_VERSION, "maintenancewindows", namespaced=False)
PROMISE_QUOTA = Kind(PromiseQuota, API_VERSION, "promisequotas", namespaced=True)
AVAILABILITY = Kind(Availability, API_VERSION, "availabilities", namespaced=True)


def pod_reference(pod: Pod) -> Reference:
    """Points at a pod, for events."""
    metadata = pod.metadata
    return Reference("v1", "Pod", metadata.namespace, metadata.name, metadata.uid)


__all__ = [
    "API_VERSION",
    "AVAILABILITY",
    "CRON_JOB",
    "CSI_DRIVER",
    "CSI_NODE",
    "CSI_STORAGE_CAPACITY",
    "DAEMON_SET",
    "DEPLOYMENT",
    "DEVICE_CLASS",
    "DEVICE_TAINT_RULE",
    "JOB",
    "LEASE",
    "MAINTENANCE_WINDOW",
    "NAMESPACE",
    "NODE",
    "PERSISTENT_VOLUME",
    "PERSISTENT_VOLUME_CLAIM",
    "POD",
    "POD_DISRUPTION_BUDGET",
    "PRIORITY_CLASS",
    "PROMISE_QUOTA",
    "REPLICATION_CONTROLLER",
    "REPLICA_SET",
    "RESOURCE_CLAIM",
    "RESOURCE_SLICE",
    "SERVICE",
    "SERVICE_CLASS",
    "STATEFUL_SET",
    "STORAGE_CLASS",
    "VOLUME_ATTACHMENT",
    "Affinity",
    "Availability",
    "AvailabilityStatus",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "Condition",
    "Container",
    "ContainerPort",
    "ContainerStatus",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "DeviceClass",
    "DeviceTaintRule",
    "DisruptionsSpec",
    "HasMetadata",
    "HoursSpec",
    "Identity",
    "Instant",
    "Job",
    "Kind",
    "LabelSelector",
    "Lease",
    "LeaseSpec",
    "Listing",
    "MaintenanceWindow",
    "MaintenanceWindowSpec",
    "Malformed",
    "Metadata",
    "Namespace",
    "Node",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorTerm",
    "Owner",
    "OwnerReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodDisruptionBudget",
    "PodSpec",
    "PodStatus",
    "PreferredNodes",
    "PreferredPods",
    "PriorityClass",
    "PromiseQuota",
    "Reference",
    "ReplicaSet",
    "ReplicationController",
    "Requirement",
    "ResourceClaim",
    "ResourceSlice",
    "Resources",
    "Service",
    "ServiceClass",
    "ServiceClassSpec",
    "StatefulSet",
    "Status",
    "StorageClass",
    "SystemSpread",
    "Taint",
    "Tier",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeAttachment",
    "WatchEvent",
    "WindowSpec",
    "encode",
    "encode_annotations",
    "encode_binding",
    "encode_eviction",
    "encode_pod_status",
    "pod_reference",
    "rfc3339",
    "unix_seconds",
]
