"""Devices are given once and for all, whatever becomes of the requests that write them down.

Claims of their own, and claims that are made for extended resources; whom kube-scheduler gives what is asked on a real
control plane (``cluster/test_live_devices.py``, ``cluster/test_live_extended.py``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.labtools import pod
from simulated.alone import Fault, Faults
from simulated.api_model import Answer
from simulated.resources import Json
from simulated.stage import Stage, service_class, staged

DRIVER, CLASS, RESOURCE = "d.example", "gpu", "d.example/gpu"
CLAIM = "/resourceclaims/[^/]*"
PROTECTION = "resource.kubernetes.io/delete-protection"
Sort = dict[str, Any]
"""Which requests: what of a fault says so."""
FINALIZER: Sort = {"method": "PATCH", "path": f"{CLAIM}$"}
STATUS: Sort = {"method": "PATCH", "path": f"{CLAIM}/status$"}
BINDING: Sort = {"method": "POST", "path": "/binding$"}
MADE: Sort = {"method": "POST", "path": "/resourceclaims$"}
SHOWN: Sort = {"method": "PATCH", "path": "/pods/.*/status$", "body": "extendedResourceClaimStatus"}
DELETED: Sort = {"method": "DELETE", "path": CLAIM}
SORTS = {"finalizer": FINALIZER, "status": STATUS, "binding": BINDING, "made": MADE}
SETTLED_SECONDS = 5.0
"""Within so many seconds all that follows from a binding has been heard of."""


@pytest.fixture
def place() -> Iterator[Stage]:
    with staged([service_class("plain", 0.9, 1, default=True)], kube__backoff_first=0.05, qos__alpha=0.1) as stage:
        stage.nodes(1)
        yield stage


def offer(place: Stage, *devices: str, node: str = "node-0") -> None:
    """A node has devices of the driver."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": [{"name": one} for one in devices]}
    place.create("resourceslices", {"metadata": {"name": node}, "spec": spec})


def device_class(place: Stage, **more: Any) -> None:
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    place.create("deviceclasses", {"metadata": {"name": CLASS}, "spec": {"selectors": selectors} | more})


def claim(place: Stage, name: str) -> None:
    """A claim on one device."""
    requests = [{"name": "r", "exactly": {"deviceClassName": CLASS}}]
    place.create("resourceclaims", {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}})


def claiming(place: Stage, name: str, *claims: str) -> None:
    named = [{"name": one, "resourceClaimName": one} for one in claims]
    place.create("pods", pod(name, resourceClaims=named))


def asking(place: Stage, name: str) -> None:
    """A pod that asks for a device by the name of a resource."""
    resources = {"requests": {"cpu": "10m", RESOURCE: "1"}, "limits": {RESOURCE: "1"}}
    place.create("pods", pod(name, containers=[{"name": "main", "image": "none", "resources": resources}]))


def faults_of(place: Stage) -> Faults:
    """What goes wrong with the leader's requests."""
    wire = place.leader.wire
    assert wire is not None
    return Faults(wire)


def befalls(place: Stage, faults: Faults, sort: Sort, fault: str, times: float = 1) -> Fault:
    """Something befalls the first request of a sort."""

    def dies() -> None:
        place.loop.call_soon(place.leader.kill)

    def touched() -> None:
        """Somebody writes an annotation in the same moment."""
        for one in place.world.store.every("resourceclaims"):
            place.merge("resourceclaims", one["metadata"]["name"], {"metadata": {"annotations": {"touched": "yes"}}})

    def unknown(answer: Answer) -> Answer:
        """As an API server whose feature gate is off."""
        found = json.loads(answer.body)
        del found["status"]["extendedResourceClaimStatus"]
        return answer._replace(body=json.dumps(found).encode())

    what: dict[str, Any] = {
        "conflict": {"before": touched},
        "lost": {"reset": True},
        "answer lost": {"unanswered": True},
        "refused": {"code": 422},
        "busy": {"code": 503},
        "later": {"code": 429},
        "dies": {"then": dies, "delay": 0.0},
        "field unknown": {"rewrite": unknown},
    }
    return faults.add(**sort, times=times, **what[fault])


def counted(faults: Faults) -> Counter[str]:
    """How many requests of each sort were sent."""
    every = [Fault(**sort) for sort in SORTS.values()]
    asked = [one.request for one in faults.sent]
    return Counter(name for one in asked for name, sort in zip(SORTS, every, strict=True) if sort.befalls(one))


def claims(place: Stage) -> list[Json]:
    return place.world.store.every("resourceclaims")


def devices_of(one: Json) -> list[str]:
    return [each["device"] for each in one["status"]["allocation"]["devices"]["results"]]


def settled(place: Stage) -> None:
    """Pods that are bound ask for devices no more, and nothing is reserved for them: their claims have the devices."""
    place.wait(SETTLED_SECONDS)
    leader: Any = place.leader.scheduler
    engine = leader.session.engine
    tables = engine.tables
    here = [at for at, name in enumerate(tables.resources) if name.startswith("devices/")]
    assert not leader.mirror.devices.in_use.reservations
    assert not (tables.tb["capacity"] - tables.tb["free"])[:, here].any()


@pytest.mark.parametrize(
    ("sort", "fault", "sent"),
    [
        (FINALIZER, "conflict", {"finalizer": 3, "status": 2, "binding": 2}),
        (FINALIZER, "answer lost", {"finalizer": 2, "status": 2, "binding": 2}),
        (STATUS, "conflict", {"finalizer": 2, "status": 3, "binding": 2}),
        (STATUS, "lost", {"finalizer": 2, "status": 3, "binding": 2}),
        (STATUS, "answer lost", {"finalizer": 2, "status": 2, "binding": 2}),
        # The pod is taken out of reservedFor, and comes back to the same device.
        (BINDING, "refused", {"finalizer": 2, "status": 4, "binding": 3}),
        (STATUS, "dies", {"finalizer": 1, "status": 1, "binding": 0}),
    ],
)
def test_each_pod_gets_one_device_and_no_two_the_same(
    place: Stage, sort: Sort, fault: str, sent: dict[str, int]
) -> None:
    device_class(place)
    offer(place, "one", "two")
    place.wait(1.0)
    faults = faults_of(place)
    struck = befalls(place, faults, sort, fault)
    for name in ("first", "second"):
        claim(place, name)
        claiming(place, name, name)
        place.bound(name)
    settled(place)
    assert struck.struck == 1
    every = claims(place)
    assert sorted(device for one in every for device in devices_of(one)) == ["one", "two"]
    assert [[user["name"] for user in one["status"]["reservedFor"]] for one in every] == [["first"], ["second"]]
    assert {name: counted(faults)[name] for name in sent} == sent


def test_a_claim_that_got_devices_of_another_node_meanwhile_leads_its_pod_there(place: Stage) -> None:
    """It has devices, so that nothing is kept for its pod; and as nobody uses it yet, others may take them away."""
    place.nodes(1, prefix="other")
    device_class(place)
    offer(place, "one", "two")
    claim(place, "claim")

    def has(pool: str, device: str, node: str) -> None:
        """Somebody else gives it a device, on a node."""
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        result = {"request": "r", "driver": DRIVER, "pool": pool, "device": device}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        }
        place.merge("resourceclaims", "claim", {"metadata": {"finalizers": [PROTECTION]}})
        for given in (None, allocation):
            place.send("PATCH", f"{place.path('resourceclaims', 'claim')}/status", {"status": {"allocation": given}},
                       "application/merge-patch+json")  # fmt: skip

    has("node-0", "one", "node-0")
    place.wait(1.0)
    moved = faults_of(place).add(**STATUS, times=1, before=lambda: has("elsewhere", "two", "other-0"))
    claiming(place, "pod", "claim")
    assert place.bound("pod") == "other-0"
    assert moved.struck == 1
    ((user,),) = [one["status"]["reservedFor"] for one in claims(place)]
    assert user["name"] == "pod"


def test_a_pod_that_is_not_bound_leaves_all_its_claims_also_where_one_is_being_deleted(place: Stage) -> None:
    device_class(place)
    offer(place, "one", "two")
    for name in ("pod", "goes"):
        claim(place, name)
    place.wait(1.0)
    reserved: list[bool] = []

    def deleted() -> None:
        reserved.append(bool((place.get("resourceclaims", "pod") or {})["status"]["reservedFor"]))
        place.delete("resourceclaims", "goes")

    faults_of(place).add(**BINDING, times=1, code=422, before=deleted)
    claiming(place, "pod", "pod", "goes")
    place.until(lambda: reserved, "its binding is refused")
    assert reserved == [True]
    place.until(lambda: not (place.get("resourceclaims", "pod") or {})["status"].get("reservedFor"), "it is left")
    place.wait(60.0)
    assert not place.node_of("pod")


# -- by the name of a resource -----------------------------------------------------------------------------------------


@pytest.fixture
def by_name(place: Stage) -> Stage:
    """A node with one device, whose class backs a resource."""
    device_class(place, extendedResourceName=RESOURCE)
    offer(place, "one")
    place.wait(1.0)
    return place


def is_settled(place: Stage, name: str) -> bool:
    """Whether a pod is bound, with a device by the one claim that there is, of which it knows."""
    found, every = place.pod(name), claims(place)
    if not found["spec"].get("nodeName") or len(every) != 1:
        return False
    (one,) = every
    (user,) = one["status"]["reservedFor"]
    said = found["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    return (devices_of(one), user["uid"], said) == (["one"], found["metadata"]["uid"], one["metadata"]["name"])


@pytest.mark.parametrize(
    ("sort", "fault", "made"),
    [
        (MADE, "answer lost", 3),
        (MADE, "lost", 3),
        (MADE, "busy", 3),
        (MADE, "refused", 3),
        (MADE, "dies", 1),
        (STATUS, "lost", 2),
        (STATUS, "dies", 1),
        (SHOWN, "answer lost", 2),
        (SHOWN, "refused", 3),
        (SHOWN, "field unknown", 3),
        (SHOWN, "dies", 1),
        (BINDING, "later", 2),
        (BINDING, "refused", 3),
        (BINDING, "dies", 1),
    ],
)
def test_each_pod_has_the_device_by_one_claim(by_name: Stage, sort: Sort, fault: str, made: int) -> None:
    """``made``: so many claims were to be made by the leader whom the fault befell, for two pods after each other."""
    place = by_name
    faults = faults_of(place)
    struck = befalls(place, faults, sort, fault)
    for name in ("first", "second"):
        asking(place, name)
        place.until(lambda name=name: is_settled(place, name), f"{name} has the device")  # type: ignore[misc]
        if name == "first":
            place.delete("pods", "first", 0)
    assert struck.struck == 1
    settled(place)
    assert counted(faults)["made"] == made


def test_a_claim_that_cannot_be_deleted_at_first_is_deleted_later(by_name: Stage) -> None:
    """The binding is refused, and then the deletion of the claim that was made for it."""
    place = by_name
    faults = faults_of(place)
    befalls(place, faults, BINDING, "refused")
    kept = befalls(place, faults, DELETED, "refused")
    asking(place, "first")
    place.until(lambda: is_settled(place, "first"), "it has the device by one claim")
    assert kept.struck == 1


def test_a_claim_of_a_pod_that_is_bound_is_not_deleted(by_name: Stage) -> None:
    """A leader before made it. Whether the pod was bound by that one's last request is asked before it is deleted."""
    place = by_name
    place.cordon("node-0")
    place.wait(1.0)
    faults = faults_of(place)
    asking(place, "first")
    uid = place.pod("first")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "first", "uid": uid, "controller": True}
    marks = {"resource.kubernetes.io/extended-resource-claim": "true"}
    requests = [{"name": "r", "exactly": {"deviceClassName": CLASS}}]
    metadata = {"name": "former", "annotations": marks, "ownerReferences": [owner]}
    place.create("resourceclaims", {"metadata": metadata, "spec": {"devices": {"requests": requests}}})

    def is_bound(answer: Answer) -> Answer:
        found = json.loads(answer.body)
        found["spec"]["nodeName"] = "node-0"
        return answer._replace(body=json.dumps(found).encode())

    asked = faults.add(method="GET", path="/pods/first$", times=1, rewrite=is_bound)
    place.wait(1.0)  # both are heard of
    place.cordon("node-0", False)
    place.until(lambda: is_settled(place, "first"), "it has the device by another claim")
    assert asked.struck == 1
    sent = [one.method for one in faults.sent if one.path.endswith(("/pods/first", "/resourceclaims/former"))]
    assert sent == ["GET", "GET", "DELETE"], "not after the first answer, which said that it is bound"


def test_a_finalizer_that_somebody_touches_meanwhile_is_taken_away_all_the_same(by_name: Stage) -> None:
    """The binding is refused; while the claim is unprotected, somebody else writes it."""
    place = by_name
    faults = faults_of(place)
    befalls(place, faults, BINDING, "refused")
    touched = befalls(place, faults, FINALIZER | {"body": '"finalizers":\\[\\]'}, "conflict")
    asking(place, "first")
    place.until(lambda: is_settled(place, "first"), "it has the device by one claim")
    assert touched.struck == 1
