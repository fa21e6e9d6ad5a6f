"""Claims on devices, on a real API server: each scene is played for kube-scheduler and for us, as in the parity tests.

What came of pods and claims has to be the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from cluster import ledgers
from cluster.judging import Json
from cluster.labtools import condition, until
from cluster.running import BETWEEN_EQUALS, Stage, prepared, service_class, staged
from cluster.test_live_parity import HOSTNAME, REQUIRED, Side, judged
from slacktide.kube.client.http import MERGE_PATCH as MERGE
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.lab import Binaries

PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEVICES = "/apis/resource.k8s.io/v1"


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("devices")
    plane = prepared(binaries, directory, kube_scheduler=True)
    classes = [service_class("plain", 0.5, 2, default=True), service_class("gold", 0.999, 1)]
    plane.api.post(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
    alone = {"qos__alpha": ledgers.ALPHA, "policy__patience": BETWEEN_EQUALS}
    yield from staged(binaries, directory, classes, plane, **alone)


def not_on(side: Side, *names: str) -> Json:
    """The affinity of a pod to the other nodes."""
    there = {"key": HOSTNAME, "operator": "NotIn", "values": [side.node(name) for name in names]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}}


class Devices:
    """Devices of one side of a scene."""

    def __init__(self, side: Side) -> None:
        self.side, self.api = side, side.place.api
        self.name = side.named("gpu")

    def offer(self, *devices: str | Json, node: str = "", called: str = "", **more: Any) -> None:
        """A slice: of a node, or with ``more`` of others. A device's name may come with attributes."""
        made = [{"name": one} if isinstance(one, str) else one for one in devices]
        where = {"nodeName": self.side.node(node)} if node else {}
        name = f"{self.name}-{called or node}"
        spec = {"driver": self.side.driver, **({"devices": made} if made else {}), **where, **more}
        spec.setdefault("pool", {"name": name, "generation": 1, "resourceSliceCount": 1})
        self.api.post(f"{DEVICES}/resourceslices", {"metadata": {"name": name}, "spec": spec})

    def service(self, *expressions: str) -> None:
        """The class of the side's devices."""
        selectors = [{"cel": {"expression": one}} for one in (f'device.driver == "{self.side.driver}"', *expressions)]
        body = {"metadata": {"name": self.name}, "spec": {"selectors": selectors}}
        self.api.post(f"{DEVICES}/deviceclasses", body)

    def ask(self, *expressions: str, **more: Any) -> Json:
        selectors = [{"cel": {"expression": one.replace("DRIVER", self.side.driver)}} for one in expressions]
        return {"deviceClassName": self.name, "selectors": selectors, **more}

    def claim(self, name: str, *asks: Json, constraints: Sequence[Json] = ()) -> None:
        """A claim of these requests, r0 and so on; a pod names it by itself."""
        requests = [{"name": f"r{at}", **(one if "firstAvailable" in one else {"exactly": one})} for at, one in
                    enumerate(asks or (self.ask(),))]  # fmt: skip
        spec = {"devices": {"requests": requests, "constraints": list(constraints)}}
        body = {"metadata": {"name": f"{self.side.name}-{name}"}, "spec": spec}
        self.api.post(self.path("resourceclaims"), body)

    def template(self, name: str, ask: Json) -> None:
        spec = {"spec": {"devices": {"requests": [{"name": "r0", "exactly": ask}]}}}
        body = {"metadata": {"name": f"{self.side.name}-{name}"}, "spec": spec}
        self.api.post(self.path("resourceclaimtemplates"), body)

    def pod(self, name: str, *claims: str, template: str = "", **more: Any) -> None:
        named = [{"name": one, "resourceClaimName": f"{self.side.name}-{one}"} for one in claims]
        if template:
            named.append({"name": "made", "resourceClaimTemplateName": f"{self.side.name}-{template}"})
        self.side.pod(name, resourceClaims=named, **more)

    def is_settled(self, name: str) -> bool:
        """Waits until a pod is bound, or said to wait, be it for an error; whether it is bound."""

        def answer() -> str:
            found = self.side.place.pod(f"{self.side.name}-{name}")
            return str(condition(found, "PodScheduled").get("status", ""))

        return str(until(answer, f"{self.side.scheduler} decides on {name}")) == "True"

    def got(self, claim: str) -> list[str]:
        """The devices that a claim has."""
        results = self.of(claim)["status"].get("allocation", {}).get("devices", {}).get("results", ())
        return sorted(one["device"] for one in results)

    def of(self, claim: str) -> Json:
        return dict(self.api.get(self.path(f"resourceclaims/{self.side.name}-{claim}")))

    def path(self, kind: str) -> str:
        return f"{DEVICES}/namespaces/{self.side.place.namespace}/{kind}"


@judged
def test_a_device_for_each_claim(side: Side) -> Any:
    devices = Devices(side)
    side.nodes("a", "b")
    devices.offer("one", node="a")
    devices.offer("two", node="b")
    devices.service()
    for name in ("x", "y", "z"):
        devices.claim(name)
    for name in ("x", "y"):
        devices.pod(name, name)
    nodes = sorted(side.bound(name) for name in ("x", "y"))
    devices.pod("z", "z")
    side.waits("z")
    written = devices.of("x")
    users = [(one["resource"], one["name"].partition("-")[2]) for one in written["status"]["reservedFor"]]
    side.delete("x")  # the controller of claims takes the device back
    return nodes, users, written["metadata"]["finalizers"], bool(side.bound("z")), devices.got("z") != devices.got("y")


@judged
def test_selectors(side: Side) -> Any:
    """Of class and request: attributes, capacity, versions."""
    devices = Devices(side)
    side.nodes("a", "b", "c")
    for node, model, memory, version in (("a", "old", "40Gi", "1.2.0"), ("b", "new", "40Gi", "1.10.0-rc.1"),
                                         ("c", "new", "80Gi", "1.10.0")):  # fmt: skip
        attributes = {
            "model": {"string": model},
            "driverVersion": {"version": version},
            "example.com/slots": {"int": 2},
        }
        devices.offer({"name": "d", "attributes": attributes, "capacity": {"memory": {"value": memory}}}, node=node)
    devices.service('device.attributes["example.com"].slots > 1')
    asked = {
        "old": 'device.attributes["DRIVER"].model == "old"',
        "large": 'device.capacity["DRIVER"].memory.compareTo(quantity("60Gi")) >= 0',
        "before": 'cel.bind(its, device.attributes["DRIVER"], its.model == "new" && '
        'its.driverVersion.isLessThan(semver("1.10.0")))',
        "none": 'device.attributes["DRIVER"].?model.orValue("") == "newer"',
        "elsewhere": 'has(device.attributes["elsewhere.example"].model)',
    }
    for name, expression in asked.items():
        devices.claim(name, devices.ask(expression))
        devices.pod(name, name)
    return [side.bound(name) for name in ("old", "large", "before")], *map(bool, map(side.waits, ("none", "elsewhere")))


@judged
def test_all_devices_of_a_node(side: Side) -> Any:
    """Only when all slices of the pool are there, and nobody has one of them."""
    devices = Devices(side)
    side.nodes("a")
    pool = {"name": side.named("pool"), "generation": 2, "resourceSliceCount": 2}
    devices.offer("old", node="a", called="before", pool={**pool, "generation": 1})
    devices.offer("one", "two", node="a", called="first", pool=pool)
    devices.service()
    devices.claim("every", devices.ask(allocationMode="All"))
    devices.pod("every", "every")
    incomplete = not devices.is_settled("every")
    devices.offer("three", node="a", called="second", pool=pool)
    side.bound("every")
    devices.claim("more", devices.ask(count=1))
    devices.pod("more", "more")
    full = bool(side.waits("more"))
    side.delete("every")
    side.bound("more")
    return incomplete, devices.got("every"), full, devices.got("more")


@judged
def test_alternatives_and_what_devices_have_in_common(side: Side) -> Any:
    devices = Devices(side)
    side.nodes("a", "b")
    for node, boards in (("a", "xyz"), ("b", "xyy")):
        made = [{"name": f"d{at}", "attributes": {"board": {"string": board}}} for at, board in enumerate(boards)]
        devices.offer(*made, node=node)
    devices.service()
    alike = [{"matchAttribute": f"{side.driver}/board"}]
    devices.claim("pair", devices.ask(), devices.ask(), constraints=alike)
    devices.pod("pair", "pair")
    pair = side.bound("pair"), devices.got("pair")
    several = [{"name": "four", **devices.ask(count=4)}, {"name": "three", **devices.ask(count=3)}]
    devices.claim("some", {"firstAvailable": several})
    devices.pod("some", "some")
    some = side.bound("some"), devices.got("some")
    results = devices.of("some")["status"]["allocation"]["devices"]["results"]
    return pair, some, {one["request"] for one in results}


@judged
def test_nodes_with_better_alternatives_come_first(side: Side) -> Any:
    """Of three nodes each has devices for another alternative: pods go there in the order of these."""
    devices = Devices(side)
    side.nodes("a", "b", "c")
    for node, size in (("a", 1), ("b", 2), ("c", 3)):
        devices.offer({"name": "d", "attributes": {"size": {"int": size}}}, node=node)
    devices.service()
    sizes = [{"name": f"s{one}", **devices.ask(f'device.attributes["DRIVER"].size == {one}')} for one in (3, 2, 1)]
    found = []
    for name in ("x", "y", "z"):
        devices.claim(name, {"firstAvailable": sizes})
        devices.pod(name, name)
        found.append(side.bound(name))
    return found


@judged
def test_parts_of_a_device(side: Side) -> Any:
    """They share what the device has: two halves, or all of it."""
    devices = Devices(side)
    side.nodes("a")
    pool = {"name": side.named("pool"), "generation": 1, "resourceSliceCount": 2}
    shared = [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]
    parts = [
        {"name": name, "consumesCounters": [{"counterSet": "gpu", "counters": {"memory": {"value": amount}}}]}
        for name, amount in (("whole", "80Gi"), ("half-1", "40Gi"), ("half-2", "40Gi"), ("half-3", "40Gi"))
    ]
    devices.offer(called="counters", node="a", pool=pool, sharedCounters=shared)
    devices.offer(*parts, called="parts", node="a", pool=pool)
    devices.service()
    devices.claim("pair", devices.ask(count=2))
    devices.pod("pair", "pair")
    node, pair = side.bound("pair"), devices.got("pair")
    devices.claim("more")
    devices.pod("more", "more")
    waited = bool(side.waits("more"))
    side.delete("pair")
    return node, pair, waited, side.bound("more"), devices.got("more")


@judged
def test_taints_of_devices(side: Side) -> Any:
    devices = Devices(side)
    side.nodes("a")
    devices.offer({"name": "bad", "taints": [{"key": "example.com/bad", "effect": "NoSchedule"}]}, node="a")
    devices.service()
    devices.claim("strict")
    devices.pod("strict", "strict")
    waited = bool(side.waits("strict"))
    devices.claim("mild", devices.ask(tolerations=[{"key": "example.com/bad", "operator": "Exists"}]))
    devices.pod("mild", "mild")
    return waited, side.bound("mild"), devices.got("mild")


@judged
def test_one_claim_for_several_pods(side: Side) -> Any:
    devices = Devices(side)
    side.nodes("a", "b")
    devices.offer("one", node="a")
    devices.offer("one", node="b")
    devices.service()
    devices.claim("both")
    for name in ("x", "y"):
        devices.pod(name, "both")
    return (
        side.bound("x") == side.bound("y"),
        len(devices.got("both")),
        len(devices.of("both")["status"]["reservedFor"]),
    )


@judged
def test_devices_of_several_nodes(side: Side) -> Any:
    """Of those that a selector names, and of all: what is chosen says from where it can be used."""
    devices = Devices(side)
    side.nodes("a", "b", "c")
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [side.node("b"), side.node("c")]}]}]
    devices.offer("some", called="some", nodeSelector={"nodeSelectorTerms": terms})
    devices.service()
    devices.claim("some")
    devices.pod("some", "some")
    first = side.bound("some") in ("b", "c")
    selector = devices.of("some")["status"]["allocation"]["nodeSelector"] == {"nodeSelectorTerms": terms}
    devices.offer("every", called="every", allNodes=True)
    devices.claim("every")
    devices.pod("every", "every", affinity=not_on(side, "b", "c"))
    second = side.bound("every"), "nodeSelector" in devices.of("every")["status"]["allocation"]
    # A claim that has devices leads its other pods there.
    devices.pod("other", "some", affinity=not_on(side, "b"))
    return first, selector, second, side.bound("other")


@judged
def test_admin_access(side: Side) -> Any:
    """To devices that others have, in a namespace whose label allows it."""
    devices = Devices(side)
    side.nodes("a")
    devices.offer("one", node="a")
    devices.service()
    devices.claim("user")
    devices.pod("user", "user")
    side.bound("user")
    namespace = f"/api/v1/namespaces/{side.place.namespace}"
    side.place.api.patch(
        namespace, {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}, STRATEGIC
    )
    devices.claim("admin", devices.ask(adminAccess=True, allocationMode="All"))
    devices.pod("admin", "admin")
    return side.bound("admin"), devices.got("admin")


@judged
def test_devices_that_keep_a_pod_from_every_place_are_given_back(side: Side) -> Any:
    """A claim has a device of a node that is cordoned by now, and nobody uses it."""
    devices = Devices(side)
    side.nodes("a", "b")
    devices.offer("one", node="a")
    devices.service()
    devices.claim("moves")
    devices.pod("first", "moves")
    side.bound("first")
    unused = devices.of("moves")
    side.place.api.patch(f"/api/v1/nodes/{side.node('a')}", {"spec": {"unschedulable": True}}, STRATEGIC)
    devices.offer("two", node="b")
    side.delete("first")
    until(lambda: "allocation" not in devices.of("moves")["status"], "the controller takes the device back")
    path = devices.path(f"resourceclaims/{side.name}-moves/status")
    allocation = unused["status"]["allocation"]
    side.place.api.patch(path, {"status": {"allocation": allocation}}, MERGE)
    devices.pod("second", "moves")
    return side.bound("second"), devices.got("moves")


@judged
def test_claims_made_from_templates(side: Side) -> Any:
    """More pods than devices, at once: as many run as there are devices, each with one of its own."""
    devices = Devices(side)
    side.nodes("a", "b", "c")
    for node in ("a", "b", "c"):
        devices.offer("one", "two", node=node)
    devices.service()
    devices.template("gpu", devices.ask())
    for at in range(8):
        devices.pod(f"p{at}", template="gpu")
    names = [f"{side.name}-p{at}" for at in range(8)]
    bound = until(lambda: [one for one in names if side.place.node_of(one)][5:6], "six are bound")
    claims = side.place.api.get(devices.path("resourceclaims"))["items"]
    mine = [one for one in claims if one["metadata"]["name"].startswith(f"{side.name}-")]
    results = [one["status"]["allocation"]["devices"]["results"] for one in mine if "allocation" in one["status"]]
    given = {(one["pool"], one["device"]) for each in results for one in each}
    waits = [one for one in names if not side.place.node_of(one)]
    for one in waits:
        side.waits(one.partition("-")[2])
    return bool(bound), len(given), len(waits)


@judged
def test_one_after_the_other(side: Side) -> Any:
    """As many pods as the node has devices, each when the one before is bound."""
    devices = Devices(side)
    side.nodes("a")
    devices.offer("one", "two", "three", "four", node="a")
    devices.service()
    for name in ("p1", "p2", "p3", "p4"):
        devices.claim(name)
        devices.pod(name, name)
        side.bound(name)
    return [devices.got(name) for name in ("p1", "p2", "p3", "p4")]


@judged
def test_two_that_ask_differently_for_one_device(side: Side) -> Any:
    devices = Devices(side)
    side.nodes("a")
    devices.offer("one", node="a")
    devices.service()
    devices.claim("exact", devices.ask())
    devices.claim("every", devices.ask(allocationMode="All"))
    for name in ("exact", "every"):
        devices.pod(name, name)
    until(lambda: devices.got("exact") or devices.got("every"), "one of them has it")
    first, second = ("exact", "every") if devices.got("exact") else ("every", "exact")
    node = side.bound(first)
    side.waits(second)
    side.delete(first)
    return node, side.bound(second), devices.got(second)


@judged
def test_nobody_has_to_leave_for_devices(side: Side) -> Any:
    """Devices of pods that might leave do not count as free; room does, where devices are free."""
    devices = Devices(side)
    side.nodes("a", cpu=1)
    devices.offer("one", "two", node="a")
    devices.service()
    high: dict[str, Any] = {"labels": {"slacktide.io/class": "gold"}, "priorityClassName": "high"}
    devices.claim("both", devices.ask(count=2))
    devices.pod("low", "both", cpu="800m")
    side.bound("low")
    devices.claim("one")
    devices.pod("first", "one", **high)
    waited = bool(side.waits("first"))
    stayed = "deletionTimestamp" not in side.place.pod(f"{side.name}-low")["metadata"]
    side.delete("low")
    side.bound("first")
    side.pod("filler", cpu="800m")
    side.bound("filler")
    devices.claim("two")
    devices.pod("second", "two", cpu="800m", **high)
    return waited, stayed, side.bound("second"), devices.got("one"), devices.got("two")


def asked_at_random(devices: Devices, draw: random.Random) -> tuple[list[Json], list[Json]]:
    """Requests of a claim, and what their devices must have in common."""

    def ask(**more: Any) -> Json:
        found = devices.ask(**more)
        if draw.random() < 0.4:
            expression = draw.choice(
                ['device.attributes["DRIVER"].size == 1', 'device.attributes["DRIVER"].board != "a"']
            )
            found = devices.ask(expression, **more)
        if draw.random() < 0.15:
            return found | {"allocationMode": "All"}
        return found | {"count": draw.randint(1, 3)}

    def tolerant() -> Json:
        return {"tolerations": [{"key": "bad", "operator": "Exists"}]} if draw.random() < 0.5 else {}

    requests = []
    for _ in range(draw.choice([1, 1, 2])):
        several = [{"name": f"s{at}", **ask(**tolerant())} for at in range(2)]
        requests.append({"firstAvailable": several} if draw.random() < 0.3 else ask(**tolerant()))
    sort = draw.choice(["matchAttribute", "distinctAttribute", ""])
    constraints = [{sort: f"{devices.side.driver}/board"}] if sort and len(requests) == 1 else []
    return requests, constraints


@judged
def test_the_same_devices_as_kube_scheduler(side: Side) -> Any:
    """On one node there is no choice but of devices, and the search is the same: claims at random get the same ones."""
    draw = random.Random(5)
    devices = Devices(side)
    side.nodes("a")
    made: list[Json] = []
    for at in range(12):
        attributes = {"size": {"int": draw.randint(1, 2)}, "board": {"string": draw.choice("abc")}}
        taints = [{"key": "bad", "effect": "NoSchedule"}] if draw.random() < 0.2 else []
        amount = {"memory": {"value": str(draw.randint(1, 3))}}
        takes = [{"counterSet": "all", "counters": amount}] if draw.random() < 0.4 else []
        made.append({"name": f"d{at}", "attributes": attributes, "taints": taints, "consumesCounters": takes})
    pool = {"name": side.named("pool"), "generation": 1, "resourceSliceCount": 3}
    shared = [{"name": "all", "counters": {"memory": {"value": "6"}}}]
    devices.offer(called="counters", node="a", pool=pool, sharedCounters=shared)
    devices.offer(*made[:5], called="first", node="a", pool=pool)
    devices.offer(*made[5:], called="second", node="a", pool=pool)
    devices.service()
    found: list[list[str]] = []
    there: list[str] = []
    for name in (f"p{at}" for at in range(14)):
        requests, constraints = asked_at_random(devices, draw)
        devices.claim(name, *requests, constraints=constraints)
        devices.pod(name, name)
        if devices.is_settled(name):
            there.append(name)
        else:
            side.delete(name)
        found.append(devices.got(name))
        if there and draw.random() < 0.4:
            gone = there.pop(draw.randrange(len(there)))
            side.delete(gone)
            until(lambda: not devices.got(gone), f"{gone} gives back its devices")  # noqa: B023  # waited for here
    assert [] in found
    assert len([one for one in found if one]) > 4
    return found
