"""Extended resources that device classes back: what waiting pods need, and how many of them fit on nodes."""

from __future__ import annotations

from typing import Any

import pytest

from kube.mirror.test_devices import GPU, NOW, device_class, offer, there
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import DEVICE_CLASS, RESOURCE_CLAIM, Node, Pod, ResourceClaim
from slacktide.kube.translate.devices.claims import AMPLE, MOST_CONSUMERS, NO_CLAIMS
from slacktide.settings import load_live
from support import made_objects
from support.made_objects import container, decoded

RESOURCE, IMPLICIT = "d.example/gpu", "deviceclass.resource.kubernetes.io/gpu"


def node(name: str, **amounts: str) -> Node:
    labels = {"node-restriction.kubernetes.io/slacktide": "true"}
    return made_objects.node(name, labels=labels, allocatable={"cpu": "4", **amounts})


def backing(resource: str = RESOURCE) -> Any:
    found = device_class()
    metadata = {"name": "gpu", "resourceVersion": found.metadata.resource_version}
    return decoded(DEVICE_CLASS, {"metadata": metadata, "spec": {"extendedResourceName": resource}})


def asking(name: str, count: int = 1, resource: str = RESOURCE, node: str = "", phase: str = "Pending") -> Pod:
    containers = [container("c", **{resource: str(count)})]
    status = {"phase": phase}
    return made_objects.pod(
        name, uid=name, schedulerName="slacktide", nodeName=node, containers=containers, status=status
    )


def made(pod: str, device: str = "", name: str = "made", **more: Any) -> ResourceClaim:
    """A claim that was made for a pod before."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pod, "controller": True}
    marks = {"resource.kubernetes.io/extended-resource-claim": "true"}
    metadata = {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner], "annotations": marks}
    metadata |= more
    status: Any = {}
    if device:
        results = [{"request": "container-0-request-0", "driver": "d.example", "pool": "n1", "device": device}]
        status = {"allocation": {"devices": {"results": results}}}
    return decoded(RESOURCE_CLAIM, {"metadata": metadata, "status": status})


@pytest.fixture
def mirror() -> ClusterMirror:
    """Two nodes with two GPUs each, and a class of them that backs a resource."""
    found = ClusterMirror(load_live(), lambda: NOW)
    for name in ("n1", "n2"):
        found.on_node_update(node(name))
        found.devices.on_slice_update(offer(name, "x", "y"))
    found.devices.on_class_update(backing())
    return found


def reserved(mirror: ClusterMirror, pod: Pod, host: str) -> str:
    return mirror.devices.reserve(pod, mirror.nodes[host].attributes)


def ample(mirror: ClusterMirror, resource: str = RESOURCE) -> list[int]:
    return [view.amounts.get(resource, 0) for view in mirror.nodes.values()]


def test_a_pod_asks_for_one_place_with_its_devices_and_is_refused_nothing_of_the_resource(
    mirror: ClusterMirror,
) -> None:
    assert ample(mirror) == [0, 0]
    one, two = asking("one"), asking("two", 2)
    mirror.on_pod_update(one)
    mirror.on_pod_update(two)
    assert [mirror.devices.needs(pod).demand for pod in (one, two)] == [((GPU, 1),), ((f"{GPU}~2", 1),)]
    assert there(mirror) == [2, 2]
    assert there(mirror, f"{GPU}~2") == [1, 1]
    assert ample(mirror) == [AMPLE, AMPLE]
    for name in ("one", "two"):
        mirror.on_pod_update(asking(name, phase="Succeeded"))
    assert [mirror.devices.needs(pod) for pod in (one, two)] == [NO_CLAIMS, NO_CLAIMS]


def test_the_name_that_every_class_has(mirror: ClusterMirror) -> None:
    pod = asking("p", resource=IMPLICIT)
    mirror.on_pod_update(pod)
    assert mirror.devices.needs(pod).demand == ((GPU, 1),)
    assert ample(mirror, IMPLICIT) == [AMPLE, AMPLE]


def test_a_node_that_has_the_resource_itself_gives_no_devices_for_it(mirror: ClusterMirror) -> None:
    mirror.on_node_update(node("n1", **{RESOURCE: "3"}))
    pod = asking("p", 3)
    mirror.on_pod_update(pod)
    assert there(mirror) == [MOST_CONSUMERS, 0]
    assert ample(mirror) == [3, AMPLE]
    assert not reserved(mirror, pod, "n1")
    reservation = mirror.devices.in_use.reservations["p"]
    assert (reservation.planned, reservation.extended) == ({}, None)
    mirror.devices.release("p")
    mirror.on_node_update(node("n1"))  # its plugin is gone
    assert there(mirror) == [0, 0]


def test_devices_are_kept_for_a_claim_that_is_yet_to_be_made(mirror: ClusterMirror) -> None:
    first, second = asking("first", 2), asking("second")
    mirror.on_pod_update(first)
    mirror.on_pod_update(second)
    assert not reserved(mirror, first, "n1")
    found = mirror.devices.in_use.reservations["first"]
    assert found.extended is not None
    assert [tuple(one) for one in found.extended.mappings] == [("c", RESOURCE, "container-0-request-0")]
    (planned,) = found.planned.values()
    assert [one.device for one in planned.devices] == ["x", "y"]
    assert reserved(mirror, second, "n1") == "node n1 has no free devices for its ResourceClaims any more"
    mirror.devices.release("first")
    assert not reserved(mirror, second, "n1")


def test_a_claim_that_was_made_holds_its_devices_until_it_is_gone(mirror: ClusterMirror) -> None:
    pod = asking("p")
    mirror.on_pod_update(pod)
    mirror.devices.on_claim_update(made("p", "x"))
    assert [one.metadata.name for one in mirror.devices.extended.claims_of(pod)] == ["made"]
    assert there(mirror) == [1, 2]
    mirror.devices.on_claim_delete("default", "made")
    assert mirror.devices.extended.claims_of(pod) == []
    assert there(mirror) == [2, 2]


def test_a_claim_of_another_namespace_and_one_that_goes_are_no_claims_of_a_pod(mirror: ClusterMirror) -> None:
    """Anybody may name a pod as the owner of what he writes elsewhere, and keep it with a finalizer of his own."""
    pod, going = asking("p"), "2026-01-01T00:00:00Z"
    mirror.on_pod_update(pod)
    mirror.devices.on_claim_update(made("p", namespace="elsewhere"))
    mirror.devices.on_claim_update(made("p", name="goes", deletionTimestamp=going, finalizers=["other.example/keep"]))
    assert mirror.devices.extended.claims_of(pod) == []
    protected = ["resource.kubernetes.io/delete-protection"]
    mirror.devices.on_claim_update(made("p", name="held", deletionTimestamp=going, finalizers=protected))
    assert [one.metadata.name for one in mirror.devices.extended.claims_of(pod)] == ["held"]


def test_a_pod_on_a_node_asks_for_devices_no_more_and_goes_on_asking_for_the_resource(mirror: ClusterMirror) -> None:
    mirror.on_pod_update(asking("p"))
    assert not reserved(mirror, asking("p"), "n1")
    mirror.on_pod_update(asking("p", node="n1"))
    assert mirror.devices.in_use.reservations == {}
    assert ample(mirror) == [AMPLE, AMPLE]


def test_classes_come_change_their_resource_and_go(mirror: ClusterMirror) -> None:
    pod = asking("p", resource="d.example/other")
    mirror.on_pod_update(pod)
    assert mirror.devices.needs(pod) == NO_CLAIMS
    mirror.devices.on_class_update(backing("d.example/other"))
    assert mirror.devices.needs(pod).demand == ((GPU, 1),)
    assert ample(mirror, "d.example/other") == [AMPLE, AMPLE]
    mirror.devices.on_class_update(backing())
    assert mirror.devices.needs(pod) == NO_CLAIMS
    assert ample(mirror, "d.example/other") == [0, 0]
    mirror.devices.on_class_update(backing("d.example/other"))
    mirror.devices.on_class_delete("gpu")
    assert mirror.devices.needs(pod) == NO_CLAIMS


def test_where_nothing_is_known_of_devices_only_those_wait_who_ask_for_them(mirror: ClusterMirror) -> None:
    pod, other = asking("p"), asking("other", resource="d.example/none")
    mirror.on_pod_update(pod)
    mirror.on_pod_update(other)
    mirror.devices.set_unknown("resourceclaims cannot be listed: 403")
    assert mirror.devices.needs(pod).waits == "extended resources: resourceclaims cannot be listed: 403"
    assert mirror.devices.needs(other) == NO_CLAIMS
