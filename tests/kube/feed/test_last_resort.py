"""Who goes before disruption budgets and limits of less important pods, where nobody else makes room."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.custom_resources import DisruptionsSpec
from slacktide.kube.resources.objects import POD, POD_DISRUPTION_BUDGET, ServiceClass, ServiceClassSpec
from slacktide.settings import load_live
from support import made_objects

NOW = 1_790_000_000.0
CRITICAL: dict[str, Any] = {"priority": 2_000_000_000, "priorityClassName": "system-cluster-critical"}
Setting = Literal["hard", "last-resort", "best-effort"]


class Scene:
    """The only scheduler of a cluster; gold goes before budgets, if it may, silver does not."""

    def __init__(self, setting: Setting = "last-resort", before: bool = True) -> None:
        live = load_live()
        kube = replace(live.kube, scheduler_name="default-scheduler", all_nodes=True, disruption_budgets=setting)
        kube = replace(kube, critical_namespaces="*")
        self.config = replace(live, kube=kube)
        self.now = NOW
        self.mirror = ClusterMirror(self.config, lambda: self.now)
        self.engine = Engine(self.config)
        self.feed = LiveFeed(self.mirror, self.engine, FeedListener(), lambda: self.now, lambda: 0.0)
        take_over(self.feed, {}, lambda _decision, _victims: None)
        self.mirror.follow(self.feed)
        specs = {
            "gold": ServiceClassSpec(0.99, 1, namespaces=("*",), before_budgets=before),
            "silver": ServiceClassSpec(0.99, 2, namespaces=("*",)),
            "bronze": ServiceClassSpec(0.5, 3, namespaces=("*",)),
            "rare": ServiceClassSpec(0.5, 3, namespaces=("*",), disruptions=DisruptionsSpec(0, "1h")),
        }
        for name, spec in specs.items():
            self.mirror.on_class_update(ServiceClass(Metadata(name), spec))

    def node(self, name: str) -> None:
        self.mirror.on_node_update(made_objects.node(name, allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}))

    def budget(self, app: str) -> None:
        """One that lets nobody go."""
        spec = {"selector": {"matchLabels": {"app": app}}}
        body = {"metadata": {"name": app, "namespace": "default"}, "spec": spec, "status": {"disruptionsAllowed": 0}}
        self.mirror.on_budget_update(made_objects.decoded(POD_DISRUPTION_BUDGET, body))

    def see(self, name: str, service: str, node: str = "", app: str = "", cpu: str = "2", **spec: Any) -> None:
        owner = {"apiVersion": "example.com/v1", "kind": "Workers", "name": name, "uid": f"{name}s", "controller": True}
        labels = {"app": app} | ({"slacktide.io/class": service} if service else {})
        metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels, "ownerReferences": [owner]}
        body = {"schedulerName": "default-scheduler", "nodeName": node, **spec}
        body["containers"] = [made_objects.container(cpu=cpu)]
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]} if node else {}
        self.mirror.on_pod_update(made_objects.decoded(POD, {"metadata": metadata, "spec": body, "status": status}))

    def decided(self, seconds: float = 3600.0) -> list[Decision]:
        """What a pass decides so many seconds later."""
        self.now += seconds
        return list(self.engine.run(self.now).decisions)


def victims(found: list[Decision]) -> dict[str, set[str]]:
    return {one.uid: {victim.uid for victim in one.victims} for one in found}


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("setting", "before", "goes"),
    [("last-resort", True, True), ("last-resort", False, False), ("hard", True, False), ("best-effort", False, True)],
)
def test_at_last_it_goes_before_the_budgets_of_the_less_important(setting: Setting, before: bool, goes: bool) -> None:
    scene = Scene(setting, before)
    scene.node("a")
    scene.budget("web")
    for name in ("one", "two"):
        scene.see(name, "bronze", "a", "web")
    assert scene.decided() == []
    scene.see("gold", "gold", cpu="3")
    found = scene.decided(60.0)
    assert victims(found) == ({"gold": {"one", "two"}} if goes else {})
    assert [one.beyond for one in found] == ([setting == "last-resort"] if goes else [])


def test_who_is_not_protected_goes_first_on_whichever_node() -> None:
    scene = Scene()
    for name in ("a", "b"):
        scene.node(name)
    scene.budget("web")
    scene.see("guarded", "bronze", "a", "web", "4")
    for number in range(2):  # which is more, and so costs more
        scene.see(f"free-{number}", "bronze", "b")
    scene.decided()
    scene.see("gold", "gold", cpu="4")
    (first,) = scene.decided(60.0)
    assert (victims([first]), first.beyond) == ({"gold": {"free-0", "free-1"}}, False)
    scene.see("gold-2", "gold", cpu="4")
    (second,) = scene.decided(60.0)
    assert (victims([second]), second.beyond) == ({"gold-2": {"guarded"}}, True)


def test_it_goes_before_no_budget_of_an_equal_and_no_limit() -> None:
    scene = Scene()
    for name in ("a", "b"):
        scene.node(name)
    scene.budget("web")
    scene.see("equal", "gold", "a", "web", "4")
    scene.see("limited", "rare", "b", cpu="4")
    scene.decided()
    scene.see("gold", "gold", cpu="4")
    assert scene.decided(60.0) == []


@pytest.mark.parametrize("first", ["gold", "silver"])
def test_others_of_the_same_pass_go_by_the_budgets(first: str) -> None:
    """Whoever comes before one that does not, or after it; in this pass or the next."""
    scene = Scene()
    for name in ("a", "b"):
        scene.node(name)
    scene.budget("web")
    for node in ("a", "b"):
        scene.see(f"on-{node}", "bronze", node, "web", "4")
    scene.decided()
    for name in (first, *({"gold", "silver"} - {first})):
        scene.see(name, name, cpu="4")
    (decision,) = scene.decided(60.0)
    assert (decision.uid, decision.beyond) == ("gold", True)
    assert scene.decided(60.0) == []
    assert scene.engine.waiting() == ["silver"]


@pytest.mark.parametrize(("setting", "budgets"), [("hard", False), ("last-resort", True)])
def test_critical_pods_go_before_limits_and_where_the_scheduler_may_before_budgets(
    setting: Setting, budgets: bool
) -> None:
    scene = Scene(setting)
    scene.node("a")
    scene.see("limited", "rare", "a", cpu="4")
    scene.decided()
    scene.see("dns", "", cpu="4", **CRITICAL)
    (decision,) = scene.decided(1.0)
    assert (victims([decision]), decision.beyond) == ({"dns": {"limited"}}, False)
    scene.node("b")
    scene.budget("web")
    scene.see("guarded", "gold", "b", "web", "4")
    scene.decided()
    scene.see("dns-2", "", cpu="4", **CRITICAL)
    assert victims(scene.decided(1.0)) == ({"dns-2": {"guarded"}} if budgets else {})


def test_one_that_can_still_wait_goes_before_nothing() -> None:
    scene = Scene()
    scene.node("a")
    scene.budget("web")
    scene.see("runs", "bronze", "a", "web", "4")
    scene.decided()
    scene.see("meek", "gold", cpu="4", preemptionPolicy="Never")
    assert scene.decided(60.0) == []
