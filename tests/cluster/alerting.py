"""Two replicas and a real Prometheus on a lab, and faults that alerts are for."""

from __future__ import annotations

import datetime
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cluster.installation import MANIFESTS
from cluster.kubectl import Kubectl
from cluster.labtools import deployment, job, pod, until
from cluster.paging import NAMESPACE, Prometheus, Target
from cluster.running import CLASSES, Running, prepared, service_class
from slacktide.lab import ApiError, Binaries, ControlPlane

Json = dict[str, Any]
TEAM = "default"
PODS = f"/api/v1/namespaces/{TEAM}/pods"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{TEAM}/deployments"
JOBS = f"/apis/batch/v1/namespaces/{TEAM}/jobs"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{TEAM}/resourceclaims"
OURS = {"schedulerName": "slacktide"}
ROOM = "room"
WATCH_SECONDS = 30.0
"""``kube.watch_seconds``: the silence after which a watch is dead follows from it."""
LEVELS = 1_100
"""Deeper than anybody reads."""


@dataclass
class Site:
    """The lab with what is watched on it. ``own`` leads without asking, ``ending`` shows a certificate that ends soon;
    neither runs at first."""

    plane: ControlPlane
    kubectl: Kubectl
    replicas: tuple[Running, Running]
    own: Running
    ending: Running
    prometheus: Prometheus

    @property
    def api(self) -> Any:
        return self.plane.api


@contextmanager
def site(binaries: Binaries, folder: Path, factor: float, interval: float) -> Iterator[Site]:
    """Everything begun: a leader, a standby, room for pods, gold workloads that run, and Prometheus."""
    plane = prepared(binaries, folder)
    with ExitStack() as stack:
        stack.callback(plane.kill)
        gold = service_class("gold", 0.99, 1, window={"rolling": "1h"})
        for one in (gold, service_class("bronze", 0.5, 3, default=True)):
            plane.api.post(CLASSES, one)
        plane.create_nodes(4, prefix="usual", cpu="8")
        plane.create_nodes(2, prefix="front", cpu="8", labels={ROOM: "front"})
        settings: Json = {"kube__watch_seconds": WATCH_SECONDS, "kube__lease_duration": 10}
        replicas = (
            Running(plane, name="first", **settings).wait_until_leading(),
            Running(plane, name="second", **settings),
        )
        own = Running(plane, name="own-way", kube__leader_election=False, **settings)
        ending = Running(plane, name="ending", kube__http_access="delegated", **_certificate(folder), **settings)
        for unwanted in (own, ending):
            unwanted.kill()
        token = _account(plane)
        targets = [Target(one.component.name, f"127.0.0.1:{one.port}") for one in (*replicas, own)]
        targets.append(Target("ending", f"127.0.0.1:{ending.port}", token))
        _workloads(plane)
        prometheus = Prometheus(plane, targets, factor, interval)
        stack.callback(prometheus.close)
        wanted = {one.component.name for one in replicas}
        until(lambda: wanted <= prometheus.scraped(), "Prometheus has scraped both replicas")
        until(lambda: not prometheus.firing(), "what is missing at the very first is seen")
        yield Site(plane, Kubectl(binaries["kubectl"], plane.kubeconfig), replicas, own, ending, prometheus)


def _workloads(plane: ControlPlane) -> None:
    labels = {"slacktide.io/class": "gold"}
    plane.api.post(DEPLOYMENTS, deployment("front", 4, labels=labels, nodeSelector={ROOM: "front"}, **OURS))
    plane.api.post(DEPLOYMENTS, deployment("usual", 4, labels=labels, **OURS))
    until(lambda: len(running(plane, "app")) == 8, "all pods run")


def running(plane: ControlPlane, label: str) -> list[str]:
    every = plane.api.get(f"{PODS}?labelSelector={label}&fieldSelector=status.phase=Running")["items"]
    return [one["metadata"]["name"] for one in every if "deletionTimestamp" not in one["metadata"]]


def _account(plane: ControlPlane) -> str:
    """The token of an account as the chart makes it for Prometheus."""
    name = "slacktide-metrics"
    plane.api.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": name}})
    binding = {"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
               "name": "slacktide-metrics-reader"},
               "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}]}  # fmt: skip
    plane.api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    return plane.service_account_token(NAMESPACE, name, 86_400)


def _certificate(folder: Path) -> Json:
    """A certificate that ends in three days, and its key, as settings."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "s")])
    now = datetime.datetime.now(datetime.UTC)
    begun = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(),
                                    now - datetime.timedelta(hours=1), now + datetime.timedelta(days=3))  # fmt: skip
    signed = begun.sign(key, hashes.SHA256())
    files = folder / "ends.crt", folder / "ends.key"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files[1].write_bytes(key.private_bytes(*form))
    return {"kube__tls_certificate": str(files[0]), "kube__tls_key": str(files[1])}


# -- faults --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """``make`` begins it and ``mend`` ends it; ``alert`` should last from ``shown`` seconds after the beginning on.
    Those ``alone`` change who leads, so that no other goes on beside them."""

    alert: str
    make: Callable[[Site], None]
    mend: Callable[[Site], None]
    shown: float = 0.0
    alone: bool = False
    slow: bool = False
    """It shows once a minute, which is too seldom for rules whose times are shortened."""


def _kill_all(site: Site) -> None:
    for one in site.replicas:
        one.kill()


def _start_all(site: Site) -> None:
    for one in site.replicas:
        one.component.start()


def _without_class(site: Site) -> None:
    labels = {"slacktide.io/class": "platinum"}
    site.api.post(PODS, pod("lost", labels=labels, **OURS))


def _gone(site: Site, path: str) -> None:
    with suppress(ApiError):
        site.api.delete(path)


def _deep(site: Site) -> None:
    """A claim that is nested deeper than anybody reads."""
    deep: Json = {}
    for _ in range(LEVELS):
        deep = {"a": deep}
    config = [{"opaque": {"driver": "deep.example.com", "parameters": deep}}]
    requests = [{"name": "one", "exactly": {"deviceClassName": "none"}}]
    devices = {"requests": requests, "config": config}
    with _deeply():
        site.api.post(CLAIMS, {"metadata": {"name": "deep"}, "spec": {"devices": devices}})


def _not_deep(site: Site) -> None:
    with _deeply():  # the answer has it
        site.api.delete(f"{CLAIMS}/deep")


@contextmanager
def _deeply() -> Iterator[None]:
    """Python's own reader and writer of JSON go as deep."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20 * LEVELS)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _rules_without(site: Site, name: str, resource: str, verb: str) -> None:
    """A right that an operator takes away by mistake."""
    found = site.api.get(f"{ROLES}/{name}")
    for rule in found["rules"]:
        if resource in rule["resources"]:
            rule["verbs"] = [one for one in rule["verbs"] if one != verb] or ["get"]
    site.api.put(f"{ROLES}/{name}", found)


def mended_by_manifests(site: Site, file: str) -> None:
    """What the runbooks say: apply what belongs to this version."""
    site.kubectl.ok("apply", "--server-side", "--force-conflicts", "-f", str(MANIFESTS / file))


def _end_front(site: Site) -> None:
    """The nodes of a workload are lost for good, and its pods with them."""
    for number in range(2):
        site.api.delete(f"/api/v1/nodes/front-{number}")
    for name in running(site.plane, "app=front"):
        site.api.delete(f"{PODS}/{name}", 0)


def _begin_front(site: Site) -> None:
    """Others: KWOK renews no lease of a node that comes back under its name, so that it is not ready a minute later."""
    site.plane.create_nodes(2, prefix="again", cpu="8", labels={ROOM: "front"})


def _bind_ours(site: Site) -> None:
    """Somebody else binds pods that wait here: they fit nowhere that this scheduler may use."""
    site.api.post("/api/v1/nodes", {"metadata": {"name": "foreign"}})
    for number in range(6):
        name = f"taken-{number}"
        site.api.post(PODS, pod(name, nodeSelector={"nobody": "has"}, **OURS))
        until(partial(_is_told, site, name), f"{name} waits")
        site.api.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "apiVersion": "v1", "kind": "Binding",
                                                 "target": {"kind": "Node", "name": "foreign"}})  # fmt: skip


def _is_told(site: Site, name: str) -> bool:
    conditions = site.api.get(f"{PODS}/{name}")["status"].get("conditions", [])
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)


def _unbind(site: Site) -> None:
    for number in range(6):
        site.api.delete(f"{PODS}/taken-{number}", 0)
    _gone(site, "/api/v1/nodes/foreign")


FAULTS = (
    Fault("SlacktidePodsWithoutClass", _without_class, lambda site: site.api.delete(f"{PODS}/lost", 0)),
    Fault("SlacktideObjectsAside", _deep, _not_deep),
    Fault("SlacktideAdmissionMissing", lambda site: site.api.delete(f"{ADMISSION}/slacktide-class"),
          lambda site: mended_by_manifests(site, "30-admission.yaml"), 30.0),
    Fault("SlacktideLedgersNotWritten",
          lambda site: _rules_without(site, "slacktide-scheduler", "availabilities", "patch"),
          lambda site: mended_by_manifests(site, "20-rbac.yaml"), 90.0, slow=True),
    Fault("SlacktideBudgetBurns", _end_front, _begin_front, 40.0),
    Fault("SlacktideReleasesFight", _bind_ours, _unbind),
    Fault("SlacktideWatchStale",
          lambda site: _rules_without(site, "slacktide-scheduler", "poddisruptionbudgets", "watch"),
          lambda site: mended_by_manifests(site, "20-rbac.yaml"), 3.0 * WATCH_SECONDS, alone=True),
    Fault("SlacktideCertificateEnds", lambda site: site.ending.component.start(), lambda site: site.ending.stop(),
          10.0),
    Fault("SlacktideTwoLead", lambda site: site.own.component.start(), lambda site: site.own.stop(), 20.0, alone=True),
    Fault("SlacktideNobodyLeads", _kill_all, _start_all, alone=True),
)  # fmt: skip


# -- what goes on where all is well --------------------------------------------------------------------------------


class Life:
    """Workloads that come, change and go; nobody's promise is in danger by it."""

    def __init__(self, site: Site, seed: int, *, kills: bool) -> None:
        self._site, self._chance, self._count, self._kills = site, random.Random(seed), 0, kills
        self.done: dict[str, int] = {}

    def go_on(self, until_then: float, between: float) -> None:
        """One change after the other until then."""
        acts = (self._scale, self._roll, self._job, self._delete, self._come, self._cordon, self._kill_leader)
        weights = (5, 3, 5, 5, 3, 2, int(self._kills))
        while time.time() < until_then:
            (act,) = self._chance.choices(acts, weights)
            with suppress(ApiError):
                act()
                name = act.__name__.strip("_")
                self.done[name] = self.done.get(name, 0) + 1
            time.sleep(between)

    def _named(self) -> str:
        every = self._site.api.get(DEPLOYMENTS)["items"]
        return str(
            self._chance.choice([one["metadata"]["name"] for one in every if one["metadata"]["name"] != "front"])
        )

    def _scale(self) -> None:
        self._site.api.patch(f"{DEPLOYMENTS}/{self._named()}", {"spec": {"replicas": self._chance.randint(0, 8)}})

    def _roll(self) -> None:
        stamp = {"metadata": {"annotations": {"rolled": str(time.time())}}}
        self._site.api.patch(f"{DEPLOYMENTS}/{self._named()}", {"spec": {"template": stamp}})

    def _job(self) -> None:
        self._count += 1
        body = job(f"job-{self._count}", self._chance.uniform(5.0, 40.0), **OURS)
        body["spec"]["ttlSecondsAfterFinished"] = 5
        self._site.api.post(JOBS, body)

    def _delete(self) -> None:
        if names := running(self._site.plane, "app=usual"):
            self._site.api.delete(f"{PODS}/{self._chance.choice(names)}")

    def _come(self) -> None:
        self._count += 1
        name = f"web-{self._count}"
        labels = {"slacktide.io/class": self._chance.choice(("gold", "bronze"))}
        self._site.api.post(DEPLOYMENTS, deployment(name, self._chance.randint(1, 5), labels=labels, **OURS))
        if self._count > 12:
            for one in self._site.api.get(DEPLOYMENTS)["items"][:-8]:
                if one["metadata"]["name"].startswith("web-"):
                    self._site.api.delete(f"{DEPLOYMENTS}/{one['metadata']['name']}")

    def _cordon(self) -> None:
        name = f"usual-{self._chance.randint(0, 3)}"
        node = self._site.api.get(f"/api/v1/nodes/{name}")
        self._site.api.patch(
            f"/api/v1/nodes/{name}", {"spec": {"unschedulable": not node["spec"].get("unschedulable")}}
        )

    def _kill_leader(self) -> None:
        """It is killed, and comes back; the other replica leads meanwhile."""
        lease = self._site.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/slacktide")
        for one in self._site.replicas:
            if str(one.component.pid) in lease["spec"].get("holderIdentity", "").split("_"):
                one.kill()
                one.component.start()
