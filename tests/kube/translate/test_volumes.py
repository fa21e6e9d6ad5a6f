"""What a pod's claims ask for: nodes, a provisioner, or patience."""

from __future__ import annotations

from typing import Any

import pytest

from slacktide.kube.resources.objects import (
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.kube.translate.volumes import NO_NEEDS, Storage, VolumePlan, both
from slacktide.model.constraint import Constraint, Term
from support.made_objects import claim, decoded, pod, storage_class, volume

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
            found.on_claim_update(one)
        elif isinstance(one, PersistentVolume):
            found.on_volume_update(one)
        else:
            found.on_class_update(one)
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
        ([], "persistentvolumeclaim 'c' not found"),
        ([claim("c", "disk")], "bound to volume disk, which does not exist"),
        ([claim("c", "disk", phase="Lost"), volume("disk")], "bound to non-existent persistentvolume 'disk'"),
        ([claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})], "is being deleted"),
        ([claim("c", "disk", bound=False), volume("disk")], "is being bound to volume disk"),
        ([claim("c")], "is not bound, and its class slow does not exist"),
        ([claim("c", class_name=None)], "is not bound, and it has no storage class"),
        ([claim("c"), storage_class(volumeBindingMode="Immediate")], "class slow binds at once"),
        ([claim("c"), storage_class(provisioner=NO_PROVISIONER)], "no available persistent volume to bind"),
    ],
)
def test_a_claim_that_is_not_ready_makes_the_pod_wait_and_says_why(objects: list[Any], reason: str) -> None:
    needs = storage(*objects).needs(using("c"))
    assert reason in needs.waits
    assert "claim c" in needs.waits.replace("'", "")


def test_a_provisioner_is_told_the_node_among_those_its_class_allows() -> None:
    expressions = [{"key": ZONE, "values": ["a", "b"]}]
    allowed = storage_class(allowedTopologies=[{"matchLabelExpressions": expressions}])
    needs = storage(claim("c"), allowed).needs(using("c"))
    assert (needs.provision, needs.waits) == (("c",), "")
    assert needs.term == Term((Constraint(ZONE, "in", "", ("a", "b")),))
    assert storage(claim("c"), storage_class()).needs(using("c")).term == Term()


def test_pods_with_claims_wait_while_nothing_is_known_of_volumes() -> None:
    found = storage(claim("c"), storage_class())
    found.unknown = "the watch of persistentvolumes has stopped: nothing received for 700 s"
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


def test_the_smallest_volume_that_suffices_is_chosen_for_the_node_of_the_pod() -> None:
    found = storage(
        claim("c", size="2Gi"),
        storage_class(provisioner=NO_PROVISIONER),
        volume("small", on="n1", size="1Gi"),
        volume("large", on="n2", size="9Gi"),
        volume("fits", on="n2", size="3Gi"),
        volume("other", on="n3", size="3Gi", class_name="another"),
        volume("taken", on="n4", size="3Gi", claimRef={"namespace": "default", "name": "d"}),
        volume("released", on="n5", size="3Gi", phase="Released"),
        volume("many", on="n6", size="3Gi", modes=["ReadOnlyMany"]),
        volume("raw", on="n7", size="3Gi", volumeMode="Block"),
    )
    needs = found.needs(using("c"))
    assert (needs.provision, needs.waits) == (("c",), "")
    assert [name for name in map("n{}".format, range(1, 8)) if needs.term.holds(on(name))] == ["n2"]
    assert found.plan(using("c"), on("n2")).bind["c"].metadata.name == "fits"
    with pytest.raises(Unschedulable, match="no available persistent volume"):
        found.plan(using("c"), on("n1"))


def test_a_selector_chooses_among_volumes() -> None:
    wanted = claim("c", selector={"matchLabels": {"disk": "fast"}})
    local = storage_class(provisioner=NO_PROVISIONER)
    found = storage(wanted, local, volume("slow", on="n1"), volume("fast", on="n2", labels={"disk": "fast"}))
    assert [name for name in ("n1", "n2") if found.needs(using("c")).term.holds(on(name))] == ["n2"]


def test_two_claims_of_a_pod_need_two_volumes_of_one_node() -> None:
    found = storage(
        claim("c", size="2Gi"),
        claim("d", size="1Gi"),
        storage_class(provisioner=NO_PROVISIONER),
        volume("a1", on="n1", size="2Gi"),
        volume("b1", on="n2", size="2Gi"),
        volume("b2", on="n2", size="2Gi"),
        volume("c1", on="n3", size="1Gi"),
        volume("c2", on="n3", size="1Gi"),
    )
    term = found.needs(using("c", "d")).term
    assert [name for name in ("n1", "n2", "n3") if term.holds(on(name))] == ["n2"]
    chosen = found.plan(using("c", "d"), on("n2")).bind
    assert {name: one.metadata.name for name, one in chosen.items()} == {"c": "b2", "d": "b1"}


def test_what_is_not_there_is_made_where_there_is_a_provisioner() -> None:
    expressions = [{"key": ZONE, "values": ["a"]}]
    allowed = storage_class(allowedTopologies=[{"matchLabelExpressions": expressions}])
    found = storage(claim("c"), allowed, volume("there", on="n1"))
    needs = found.needs(using("c"))
    assert needs.term.holds(on("n1") | {ZONE: "b"})
    assert needs.term.holds(on("n2") | {ZONE: "a"})
    assert not needs.term.holds(on("n2") | {ZONE: "b"})
    assert found.plan(using("c"), on("n1") | {ZONE: "b"}).bind["c"].metadata.name == "there"
    assert found.plan(using("c"), on("n2") | {ZONE: "a"}) == VolumePlan({}, ("c",))


def test_a_volume_that_names_the_claim_goes_before_smaller_ones() -> None:
    local = storage_class(provisioner=NO_PROVISIONER)
    mine = volume("mine", on="n1", size="9Gi", claimRef={"namespace": "default", "name": "c"})
    found = storage(claim("c"), claim("d"), local, volume("small", on="n2"), mine)
    assert found.needs(using("d")).term.holds(on("n2"))
    assert not found.needs(using("c")).term.holds(on("n2"))
    assert found.plan(using("c"), on("n1")).bind["c"].metadata.name == "mine"
    found.on_volume_update(volume("mine", on="n1", claimRef={"namespace": "default", "name": "c", "uid": "another"}))
    assert found.needs(using("c")).term.holds(on("n2"))


def test_a_volume_that_cannot_be_read_is_chosen_by_nobody() -> None:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "Near", "values": ["n1"]}]}]
    broken = volume("broken", nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    found = storage(claim("c"), storage_class(provisioner=NO_PROVISIONER), broken, volume("whole", on="n2"))
    assert [name for name in ("n1", "n2") if found.needs(using("c")).term.holds(on(name))] == ["n2"]


def capacity(name: str, size: str, node: str, **more: Any) -> CSIStorageCapacity:
    body = {"metadata": {"name": name, "namespace": "s"}, "storageClassName": "slow", "capacity": size}
    return decoded(CSI_STORAGE_CAPACITY, body | {"nodeTopology": {"matchLabels": {HOST: node}}} | more)


def test_volumes_are_made_where_the_driver_has_storage_enough() -> None:
    found = storage(claim("c", size="5Gi"), storage_class())
    found.capacities.on_driver_update(decoded(CSI_DRIVER, {"metadata": {"name": "example.com/disk"}, "spec": {}}))
    assert found.needs(using("c")).term == Term()  # this driver says nothing
    says = {"metadata": {"name": "example.com/disk"}, "spec": {"storageCapacity": True}}
    found.capacities.on_driver_update(decoded(CSI_DRIVER, says))
    found.reconsider()
    assert "no node has enough free storage" in found.needs(using("c")).waits
    assert found.capacities.see(capacity("a", "9Gi", "n1"))
    assert not found.capacities.see(capacity("a", "9Gi", "n1"))  # no news
    found.capacities.see(capacity("b", "4Gi", "n2"))
    found.capacities.see(capacity("c", "9Gi", "n3", maximumVolumeSize="4Gi"))
    found.capacities.see(capacity("d", "9Gi", "n4", storageClassName="another"))
    found.capacities.see(capacity("e", "9Gi", "n5", nodeTopology=None))
    found.reconsider()
    term = found.needs(using("c")).term
    assert [name for name in map("n{}".format, range(1, 6)) if term.holds(on(name))] == ["n1"]
    found.capacities.drop("s", "a")
    found.reconsider()
    assert "no node has enough free storage" in found.needs(using("c")).waits


def test_a_claim_for_one_pod_is_exclusive_also_while_it_waits() -> None:
    found = storage(claim("c", "disk", modes=["ReadWriteOncePod"]), claim("d"), volume("disk"))
    assert found.exclusive(using("c")) == ("c",)
    assert found.exclusive(using("c", "d")) == ("c",)
    assert found.needs(using("c", "d")).waits
    assert found.exclusive(using("d")) == ()


def test_an_ephemeral_volume_has_a_claim_of_the_pods_own() -> None:
    ephemeral = using(scratch={"ephemeral": {}})
    assert "p-scratch of ephemeral volume scratch to be created" in storage().needs(ephemeral).waits
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p-uid", "controller": True}
    own = claim("p-scratch", "disk", metadata={"ownerReferences": [owner]})
    assert storage(own, volume("disk", on="n1")).needs(ephemeral).term.holds(on("n1"))
    others = claim("p-scratch", "disk")
    assert "was not created for this pod" in storage(others, volume("disk")).needs(ephemeral).waits


def test_a_malformed_volume_makes_its_pod_wait() -> None:
    expression = {"key": "zone", "operator": "Near", "values": ["a"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    needs = storage(claim("c", "disk"), volume("disk", nodeAffinity=affinity)).needs(using("c"))
    assert "volume disk: node affinity: key 'zone': found operator 'Near'" in needs.waits


def test_what_is_dropped_is_forgotten() -> None:
    found = storage(claim("c", "disk"), volume("disk"), storage_class())
    found.on_volume_delete("disk")
    found.on_claim_delete("default", "c")
    found.on_class_delete("slow")
    found.on_volume_delete("disk")
    assert not any(value for name, value in vars(found).items() if name != "capacities")


def test_two_terms_become_one() -> None:
    zone, rack = Constraint("zone", "==", "a"), Constraint("rack", "exists")
    assert both(Term((zone,)), Term((rack, zone))) == Term((zone, rack))
    assert both(Term(), Term((rack,))) == Term((rack,))
    assert both(Term((zone,)), Term()) == Term((zone,))
