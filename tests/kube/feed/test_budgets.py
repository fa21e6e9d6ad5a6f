"""A PodDisruptionBudget protects its pods as the API server will: those that are not ready only where it says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slacktide.engine.core.engine import Engine
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import POD, POD_DISRUPTION_BUDGET, ServiceClass, ServiceClassSpec
from slacktide.settings import load_live
from support import made_objects

NOW = 1_790_000_000.0
OWNER = {"apiVersion": "example.com/v1", "kind": "Workers", "name": "web", "uid": "web", "controller": True}
HEALTHY: dict[str, Any] = {"currentHealthy": 2, "desiredHealthy": 2}
SHORT: dict[str, Any] = {"currentHealthy": 1, "desiredHealthy": 2}


class Heard(FeedListener):
    """Counts calls for a pass."""

    def __init__(self) -> None:
        self.calls = 0

    def work(self) -> None:
        self.calls += 1


class Scene:
    """The only scheduler of a cluster of one node, which two bronze pods of a budget fill that lets none of them go."""

    def __init__(self, policy: str = "", **status: Any) -> None:
        live = load_live()
        self.config = replace(live, kube=replace(live.kube, scheduler_name="default-scheduler", all_nodes=True))
        self.now, self.heard = NOW, Heard()
        self.mirror = ClusterMirror(self.config, lambda: self.now)
        self.feed, self.engine = self.lead()
        self.mirror.follow(self.feed)
        for name, slo, rank in (("gold", 0.99, 1), ("bronze", 0.5, 3)):
            self.mirror.on_class_update(ServiceClass(Metadata(name), ServiceClassSpec(slo, rank, namespaces=("*",))))
        self.mirror.on_node_update(made_objects.node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}))
        self.on_budget_update(policy, **status)

    def lead(self) -> tuple[LiveFeed, Engine]:
        engine = Engine(self.config)
        feed = LiveFeed(self.mirror, engine, self.heard, lambda: self.now, lambda: 0.0)
        take_over(feed, {}, lambda _decision, _victims: None)
        return feed, engine

    def on_budget_update(self, policy: str = "", name: str = "web", **status: Any) -> None:
        spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
        spec |= {"unhealthyPodEvictionPolicy": policy} if policy else {}
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": status}
        self.mirror.on_budget_update(made_objects.decoded(POD_DISRUPTION_BUDGET, body))

    def see(self, name: str, service: str = "bronze", node: str = "a", *, ready: bool = True, phase: str = "Running",
            cpu: str = "2") -> None:  # fmt: skip
        labels = {"slacktide.io/class": service, "app": "web" if service == "bronze" else "other"}
        metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels, "ownerReferences": [OWNER]}
        spec = {"schedulerName": "default-scheduler", "nodeName": node,
                "containers": [made_objects.container(cpu=cpu)]}  # fmt: skip
        status = {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]} if node else {}
        if service == "gold":
            metadata["ownerReferences"] = [{**OWNER, "name": "gold", "uid": "gold"}]
        self.mirror.on_pod_update(made_objects.decoded(POD, {"metadata": metadata, "spec": spec, "status": status}))

    def victims(self) -> set[str]:
        """Who goes an hour later, when a gold pod comes that needs all of the node."""
        self.now += 3600.0
        self.see("gold", "gold", "", cpu="4")
        return {victim.uid for one in self.engine.run(self.now).decisions for victim in one.victims}


@pytest.mark.parametrize(
    ("policy", "status", "ready", "phase", "goes"),
    [
        ("AlwaysAllow", SHORT, False, "Running", True),
        ("AlwaysAllow", SHORT, True, "Running", False),
        ("IfHealthyBudget", SHORT, False, "Running", False),
        ("IfHealthyBudget", HEALTHY, False, "Running", True),
        ("IfHealthyBudget", HEALTHY, True, "Running", False),
        ("", HEALTHY, False, "Running", True),
        ("", SHORT, False, "Running", False),
        ("", {}, False, "Running", False),
        ("", SHORT, False, "Pending", True),
        ("SomethingNew", SHORT, False, "Running", False),
    ],
)
def test_who_is_not_ready_goes_where_the_budget_lets_it(
    policy: str, status: dict[str, Any], ready: bool, phase: str, goes: bool
) -> None:
    scene = Scene(policy, **status)
    for name in ("one", "two"):
        scene.see(name, ready=ready, phase=phase)
    assert scene.victims() == ({"one", "two"} if goes else set())


def test_who_is_ready_again_is_protected_again_and_who_ceases_to_be_is_not() -> None:
    scene = Scene("AlwaysAllow", **SHORT)
    for name in ("one", "two"):
        scene.see(name, phase="Pending", ready=False)
        scene.see(name)
    assert scene.victims() == set()
    calls = scene.heard.calls
    for name in ("one", "two"):
        scene.see(name, ready=False)
    assert scene.heard.calls > calls  # who waits has its turn at once
    scene.see("one")
    assert scene.victims() == set()
    scene.see("one", ready=False)
    assert scene.victims() == {"one", "two"}


def test_a_budget_that_gets_healthy_or_another_policy_lets_them_go() -> None:
    for policy, status in (("", HEALTHY), ("AlwaysAllow", SHORT)):
        scene = Scene(**SHORT)
        for name in ("one", "two"):
            scene.see(name, ready=False)
        assert scene.victims() == set()
        scene.on_budget_update(policy, **status)
        assert scene.victims() == {"one", "two"}
        scene.on_budget_update(**SHORT)
        assert {scene.feed.pods[name].budget for name in ("one", "two")} == {"default/web"}


def test_of_two_budgets_neither_lets_anybody_go() -> None:
    scene = Scene("AlwaysAllow", **HEALTHY)
    scene.on_budget_update("AlwaysAllow", "another", **HEALTHY)
    for name in ("one", "two"):
        scene.see(name, ready=False)
    assert scene.victims() == set()


def test_a_new_leader_knows_the_same() -> None:
    scene = Scene("AlwaysAllow", **SHORT)
    scene.see("one", ready=False)
    scene.see("two")
    feed, _ = scene.lead()
    assert {name: feed.pods[name].budget for name in ("one", "two")} == {"one": "", "two": "default/web"}


def test_what_the_api_server_refuses_is_not_asked_for_again_until_something_new_is_heard() -> None:
    """It may know already that the pod is ready, or that its budget is short."""
    scene = Scene("AlwaysAllow", **SHORT)
    for name in ("one", "two"):
        scene.see(name, ready=False)
    scene.feed.overdrawn(scene.feed.pods["one"])
    assert scene.victims() == set()
    scene.see("one", ready=False)
    assert scene.victims() == {"one", "two"}
