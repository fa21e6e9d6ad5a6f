"""Objects as the API server would give them, of what series say about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from slacktide.kube.client.kinds import Kind, Malformed, encode
from slacktide.kube.client.metadata import Instant, rfc3339
from slacktide.kube.resources import objects
from slacktide.pasts.conditions import with_condition
from slacktide.pasts.prometheus.chunk import Chunk
from slacktide.pasts.prometheus.names import label_key, quantity_text, resource

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace and name of a controller."""
NOBODY = ("", "<none>")
VERSIONS = {
    "ReplicaSet": "apps/v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
    "Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1", "Node": "v1",
    "Rollout": "argoproj.io/v1alpha1",
}  # fmt: skip
"""API versions of owners, of which kube-state-metrics gives the kind alone."""
OTHERS = "v1"
CONTROLLERS: dict[str, Kind[Any]] = {
    one.kind: one
    for one in (objects.DEPLOYMENT, objects.REPLICA_SET, objects.STATEFUL_SET, objects.JOB, objects.CRON_JOB)
}
NOT_READY = "ContainersNotReady"


def uid_of(key: Key) -> str:
    """Controllers have no UIDs there."""
    return ":".join(key)


def _reference(key: Key) -> Json:
    said = {"apiVersion": VERSIONS.get(key[0], OTHERS), "kind": key[0], "name": key[2], "uid": uid_of(key)}
    return said | {"controller": True}


def controller(key: Key, owner: Key | None, spec: Json, conditions: list[Json]) -> Any:
    """A controller of pods, or a :class:`Malformed`."""
    kind, namespace, name = key
    metadata = {"name": name, "namespace": namespace, "uid": uid_of(key)}
    owners = {} if owner is None else {"ownerReferences": [_reference(owner)]}
    body = {"metadata": metadata | owners, "spec": spec, "status": {"conditions": conditions}}
    return CONTROLLERS[kind].decode(encode(body))


@dataclass(slots=True)
class NodeState:
    """What is known of a node; ``ready`` None: nobody says it."""

    name: str
    created: float
    ready: bool | None = None
    ready_at: float = 0.0
    unschedulable: bool = False
    taints: dict[tuple[str, str, str], None] = field(default_factory=dict)
    allocatable: dict[str, float] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def built(self) -> Any:
        """The node as it is now."""
        condition = {
            "type": "Ready", "status": "False" if self.ready is False else "True",
            "lastTransitionTime": rfc3339(self.ready_at or self.created),
        }  # fmt: skip
        amounts = {resource(name): value for name, value in self.allocatable.items()}
        return objects.NODE.decode(
            encode({
                "metadata": {
                    "name": self.name, "uid": f"node:{self.name}:{self.created:.0f}", "labels": self.labels,
                    "creationTimestamp": rfc3339(self.created),
                },
                "spec": {
                    "unschedulable": self.unschedulable,
                    "taints": [{"key": key, "value": value, "effect": effect} for key, value, effect in self.taints],
                },
                "status": {
                    "allocatable": {name: quantity_text(name, value) for name, value in amounts.items()},
                    "conditions": [condition],
                },
            })
        )  # fmt: skip


class Asked:
    """What the pods of a chunk ask for."""

    def __init__(self, chunk: Chunk) -> None:
        self._containers = _by_container(chunk.requests)
        self._inits = _by_container(chunk.inits)
        self._sidecars = set(chunk.sidecars)
        self._totals: dict[tuple[str, str], dict[str, float]] = {}
        self._priorities: dict[tuple[str, str], str] = {}
        for namespace, name, priority, what, amount in chunk.totals:
            self._totals.setdefault((namespace, name), {})[_alike(what)] = amount
            self._priorities[namespace, name] = priority
        self._tolerations: dict[str, list[Json]] = {}
        for uid, key, operator, value, effect in chunk.tolerations:
            said = {"key": key, "operator": operator, "value": value, "effect": effect}
            self._tolerations.setdefault(uid, []).append({name: text for name, text in said.items() if text})
        self._labels, self._selectors = chunk.labels, chunk.selectors

    def spec(self, uid: str, namespace: str, name: str, priority_class: str, host_network: str) -> Json:
        """A pod's spec, without its node. What kube-scheduler says that it takes is the whole truth."""
        spec: Json = {"schedulerName": "default-scheduler"}
        total = self._totals.get((namespace, name))
        if total is not None:
            spec["containers"] = [_container("all", total)]
        else:
            spec["containers"] = [_container(*one) for one in sorted(self._containers.get(uid, {"all": {}}).items())]
            spec["initContainers"] = [
                _container(one, asks) | ({"restartPolicy": "Always"} if (uid, one) in self._sidecars else {})
                for one, asks in sorted(self._inits.get(uid, {}).items())
            ]
        priority = self._priorities.get((namespace, name), "")
        if priority.lstrip("-").isdigit():
            spec["priority"] = int(priority)
        if priority_class not in NOBODY:
            spec["priorityClassName"] = priority_class
        if uid in self._selectors:
            spec["nodeSelector"] = {label_key(one): value for one, value in self._selectors[uid].items()}
        if uid in self._tolerations:
            spec["tolerations"] = self._tolerations[uid]
        if host_network == "true":
            spec["hostNetwork"] = True
        return spec

    def labels(self, uid: str) -> dict[str, str]:
        """A pod's labels, as far as kube-state-metrics was told to give them."""
        return {label_key(name): value for name, value in self._labels.get(uid, {}).items()}


def _by_container(rows: list[tuple[str, str, str, float]]) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for uid, container, what, value in rows:
        found.setdefault(uid, {}).setdefault(container, {})[resource(what)] = value
    return found


def _alike(name: str) -> str:
    """A resource that kube-scheduler names as it is, called as on the nodes, where kube-state-metrics does."""
    return resource("".join(one if one.isalnum() else "_" for one in name))


def _container(name: str, asks: Mapping[str, float]) -> Json:
    return {"name": name, "resources": {"requests": {one: quantity_text(one, value) for one, value in asks.items()}}}


def pod(
    uid: str, namespace: str, name: str, created: float, labels: Mapping[str, str], owner: Key | None, spec: Json
) -> objects.Pod | Malformed:
    """A pod as it was created."""
    metadata: Json = {
        "name": name, "namespace": namespace, "uid": uid, "labels": labels, "creationTimestamp": rfc3339(created),
    }  # fmt: skip
    if owner is not None:
        metadata["ownerReferences"] = [_reference(owner)]
    return objects.POD.decode(encode({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}))


def bound(pod: objects.Pod, node: str, at: float) -> objects.Pod:
    """It is on a node."""
    status = msgspec.structs.replace(pod.status, phase="Running")
    spec = msgspec.structs.replace(pod.spec, node_name=node)
    return with_condition(msgspec.structs.replace(pod, spec=spec, status=status), "PodScheduled", at)


def with_readiness(pod: objects.Pod, at: float, *, ready: bool, lost: bool = False) -> objects.Pod:
    """It is ready, or not; ``lost``: its node is not, so nobody has asked the pod."""
    if ready:
        return with_condition(with_condition(pod, "ContainersReady", at), "Ready", at)
    if not lost:
        pod = with_condition(pod, "ContainersReady", at, "False", NOT_READY)
    return with_condition(pod, "Ready", at, "False", "" if lost else NOT_READY)


def told_to_go(pod: objects.Pod, until: float) -> objects.Pod:
    """It is being deleted."""
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=Instant(until))
    return msgspec.structs.replace(pod, metadata=metadata)


def over(pod: objects.Pod, phase: str, reason: str, at: float) -> objects.Pod:
    """It has ended."""
    status = msgspec.structs.replace(pod.status, phase=phase, reason=reason)
    return with_readiness(msgspec.structs.replace(pod, status=status), at, ready=False)
