"""What is sent: bindings, evictions, conditions, annotations, allocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from slacktide.kube.client.metadata import Condition, Reference, rfc3339

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a volume whose claim no user chose."""

_text = msgspec.json.Encoder().encode


def encode_binding(namespace: str, name: str, uid: str, node: str) -> bytes:
    """A Binding of the pod with this UID to a node; refused with 409 where the pod is bound or another one."""
    return (
        b'{"apiVersion":"v1","kind":"Binding","metadata":{"namespace":%b,"name":%b,"uid":%b},'
        b'"target":{"apiVersion":"v1","kind":"Node","name":%b}}'
        % (_text(namespace), _text(name), _text(uid), _text(node))
    )


def encode_eviction(
    namespace: str,
    name: str,
    uid: str,
    grace_seconds: int | None = None,
    *,
    resource_version: str = "",
    dry_run: bool = False,
) -> bytes:
    """An Eviction of the pod with this UID.

    Without ``grace_seconds`` the pod's own grace period holds. A used-up disruption budget answers 429, another pod
    of the same name 409, though only after 10 s, in which the API server tries again and again. With
    ``resource_version`` it answers at once, and also where the pod has changed in any way.
    """
    options: dict[str, Any] = {"preconditions": {"uid": uid}}
    if resource_version:
        options["preconditions"]["resourceVersion"] = resource_version
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if dry_run:
        options["dryRun"] = ["All"]
    return _text(
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": options,
        }
    )


def encode_deletion(uid: str) -> bytes:
    """Options of the deletion of the object with this UID, of a pod in its own grace period.

    Another object of the same name answers 409.
    """
    return _text({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}})


def encode_pod_status(uid: str, condition: Condition | None = None, nominated_node: str | None = None) -> bytes:
    """A strategic merge patch of a pod's ``status``: one condition and, unless ``None``, the nominated node.

    An empty ``nominated_node`` removes the nomination. Another pod of the same name answers 422.
    """
    status: dict[str, Any] = {}
    if condition is not None:
        entry = {"type": condition.type, "status": condition.status}
        entry["reason"] = condition.reason
        entry["message"] = condition.message
        if condition.last_transition_time is not None:
            entry["lastTransitionTime"] = rfc3339(condition.last_transition_time)
        status["conditions"] = [entry]
    if nominated_node is not None:
        status["nominatedNodeName"] = nominated_node or None
    return _text({"metadata": {"uid": uid}, "status": status})


def encode_annotations(annotations: Mapping[str, str | None], *, uid: str = "", resource_version: str = "") -> bytes:
    """A merge patch of annotations; ``None`` removes one.

    With ``uid`` another object answers 422; with ``resource_version`` another state of it answers 409.
    """
    metadata: dict[str, Any] = {"annotations": dict(annotations)}
    if uid:
        metadata["uid"] = uid
    if resource_version:
        metadata["resourceVersion"] = resource_version
    return _text({"metadata": metadata})


def encode_claim_reference(
    namespace: str, name: str, uid: str, resource_version: str, *, chosen_by_us: bool = True
) -> bytes:
    """A merge patch that reserves a volume for a claim; another state of the volume answers 409.

    Unless a user chose it, an annotation has the controller of volumes take the reservation away where it cannot
    bind them.
    """
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name, "uid": uid}
    metadata: dict[str, Any] = {"resourceVersion": resource_version}
    if chosen_by_us:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    return _text({"metadata": metadata, "spec": {"claimRef": reference}})


def encode_finalizers(finalizers: Sequence[str], uid: str, resource_version: str) -> bytes:
    """A merge patch of an object's finalizers; another object, or state of it, answers 409."""
    metadata = {"uid": uid, "resourceVersion": resource_version, "finalizers": list(finalizers)}
    return _text({"metadata": metadata})


def encode_claim_status(
    uid: str,
    resource_version: str,
    reserved_for: Sequence[Mapping[str, str]],
    allocation: Mapping[str, Any] | None = None,
) -> bytes:
    """A merge patch of a ResourceClaim's ``status``: for whom it is reserved and, unless ``None``, what it gets.

    Another claim, or state of it, answers 409.
    """
    status: dict[str, Any] = {"reservedFor": list(reserved_for)}
    if allocation is not None:
        status["allocation"] = allocation
    return _text({"metadata": {"uid": uid, "resourceVersion": resource_version}, "status": status})


def encode_claim_given_back(uid: str, resource_version: str) -> bytes:
    """A merge patch that takes a ResourceClaim's devices away; another claim, or state of it, answers 409."""
    status = {"reservedFor": None, "allocation": None, "devices": None}
    return _text({"metadata": {"uid": uid, "resourceVersion": resource_version}, "status": status})


def encode_not_reserved(uid: str, resource_version: str, consumer: str) -> bytes:
    """A strategic merge patch after which a ResourceClaim is not reserved for ``consumer``, a UID, any more.

    Another claim, or state of it, answers 409.
    """
    metadata = {"uid": uid, "resourceVersion": resource_version}
    return _text({"metadata": metadata, "status": {"reservedFor": [{"$patch": "delete", "uid": consumer}]}})


def encode_extended_claim(
    namespace: str, name: str, pod: Reference, requests: Sequence[Mapping[str, Any]], annotation: str
) -> bytes:
    """A ResourceClaim for the extended resources of a pod, which owns it."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    metadata = {"namespace": namespace, "name": name, "annotations": {annotation: "true"}, "ownerReferences": [owner]}
    spec = {"devices": {"requests": list(requests)}}
    return _text({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec})


def encode_extended_claim_status(uid: str, claim: str, mappings: Sequence[tuple[str, str, str]]) -> bytes:
    """A strategic merge patch of a pod's ``status``: which claim was made for its extended resources, and which of its
    requests serves which resource of which container. Another pod of the same name answers 422."""
    served = [
        {"containerName": container, "resourceName": resource, "requestName": request}
        for container, resource, request in mappings
    ]
    status = {"extendedResourceClaimStatus": {"resourceClaimName": claim, "requestMappings": served}}
    return _text({"metadata": {"uid": uid}, "status": status})
