"""Limits of attached volumes: objects in, amounts of nodes and demands of pods out; no engine, no server."""

from __future__ import annotations

import random
from typing import Any

import pytest

from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.volumes import UNLIMITED, resource_of
from slacktide.kube.resources.objects import CSI_NODE, VOLUME_ATTACHMENT, Identity, Pod
from slacktide.settings import load_live
from support import made_objects
from support.made_objects import claim, decoded, storage_class, volume

DRIVER, OTHER = "disk.example", "block.example"
DISKS = resource_of(DRIVER)
NOW = 1_790_000_000.0


def limits(node: str, **counts: int | None) -> Any:
    drivers = [
        {"name": name, "allocatable": {} if count is None else {"count": count}}
        for name, count in ((f"{name}.example", count) for name, count in counts.items())
    ]
    return decoded(CSI_NODE, {"metadata": {"name": node}, "spec": {"drivers": drivers}})


def attached(volume_name: str, node: str) -> Any:
    spec = {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume_name}}
    return decoded(VOLUME_ATTACHMENT, {"metadata": {"name": f"{volume_name}-{node}"}, "spec": spec})


def using(name: str, *claims: str, node: str = "", phase: str = "Running", **more: Any) -> Pod:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return made_objects.pod(
        name, uid=name, schedulerName="slacktide", nodeName=node, volumes=volumes, status={"phase": phase}, **more
    )


@pytest.fixture
def mirror() -> ClusterMirror:
    """Two nodes of which the first takes two disks; claims a to d are bound to disks."""
    found = ClusterMirror(load_live(), lambda: NOW)
    for name in ("n1", "n2"):
        found.on_node_update(made_objects.node(name, allocatable={"cpu": "4"}))
    for name in "abcd":
        found.volumes.on_claim_update(claim(name, f"disk-{name}"))
        found.volumes.on_volume_update(volume(f"disk-{name}", csi={"driver": DRIVER, "volumeHandle": f"h-{name}"}))
    found.volumes.on_csi_node_update(limits("n1", disk=2))
    return found


def left(mirror: ClusterMirror, node: str = "n1") -> int:
    """What is left of disks on a node, as the engine reckons it."""
    on_it = [one.pod for one in mirror.pods.values() if one.pod.spec.node_name == node and not one.is_final]
    taken = sum(dict(mirror.attachments.demand(one)).get(DISKS, 0) for one in on_it)
    return mirror.nodes[node].amounts[DISKS] - taken


def test_a_driver_without_a_limit_anywhere_is_no_resource(mirror: ClusterMirror) -> None:
    mirror.volumes.on_csi_node_delete("n1")
    assert mirror.attachments.demand(using("p", "a")) == ()
    assert DISKS not in mirror.nodes["n1"].amounts
    mirror.volumes.on_csi_node_update(limits("n1", disk=None))
    assert DISKS not in mirror.nodes["n1"].amounts


def test_a_pod_asks_for_one_a_volume_and_a_node_without_a_limit_has_enough(mirror: ClusterMirror) -> None:
    assert mirror.attachments.demand(using("p", "a", "b", "missing")) == ((DISKS, 2),)
    assert (mirror.nodes["n1"].amounts[DISKS], mirror.nodes["n2"].amounts[DISKS]) == (2, UNLIMITED)


def test_a_claim_without_a_volume_counts_for_the_driver_that_will_make_it(mirror: ClusterMirror) -> None:
    mirror.storage.on_class_update(storage_class("made", DRIVER))
    mirror.storage.on_class_update(storage_class("local", "kubernetes.io/no-provisioner"))
    mirror.volumes.on_claim_update(claim("new", class_name="made"))
    mirror.volumes.on_claim_update(claim("none", class_name="local"))
    assert mirror.attachments.demand(using("p", "new", "none")) == ((DISKS, 1),)


def test_each_volume_counts_once_a_node_however_many_pods_use_it(mirror: ClusterMirror) -> None:
    mirror.on_pod_update(using("p", "a", node="n1"))
    assert left(mirror) == 1
    mirror.on_pod_update(using("q", "a", node="n1"))
    assert left(mirror) == 1
    mirror.on_pod_update(using("r", "a", "b", node="n1"))
    assert left(mirror) == 0
    mirror.on_pod_delete(Identity("default", "p", "p", ""), None)
    mirror.on_pod_delete(Identity("default", "q", "q", ""), None)
    assert left(mirror) == 0  # of r alone
    mirror.on_pod_update(using("r", "a", "b", node="n1", phase="Succeeded"))
    assert left(mirror) == 2


def test_what_is_attached_counts_also_while_no_pod_uses_it(mirror: ClusterMirror) -> None:
    mirror.volumes.on_attachment_update(attached("disk-a", "n1"))
    assert left(mirror) == 1
    mirror.on_pod_update(using("p", "a", node="n1"))
    assert left(mirror) == 1
    mirror.on_pod_delete(Identity("default", "p", "p", ""), None)
    mirror.volumes.on_attachment_delete("disk-a-n1")
    assert left(mirror) == 2


def test_a_node_full_of_volumes_that_nobody_uses_any_more_has_nothing_left_but_owes_nothing(
    mirror: ClusterMirror,
) -> None:
    for name in "ab":
        mirror.on_pod_update(using(f"p{name}", name, node="n1"))
    mirror.volumes.on_attachment_update(attached("disk-c", "n1"))
    assert left(mirror) == 0


def test_a_volume_that_is_seen_after_its_attachment_counts(mirror: ClusterMirror) -> None:
    mirror.volumes.on_volume_delete("disk-a")
    mirror.volumes.on_attachment_update(attached("disk-a", "n1"))
    assert left(mirror) == 2
    mirror.volumes.on_volume_update(volume("disk-a", csi={"driver": DRIVER, "volumeHandle": "h-a"}))
    assert left(mirror) == 1


def test_limits_that_come_late_concern_pods_that_run(mirror: ClusterMirror) -> None:
    mirror.volumes.on_csi_node_delete("n1")
    mirror.on_pod_update(using("p", "a", node="n1"))
    mirror.volumes.on_csi_node_update(limits("n1", disk=1))
    assert left(mirror) == 0


@pytest.mark.parametrize("seed", range(20))
def test_amounts_are_those_of_kubernetes_whatever_happens(seed: int) -> None:
    """Against the count of unique volumes, taken anew from all objects after each of many changes."""
    chance = random.Random(seed)
    mirror = ClusterMirror(load_live(), lambda: NOW)
    for name in ("n1", "n2"):
        mirror.on_node_update(made_objects.node(name))
    mirror.volumes.on_csi_node_update(limits("n1", disk=2))
    pods: dict[str, tuple[str, tuple[str, ...]]] = {}
    volumes: set[str] = set()
    there: set[tuple[str, str]] = set()
    for step in range(120):
        name, node = chance.choice("abcd"), chance.choice(("n1", "n2"))
        match chance.randrange(5):
            case 0:
                claims = tuple(sorted(chance.sample("abcd", chance.randint(1, 3))))
                pods[f"p{step}"] = node, claims
                mirror.on_pod_update(using(f"p{step}", *claims, node=node))
            case 1 if pods:
                gone = chance.choice(sorted(pods))
                del pods[gone]
                mirror.on_pod_delete(Identity("default", gone, gone, ""), None)
            case 2:
                there ^= {(name, node)}
                if (name, node) in there:
                    mirror.volumes.on_attachment_update(attached(f"disk-{name}", node))
                else:
                    mirror.volumes.on_attachment_delete(f"disk-{name}-{node}")
            case 3:
                volumes ^= {name}
                if name in volumes:
                    named = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
                    source = {"driver": DRIVER, "volumeHandle": f"h-{name}"}
                    mirror.volumes.on_volume_update(volume(f"disk-{name}", csi=source, claimRef=named))
                    mirror.volumes.on_claim_update(claim(name, f"disk-{name}"))
                else:
                    mirror.volumes.on_claim_delete("default", name)
                    mirror.volumes.on_volume_delete(f"disk-{name}")
        for each, limit in (("n1", 2), ("n2", UNLIMITED)):
            used = {one for at, claims in pods.values() if at == each for one in claims}
            unique = (used | {one for one, at in there if at == each}) & volumes
            by_pods = len(used & volumes)
            assert left(mirror, each) == limit - (len(unique) if len(unique) <= limit else max(limit, by_pods))
