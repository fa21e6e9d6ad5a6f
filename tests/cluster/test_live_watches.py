"""Watches that fall silent: who cannot decide without one gives the lease back, and what needs none of it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from cluster.disturbing import Disturbance, three_classes
from cluster.installation import ACCOUNT
from cluster.kubectl import Json
from cluster.labtools import HANG_SECONDS, condition, lease_holder, pod, pods_path, until
from cluster.running import Running, prepared
from slacktide.lab import Binaries, ControlPlane

WATCH_SECONDS = 8
"""A watch that shows no sign of life for 9.2 s is dead."""
LEASE_SECONDS = 9
LEASE = "/apis/coordination.k8s.io/v1/namespaces/slacktide-system/leases/slacktide"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
GAVE = "released the lease and starts again"


@dataclass
class Pair:
    """Two replicas on a control plane, each with a way of its own to the API server."""

    plane: ControlPlane
    ways: dict[str, Disturbance]
    replicas: dict[str, Running]

    def holder(self) -> str:
        """The name of the replica that holds the lease, or nothing."""
        identity = lease_holder(self.plane.api, LEASE)
        here = [name for name, one in self.replicas.items() if identity and f"on standby as {identity}" in one.log]
        return here[0] if here else ""

    def other(self, name: str) -> str:
        return next(one for one in self.replicas if one != name)

    def bound(self, name: str) -> None:
        """A new pod finds a node."""
        self.create(name)
        until(lambda: self.pod(name)["spec"].get("nodeName"), f"pod {name} is bound")

    def create(self, name: str, claim: str = "") -> None:
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
        body = pod(name, labels={"slacktide.io/class": "gold"}, schedulerName="slacktide", volumes=volumes)
        self.plane.api.post(pods_path("default"), body)

    def pod(self, name: str) -> Json:
        return dict(self.plane.api.get(f"{pods_path('default')}/{name}"))

    def told(self, name: str, path: str) -> str:
        """What a replica answers; a refusal's text, too."""
        try:
            with urlopen(f"http://127.0.0.1:{self.replicas[name].port}{path}", timeout=HANG_SECONDS) as answer:
                return str(answer.read().decode())
        except HTTPError as refusal:
            return refusal.read().decode()
        except OSError:
            return ""  # it begins anew

    def is_dead(self, name: str, kind: str) -> bool:
        """Whether a replica's metrics say that a watch is dead."""
        return f'slacktide_watch_dead{{kind="{kind}"}} 1.0\n' in self.told(name, "/metrics")


@pytest.fixture(scope="module")
def pair(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    plane = prepared(binaries, tmp_path_factory.mktemp("watches"))
    try:
        three_classes(plane.api)
        plane.create_nodes(2, cpu="4")
        account = plane.service_account_kubeconfig(*ACCOUNT)
        with Disturbance(account) as first, Disturbance(account) as second:
            ways = {"one": first, "two": second}
            settings = {"kube__watch_seconds": WATCH_SECONDS, "kube__lease_duration": LEASE_SECONDS}
            settings["scheduler__watchdog"] = 1
            replicas = {name: way.running(plane, name=name, **settings) for name, way in ways.items()}
            found = Pair(plane, ways, replicas)
            until(lambda: all("on standby as" in one.log for one in replicas.values()), "both stand by", 900)
            until(found.holder, "one of them leads")
            yield found
            for one in replicas.values():
                one.stop()
    finally:
        plane.kill()


def test_who_cannot_decide_gives_way_and_leads_again_once_its_watches_live(pair: Pair) -> None:
    old = pair.holder()
    new = pair.other(old)
    pair.bound("before")
    pair.ways[old].stall_watches("^/api/v1/nodes$")
    until(lambda: pair.holder() == new, "the other one leads")
    until(lambda: f"{GAVE}: the watch of nodes has stopped" in pair.replicas[old].log, "it says why")
    assert pair.replicas[old].component.running
    pair.bound("meanwhile")
    until(lambda: "the watch of nodes has stopped" in pair.told(old, "/readyz"), "it is not ready")
    until(lambda: pair.is_dead(old, "nodes"), "its metrics say which watch is dead")
    assert not pair.is_dead(new, "nodes")
    pair.replicas[new].stop()
    pair.create("nobody")
    until(lambda: not lease_holder(pair.plane.api, LEASE), "the lease is given back")
    looked = len(pair.ways[old].proxy.paths)
    until(lambda: sum("/leases/" in path for _, path in pair.ways[old].proxy.paths[looked:]) >= 3, "it looks on")
    assert not lease_holder(pair.plane.api, LEASE)  # and takes no lease that it cannot use
    pair.ways[old].let_watches_flow()
    until(lambda: pair.holder() == old, "it leads again")
    until(lambda: pair.pod("nobody")["spec"].get("nodeName"), "and binds")
    pair.replicas[new]._from = len(pair.replicas[new].component.log.read_text())
    pair.replicas[new].component.start()
    until(lambda: "on standby as" in pair.replicas[new].log, "the other one stands by")


def test_without_word_of_volumes_only_pods_with_claims_wait(pair: Pair) -> None:
    leader = pair.holder()
    for name, way in pair.ways.items():  # of both: on a busy machine the other one may lead by and by
        way.stall_watches("/persistentvolumes$")
        until(lambda name=name: pair.is_dead(name, "persistentvolumes"), "the watch of volumes is dead")  # type: ignore[misc]
    pair.plane.api.post(STORAGE, {"metadata": {"name": "early"}, "provisioner": "kubernetes.io/no-provisioner"})
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "early"}
    pair.plane.api.post(VOLUMES, {"metadata": {"name": "there"}, "spec": spec | {"hostPath": {"path": "/none"}}})
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "early", "resources": resources}
    pair.plane.api.post(CLAIMS, {"metadata": {"name": "data"}, "spec": spec})
    until(lambda: pair.plane.api.get(f"{CLAIMS}/data")["status"].get("phase") == "Bound", "the claim is bound")
    pair.create("claiming", "data")
    pair.bound("simple")

    def says() -> str:
        return str(condition(pair.pod("claiming"), "PodScheduled").get("message", ""))

    until(lambda: "the watch of persistentvolumes has stopped" in says(), "it says why it waits")
    assert pair.told(leader, "/readyz") == "ok\n"
    for way in pair.ways.values():
        way.let_watches_flow()
    until(lambda: pair.pod("claiming")["spec"].get("nodeName"), "it is bound once its volume is known")
    assert not [name for name, one in pair.replicas.items() if f"{GAVE}: the watch of persistentvolumes" in one.log]


def test_nothing_went_wrong(pair: Pair) -> None:
    complaints = [
        f"{name}: {line}" for name, one in pair.replicas.items() for _, line in one.said() if "Traceb" in line
    ]
    assert not complaints, "\n".join(complaints)
