"""Pods that name no class have one by default and are told apart by their priority; those of the system stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from slacktide.config import Config
from slacktide.engine.core.engine import Engine
from slacktide.engine.explain import preemption
from slacktide.engine.explain.reasons import Explainer
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import subscriptions
from slacktide.kube.resources import objects
from slacktide.kube.resources.objects import POD, ServiceClass, ServiceClassSpec
from slacktide.kube.resources.workloads import Template, TemplateMetadata, TemplateSpec
from slacktide.model import APPROACHES, INDEPENDENT
from slacktide.settings import load_live
from support import made_objects

NOW = 1_790_000_000.0
LATER = NOW + 3600.0
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent", "controller": True}
WORKERS = {"apiVersion": "example.com/v1", "kind": "Workers", "name": "dns", "uid": "owner", "controller": True}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "a", "controller": True}
MIRROR = {"kubernetes.io/config.mirror": "hash"}
CRITICAL: dict[str, Any] = {"priority": 2_000_000_000, "priorityClassName": "system-cluster-critical"}


class Scene:
    """The only scheduler of a cluster: a node of four cores, a default class, and a class that workloads may name."""

    def __init__(self, **kube: Any) -> None:
        live = load_live()
        kube = {"scheduler_name": "default-scheduler", "all_nodes": True, **kube}
        config: Config = replace(live, kube=replace(live.kube, **kube))
        self.now = NOW
        self.mirror = ClusterMirror(config, lambda: self.now)
        self.engine = Engine(config)
        self.feed = LiveFeed(self.mirror, self.engine, FeedListener(), lambda: self.now, lambda: 0.0)
        self.mirror.follow(self.feed)
        self.mirror.on_class_update(
            ServiceClass(Metadata("plain"), ServiceClassSpec(0.5, 3, default=True, namespaces=("*",)))
        )
        self.mirror.on_class_update(ServiceClass(Metadata("gold"), ServiceClassSpec(0.99, 1, namespaces=("*",))))
        self.mirror.on_node_update(made_objects.node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}))

    def see(
        self,
        name: str,
        node: str = "",
        *,
        owner: Mapping[str, Any] | None = None,
        annotations: Mapping[str, str] | None = None,
        service: str = "",
        scheduler: str = "default-scheduler",
        **spec: Any,
    ) -> None:
        labels = {"slacktide.io/class": service} if service else {}
        metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": name, "labels": labels}
        metadata |= {"annotations": annotations or {}, "ownerReferences": [owner] if owner else []}
        containers = [made_objects.container(cpu="3")]
        body = {"schedulerName": scheduler, "nodeName": node, "containers": containers, **spec}
        self.mirror.on_pod_update(
            made_objects.decoded(POD, {"metadata": metadata, "spec": body, "status": READY if node else {}})
        )

    def preempted(self) -> list[str]:
        """Who has to go in a pass an hour later."""
        self.now = LATER
        return [victim.uid for one in self.engine.run(LATER).decisions for victim in one.victims]


@pytest.mark.parametrize(
    ("theirs", "ours", "goes"),
    [(1000, 0, False), (0, 0, False), (0, 1000, True), (-10, 0, True), (0, -10, False), (None, None, False)],
)
def test_of_pods_without_a_class_the_priority_decides_who_preempts_whom(
    theirs: int | None, ours: int | None, goes: bool
) -> None:
    """They have no owner, so that equals make no room for each other: who goes is gone for good."""
    scene = Scene()
    scene.see("runs", "a", priority=theirs)
    scene.now = LATER
    scene.see("comes", priority=ours)
    assert scene.preempted() == (["runs"] if goes else [])


def test_a_pod_without_an_owner_is_one_that_nobody_makes_again() -> None:
    scene = Scene()
    scene.see("alone", "a")
    scene.see("owned", owner={**DAEMON_SET, "apiVersion": "example.com/v1", "kind": "Workers"})
    assert {uid: scene.engine.specs[one.spec].bare for uid, one in scene.engine.pods.items()} == {
        "alone": True, "owned": False,
    }  # fmt: skip


@pytest.mark.parametrize("approach", ["concurrent", "aggregated"])
def test_a_bare_pod_is_measured_by_itself_whatever_its_class_says(approach: str) -> None:
    scene = Scene()
    spec = ServiceClassSpec(0.5, 1, namespaces=("*",), approach=approach)
    scene.mirror.on_class_update(ServiceClass(Metadata("together"), spec))
    scene.see("alone", "a", service="together")
    scene.see("owned", owner={**WORKERS, "uid": "owned"}, service="together")
    found = {uid: scene.engine.controllers[scene.engine.pods[uid].key].approach for uid in ("alone", "owned")}
    assert found == {"alone": INDEPENDENT, "owned": APPROACHES.index(approach)}


def test_the_larger_priority_has_its_turn_first() -> None:
    scene = Scene()
    scene.see("early", priority=0)
    scene.see("late", priority=1000)
    assert [one.uid for one in scene.engine.run(NOW + 1.0).decisions] == ["late"]


def test_a_larger_priority_preempts_one_that_is_short_itself() -> None:
    scene = Scene()
    scene.see("runs", "a", priority=0)
    scene.see("comes", priority=1000)
    assert [v.uid for one in scene.engine.run(NOW + 60.0).decisions for v in one.victims] == ["runs"]


def test_who_names_a_class_goes_by_its_promise_alone() -> None:
    scene = Scene()
    scene.see("runs", "a", priority=1000, service="gold", owner={**WORKERS, "uid": "runs"})
    scene.now = LATER
    scene.see("comes", priority=0, service="gold")
    assert scene.engine.controllers[scene.engine.pods["runs"].key].service.priority == 0
    assert scene.preempted() == ["runs"]


def test_a_bare_pod_is_lost_with_its_promise_so_that_no_equal_takes_its_place() -> None:
    """However much slack it has, and whether a plan is in force or not."""
    scene = Scene(critical_namespaces="*")
    scene.see("runs", "a", service="gold")
    scene.now = LATER
    scene.see("comes", service="gold")
    assert scene.preempted() == []
    reason = Explainer(scene.engine).reason("comes", LATER)
    assert f"1 {preemption.FOR_GOOD}" in reason
    scene.see("vital", priority=CRITICAL["priority"])
    assert scene.preempted() == ["runs"]


@pytest.mark.parametrize(
    "victim",
    [
        {"owner": NODE, "annotations": MIRROR},
        {"owner": DAEMON_SET},
        {"owner": DAEMON_SET, "service": "plain"},
        CRITICAL,
        {**CRITICAL, "service": "plain"},
        {"scheduler": "somebody-else"},
    ],
    ids=["static", "daemon", "daemon-with-a-class", "critical", "critical-with-a-class", "stranger"],
)
@pytest.mark.parametrize("setting", [False, True])
def test_pods_of_the_system_and_of_others_are_no_victims(victim: dict[str, Any], setting: bool) -> None:
    scene = Scene(preempt_system_pods=setting, critical_namespaces=None)
    scene.see("runs", "a", **victim)
    scene.now = LATER
    scene.see("comes", service="gold")
    foreign = "scheduler" in victim
    assert scene.preempted() == (["runs"] if setting and not foreign else [])
    if not setting:
        found = Explainer(scene.engine).explain("comes", LATER)
        assert found is not None
        assert dict(found.preemption) == {preemption.TOO_SMALL if foreign else preemption.GUARDED: 1}


def test_whether_a_pod_is_spared_follows_its_spec() -> None:
    scene = Scene()
    scene.see("runs", "a")
    scene.now = LATER
    spec = scene.engine.specs[scene.feed.pods["runs"].spec]
    for number, spared in ((100, True), (101, False)):
        scene.engine.spec(number, replace(spec, spared=spared))
        scene.engine.respec("runs", number)
        if spared:
            scene.see("comes", service="gold")
            assert scene.preempted() == []
    assert scene.preempted() == ["runs"]


def test_a_pod_of_the_system_preempts_others() -> None:
    scene = Scene(critical_namespaces="*")
    scene.see("runs", "a", priority=0)
    scene.now = LATER
    scene.see("comes", **CRITICAL)
    assert scene.preempted() == ["runs"]


@pytest.mark.parametrize("policy", ["Never", "PreemptLowerPriority"])
def test_preemption_policy_counts(policy: str) -> None:
    scene = Scene()
    scene.see("runs", "a", priority=0)
    scene.now = LATER
    scene.see("comes", priority=1000, preemptionPolicy=policy)
    assert scene.preempted() == ([] if policy == "Never" else ["runs"])


DNS: dict[str, Any] = {**CRITICAL, "owner": WORKERS}


def best(name: str) -> ServiceClass:
    return ServiceClass(Metadata(name), ServiceClassSpec(1.0, 1, margin_seconds=1e6, namespaces=("*",)))


@pytest.mark.parametrize("late", [0.0, 60.0, 7200.0])
def test_a_critical_pod_that_names_no_class_goes_before_every_promise(late: float) -> None:
    """DNS is not to wait behind the best class, whatever that has lost, nor for its own slack to run out."""
    scene = Scene(critical_namespaces="*")
    scene.mirror.on_class_update(best("best"))
    scene.see("runs", "a", service="best")
    scene.now = LATER
    scene.see("waits", service="best")
    scene.now = at = LATER + late
    scene.see("dns", **DNS)
    (decision,) = scene.engine.run(at + 1.0).decisions
    assert (decision.uid, [victim.uid for victim in decision.victims]) == ("dns", ["runs"])


def test_no_class_need_exist_for_a_critical_pod() -> None:
    scene = Scene(critical_namespaces="*")
    for name in ("plain", "gold"):
        scene.mirror.on_class_delete(name)
    scene.see("dns", **DNS)
    scene.see("waits")
    assert [one.uid for one in scene.engine.run(NOW + 1.0).decisions] == ["dns"]
    assert scene.engine.controllers[scene.engine.pods["dns"].key].service.name == "system:critical"


@pytest.mark.parametrize(
    ("kube", "said"),
    [
        ({"critical_namespaces": None}, {}),
        ({"critical_namespaces": "kube-system, infra"}, {}),
        ({}, {}),
        ({"critical_namespaces": "*"}, {"service": "plain"}),
        ({"critical_namespaces": "*"}, {"annotations": {"slacktide.io/slo": "0.4"}}),
        ({"critical_namespaces": "*", "priority_classes": "system-cluster-critical=plain"}, {}),
    ],
    ids=["off", "elsewhere", "by default", "label", "slo", "mapped"],
)
def test_who_is_not_critical_goes_by_its_class(kube: dict[str, Any], said: dict[str, Any]) -> None:
    scene = Scene(**kube)
    scene.mirror.on_class_update(best("best"))
    scene.see("runs", "a", service="best")
    scene.now = LATER
    scene.see("dns", **DNS, **said)
    assert scene.preempted() == []
    assert scene.engine.controllers[scene.engine.pods["dns"].key].service.name.partition("@")[0] == "plain"


def test_the_critical_of_a_namespace_that_is_named_go_first() -> None:
    scene = Scene(critical_namespaces="kube-system,default")
    scene.mirror.on_class_update(best("best"))
    scene.see("runs", "a", service="best")
    scene.now = LATER
    scene.see("dns", **DNS)
    assert scene.preempted() == ["runs"]


def test_what_is_critical_for_a_node_goes_before_what_is_critical_for_the_cluster() -> None:
    scene = Scene(critical_namespaces="*")
    scene.see("dns", **DNS)
    scene.now = NOW + 5.0
    scene.see("proxy", priority=2_000_001_000, priorityClassName="system-node-critical")
    assert [one.uid for one in scene.engine.run(NOW + 10.0).decisions] == ["proxy"]


def test_the_template_of_a_critical_workload_says_so_while_it_has_no_pods() -> None:
    scene = Scene()
    template = Template(TemplateMetadata(), TemplateSpec("system-node-critical"))
    promised = scene.mirror.classes.of_template(template, "kube-system", batch=False)
    assert (promised.class_name, promised.service.priority) == ("system:critical", 2_000_001_000)
    assert scene.mirror.classes.remembered("system:critical", batch=False).class_name == "system:critical"
    assert not scene.mirror.classes.lost(promised.service, "kube-system")


def see_daemon_set(scene: Scene, wanted: int, service: str = "") -> None:
    """The DaemonSet of the pods, by the handler of its watch."""
    handler = dict(subscriptions(scene.mirror))[objects.DAEMON_SET]
    labels = {"slacktide.io/class": service} if service else {}
    body = {
        "metadata": {"name": "agent", "namespace": "default", "uid": "agent"},
        "spec": {"template": {"metadata": {"labels": labels}}},
        "status": {"desiredNumberScheduled": wanted},
    }
    handler.changed(made_objects.decoded(objects.DAEMON_SET, body))


@pytest.mark.parametrize("first", ["set", "pods"])
def test_a_daemon_set_may_be_a_service_as_any_other(first: str) -> None:
    scene = Scene(daemon_sets="services")
    if first == "set":
        see_daemon_set(scene, 2)
    scene.see("runs", "a", owner=DAEMON_SET)
    if first == "pods":
        see_daemon_set(scene, 2)
    (key,) = scene.engine.controllers
    assert scene.engine.controllers[key].desired == 2
    scene.now = LATER
    scene.see("comes", service="gold")
    assert scene.preempted() == ["runs"]
    see_daemon_set(scene, 1)
    assert scene.engine.controllers[key].desired == 1


@pytest.mark.parametrize(
    "spared", [{"owner": NODE, "annotations": MIRROR}, {"owner": DAEMON_SET, **CRITICAL}], ids=["static", "critical"]
)
def test_static_pods_and_critical_daemon_sets_are_no_victims_even_so(spared: dict[str, Any]) -> None:
    scene = Scene(daemon_sets="services", critical_namespaces=None)
    scene.see("runs", "a", **spared)
    scene.now = LATER
    scene.see("comes", service="gold")
    assert scene.preempted() == []


def test_daemon_sets_are_not_watched_unless_they_are_services() -> None:
    assert objects.DAEMON_SET not in dict(subscriptions(Scene().mirror))
