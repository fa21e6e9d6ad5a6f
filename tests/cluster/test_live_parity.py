"""What kube-scheduler does with volumes and nodes, we do: each scene is played twice on one control plane.

Once for each scheduler, on nodes, claims and volumes that are alike but for their names; what came of the pods has to
be the same. So kube-scheduler itself is the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import pytest

from cluster import ledgers
from cluster.judging import Json
from cluster.labtools import condition, pod, until
from cluster.running import BETWEEN_EQUALS, Cast, Place, Stage, nothing_wrong, prepared, scene, service_class, staged
from slacktide.lab import Binaries

HOSTNAME = "kubernetes.io/hostname"
STORAGE = "/apis/storage.k8s.io/v1"
VOLUMES = "/api/v1/persistentvolumes"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
LATE, AT_ONCE = "WaitForFirstConsumer", "Immediate"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ROW, CELL = "example.com/row", "example.com/cell"
SCHEDULERS = {"theirs": "default-scheduler", "ours": "slacktide"}
GATES = "TaintTolerationComparisonOperators=true,ContainerRestartRules=true,RestartAllContainersOnContainerExits=true"


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("parity")
    plane = prepared(binaries, directory, gates=GATES, kube_scheduler=True)
    classes = [service_class("plain", 0.9, 2, default=True)]
    # Nothing is preempted here: who waits is placed because something else happened.
    yield from staged(
        binaries,
        directory,
        classes,
        plane,
        qos__alpha=ledgers.ALPHA,
        policy__patience=BETWEEN_EQUALS,
    )


class Side:
    """A scene's part for one scheduler; what has no namespace is named after scene and side."""

    def __init__(self, place: Place, name: str) -> None:
        self.place, self.name, self.scheduler = place, name, SCHEDULERS[name]
        self.driver = f"{name}.{place.name}.example"
        self._nodes: dict[str, str] = {}

    def named(self, name: str) -> str:
        return f"{self.place.name}-{self.name}-{name}"

    def nodes(self, *names: str, labels: Json | None = None, **settings: Any) -> None:
        """Nodes, to be called by these names."""
        for name in names:
            labels = {**(labels or {}), "side": self.name}
            (made,) = self.place.nodes(1, prefix=f"-{self.name}-{name}", labels=labels, **settings)
            self._nodes[made] = name

    def node(self, name: str) -> str:
        return next(made for made, called in self._nodes.items() if called == name)

    def storage_class(self, name: str, provisioner: str, mode: str = LATE) -> None:
        body = {"metadata": {"name": self.named(name)}, "provisioner": provisioner, "volumeBindingMode": mode}
        self.place.api.post(f"{STORAGE}/storageclasses", body)

    def claim(self, name: str, service: str, size: str = "1Gi") -> None:
        resources = {"requests": {"storage": size}}
        spec = {"storageClassName": self.named(service), "accessModes": ["ReadWriteMany"], "resources": resources}
        body = {"metadata": {"name": f"{self.name}-{name}"}, "spec": spec}
        self.place.create("persistentvolumeclaims", body)

    def volume(self, name: str, service: str, node: str = "", size: str = "1Gi", *, csi: bool = False) -> None:
        """A volume that can be used from one node, or from all."""
        spec: Json = {"capacity": {"storage": size}, "accessModes": ["ReadWriteMany"]}
        spec |= {"storageClassName": self.named(service)}
        if node:
            here = [{"key": HOSTNAME, "operator": "In", "values": [self.node(node)]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}}
        source = {"csi": {"driver": self.driver, "volumeHandle": name}} if csi else {"hostPath": {"path": "/none"}}
        self.place.api.post(VOLUMES, {"metadata": {"name": self.named(name)}, "spec": spec | source})

    def limit(self, node: str, count: int) -> None:
        """How many volumes of the driver a node can have attached."""
        driver = {"name": self.driver, "nodeID": node, "allocatable": {"count": count}}
        body = {"metadata": {"name": self.node(node)}, "spec": {"drivers": [driver]}}
        self.place.api.post(f"{STORAGE}/csinodes", body)

    def pod(self, name: str, *claims: str, volumes: Sequence[Json] = (), **more: Any) -> None:
        found = [{"name": one, "persistentVolumeClaim": {"claimName": f"{self.name}-{one}"}} for one in claims]
        volumes = [*found, *volumes]
        selector = {"side": self.name}
        body = pod(f"{self.name}-{name}", volumes=volumes, nodeSelector=selector, schedulerName=self.scheduler, **more)
        self.place.create("pods", body)

    def delete(self, name: str) -> None:
        self.place.delete("pods", f"{self.name}-{name}", 0)

    def bound(self, name: str) -> str:
        """Waits until a pod is bound; to which node."""
        made = until(lambda: self.place.node_of(f"{self.name}-{name}"), f"{self.scheduler} binds {name}")
        return self._nodes[made]

    def waits(self, name: str) -> str:
        """Waits until a pod is said to be unschedulable; why."""

        def says() -> str:
            found = condition(self.place.pod(f"{self.name}-{name}"), "PodScheduled")
            return str(found.get("message", "")) if found.get("reason") == "Unschedulable" else ""

        return str(until(says, f"{self.scheduler} says why {name} waits"))

    def has_bound(self, claim: str) -> str:
        """Waits until a claim is bound; the volume."""

        def found() -> str:
            body = self.place.get("persistentvolumeclaims", f"{self.name}-{claim}") or {}
            return str(body["spec"].get("volumeName", "")) if body["status"].get("phase") == "Bound" else ""

        return str(until(found, f"claim {claim} is bound")).removeprefix(self.named(""))

    def selected(self, claim: str) -> str:
        """Waits until a claim says for which node its volume shall be made."""

        def found() -> str:
            body = self.place.get("persistentvolumeclaims", f"{self.name}-{claim}") or {}
            return str(body["metadata"].get("annotations", {}).get(SELECTED_NODE, ""))

        return self._nodes[until(found, f"{self.scheduler} selects a node for {claim}")]


def judged(play: Callable[[Side], Any]) -> Callable[[Cast], None]:
    """A test that plays a scene for kube-scheduler and for us: what it returns has to be the same."""

    @wraps(play)
    def both(place: Place) -> None:
        theirs = play(Side(place, "theirs"))
        assert play(Side(place, "ours")) == theirs

    return scene(both)


@judged
def test_attach_limits(side: Side) -> Any:
    side.nodes("a", "b")
    side.limit("a", 1)
    side.limit("b", 2)
    side.storage_class("disk", NO_PROVISIONER, AT_ONCE)
    for name in ("v1", "v2", "v3", "v4"):
        side.volume(name, "disk", csi=True)
        side.claim(name, "disk")
        side.has_bound(name)
    nodes = []
    for name in ("v1", "v2", "v3"):
        side.pod(name, name)
        nodes.append(side.bound(name))
    side.pod("v4", "v4")
    assert "volume" in side.waits("v4")
    side.delete("v2")
    freed = side.bound("v4") == nodes[1]
    # A pod without volumes is not concerned.
    side.pod("none")
    return sorted(nodes), freed, bool(side.bound("none"))


@judged
def test_one_volume_counts_once_a_node(side: Side) -> Any:
    side.nodes("a")
    side.limit("a", 2)
    side.storage_class("disk", NO_PROVISIONER, AT_ONCE)
    for name in ("v1", "v2", "v3"):
        side.volume(name, "disk", csi=True)
        side.claim(name, "disk")
        side.has_bound(name)
    for name, claim in (("one", "v1"), ("two", "v1"), ("three", "v2")):
        side.pod(name, claim)
        side.bound(name)
    side.pod("four", "v3")
    waited = bool(side.waits("four"))
    side.delete("one")  # another pod has its volume
    side.delete("three")
    return waited, side.bound("four")


@judged
def test_storage_capacity(side: Side) -> Any:
    side.nodes("a", "b", "c")
    side.storage_class("made", side.driver)
    spec = {"storageCapacity": True, "attachRequired": False}
    side.place.api.post(f"{STORAGE}/csidrivers", {"metadata": {"name": side.driver}, "spec": spec})
    offers: dict[str, Json] = {"a": {"capacity": "2Gi"}, "b": {"capacity": "9Gi"}}
    offers |= {"c": {"capacity": "9Gi", "maximumVolumeSize": "1Gi"}}
    path = f"{STORAGE}/namespaces/{side.place.namespace}/csistoragecapacities"
    for name, offer in offers.items():
        topology = {"matchLabels": {HOSTNAME: side.node(name)}}
        body = {"metadata": {"name": side.named(name)}, "storageClassName": side.named("made")}
        side.place.api.post(path, body | {"nodeTopology": topology} | offer)
    side.place.heard()
    side.claim("large", "made", "99Gi")
    side.pod("large", "large")
    assert "enough free storage" in side.waits("large")
    side.claim("fits", "made", "5Gi")
    side.pod("fits", "fits")
    return side.selected("fits")


@judged
def test_local_volumes(side: Side) -> Any:
    side.nodes("a", "b", "c")
    side.storage_class("local", NO_PROVISIONER)
    side.storage_class("another", NO_PROVISIONER)
    side.volume("small", "local", "a", "1Gi")
    side.volume("large", "local", "b", "9Gi")
    side.volume("fits", "local", "b", "3Gi")
    side.volume("other", "another", "c", "2Gi")
    until(lambda: all(
        side.place.api.get(f"{VOLUMES}/{side.named(one)}")["status"].get("phase") == "Available"
        for one in ("small", "large", "fits", "other")
    ), "volumes are available")  # fmt: skip
    side.claim("data", "local", "2Gi")
    side.claim("more", "local", "2Gi")
    side.pod("first", "data")
    first = side.bound("first"), side.has_bound("data")
    side.pod("both", "data", "more")
    second = side.bound("both"), side.has_bound("more")
    side.claim("late", "local", "5Gi")
    side.pod("late", "late")
    assert "persistent volume" in side.waits("late")
    side.volume("later", "local", "c", "5Gi")
    return first, second, side.bound("late"), side.has_bound("late")


@judged
def test_ephemeral_volumes(side: Side) -> Any:
    side.nodes("a", "b")
    side.storage_class("local", NO_PROVISIONER)
    wanted: Json = {"storageClassName": side.named("local"), "accessModes": ["ReadWriteMany"]}
    wanted |= {"resources": {"requests": {"storage": "1Gi"}}}
    side.pod("pod", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": wanted}}}])
    side.waits("pod")
    side.volume("there", "local", "b")
    return side.bound("pod"), side.has_bound("pod-scratch")


@judged
def test_a_class_that_binds_at_once(side: Side) -> Any:
    side.nodes("a")
    side.storage_class("early", NO_PROVISIONER, AT_ONCE)
    side.claim("data", "early")
    side.pod("pod", "data")
    assert "pod has unbound immediate PersistentVolumeClaims" in side.waits("pod")
    side.volume("data", "early")
    return side.bound("pod")


@judged
def test_tolerations_that_compare(side: Side) -> Any:
    for name, value in (("a", "900"), ("b", "990")):
        side.nodes(name)
        taint = {"key": "sla", "value": value, "effect": "NoSchedule"}
        side.place.api.patch(f"/api/v1/nodes/{side.node(name)}", {"spec": {"taints": [taint]}})
    side.place.heard()
    more = [{"key": "sla", "operator": "Gt", "value": "950", "effect": "NoSchedule"}]
    less = [{"key": "sla", "operator": "Lt", "value": "950", "effect": "NoSchedule"}]
    side.pod("more", tolerations=more)
    side.pod("less", tolerations=less)
    return side.bound("more"), side.bound("less")


@judged
def test_features_that_nodes_declare(side: Side) -> Any:
    side.nodes("a", "b")
    status = {"status": {"declaredFeatures": ["RestartAllContainersOnContainerExits"]}}
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]}}
    body = pod("", cpu="100m")["spec"]["containers"][0] | {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    side.pod("needs", containers=[body], restartPolicy="Never")
    waited = bool(side.waits("needs"))
    side.place.api.patch(f"/api/v1/nodes/{side.node('b')}/status", status)
    return waited, side.bound("needs")


@judged
def test_a_node_that_has_given_away_more_than_it_has(side: Side) -> Any:
    side.nodes("a", cpu="4", memory="4Gi")
    side.pod("large", cpu="3", memory="1Gi")
    side.bound("large")
    side.place.api.patch(f"/api/v1/nodes/{side.node('a')}/status", {"status": {"allocatable": {"cpu": "1"}}})
    side.place.heard()
    side.pod("asks", cpu="1m", memory="0")
    waits = bool(side.waits("asks"))
    side.pod("none", cpu="0", memory="2Gi")
    return waits, side.bound("none")


@judged
def test_the_first_of_its_kind_over_several_keys(side: Side) -> Any:
    side.nodes("bare", labels={ROW: "r"})
    side.nodes("whole", labels={ROW: "r", CELL: "c"})
    labels = {"app": f"group-{side.name}"}  # both sides play in one namespace
    term = {"labelSelector": {"matchLabels": labels}}
    both = {"podAffinity": {REQUIRED: [term | {"topologyKey": key} for key in (ROW, CELL)]}}
    here = {"key": HOSTNAME, "operator": "In", "values": [side.node("bare")]}
    on_bare = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}}
    side.pod("before", labels=labels, affinity=on_bare)
    side.bound("before")
    side.pod("after", labels=labels, affinity=both)
    waits = bool(side.waits("after"))  # there is one of its kind in the row, so that it is not the first
    side.delete("before")
    return waits, side.bound("after")


@judged
def test_a_node_for_which_somebody_else_nominated(side: Side) -> Any:
    side.nodes("empty", "fuller", cpu="4")
    here = {"key": HOSTNAME, "operator": "In", "values": [side.node("fuller")]}
    there = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}}
    side.pod("large", cpu="2", affinity=there)
    side.bound("large")
    side.pod("plain", cpu="1")
    plain = side.bound("plain")
    side.delete("plain")
    nodes = []
    for name, cpu in (("fits", "1"), ("does-not", "3")):
        side.pod(name, cpu=cpu, schedulingGates=[{"name": "example.com/hold"}])
        path = f"{side.place.kinds_path('pods')}/{side.name}-{name}"
        side.place.api.patch(f"{path}/status", {"status": {"nominatedNodeName": side.node("fuller")}})
        side.place.api.patch(path, {"spec": {"schedulingGates": []}})
        nodes.append(side.bound(name))
    return plain, nodes


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)
