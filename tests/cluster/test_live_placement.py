"""What a production scheduler must honour, on a real control plane; an auditor checks every binding by itself.

What lets a waiting pod go, and at once, is asked in ``simulated/test_placement.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import ledgers
from cluster.judging import Json
from cluster.labtools import pod, until
from cluster.running import (
    BETWEEN_EQUALS,
    WATCHDOG_SECONDS,
    Cast,
    Place,
    Stage,
    nothing_wrong,
    scene,
    service_class,
    staged,
)
from slacktide.lab import ApiError, Binaries

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    classes = [service_class("plain", 0.9, 2, default=True)]
    yield from staged(
        binaries,
        tmp_path_factory.mktemp("placement"),
        classes,
        qos__alpha=ledgers.ALPHA,
        scheduler__watchdog=WATCHDOG_SECONDS,
        policy__patience=BETWEEN_EQUALS,
    )


# -- nodes -------------------------------------------------------------------------------------------------------------


@scene
def test_full_nodes_and_what_is_told_of_them(place: Place) -> None:
    (node,) = place.nodes(1, cpu="2", memory="1Gi")
    place.nodes(1, prefix="-other", labels={"scene": "another"})
    place.create("pods", pod("first", cpu="1500m"))
    place.ready("first")
    scheduled = until(lambda: place.auditor.events(place.namespace, "Scheduled", "first"), "its event")
    assert [one["note"] for one in scheduled] == [f"Successfully assigned {place.namespace}/first to {node}"]
    place.create("pods", pod("wide", cpu="600m"))
    place.create("pods", pod("tall", memory="2Gi"))
    place.create("pods", pod("odd") | {})
    found = place.waits("wide", r"^0/\d+ nodes are available: .*\b1 Insufficient cpu\b.*\. preemption: ")
    told = re.match(r"0/(\d+) nodes are available: (.*?)\. preemption: ", found["message"])
    assert told is not None, found
    counts = {text: int(number) for number, _, text in (each.partition(" ") for each in told[2].split(", "))}
    assert counts["Insufficient cpu"] == 1, found
    assert counts[f"node(s) didn't match Pod's node affinity/selector (scene == {place.name})"] >= 1, found
    assert sum(counts.values()) == int(told[1]), "each node is counted once"
    place.waits("tall", r"\b1 Insufficient memory\b")
    place.ready("odd")
    place.delete("pods", "first")
    assert place.bound("wide") == node


@scene
def test_effective_requests_of_init_containers_sidecars_and_overhead(place: Place) -> None:
    place.nodes(1, cpu="2")
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}, "handler": "h"}
    place.api.post("/apis/node.k8s.io/v1/runtimeclasses", runtime | {"overhead": {"podFixed": {"cpu": "250m"}}})

    def asking(cpu: str, **more: Any) -> Json:
        return {"name": f"i{cpu}", "image": "none", "resources": {"requests": {"cpu": cpu}}, **more}

    # max(500m side + 1 init, 500m side + 100m main) + 250m overhead = 1750m
    inits = [asking("500m", restartPolicy="Always"), asking("1")]
    heavy = pod("made", initContainers=inits, runtimeClassName="heavy")
    until(lambda: _accepts(place, heavy), "admission knows the class")
    place.bound("made")
    place.create("pods", pod("tight", cpu="300m"))
    place.waits("tight", r"\b1 Insufficient cpu\b")
    place.create("pods", pod("fits", cpu="250m"))
    place.bound("fits")


def _accepts(place: Place, body: Json) -> bool:
    try:
        place.create("pods", body)
    except ApiError as error:  # the lister of the admission plugin lags
        if "RuntimeClass" not in str(error) and "not found" not in str(error):
            raise
        return False
    return True


@scene
def test_taints_selectors_and_affinity(place: Place) -> None:
    guarded = [{"key": "example.com/only", "value": "db", "effect": "NoSchedule"}]
    (free,) = place.nodes(1, labels={"disk": "hdd", "size": "5"})
    (tainted,) = place.nodes(1, prefix="-t", labels={"disk": "ssd", "size": "9"}, taints=guarded)
    tolerates = [{"key": "example.com/only", "operator": "Equal", "value": "db", "effect": "NoSchedule"}]
    place.create("pods", pod("ssd", nodeSelector={"disk": "ssd"}))
    place.waits("ssd", r"\b1 node\(s\) had untolerated taint \{example.com/only: db\}")
    place.create("pods", pod("db", nodeSelector={"disk": "ssd"}, tolerations=tolerates))
    assert place.bound("db") == tainted
    big = {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["7"]}]}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [free]}]}
    for name, term in (("big", big), ("named", named)):
        required = {"nodeSelectorTerms": [term]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        place.create("pods", pod(name, affinity=affinity, tolerations=tolerates))
    assert (place.bound("big"), place.bound("named")) == (tainted, free)
    ssd = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = [{"weight": 100, "preference": ssd}]
    likes: Json = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    place.create("pods", pod("likes", affinity=likes, tolerations=tolerates))
    assert place.bound("likes") == tainted
    # A taint that comes later moves nobody (NoSchedule), and lets the waiting pod go once it is taken away.
    place.kubectl.ok("taint", "node", tainted, "example.com/only-")
    assert place.bound("ssd") == tainted


# -- volumes -----------------------------------------------------------------------------------------------------------


def storage_class(name: str, provisioner: str, mode: str = "WaitForFirstConsumer") -> Json:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


def claim(name: str, service: str, mode: str = "ReadWriteOnce") -> Json:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": service, "accessModes": [mode], "resources": resources}
    return {"metadata": {"name": name}, "spec": spec}


def volume(name: str, service: str, node: str, mode: str = "ReadWriteOnce", **more: Any) -> Json:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": [mode], "storageClassName": service,
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}, "hostPath": {"path": "/none"}, **more,
        },
    }  # fmt: skip


def using(name: str, *claims: str, **more: Any) -> Json:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return pod(name, volumes=volumes, **more)


@scene
def test_a_claim_that_waits_for_its_first_pod(place: Place) -> None:
    place.nodes(2)
    place.api.post(STORAGE, storage_class("made", "example.com/maker"))
    made = place.create("persistentvolumeclaims", claim("data", "made"))
    place.create("pods", using("first", "data"))

    def selected() -> str:
        annotations = (place.get("persistentvolumeclaims", "data") or {})["metadata"].get("annotations", {})
        return str(annotations.get(SELECTED_NODE, ""))

    node = until(selected, "the claim says for which node")
    said = f"waiting for provisioner example.com/maker to create a volume on node {node} for PersistentVolumeClaim data"
    told = place.waits("first", f"{said}, since 2", reason="WaitingForVolume")
    assert told["lastTransitionTime"] >= made["metadata"]["creationTimestamp"]
    assert place.node_of("first") == ""  # not before the volume is there
    # The part of the provisioner: a volume for that node, named by the claim; the controller binds it.
    reference = {"kind": "PersistentVolumeClaim", "namespace": place.namespace, "name": "data"}
    reference |= {"uid": made["metadata"]["uid"], "apiVersion": "v1"}
    place.api.post(VOLUMES, volume("made-for-data", "made", node, claimRef=reference))
    assert place.bound("first") == node


@scene
def test_bound_volumes_and_what_is_refused(place: Place) -> None:
    _, second = place.nodes(2)
    place.api.post(STORAGE, storage_class("local", "kubernetes.io/no-provisioner"))
    place.api.post(STORAGE, storage_class("early", "kubernetes.io/no-provisioner", "Immediate"))
    place.api.post(VOLUMES, volume("there", "early", second))
    place.create("persistentvolumeclaims", claim("there", "early"))
    until(lambda: (place.get("persistentvolumeclaims", "there") or {})["status"].get("phase") == "Bound", "it is bound")
    place.create("pods", using("there", "there"))
    assert place.bound("there") == second
    # Without a provisioner the scheduler chooses among the volumes that there are.
    place.create("persistentvolumeclaims", claim("choose", "local"))
    place.create("pods", using("choose", "choose"))
    place.waits("choose", "claim choose: no available persistent volume to bind")
    place.create("pods", using("none", "missing"))
    place.waits("none", "persistentvolumeclaim 'missing' not found")
    assert place.node_of("choose") == place.node_of("none") == ""
    place.api.post(VOLUMES, volume("choose-me", "local", second))
    assert place.bound("choose") == second
    assert (place.get("persistentvolumeclaims", "choose") or {})["spec"]["volumeName"] == "choose-me"


@scene
def test_a_volume_for_one_pod_at_a_time(place: Place) -> None:
    first, _ = place.nodes(2)
    place.api.post(STORAGE, storage_class("alone", "kubernetes.io/no-provisioner", "Immediate"))
    place.api.post(VOLUMES, volume("alone", "alone", first, "ReadWriteOncePod"))
    place.create("persistentvolumeclaims", claim("alone", "alone", "ReadWriteOncePod"))
    until(lambda: (place.get("persistentvolumeclaims", "alone") or {})["status"].get("phase") == "Bound", "it is bound")
    place.create("pods", using("one", "alone"))
    place.ready("one")
    place.create("pods", using("two", "alone"))
    place.waits("two", r"\b1 node\(s\) unavailable due to PersistentVolumeClaim with ReadWriteOncePod")
    place.delete("pods", "one")
    assert place.bound("two") == first


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)
