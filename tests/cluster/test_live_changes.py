"""What changes after a decision, or of pods that run: nodes, victims, sizes, labels, owners, other schedulers' pods."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.judging import Json
from cluster.labtools import HANG_SECONDS, bind, deployment, pod, until
from cluster.running import (
    BETWEEN_EQUALS,
    WATCHDOG_SECONDS,
    Cast,
    Place,
    Stage,
    nothing_wrong,
    scene,
    service_class,
    staged,
)
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.kube.translate.owners import Target
from slacktide.lab import Binaries

CLASS, HOSTNAME, ZONE = "slacktide.io/class", "kubernetes.io/hostname", "zone"
PATIENCE, VACANCY = 20.0, 2.0
GRACE = 100
"""Seconds that a victim takes which the test lets go itself."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    classes = [
        service_class("high", 0.999, 1),
        service_class("low", 0.05, 3, marginSeconds=0.5, overheadLimit=1.0, default=True),
        service_class("custom", 0.5, 2),
    ]
    yield from staged(
        binaries, tmp_path_factory.mktemp("changes"), classes,
        qos__alpha=0.1, scheduler__watchdog=WATCHDOG_SECONDS, policy__patience=BETWEEN_EQUALS,
        kube__victim_patience=PATIENCE, kube__vacancy=VACANCY,
    )  # fmt: skip


def of(service: str, name: str, cpu: str = "1500m", **settings: Any) -> Json:
    return pod(name, cpu=cpu, labels={CLASS: service, **settings.pop("labels", {})}, **settings)


def leaving(place: Place, name: str) -> Any:
    return until(lambda: "deletionTimestamp" in place.pod(name)["metadata"], f"{name} is told to go")


# -- after the decision ------------------------------------------------------------------------------------------------


@scene
def test_nobody_is_bound_to_a_node_that_was_cordoned_meanwhile(place: Place) -> None:
    (node,) = place.nodes(1, cpu="2")
    place.create("pods", of("low", "victim", terminationGracePeriodSeconds=GRACE))
    place.ready("victim")
    place.create("pods", of("high", "other"))
    leaving(place, "victim")
    place.kubectl.ok("cordon", node)
    place.heard()
    place.delete("pods", "victim", 0)  # it takes its time, so that it is gone now and not before
    until(lambda: place.get("pods", "victim") is None, "the victim is gone")

    def given_up() -> bool:
        notes = [one["note"] for one in place.auditor.events(place.namespace, "FailedScheduling", "other")]
        return any(f"withdrawn: node {node} is no longer schedulable" in note for note in notes)

    until(given_up, "an event says so")
    assert place.node_of("other") == ""
    place.kubectl.ok("uncordon", node)
    assert place.bound("other") == node


@scene
def test_a_replacement_does_not_wait_for_one_that_never_goes(place: Place) -> None:
    (node,) = place.nodes(1, cpu="2")
    place.create("deployments", deployment("web", 1, cpu="1500m", labels={CLASS: "low"}))
    (victim,) = place.ready("web", 1)
    name = victim["metadata"]["name"]
    # Nobody plays a kubelet for a pod in this phase, so it will not end.
    place.api.patch(f"{place.kinds_path('pods')}/{name}/status", {"status": {"phase": "Unknown"}}, STRATEGIC)
    time.sleep(2)
    place.create("pods", of("high", "hopes"))
    leaving(place, name)
    (new,) = until(
        lambda: [one["metadata"]["name"] for one in place.pods("web") if one["metadata"]["name"] != name],
        "it is replaced",
    )
    (another,) = place.nodes(1, prefix="-more", cpu="4")
    assert place.bound(new, HANG_SECONDS) == another
    assert place.node_of(name) == node


# -- pods that run -----------------------------------------------------------------------------------------------------


@scene
def test_a_pod_that_grows_in_place_takes_its_room(place: Place) -> None:
    (node,) = place.nodes(1, cpu="1")
    place.create("pods", of("high", "grows", "100m"))
    place.ready("grows")
    (container,) = place.pod("grows")["spec"]["containers"]
    # As a kubelet says that it can resize; KWOK does not.
    told = {"name": container["name"], "resources": container["resources"]}
    path = f"{place.kinds_path('pods')}/grows"
    place.api.patch(f"{path}/status", {"status": {"containerStatuses": [told]}}, STRATEGIC)
    sizes = {"requests": {"cpu": "800m"}}
    body = {"spec": {"containers": [{"name": container["name"], "resources": sizes}]}}
    place.api.patch(f"{path}/resize", body, STRATEGIC)  # the scheduler hears of pods in the order of their changes
    place.create("pods", of("high", "comes", "500m"))
    place.waits("comes", r"\b1 Insufficient cpu\b")
    place.delete("pods", "grows", 0)
    assert place.bound("comes") == node


@scene
def test_a_running_pod_that_is_relabelled_is_another_neighbour(place: Place) -> None:
    (node,) = place.nodes(1, cpu="4")
    place.create("pods", of("high", "first", "100m"))
    place.ready("first")
    place.patch("pods", "first", {"metadata": {"labels": {"app": "shy"}}})  # heard of before the next pod
    term = {"labelSelector": {"matchLabels": {"app": "shy"}}, "topologyKey": HOSTNAME}
    place.create("pods", of("high", "second", "100m", affinity={"podAntiAffinity": {REQUIRED: [term]}}))
    place.waits("second", r"anti-affinity|app=shy|near")
    place.patch("pods", "first", {"metadata": {"labels": {"app": None}}})
    assert place.bound("second") == node


# -- others ------------------------------------------------------------------------------------------------------------


@scene
def test_pods_on_nodes_that_are_not_ours_are_neighbours(place: Place) -> None:
    near, far = place.nodes(2, cpu="2")
    (theirs,) = place.nodes(1, prefix="-theirs", cpu="2", managed=False)
    for node, zone in ((near, "a"), (far, "b"), (theirs, "a")):
        place.kubectl.ok("label", "node", node, f"{ZONE}={zone}")
    place.create("pods", pod("database", labels={"app": "database"}, schedulerName="somebody-else"))
    bind(place.api, place.namespace, "database", theirs)
    place.ready("database")
    place.heard()  # of the labels
    term = {"labelSelector": {"matchLabels": {"app": "database"}}, "topologyKey": ZONE}
    place.create("pods", of("high", "away", "100m", affinity={"podAntiAffinity": {REQUIRED: [term]}}))
    place.create("pods", of("high", "beside", "100m", affinity={"podAffinity": {REQUIRED: [term]}}))
    assert place.bound("away") == far
    assert place.bound("beside") == near


@scene
def test_spread_asks_nothing_of_zones_without_nodes_of_ours(place: Place) -> None:
    ours = place.nodes(2, cpu="2")
    (theirs,) = place.nodes(1, prefix="-theirs", cpu="2", managed=False)
    for node, zone in ((ours[0], "a"), (ours[1], "b"), (theirs, "c")):
        place.kubectl.ok("label", "node", node, f"{ZONE}={zone}")
    place.heard()  # of the labels
    labels = {CLASS: "high", "app": "web"}
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "web"}}}  # fmt: skip
    place.create("deployments", deployment("web", 4, labels=labels, topologySpreadConstraints=[spread]))
    nodes = sorted(one["spec"]["nodeName"] for one in place.ready("web", 4))
    assert nodes == sorted([*ours, *ours])


@scene
def test_the_ledger_of_an_owner_that_nobody_watches_ends_with_it(place: Place) -> None:
    place.nodes(1, cpu="2")
    maps = f"/api/v1/namespaces/{place.namespace}/configmaps"
    owner = place.api.post(maps, {"metadata": {"name": "custom"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "custom", "uid": owner["metadata"]["uid"]}
    body = of("custom", "piece", "100m")
    body["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    place.create("pods", body)
    place.ready("piece")
    ledger = Target("v1", "ConfigMap", place.namespace, "custom", owner["metadata"]["uid"]).ledger
    assert ledger.startswith("configmap-custom-"), "of other groups there may be one of that kind and name"
    place.status(ledger, lambda status: status["running"] == 1, "it has one")
    assert controllers(place, "custom") == 1
    place.api.delete(f"{maps}/custom?propagationPolicy=Background")
    until(lambda: place.get("pods", "piece") is None, "the garbage collector removed the pod")
    until(lambda: place.ledger(ledger) is None, "and the ledger")
    until(lambda: controllers(place, "custom") == 0, "the scheduler knows it no more")


def controllers(place: Place, service: str) -> float:
    """How many controllers of a class the scheduler knows."""
    with urllib.request.urlopen(f"http://127.0.0.1:{place.scheduler.port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    counts = [line for line in lines if line.startswith("slacktide_controllers{") and f'class="{service}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in counts)


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)
