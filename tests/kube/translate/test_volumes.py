"""What a pod's claims ask for: nodes, a provisioner, or patience."""

from __future__ import annotations

from typing import Any

import pytest

from slacktide.kube.resources.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from slacktide.kube.translate.volumes import NO_NEEDS, Storage, both
from slacktide.model.constraint import Constraint, Term
from support.made_objects import claim, pod, storage_class, volume

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def using(*names: str, **volumes: Any) -> Pod:
    sources = [{"name": f"v{k}", "persistentVolumeClaim": {"claimName": name}} for k, name in enumerate(names)]
    return pod("p", uid="p-uid", volumes=[*sources, *({"name": key} | value for key, value in volumes.items())])


def storage(*objects: PersistentVolumeClaim | PersistentVolume | StorageClass) -> Storage:
    found = Storage()
    for one in objects:
        if isinstance(one, PersistentVolumeClaim):
            found.see_claim(one)
        elif isinstance(one, PersistentVolume):
            found.see_volume(one)
        else:
            found.see_class(one)
    return found


def on(host: str, **labels: str) -> dict[str, str]:
    return {HOST: host, "metadata.name": host} | labels


def test_a_pod_without_claims_needs_nothing() -> None:
    assert Storage().needs(using(cache={"emptyDir": {}})) is NO_NEEDS


def test_a_bound_claim_ties_the_pod_to_the_nodes_of_its_volume() -> None:
    needs = storage(claim("c", "disk"), volume("disk", on="n1")).needs(using("c"))
    assert needs.waits == ""
    assert needs.term.holds(on("n1"))
    assert not needs.term.holds(on("n2"))
    assert not needs.provision
    assert storage(claim("c", "disk"), volume("disk")).needs(using("c")).term == Term()


def test_old_volumes_say_by_labels_where_they_are() -> None:
    labels = {ZONE: "a__b", "failure-domain.beta.kubernetes.io/region": "r"}
    term = storage(claim("c", "disk"), volume("disk", labels=labels)).needs(using("c")).term
    assert term.holds(on("n1"))  # a node without any such label
    assert term.holds(on("n1") | {ZONE: "b", "topology.kubernetes.io/region": "r"})
    assert not term.holds(on("n1") | {ZONE: "c", "topology.kubernetes.io/region": "r"})
    assert not term.holds(on("n1") | {ZONE: "b"})


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([], "claim c does not exist"),
        ([claim("c", "disk")], "bound to volume disk, which does not exist"),
        ([claim("c", "disk", phase="Lost"), volume("disk")], "has lost its volume disk"),
        ([claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})], "is being deleted"),
        ([claim("c", "disk", bound=False), volume("disk")], "is being bound to volume disk"),
        ([claim("c")], "is not bound, and its class slow does not exist"),
        ([claim("c", class_name=None)], "is not bound, and it has no storage class"),
        ([claim("c"), storage_class(volumeBindingMode="Immediate")], "class slow binds at once"),
        (
            [claim("c"), storage_class(), volume("given", claimRef={"namespace": "default", "name": "c"})],
            "about to be bound to volume given",
        ),
    ],
)
def test_a_claim_that_is_not_ready_makes_the_pod_wait_and_says_why(objects: list[Any], reason: str) -> None:
    needs = storage(*objects).needs(using("c"))
    assert reason in needs.waits
    assert "claim c" in needs.waits


def test_a_provisioner_is_told_the_node_among_those_its_class_allows() -> None:
    expressions = [{"key": ZONE, "values": ["a", "b"]}]
    allowed = storage_class(allowedTopologies=[{"matchLabelExpressions": expressions}])
    needs = storage(claim("c"), allowed).needs(using("c"))
    assert (needs.provision, needs.waits) == (("c",), "")
    assert needs.term == Term((Constraint(ZONE, "in", "", ("a", "b")),))
    assert storage(claim("c"), storage_class()).needs(using("c")).term == Term()


def test_pods_with_claims_wait_while_nothing_is_known_of_volumes() -> None:
    found = storage(claim("c"), storage_class())
    found.unknown = "the watch of persistentvolumes is dead: no word for 700 s"
    assert found.needs(using("c")).waits == found.unknown
    assert found.needs(using()) == NO_NEEDS
    found.unknown = ""
    assert found.needs(using("c")).waits == ""


def test_a_node_once_told_to_the_provisioner_is_kept() -> None:
    chosen = claim("c", metadata={"annotations": {"volume.kubernetes.io/selected-node": "n1"}})
    needs = storage(chosen, storage_class()).needs(using("c"))
    assert needs.provision == ("c",)
    assert needs.term.holds(on("n1"))
    assert not needs.term.holds(on("n2"))


def test_nobody_chooses_a_volume_where_there_is_no_provisioner() -> None:
    local = storage_class(provisioner=NO_PROVISIONER)
    needs = storage(claim("c"), local, volume("free", on="n1", size="10Gi")).needs(using("c"))
    assert (needs.provision, needs.term.constraints) == ((), ())
    assert "claim c is of class" in needs.waits
    assert "slacktide chooses no volume; the claim's spec.volumeName may" in needs.waits


def test_a_claim_for_one_pod_is_exclusive_also_while_it_waits() -> None:
    found = storage(claim("c", "disk", modes=["ReadWriteOncePod"]), claim("d"), volume("disk"))
    assert found.needs(using("c")).exclusive == ("c",)
    assert found.needs(using("c", "d")).exclusive == ("c",)
    assert found.needs(using("c", "d")).waits
    assert found.needs(using("d")).exclusive == ()


def test_an_ephemeral_volume_has_a_claim_of_the_pods_own() -> None:
    ephemeral = using(scratch={"ephemeral": {}})
    assert "p-scratch of the pod's ephemeral volume scratch is yet to be made" in storage().needs(ephemeral).waits
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p-uid", "controller": True}
    own = claim("p-scratch", "disk", metadata={"ownerReferences": [owner]})
    assert storage(own, volume("disk", on="n1")).needs(ephemeral).term.holds(on("n1"))
    others = claim("p-scratch", "disk")
    assert "is not the pod's own" in storage(others, volume("disk")).needs(ephemeral).waits


def test_a_malformed_volume_makes_its_pod_wait() -> None:
    expression = {"key": "zone", "operator": "Near", "values": ["a"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    needs = storage(claim("c", "disk"), volume("disk", nodeAffinity=affinity)).needs(using("c"))
    assert "volume disk: node affinity: key 'zone': found operator 'Near'" in needs.waits


def test_what_is_dropped_is_forgotten() -> None:
    found = storage(claim("c", "disk"), volume("disk"), storage_class())
    found.drop_volume("disk")
    found.drop_claim("default", "c")
    found.drop_class("slow")
    found.drop_volume("disk")
    assert not any(vars(found).values())


def test_two_terms_become_one() -> None:
    zone, rack = Constraint("zone", "==", "a"), Constraint("rack", "exists")
    assert both(Term((zone,)), Term((rack, zone))) == Term((zone, rack))
    assert both(Term(), Term((rack,))) == Term((rack,))
    assert both(Term((zone,)), Term()) == Term((zone,))
