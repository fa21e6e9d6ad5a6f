"""Claims on devices: objects in, what waiting pods need and how many of them fit on nodes out; no engine, no server."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from slacktide.kube.mirror.barrier import Changes
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.objects import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Identity,
    Node,
    Pod,
    ResourceClaim,
)
from slacktide.kube.translate.devices.claims import NO_CLAIMS
from slacktide.settings import load_live
from support import made_objects
from support.made_objects import decoded

DRIVER = "d.example"
GPU = "devices/gpu"
NOW = 1_790_000_000.0
VERSIONS = iter(range(1, 10**6))


def node(name: str) -> Node:
    """A node of ours."""
    return made_objects.node(
        name, labels={"node-restriction.kubernetes.io/slacktide": "true"}, allocatable={"cpu": "4"}
    )


def device_class(name: str = "gpu", expression: str = "true") -> Any:
    selectors = [{"cel": {"expression": expression}}]
    metadata = {"name": name, "resourceVersion": str(next(VERSIONS))}
    return decoded(DEVICE_CLASS, {"metadata": metadata, "spec": {"selectors": selectors}})


def offer(name: str, *devices: Any, **where: Any) -> Any:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    made = [{"name": one} if isinstance(one, str) else one for one in devices]
    spec = {"driver": DRIVER, "pool": pool, "devices": made, **(where or {"nodeName": name})}
    return decoded(RESOURCE_SLICE, {"metadata": {"name": name}, "spec": spec})


def claim(
    name: str, has: dict[str, str] | None = None, owner: str = "", users: tuple[str, ...] = (), **ask: Any
) -> Any:
    """A claim on one GPU; ``has`` are devices that it has, by their pools."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "resourceVersion": str(next(VERSIONS)),
    }
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", **ask}}]
    status: dict[str, Any] = {"reservedFor": [{"resource": "pods", "name": one, "uid": one} for one in users]}
    if has is not None:
        results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": one} for pool, one in has.items()]
        fields = [{"key": "metadata.name", "operator": "In", "values": [pool]} for pool in has]
        selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
        status["allocation"] = {"devices": {"results": results}, "nodeSelector": selector}
    body = {"metadata": metadata, "spec": {"devices": {"requests": requests}}, "status": status}
    return decoded(RESOURCE_CLAIM, body)


def using(
    name: str, *claims: str, template: str = "", made: str | None = "", node: str = "", phase: str = "Pending"
) -> Pod:
    """A pod with claims; with ``template`` also one that was ``made`` from it (empty: not yet; None: needless)."""
    named: list[dict[str, Any]] = [{"name": one, "resourceClaimName": one} for one in claims]
    status: dict[str, Any] = {"phase": phase}
    if template:
        named.append({"name": "t", "resourceClaimTemplateName": template})
        if made != "":
            status["resourceClaimStatuses"] = [{"name": "t", "resourceClaimName": made}]
    return made_objects.pod(
        name, uid=name, schedulerName="slacktide", nodeName=node, resourceClaims=named, status=status
    )


@pytest.fixture
def mirror() -> ClusterMirror:
    """Two nodes with two GPUs each, and a class of them."""
    found = ClusterMirror(load_live(), lambda: NOW)
    for name in ("n1", "n2"):
        found.on_node_update(node(name))
        found.devices.on_slice_update(offer(name, "x", "y"))
    found.devices.on_class_update(device_class())
    return found


def see(mirror: ClusterMirror, *pods: Pod, claims: tuple[ResourceClaim, ...] = ()) -> None:
    for one in claims:
        mirror.devices.on_claim_update(one)
    for pod in pods:
        mirror.on_pod_update(pod)


def there(mirror: ClusterMirror, resource: str = GPU) -> list[int]:
    """For how many pods each node has devices."""
    return [view.amounts.get(resource, 0) for view in mirror.nodes.values()]


def prioritized(name: str, *sizes: int) -> Any:
    """A claim on a device of the first of these sizes that there is."""
    several = [
        {
            "name": f"s{one}",
            "deviceClassName": "gpu",
            "selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].size == {one}'}}],
        }
        for one in sizes
    ]
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(next(VERSIONS))}
    spec = {"devices": {"requests": [{"name": "r", "firstAvailable": several}]}}
    return decoded(RESOURCE_CLAIM, {"metadata": metadata, "spec": spec})


def test_nodes_say_which_alternatives_pods_would_get_there(mirror: ClusterMirror) -> None:
    for name, sizes in (("n1", (1,)), ("n2", (3, 2))):
        devices = [{"name": f"d{one}", "attributes": {"size": {"int": one}}} for one in sizes]
        mirror.devices.on_slice_update(offer(name, *devices))
    pod = using("p", "c")
    see(mirror, pod, claims=(prioritized("c", 3, 2, 1),))

    def worth() -> list[int]:
        liked = mirror.devices.needs(pod).liked
        return [sum(one.weight for one in liked if one.term.holds(view.attributes)) for view in mirror.nodes.values()]

    # kube-scheduler gives 8, 7 and 6 points, and the best node 100.
    assert worth() == [0, 25]
    mirror.devices.on_claim_update(claim("other", {"n2": "d3"}))
    assert worth() == [0, 12]
    mirror.devices.on_claim_delete("default", "other")
    assert worth() == [0, 25]
    assert not mirror.devices.reserve(pod, mirror.nodes["n2"].attributes)
    assert mirror.devices.needs(pod).liked, "as long as the place is kept, it is as it was"
    mirror.devices.release("p")
    see(mirror, using("plain", "d"), claims=(claim("d"),))
    assert mirror.devices.needs(using("plain", "d")).liked == ()


def waits(mirror: ClusterMirror, pod: Pod) -> str:
    return mirror.devices.needs(pod).waits


def reserve(mirror: ClusterMirror, pod: Pod, node: str) -> str:
    return mirror.devices.reserve(pod, mirror.nodes[node].attributes)


def planned(mirror: ClusterMirror, pod: str) -> list[str]:
    """The devices that are reserved for a pod."""
    found = mirror.devices.in_use.reservations[pod].planned.values()
    return ["/".join(one[1:]) for each in found for one in each.devices]


def test_a_waiting_pod_asks_for_one_of_what_stands_for_its_claims(mirror: ClusterMirror) -> None:
    assert there(mirror) == [0, 0]
    a = using("a", "a")
    see(mirror, a, claims=(claim("a"),))
    assert mirror.devices.needs(a).demand == ((GPU, 1),)
    assert there(mirror) == [2, 2]
    pair = using("pair", "pair")
    see(mirror, pair, claims=(claim("pair", count=2),))
    assert mirror.devices.needs(pair).demand == ((f"{GPU}~2", 1),)
    assert there(mirror, f"{GPU}~2") == [1, 1]
    assert mirror.devices.needs(using("none")) == NO_CLAIMS


def test_what_claims_have_is_in_use(mirror: ClusterMirror) -> None:
    see(mirror, using("a", "a"), claims=(claim("a"), claim("other", {"n1": "x"})))
    assert there(mirror) == [1, 2]
    mirror.devices.on_claim_update(claim("other"))
    assert there(mirror) == [2, 2]
    mirror.devices.on_claim_update(claim("other", {"n2": "y"}))
    mirror.devices.on_claim_delete("default", "other")
    assert there(mirror) == [2, 2]


def test_an_allocated_claim_leads_to_its_node(mirror: ClusterMirror) -> None:
    a = using("a", "a", "b")
    see(mirror, a, claims=(claim("a", {"n1": "x"}), claim("b")))
    needs = mirror.devices.needs(a)
    assert [needs.term.holds(view.attributes) for view in mirror.nodes.values()] == [True, False]
    assert needs.demand == ((GPU, 1),)
    assert "not available on node n2" in reserve(mirror, a, "n2")
    assert reserve(mirror, a, "n1") == ""
    assert planned(mirror, "a") == ["n1/y"]


def test_no_device_is_reserved_twice(mirror: ClusterMirror) -> None:
    """Whatever the pods ask for: those that ask alike are counted, the others are refused here."""
    pods = [using(name, name) for name in "abc"]
    see(mirror, *pods, claims=(claim("a"), claim("b"), claim("c", count=2)))
    assert [reserve(mirror, one, "n1") for one in pods[:2]] == ["", ""]
    assert (planned(mirror, "a"), planned(mirror, "b")) == (["n1/x"], ["n1/y"])
    # Both of them count as places that are taken, as their pods ask for them until they are bound.
    assert there(mirror) == [2, 2]
    assert there(mirror, f"{GPU}~2") == [0, 1]
    assert reserve(mirror, pods[2], "n1") == "node n1 has no free devices for its ResourceClaims any more"
    mirror.devices.release("a")
    mirror.devices.release("b")
    assert reserve(mirror, pods[2], "n1") == ""
    assert there(mirror) == [0, 2]


def test_who_cannot_have_devices_elsewhere_has_none_reserved(mirror: ClusterMirror) -> None:
    pair = using("pair", "pair")
    see(mirror, pair, claims=(claim("pair", count=2), claim("other", {"n2": "x"})))
    assert reserve(mirror, pair, "n1") == ""
    assert "no free devices" in reserve(mirror, pair, "n2")
    assert not mirror.devices.in_use.reservations
    assert there(mirror) == [1, 0]


def test_a_reservation_ends_when_the_pod_is_bound_and_the_claim_has_the_device(mirror: ClusterMirror) -> None:
    a = using("a", "a")
    see(mirror, a, using("b", "b"), claims=(claim("a"), claim("b")))
    assert reserve(mirror, a, "n1") == ""
    mirror.devices.on_claim_update(claim("a", {"n1": "x"}, users=("a",)))
    assert mirror.devices.needs(a).demand == ((GPU, 1),), "as the engine knows it, until it is bound"
    assert there(mirror) == [2, 2]
    mirror.on_pod_update(using("a", "a", node="n1"))
    assert not mirror.devices.in_use.reservations
    assert there(mirror) == [1, 2]
    assert mirror.devices.needs(using("b", "b")).demand == ((GPU, 1),)


def test_a_pod_that_is_bound_asks_for_devices_no_more_and_followers_hear_of_it(mirror: ClusterMirror) -> None:
    class Follower(Changes):
        def __init__(self) -> None:
            self.told: list[str] = []

        def constraints(self, uids: Sequence[str], *, by: str = "", at_once: bool = False) -> None:  # noqa: ARG002
            self.told += uids

    follower = Follower()
    mirror.follow(follower)
    see(mirror, using("a", "a"), using("b"), claims=(claim("a"),))
    assert reserve(mirror, using("a", "a"), "n1") == ""
    mirror.devices.on_claim_update(claim("a", {"n1": "x"}, users=("a",)))
    assert not follower.told
    for name in "ab":
        mirror.on_pod_update(using(name, *name[:1].replace("b", ""), node="n1"))
    assert follower.told == ["a"]


def test_what_is_being_written_stays_reserved_when_the_pod_is_gone(mirror: ClusterMirror) -> None:
    for writing in (True, False):
        a = using("a", "a")
        see(mirror, a, using("b", "b"), claims=(claim("a"), claim("b")))
        assert reserve(mirror, a, "n1") == ""
        mirror.devices.in_use.reservations["a"].writing = writing
        mirror.on_pod_delete(Identity("default", "a", "a", ""), a)
        assert there(mirror) == [2, 2]
        assert ("a" in mirror.devices.in_use.reservations) == writing
        mirror.devices.release("a")
        assert there(mirror) == [2, 2]


def test_other_pods_of_a_claim_wait_while_it_gets_a_device(mirror: ClusterMirror) -> None:
    a, b = using("a", "both"), using("b", "both")
    see(mirror, a, b, claims=(claim("both"),))
    assert reserve(mirror, a, "n1") == ""
    assert "being allocated for another pod" in waits(mirror, b)
    assert "being allocated for another pod" in reserve(mirror, b, "n1")
    mirror.devices.release("a")
    assert waits(mirror, b) == ""
    assert reserve(mirror, a, "n1") == ""
    mirror.devices.on_claim_update(claim("both", {"n1": "x"}, users=("a",)))
    needs = mirror.devices.needs(b)
    assert (needs.waits, needs.demand) == ("", ())
    assert [needs.term.holds(view.attributes) for view in mirror.nodes.values()] == [True, False]


def test_an_earlier_version_of_a_claim_is_passed_over(mirror: ClusterMirror) -> None:
    """The answer to our own write comes before the watch tells of the versions before it."""
    a = using("a", "a")
    before, after = claim("a"), claim("a", {"n1": "x"})
    see(mirror, a, using("b", "b"), claims=(claim("b"), before, after, before))
    assert mirror.devices.needs(a).demand == ()
    assert there(mirror) == [1, 2]
    anew = replace_uid(before, "another")
    mirror.devices.on_claim_update(anew)
    assert mirror.devices.needs(a).demand == ((GPU, 1),)
    assert there(mirror) == [2, 2]


def replace_uid(one: ResourceClaim, uid: str) -> ResourceClaim:
    body = {"metadata": {"name": one.metadata.name, "namespace": "default", "uid": uid, "resourceVersion": "1"}}
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    return decoded(RESOURCE_CLAIM, {**body, "spec": {"devices": {"requests": requests}}})


def test_claims_that_cannot_be_used_make_the_pod_wait_with_the_reason(mirror: ClusterMirror) -> None:
    pod = using("a", "a")
    see(mirror, pod)
    assert waits(mirror, pod) == "ResourceClaim a not found"
    binding = {"devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "n1", "device": "x",
                                        "bindingConditions": ["attached"]}]}}  # fmt: skip
    bodies: tuple[tuple[dict[str, Any], str], ...] = (
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "ResourceClaim a is being deleted"),
        ({"metadata": {}, "status": {"allocation": binding}}, "bindingConditions"),
        (
            {"metadata": {}, "status": {"allocation": {}, "reservedFor": [{"uid": str(at)} for at in range(256)]}},
            "reserved for 256 pods already",
        ),
    )
    for body, said in bodies:
        version = str(next(VERSIONS))
        metadata = {"name": "a", "namespace": "default", "uid": "a", "resourceVersion": version, **body["metadata"]}
        mirror.devices.on_claim_update(decoded(RESOURCE_CLAIM, {**body, "metadata": metadata}))
        assert said in waits(mirror, pod)
    see(mirror, claims=(claim("a", capacity={"requests": {"memory": "1Gi"}}),))
    assert "claim a: spec.devices.requests[0].exactly.capacity" in waits(mirror, pod)
    mirror.devices.on_claim_update(claim("a"))
    assert waits(mirror, pod) == ""
    mirror.devices.on_class_delete("gpu")
    assert "device class gpu does not exist" in waits(mirror, pod)
    mirror.devices.set_unknown("resourceclaims cannot be listed: 404")
    assert waits(mirror, pod) == "spec.resourceClaims: resourceclaims cannot be listed: 404"
    assert waits(mirror, using("other")) == ""


def test_claims_from_templates(mirror: ClusterMirror) -> None:
    see(mirror, using("a", template="gpu"))
    assert waits(mirror, using("a", template="gpu")) == (
        "spec.resourceClaims[0]: no ResourceClaim has been created from template gpu yet"
    )
    made = using("a", template="gpu", made="a-t-1")
    see(mirror, made, claims=(claim("a-t-1"),))
    assert waits(mirror, made) == "ResourceClaim a-t-1 was not created for this pod (pod is not owner)"
    see(mirror, claims=(claim("a-t-1", owner="a"),))
    assert mirror.devices.needs(made).demand == ((GPU, 1),)
    needless = using("b", template="gpu", made=None)
    see(mirror, needless)
    assert mirror.devices.needs(needless) == NO_CLAIMS


def test_a_pod_that_nobody_has_seen_is_not_placed_without_its_claims(mirror: ClusterMirror) -> None:
    assert "not been listed yet" in waits(mirror, using("a", "a"))


def test_a_selector_that_fails_on_every_node_is_the_reason(mirror: ClusterMirror) -> None:
    mirror.devices.on_class_update(device_class(expression='device.attributes["d.example"].model == "a"'))
    pod = using("a", "a")
    see(mirror, pod, claims=(claim("a"),))
    assert "request r: device d.example/n1/x: CEL expression" in waits(mirror, pod)
    mirror.devices.on_slice_update(offer("n2", {"name": "z", "attributes": {"model": {"string": "a"}}}))
    assert waits(mirror, pod) == ""
    assert there(mirror) == [0, 1]


def test_while_nodes_are_looked_at_one_by_one_nobody_hears_that_there_is_no_hope(mirror: ClusterMirror) -> None:
    """A device that all nodes can use is taken, so that all nodes are looked at, first one on which the selector
    fails."""
    mirror.devices.on_class_update(device_class(expression='device.attributes["d.example"].model == "a"'))
    models: dict[str, Any] = {one: {"name": "z", "attributes": {"model": {"string": one}}} for one in "ab"}
    mirror.devices.on_slice_update(offer("n2", models["a"]))
    mirror.devices.on_slice_update(offer("shared", models["b"], allNodes=True))
    pod = using("a", "a")
    see(mirror, pod, claims=(claim("a"),))
    assert there(mirror) == [0, 1]

    class Follower(Changes):
        def pod(self, record: PodRecord) -> None:
            raise AssertionError(waits(mirror, record.pod))

    mirror.follow(Follower())
    mirror.devices.on_claim_update(claim("other", {"shared": "z"}))
    assert there(mirror) == [0, 1]


def test_devices_of_all_nodes_are_counted_on_each_and_reserved_once(mirror: ClusterMirror) -> None:
    mirror.devices.on_slice_update(offer("shared", "z", allNodes=True))
    pods = [using(name, name) for name in "abcde"]
    see(mirror, *pods, claims=tuple(claim(name) for name in "abcde"))
    assert there(mirror) == [3, 3]
    for pod in pods[:3]:
        assert reserve(mirror, pod, "n1") == ""
    assert there(mirror) == [3, 2]
    assert [reserve(mirror, pod, "n2") for pod in pods[3:]] == ["", ""]
    assert there(mirror) == [3, 2]


def test_a_rule_that_taints_devices_is_a_reason_to_wait_while_it_is_there(mirror: ClusterMirror) -> None:
    pod = using("a", "a")
    see(mirror, pod, claims=(claim("a"),))
    spec = {"deviceSelector": {"pool": "n1"}, "taint": {"key": "bad", "effect": "NoExecute"}}
    mirror.devices.on_taint_rule_update(decoded(DEVICE_TAINT_RULE, {"metadata": {"name": "bad"}, "spec": spec}))
    assert there(mirror) == [0, 2]
    assert "no free devices" in reserve(mirror, pod, "n1")
    mirror.devices.on_taint_rule_delete("bad")
    assert there(mirror) == [2, 2]


def test_nodes_of_others_and_new_nodes(mirror: ClusterMirror) -> None:
    see(mirror, using("a", "a"), claims=(claim("a"),))
    mirror.devices.on_slice_update(offer("n3", "x"))
    mirror.on_node_update(node("n3"))
    assert there(mirror) == [2, 2, 1]
    mirror.on_node_update(made_objects.node("n4"))
    mirror.devices.on_slice_update(offer("n4", "x"))
    assert there(mirror) == [2, 2, 1, 0]
    mirror.on_node_delete("n4")
    mirror.on_node_delete("n3")
    mirror.devices.on_slice_delete("n1")
    assert there(mirror) == [0, 2]


def test_names_of_what_stands_for_claims_come_again(mirror: ClusterMirror) -> None:
    """The core keeps a column for each: as many as there are at a time, and a few more."""
    seen = set()
    for at in range(40):
        pod = using(f"p{at}", f"c{at}")
        see(mirror, pod, claims=(claim(f"c{at}", count=1 + at % 20),))
        seen |= {name for name, _ in mirror.devices.needs(pod).demand}
        mirror.on_pod_delete(Identity("default", f"p{at}", f"p{at}", ""), pod)
    assert len(seen) <= 10


@pytest.mark.parametrize("seed", range(4))
def test_amounts_are_right_whatever_happens(mirror: ClusterMirror, seed: int) -> None:
    """Kept by events, they are what they are when everything is told anew."""
    draw = random.Random(seed)
    claims: dict[str, ResourceClaim] = {}
    pods: dict[str, Pod] = {}
    for _ in range(150):
        name = draw.choice("abcdef")
        match draw.randrange(7):
            case 0:
                pool, device = draw.choice(["n1", "n2"]), draw.choice("xy")
                claims[name] = claim(name, {pool: device}, count=draw.choice([1, 2]))
                mirror.devices.on_claim_update(claims[name])
            case 1 | 2:
                claims[name] = claim(name, count=draw.choice([1, 2]))
                mirror.devices.on_claim_update(claims[name])
            case 3:
                pods[name] = using(name, name, node=draw.choice(["", "", "n1"]))
                mirror.on_pod_update(pods[name])
            case 4 if name in pods:
                mirror.on_pod_delete(Identity("default", name, name, ""), pods.pop(name))
            case 5 if name in pods and not pods[name].spec.node_name:
                reserve(mirror, pods[name], draw.choice(["n1", "n2"]))
            case 6:
                mirror.devices.release(name)
        _counts_are_right(mirror)
    mirror.devices.release_all()
    assert not mirror.devices.in_use._on
    anew = ClusterMirror(load_live(), lambda: NOW)
    for one in claims.values():
        anew.devices.on_claim_update(one)
    for name in ("n1", "n2"):
        anew.devices.on_slice_update(offer(name, "x", "y"))
        anew.on_node_update(node(name))
    anew.devices.on_class_update(device_class())
    for pod in pods.values():
        anew.on_pod_update(pod)
    for pod in pods.values():
        assert _asked(mirror, pod) == _asked(anew, pod)


def _counts_are_right(mirror: ClusterMirror) -> None:
    """What is counted along the way is what is there."""
    in_use = mirror.devices.in_use
    assert in_use._on == Counter((one.host, name) for one in in_use.reservations.values() for name in one.resources)
    for sort in mirror.devices._sorts._sorts.values():
        assert sort.somewhere == sum(count > 0 for count in sort.counts.values())


def _asked(mirror: ClusterMirror, pod: Pod) -> tuple[Any, ...]:
    """What a pod needs, and how many such there can be on each node, whatever that is called."""
    if pod.spec.node_name:
        return ()
    needs = mirror.devices.needs(pod)
    counts = Counter(count for name, _ in needs.demand for count in there(mirror, name))
    return replace(needs, demand=()), len(needs.demand), counts, [there(mirror, name) for name, _ in needs.demand]


def test_a_claim_that_asks_for_nothing_is_a_claim(mirror: ClusterMirror) -> None:
    """The API server writes null for its requests; a fuzzer in a namespace of a real one found it."""
    body = {"metadata": {"name": "c", "namespace": "default", "uid": "c"}, "spec": {"devices": {"requests": None}}}
    pod = using("p", "c")
    see(mirror, pod, claims=(decoded(RESOURCE_CLAIM, body),))
    assert waits(mirror, pod) == ""
