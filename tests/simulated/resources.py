"""What the modelled API server serves, and how it says no."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

Json = dict[str, Any]
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


class Resource(NamedTuple):
    """A kind of objects. ``status``: it has a subresource for that; ``fenced``: a replacement must name the version it
    builds on."""

    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    fenced: bool = False

    @property
    def group(self) -> str:
        return self.version.rpartition("/")[0]

    @property
    def qualified(self) -> str:
        """As messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


OURS = "slacktide.io/v1beta1"
SERVED = (
    Resource("v1", "namespaces", "Namespace", namespaced=False, status=True),
    Resource("v1", "nodes", "Node", namespaced=False, status=True),
    Resource("v1", "pods", "Pod", status=True),
    Resource("v1", "services", "Service", status=True),
    Resource("v1", "replicationcontrollers", "ReplicationController", status=True),
    Resource("v1", "configmaps", "ConfigMap"),
    Resource("v1", "events", "Event"),
    Resource("v1", "persistentvolumes", "PersistentVolume", namespaced=False, status=True),
    Resource("v1", "persistentvolumeclaims", "PersistentVolumeClaim", status=True),
    Resource("storage.k8s.io/v1", "storageclasses", "StorageClass", namespaced=False),
    Resource("storage.k8s.io/v1", "csinodes", "CSINode", namespaced=False),
    Resource("storage.k8s.io/v1", "csidrivers", "CSIDriver", namespaced=False),
    Resource("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity"),
    Resource("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", namespaced=False, status=True),
    Resource("resource.k8s.io/v1", "deviceclasses", "DeviceClass", namespaced=False),
    Resource("resource.k8s.io/v1", "resourceslices", "ResourceSlice", namespaced=False),
    Resource("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", status=True),
    Resource("apps/v1", "deployments", "Deployment", status=True),
    Resource("apps/v1", "replicasets", "ReplicaSet", status=True),
    Resource("apps/v1", "statefulsets", "StatefulSet", status=True),
    Resource("batch/v1", "jobs", "Job", status=True),
    Resource("batch/v1", "cronjobs", "CronJob", status=True),
    Resource("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", status=True, fenced=True),
    Resource("scheduling.k8s.io/v1alpha2", "podgroups", "PodGroup", status=True),
    Resource("coordination.k8s.io/v1", "leases", "Lease", fenced=True),
    Resource(OURS, "serviceclasses", "ServiceClass", namespaced=False, fenced=True),
    Resource(OURS, "availabilities", "Availability", fenced=True),
    Resource(OURS, "maintenancewindows", "MaintenanceWindow", namespaced=False, fenced=True),
    Resource(OURS, "promisequotas", "PromiseQuota", status=True, fenced=True),
)
BY_PATH = {(one.version, one.plural): one for one in SERVED}
BY_NAME = {one.plural: one for one in SERVED}

CREATED, UNPROCESSABLE = 201, 422
REASONS = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict",
           410: "Expired", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError",
           503: "ServiceUnavailable", 504: "Timeout"}  # fmt: skip


class Refused(Exception):  # noqa: N818  # an answer, no mistake
    """The API server says no. ``wait``: its answer comes only after so many seconds."""

    def __init__(self, code: int, message: str, reason: str = "", *, after: int | None = None, wait: float = 0.0):
        super().__init__(message)
        self.code, self.message, self.after, self.wait = code, message, after, wait
        self.reason = reason or REASONS.get(code, "")

    @property
    def status(self) -> Json:
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
                "reason": self.reason, "code": self.code}  # fmt: skip


def not_found(resource: Resource, name: str) -> Refused:
    return Refused(404, f'{resource.qualified} "{name}" not found')


def conflict(resource: Resource, name: str, why: str) -> Refused:
    return Refused(409, f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}')


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class Target(NamedTuple):
    """What a request is about."""

    resource: Resource
    namespace: str
    name: str
    sub: str


@lru_cache(4096)
def target_of(path: str) -> Target | None:
    """What a path names; None where nothing is served."""
    parts = path.strip("/").split("/")
    if parts[:1] == ["api"] and len(parts) > 2:
        version, rest = parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and (version, rest[2]) in BY_PATH:
        namespace, rest = rest[1], rest[2:]
    resource = BY_PATH.get((version, rest[0]))
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        return None
    return Target(resource, namespace, *([*rest[1:], "", ""][:2]))
