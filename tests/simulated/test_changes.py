"""What changes after a decision, or of pods that run: nodes, victims, sizes, labels, owners, other schedulers' pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.labtools import deployment, pod
from simulated.crowding import HEARD_SECONDS
from simulated.pod_model import bind
from simulated.resources import BY_NAME, Json, Target
from simulated.stage import Stage, service_class, staged
from slacktide.kube.housekeeping import ASK_AGAIN
from slacktide.kube.translate.owners import Target as Owner

CLASS, HOSTNAME, ZONE = "slacktide.io/class", "kubernetes.io/hostname", "zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GRACE, PATIENCE, VACANCY = 100, 20.0, 2.0
"""Seconds: what a victim takes that the scene lets go itself, what victims may take beyond that, and after which an
instance that nobody is there for is retired."""


@pytest.fixture
def place() -> Iterator[Stage]:
    classes = [
        service_class("high", 0.999, 1),
        service_class("low", 0.05, 3, marginSeconds=0.5, overheadLimit=1.0, default=True),
        service_class("custom", 0.5, 2),
    ]
    with staged(classes, qos__alpha=0.1, scheduler__watchdog=90, policy__patience=3600.0,
                kube__victim_patience=PATIENCE, kube__vacancy=VACANCY) as stage:  # fmt: skip
        yield stage


def of(service: str, name: str, cpu: str = "1500m", **settings: Any) -> Json:
    return pod(name, cpu=cpu, labels={CLASS: service, **settings.pop("labels", {})}, **settings)


def soon(place: Stage, name: str) -> str:
    """The node of a pod that is bound because of what has just happened: no watchdog looks so soon."""
    began = place.now
    node = place.bound(name)
    assert place.now - began <= 10 * HEARD_SECONDS
    return node


def stranger(place: Stage, node: str, **labels: str) -> None:
    """Another scheduler has put a pod on a node."""
    place.create("pods", pod("stranger", labels=labels, schedulerName="somebody-else"))
    target = Target(BY_NAME["pods"], place.namespace, "stranger", "binding")
    bind(place.world.store, target, {"target": {"name": node}})
    place.wait(HEARD_SECONDS)


def in_zones(place: Stage, **zones: str) -> None:
    for node, zone in zones.items():
        place.patch("nodes", node.replace("_", "-"), {"metadata": {"labels": {ZONE: zone}}})
    place.wait(HEARD_SECONDS)


# -- after the decision ------------------------------------------------------------------------------------------------


def test_nobody_is_bound_to_a_node_that_was_cordoned_meanwhile(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="2")
    place.create("pods", of("low", "victim", terminationGracePeriodSeconds=GRACE))
    place.ready("victim")
    place.create("pods", of("high", "other"))
    place.until(lambda: place.life("victim").evicted is not None, "the victim is told to go")
    place.cordon(node)
    place.wait(HEARD_SECONDS)
    place.delete("pods", "victim", 0)
    words = f"withdrawn: node {node} is no longer schedulable"
    place.until(lambda: any(words in note for note in place.events("FailedScheduling", "other")), "an event says so")
    place.wait(60.0)
    assert place.node_of("other") == ""
    place.cordon(node, False)
    assert soon(place, "other") == node


def test_a_replacement_does_not_wait_for_one_that_never_goes(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="2")
    place.create("deployments", deployment("web", 1, cpu="1500m", labels={CLASS: "low"}))
    (victim,) = place.ready("web", 1)
    place.patch("pods", victim, {"metadata": {"finalizers": ["example.com/stuck"]}})
    place.wait(10.0)
    place.create("pods", of("high", "hopes"))
    place.until(lambda: place.names("web") and place.names("web") != [victim], "it is told to go, and replaced")
    (new,) = place.names("web")
    assert place.node_of(new) == ""
    (another,) = place.nodes(1, prefix="more", cpu="4")
    assert place.bound(new) == another
    told = place.life(victim).told
    assert told is not None
    assert place.now <= told + 2 * PATIENCE
    assert place.node_of(victim) == node


# -- pods that run -----------------------------------------------------------------------------------------------------


def test_a_pod_that_grows_in_place_takes_its_room(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="1")
    place.create("pods", of("high", "grows", "100m"))
    place.ready("grows")
    # As a kubelet says that it can resize.
    given = {"cpu": "100m", "memory": "64Mi"}
    told = {"name": "main", "ready": True, "resources": {"requests": given}, "allocatedResources": given}
    place.patch("pods", "grows", {"status": {"containerStatuses": [told]}}, sub="status")
    asked = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "800m"}}}]}}
    place.patch("pods", "grows", asked, sub="resize")  # the scheduler hears of pods in the order of their changes
    place.create("pods", of("high", "comes", "500m"))
    place.waits("comes", r"\b1 Insufficient cpu\b")
    place.delete("pods", "grows", 0)
    assert soon(place, "comes") == node


def test_a_running_pod_that_is_relabelled_is_another_neighbour(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="4")
    place.create("pods", of("high", "first", "100m"))
    place.ready("first")
    place.patch("pods", "first", {"metadata": {"labels": {"app": "shy"}}})  # heard of before the next pod
    term = {"labelSelector": {"matchLabels": {"app": "shy"}}, "topologyKey": HOSTNAME}
    place.create("pods", of("high", "second", "100m", affinity={"podAntiAffinity": {REQUIRED: [term]}}))
    place.waits("second", r"anti-affinity|app=shy|near")
    place.patch("pods", "first", {"metadata": {"labels": {"app": None}}})
    assert soon(place, "second") == node


# -- others ------------------------------------------------------------------------------------------------------------


def test_pods_on_nodes_that_are_not_ours_are_neighbours(place: Stage) -> None:
    place.nodes(2, cpu="2")
    place.nodes(1, prefix="theirs", cpu="2", managed=False)
    in_zones(place, node_0="a", node_1="b", theirs_0="a")
    stranger(place, "theirs-0", app="database")
    term = {"labelSelector": {"matchLabels": {"app": "database"}}, "topologyKey": ZONE}
    place.create("pods", of("high", "away", "100m", affinity={"podAntiAffinity": {REQUIRED: [term]}}))
    place.create("pods", of("high", "beside", "100m", affinity={"podAffinity": {REQUIRED: [term]}}))
    assert (place.bound("away"), place.bound("beside")) == ("node-1", "node-0")


def test_spread_asks_nothing_of_zones_without_nodes_of_ours(place: Stage) -> None:
    ours = place.nodes(2, cpu="2")
    place.nodes(1, prefix="theirs", cpu="2", managed=False)
    in_zones(place, node_0="a", node_1="b", theirs_0="c")
    labels = {CLASS: "high", "app": "web"}
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "web"}}}  # fmt: skip
    place.create("deployments", deployment("web", 4, labels=labels, topologySpreadConstraints=[spread]))
    names = place.ready("web", 4)
    assert sorted(place.node_of(name) for name in names) == sorted([*ours, *ours])


def test_the_ledger_of_an_owner_that_nobody_watches_ends_with_it(place: Stage) -> None:
    place.nodes(1, cpu="2")
    owner = place.create("configmaps", {"metadata": {"name": "custom"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "custom", "uid": owner["metadata"]["uid"]}
    body = of("custom", "piece", "100m")
    body["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    place.create("pods", body)
    place.ready("piece")
    ledger = Owner("v1", "ConfigMap", place.namespace, "custom", owner["metadata"]["uid"]).ledger
    assert ledger.startswith("configmap-custom-"), "of other groups there may be one of that kind and name"
    place.status(ledger, lambda status: status["running"] == 1, "it has one")
    assert controllers(place) == 1
    place.delete("configmaps", "custom")
    place.until(lambda: place.get("pods", "piece") is None, "the garbage collector removed the pod")
    place.wait((ASK_AGAIN + 2) * VACANCY)  # its ledger is asked for so seldom
    assert place.ledger(ledger) is None, "and the ledger, also one that was written once more"
    assert controllers(place) == 0, "the scheduler knows it no more"


def controllers(place: Stage) -> float:
    """How many controllers of the class the scheduler knows."""
    found = place.metrics("slacktide_controllers")
    return sum(count for labels, count in found.items() if 'class="custom"' in labels)
