"""Extended resources that device classes back, on a real API server: each scene is played for kube-scheduler and for
us. What came of pods, and of the claims that were made for them, has to be the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import ledgers
from cluster.judging import Json
from cluster.labtools import condition, pods_path, until
from cluster.running import BETWEEN_EQUALS, Stage, prepared, service_class, staged
from cluster.test_live_devices import DEVICES, PRIORITIES, Devices
from cluster.test_live_parity import Side, judged
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.lab import Binaries

IMPLICIT = "deviceclass.resource.kubernetes.io/"
HIGH: Json = {"labels": {"slacktide.io/class": "gold"}, "priorityClassName": "high"}


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("extended")
    plane = prepared(binaries, directory, kube_scheduler=True)
    classes = [service_class("plain", 0.5, 2, default=True), service_class("gold", 0.999, 1)]
    plane.api.post(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
    alone = {"qos__alpha": ledgers.ALPHA, "policy__patience": BETWEEN_EQUALS}
    yield from staged(binaries, directory, classes, plane, **alone)


class Extended(Devices):
    """Devices of one side of a scene that pods ask for by the name of a resource, as by a claim."""

    @property
    def resource(self) -> str:
        return f"{self.side.driver}/gpu"

    def backing(self, *, named: bool = True) -> None:
        """The class of the side's devices, with the name of a resource beside that which every class has."""
        selectors = [{"cel": {"expression": f'device.driver == "{self.side.driver}"'}}]
        spec: Json = {"selectors": selectors} | ({"extendedResourceName": self.resource} if named else {})
        self.api.post(f"{DEVICES}/deviceclasses", {"metadata": {"name": self.name}, "spec": spec})

    def container(self, name: str, count: int, resource: str = "", *, cpu: str = "10m", **more: Any) -> Json:
        asked = {"cpu": cpu, resource or self.resource: str(count)} if count else {"cpu": cpu}
        limits = {key: value for key, value in asked.items() if key != "cpu"}
        return {"name": name, "image": "none", "resources": {"requests": asked, "limits": limits}, **more}

    def asking(self, name: str, count: int = 1, resource: str = "", *, cpu: str = "10m", **more: Any) -> None:
        self.side.pod(name, containers=[self.container("main", count, resource, cpu=cpu)], **more)

    def gives(self, node: str, count: int) -> None:
        """A device plugin of a node says so much."""
        status = {one: {self.resource: str(count)} for one in ("capacity", "allocatable")}
        self.side.place.api.patch(f"/api/v1/nodes/{self.side.node(node)}/status", {"status": status}, STRATEGIC)
        self.side.place.heard()

    def made(self, name: str) -> list[Json]:
        """Claims that were made for a pod."""
        claims = self.api.get(self.path("resourceclaims"))["items"]
        owned = [one for one in claims if one["metadata"].get("ownerReferences")]
        return [one for one in owned if one["metadata"]["ownerReferences"][0]["name"] == f"{self.side.name}-{name}"]

    def written(self, name: str) -> Any:
        """What a bound pod says of its claim, and the claim, without names of the side."""
        pod = self.side.place.pod(f"{self.side.name}-{name}")
        (claim,) = self.made(name)
        meta, status = claim["metadata"], claim["status"]
        (owner,) = meta["ownerReferences"]
        said = pod["status"]["extendedResourceClaimStatus"]
        assert said["resourceClaimName"] == meta["name"]
        assert owner.pop("uid") == pod["metadata"]["uid"]
        assert [(one["resource"], one["uid"]) for one in status["reservedFor"]] == [("pods", pod["metadata"]["uid"])]
        results = [(one["request"], one["device"]) for one in status["allocation"]["devices"]["results"]]
        base, _, _ = meta["name"].rpartition("-")
        found = [base, owner, meta["annotations"], meta["finalizers"], claim["spec"], said["requestMappings"]]
        plain = str(found).replace(self.side.named(""), "").replace(self.side.driver, "D")
        return plain.replace(f"{self.side.name}-", ""), results


@judged
def test_a_device_by_the_name_of_a_resource(side: Side) -> Any:
    """The class says the name, or has it by its own; who comes when all devices are given waits."""
    devices = Extended(side)
    side.nodes("a")
    devices.offer("one", "two", "three", node="a")
    devices.backing()
    devices.asking("two", 2)
    devices.side.bound("two")
    devices.asking("one", 1, IMPLICIT + devices.name)
    devices.side.bound("one")
    devices.asking("late")
    waited = bool(side.waits("late"))
    found = devices.written("two"), devices.written("one"), devices.made("late")
    side.delete("two")
    side.bound("late")
    return waited, found, devices.written("late")[1]


@judged
def test_containers_of_all_kinds(side: Side) -> Any:
    """Init containers that end use what later ones get, and share what they need beyond that."""
    devices = Extended(side)
    side.nodes("a")
    devices.offer(*(f"d{at}" for at in range(12)), node="a")
    devices.backing()
    always = {"restartPolicy": "Always"}
    other = IMPLICIT + devices.name
    init = [
        devices.container("first", 3),
        devices.container("side", 1, **always),
        devices.container("second", 6),
        devices.container("none", 0),
        devices.container("third", 2, other),
    ]
    main = [devices.container("main", 2), devices.container("beside", 1, other)]
    main[0]["resources"]["requests"]["a.example/zero"] = main[0]["resources"]["limits"]["a.example/zero"] = "0"
    side.pod("many", initContainers=init, containers=main)
    return side.bound("many"), devices.written("many")


@judged
def test_a_node_that_has_the_resource_itself_gives_it_itself(side: Side) -> Any:
    """Of a device plugin; its amount counts, and who is less important leaves for it."""
    devices = Extended(side)
    side.nodes("a", "b")
    devices.backing()
    devices.gives("a", 2)
    devices.offer("one", node="a")
    devices.asking("p1", 2)
    first = side.bound("p1"), devices.made("p1")
    devices.asking("p2")
    waited = bool(side.waits("p2"))
    devices.offer("two", node="b")
    second = side.bound("p2"), devices.written("p2")[1]
    devices.asking("high", 2, **HIGH)
    third = side.bound("high"), devices.made("high")
    gone = until(lambda: side.place.get("pods", f"{side.name}-p1") is None, "the victim is gone")
    return first, waited, second, third, bool(gone)


@judged
def test_nobody_has_to_leave_for_devices_of_a_class(side: Side) -> Any:
    """A victim's devices do not count as free; its room does, and when it has gone its devices do."""
    devices = Extended(side)
    side.nodes("a", cpu=1)
    devices.offer("one", "two", node="a")
    devices.backing()
    devices.asking("low", 2, cpu="800m")
    side.bound("low")
    devices.asking("first", **HIGH)
    waited = bool(side.waits("first"))
    stayed = "deletionTimestamp" not in side.place.pod(f"{side.name}-low")["metadata"]
    side.delete("low")
    side.bound("first")
    devices.asking("filler", 0, cpu="900m")
    side.bound("filler")
    devices.asking("second", cpu="800m", **HIGH)
    return waited, stayed, side.bound("second"), devices.written("first")[1], devices.written("second")[1]


@judged
def test_who_holds_a_device_leaves_for_room(side: Side) -> Any:
    """Its claim goes with it, and the next pod gets its device."""
    devices = Extended(side)
    side.nodes("a", cpu=1)
    devices.offer("one", node="a")
    devices.backing()
    devices.asking("low", cpu="800m")
    side.bound("low")
    devices.asking("high", 0, cpu="800m", **HIGH)
    side.bound("high")
    gone = until(lambda: not devices.made("low"), "the victim's claim is gone")
    devices.asking("next")
    return bool(gone), side.bound("next"), devices.written("next")[1]


@judged
def test_claims_beside_extended_resources(side: Side) -> Any:
    devices = Extended(side)
    side.nodes("a", "b")
    devices.offer("one", node="a")
    devices.offer("one", "two", node="b")
    devices.backing()
    devices.claim("own")
    named = [{"name": "own", "resourceClaimName": f"{side.name}-own"}]
    devices.asking("both", resourceClaims=named)
    return side.bound("both"), devices.got("own"), devices.written("both")[1]


@judged
def test_a_class_that_comes_later(side: Side) -> Any:
    """Nothing backs the resource at first, then a class that says its name."""
    devices = Extended(side)
    side.nodes("a")
    devices.offer("one", node="a")
    devices.backing(named=False)
    devices.asking("waits")
    waited = bool(side.waits("waits"))
    change = {"spec": {"extendedResourceName": devices.resource}}
    side.place.api.patch(f"{DEVICES}/deviceclasses/{devices.name}", change, "application/merge-patch+json")
    return waited, side.bound("waits"), devices.written("waits")[1]


@judged
def test_many_at_once(side: Side) -> Any:
    """More pods than devices, of two sizes: no device is given twice, and none is left."""
    devices = Extended(side)
    side.nodes("a", "b")
    devices.offer("one", "two", "three", node="a")
    devices.offer("one", "two", "three", node="b")
    devices.backing()
    names = [f"p{at}" for at in range(8)]
    for name in names:
        devices.asking(name)

    def bound() -> list[str]:
        return [one for one in names if side.place.node_of(f"{side.name}-{one}")]

    until(lambda: len(bound()) == 6, "six are bound")
    for name in set(names) - set(bound()):
        side.waits(name)
    given = [
        (one["pool"], one["device"])
        for name in bound()
        for claim in devices.made(name)
        for one in claim["status"]["allocation"]["devices"]["results"]
    ]
    return len(given), len(set(given)), sum(len(devices.made(name)) for name in names)


def decided(devices: Extended, name: str) -> bool:
    """Whether a pod is bound, once that is decided."""
    path = f"{pods_path(devices.side.place.namespace)}/{devices.side.name}-{name}"
    said = until(lambda: condition(devices.api.get(path), "PodScheduled").get("status"), f"{name} is decided on")
    return bool(said == "True")


@judged
def test_pods_at_random_get_what_kube_scheduler_gives(side: Side) -> Any:
    """On one node the same containers get the same devices by the same requests."""
    draw = random.Random(3)
    devices = Extended(side)
    side.nodes("a")
    devices.offer(*(f"d{at}" for at in range(14)), node="a")
    devices.backing()
    names = ["", IMPLICIT + devices.name]
    found: list[Any] = []
    for at in range(12):
        init = [
            devices.container(
                f"i{n}",
                draw.randint(0, 2),
                draw.choice(names),
                **({"restartPolicy": "Always"} if draw.random() < 0.4 else {}),
            )
            for n in range(draw.randint(0, 3))
        ]
        main = [devices.container(f"c{n}", draw.randint(0, 2), draw.choice(names)) for n in range(draw.randint(1, 2))]
        side.pod(f"p{at}", initContainers=init, containers=main)
        if not decided(devices, f"p{at}"):
            found.append(None)
            side.delete(f"p{at}")
            continue
        found.append(devices.written(f"p{at}") if devices.made(f"p{at}") else "none")
        if draw.random() < 0.7:
            side.delete(f"p{at}")
            until(lambda: not devices.made(f"p{at}"), "its devices are given back")  # noqa: B023  # waited for here
    assert sum(isinstance(one, tuple) for one in found) > 3
    return found
