"""Kubernetes objects for tests, decoded from JSON as the API server would send it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from slacktide.kube.resources.objects import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
    HasMetadata,
    Kind,
    Malformed,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from slacktide.kube.translate.nodes import Ownership, view_of
from slacktide.kube.translate.pod_constraints import ConstraintIndex

_T = TypeVar("_T", bound=HasMetadata)
_NUMBERS = itertools.count(1)


def decoded(kind: Kind[_T], body: dict[str, Any]) -> _T:
    found = kind.decode(json.dumps(body).encode())
    assert not isinstance(found, Malformed), found
    return found


def pod(
    name: str = "p",
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    deleting: bool = False,
    uid: str = "",
    **spec: Any,
) -> Pod:
    """A pod with these fields of its spec, in camel case."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "labels": labels or {},
        "uid": uid or f"u{next(_NUMBERS)}",
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return decoded(POD, {"metadata": metadata, "spec": spec, "status": status or {}})


def container(name: str = "c", status: str = "", **requests: str) -> dict[str, Any]:
    """A container with these requests; ``always`` makes it a sidecar when among the init containers."""
    body: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    return body | ({"restartPolicy": status} if status else {})


def node(
    name: str = "n",
    labels: dict[str, str] | None = None,
    taints: Sequence[dict[str, str]] = (),
    unschedulable: bool = False,
    allocatable: dict[str, str] | None = None,
    ready: str = "True",
) -> Node:
    return decoded(
        NODE,
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {"allocatable": allocatable or {}, "conditions": [{"type": "Ready", "status": ready}]},
        },
    )


def claim(
    name: str,
    volume: str = "",
    class_name: str | None = "slow",
    size: str = "1Gi",
    bound: bool = True,
    modes: Sequence[str] = ("ReadWriteOnce",),
    phase: str = "",
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    about = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": {}} | (metadata or {})
    if volume and bound:
        about["annotations"] = about["annotations"] | {"pv.kubernetes.io/bind-completed": "yes"}
    wanted: dict[str, Any] = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}}
    wanted |= {"volumeName": volume} if volume else {}
    wanted |= {"storageClassName": class_name} if class_name is not None else {}
    return decoded(PERSISTENT_VOLUME_CLAIM, {"metadata": about, "spec": wanted | spec, "status": {"phase": phase}})


def volume(
    name: str,
    on: str = "",
    class_name: str = "slow",
    size: str = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    phase: str = "Available",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """A volume, usable from the node with hostname ``on`` only where that is given."""
    offered: dict[str, Any] = {
        "accessModes": list(modes),
        "capacity": {"storage": size},
        "storageClassName": class_name,
    }
    if on:
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
        offered["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return decoded(
        PERSISTENT_VOLUME,
        {"metadata": {"name": name, "labels": labels or {}}, "spec": offered | spec, "status": {"phase": phase}},
    )


def storage_class(name: str = "slow", provisioner: str = "example.com/disk", **fields: Any) -> StorageClass:
    body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    return decoded(STORAGE_CLASS, body | fields)


def index_of_labels(*keys: str) -> ConstraintIndex:
    """An index of pods' constraints that knows a node with labels of these keys."""
    index = ConstraintIndex()
    index.on_node_update(None, view_of(node("labelled", dict.fromkeys(keys, "v")), Ownership(all_nodes=True)))
    return index
