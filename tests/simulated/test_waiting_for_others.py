"""Pods that wait for somebody else than the scheduler: each is told for whom, and since when."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from cluster.labtools import deployment, pod
from simulated.pod_model import condition
from simulated.resources import Json
from simulated.stage import Stage, service_class, staged
from slacktide.kube.act.binder import TOLD_SECONDS

CREATION_SECONDS = 60
SHARP = 1.0
PROVISIONER = "disks.example.com"
SELECTED, BOUND = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed"


@pytest.fixture
def place() -> Iterator[Stage]:
    classes = [service_class("silver", 0.9, 2, marginSeconds=1, default=True), service_class("gold", 0.999, 1)]
    with staged(classes, replicas=2, qos__alpha=1.0, kube__creation_allowance=CREATION_SECONDS) as stage:
        stage.nodes(2)
        yield stage


def with_a_claim(place: Stage) -> str:
    """A Deployment whose only pod has a claim that waits for its first pod; the pod's name, once it was created."""
    spec = {"provisioner": PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer"}
    place.create("storageclasses", {"metadata": {"name": "disks"}, **spec})
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "disks", **wanted}}
    place.create("persistentvolumeclaims", claim)
    place.wait(1.0)
    body = deployment("db", 1, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    place.create("deployments", body)
    return place.until(lambda: next(iter(place.names("db")), ""), "its pod")


def provision(place: Stage) -> None:
    """What the provisioner and the controller of volumes would do."""
    place.create("persistentvolumes", {"metadata": {"name": "made"}, "spec": {
        "storageClassName": "disks", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "claimRef": {"namespace": place.namespace, "name": "data",
                     "uid": (place.get("persistentvolumeclaims", "data") or {})["metadata"]["uid"]}}})  # fmt: skip
    change: Json = {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": "made"}}
    place.merge("persistentvolumeclaims", "data", change)


def says(place: Stage, name: str, text: str) -> Json:
    """The condition of a pod once it says so, and an event has said the same."""

    def found() -> Json | None:
        one = condition(place.pod(name), "PodScheduled")
        return one if one is not None and re.search(text, one.get("message", "")) else None

    told = place.until(found, text)
    assert told is not None
    place.until(lambda: any(re.search(text, one) for one in place.events("FailedScheduling", name)), "an event says so")
    return told


def test_a_pod_whose_volume_nobody_makes_says_for_whom_it_waits_and_since_when(place: Stage) -> None:
    name = with_a_claim(place)
    begun = place.now
    text = (
        rf"waiting for provisioner {PROVISIONER} to create a volume on node \S+ for PersistentVolumeClaim data, since"
    )
    found = says(place, name, text)
    assert place.now - begun < TOLD_SECONDS + 2 * SHARP
    assert found["status"] == "False"
    assert found["reason"] == "WaitingForVolume"  # not Unschedulable: an autoscaler's node would not help
    assert place.instant(found["lastTransitionTime"]) == pytest.approx(begun, abs=SHARP)
    explained = place.explained(name)
    assert re.search(text, explained["text"])
    provision(place)
    place.bound(name)
    place.ready("db")


def test_what_it_waits_longer_than_a_start_may_take_is_not_the_clusters_doing(place: Stage) -> None:
    name = with_a_claim(place)
    created = place.life(name).created
    status = place.status("deployment-db", lambda one: one["lostSeconds"]["workload"] > 100.0, "the workload's")
    assert status["lostSeconds"]["cluster"] == pytest.approx(CREATION_SECONDS, abs=2 * SHARP)
    place.kill()  # the next leader goes on from there
    second = place.status("deployment-db", lambda one: one["lostSeconds"]["workload"] > 400.0, "still the workload's")
    assert second["lostSeconds"]["cluster"] == pytest.approx(CREATION_SECONDS, abs=5.0)
    found = says(place, name, f"waiting for provisioner {PROVISIONER} to create a volume on node .* since")
    assert place.instant(found["lastTransitionTime"]) == pytest.approx(created, abs=SHARP)
    assert re.search("waits: waiting for provisioner", place.explained(name)["text"])  # and holds no place meanwhile
    provision(place)
    place.bound(name)
    place.ready("db")


def test_a_volume_that_the_controller_has_to_bind(place: Stage) -> None:
    place.create("persistentvolumes", {"metadata": {"name": "there"}, "spec": {
        "storageClassName": "disks", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}})  # fmt: skip
    place.patch("persistentvolumes", "there", {"status": {"phase": "Available"}}, sub="status")
    name = with_a_claim(place)
    says(place, name, "waiting for kube-controller-manager to bind volume there to PersistentVolumeClaim data, since")
    change: Json = {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": "there"}}
    place.merge("persistentvolumeclaims", "data", change)
    place.bound(name)


def test_a_pod_whose_owner_is_not_there(place: Stage) -> None:
    body = pod("orphan")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "no-such-uid", "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    place.create("pods", body)
    says(place, "orphan", "waiting for ReplicaSet gone: its owner does not exist, or is not seen yet")


def test_a_pod_that_could_not_be_bound_says_why(place: Stage) -> None:
    """The provisioner gives the node back."""
    name = with_a_claim(place)

    def selected() -> str:
        found = (place.get("persistentvolumeclaims", "data") or {})["metadata"].get("annotations", {})
        return str(found.get(SELECTED, ""))

    node = place.until(selected, "the claim says for which node")
    place.merge("persistentvolumeclaims", "data", {"metadata": {"annotations": {SELECTED: None}}})
    text = f"no volume could be provisioned for PersistentVolumeClaim data on node {node}"
    place.until(lambda: any(text in one for one in place.events("FailedScheduling", name)), "an event says so")


def test_a_pod_whose_place_is_not_free_yet_names_whom_it_waits_for(place: Stage) -> None:
    for node in ("node-0", "node-1"):
        place.cordon(node, node == "node-1")
    place.wait(1.0)
    place.create("deployments", deployment("low", 1, cpu="3", terminationGracePeriodSeconds=30))
    (victim,) = place.ready("low")
    place.create("pods", pod("high", cpu="3", labels={"slacktide.io/class": "gold"}))
    found = says(place, "high", rf"nominated to node node-0, waiting for {place.namespace}/{victim} to terminate")
    assert found["reason"] == "Unschedulable"
    assert place.pod("high")["status"]["nominatedNodeName"] == "node-0"
    place.bound("high")
