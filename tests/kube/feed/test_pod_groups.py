"""Pod groups of Kubernetes, of coscheduling and of Kueue: one rule for all of them, and reasons for those who wait."""

from __future__ import annotations

from typing import Any

import pytest

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import JoinGroup, PodGroup, PodGroupGone
from slacktide.engine.core.types import Decision
from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.fed_pod import ACTIVE, UNSCHEDULABLE, FedPod, FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import Lightening
from slacktide.kube.observe.dashboard import PodHistory, PodStory, text_of
from slacktide.kube.resources.objects import POD, PROMISE_QUOTA, Identity, ServiceClass, ServiceClassSpec
from slacktide.kube.resources.workloads import COSCHEDULING as COSCHEDULING_KIND
from slacktide.kube.resources.workloads import POD_GROUP, WORKLOAD
from slacktide.kube.translate.pod_groups import COSCHEDULING, KUBERNETES, SOURCES, WORKLOADS
from slacktide.settings import load_live
from support import made_objects

NOW = 1_790_000_000.0
TOTAL = "kueue.x-k8s.io/pod-group-total-count"


class Heard(FeedListener):
    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self.calls = 0

    def work(self) -> None:
        self.calls += 1

    def waits(self, pod: FedPod) -> None:
        self.reasons[pod.uid] = pod.problem


class Town:
    """A mirror with nodes of four cores, and a feed with an engine that follows it. All ways of grouping are known."""

    def __init__(self, *absent: str) -> None:
        self.config = load_live()
        self.mirror = ClusterMirror(self.config, lambda: NOW)
        self.mirror.on_class_update(ServiceClass(Metadata("gold"), ServiceClassSpec(0.9, 1, namespaces=("*",))))
        self.adopted: list[tuple[Decision, set[str]]] = []
        for source in SOURCES:
            (self.mirror.pod_groups.absent if source in absent else self.mirror.pod_groups.listed)(source)
        self.node("a")
        self.lead()

    def lead(self) -> None:
        """A new leader."""
        self.operations: list[Any] = []
        self.engine, self.heard = Engine(self.config, self.operations.append), Heard()
        self.feed = LiveFeed(self.mirror, self.engine, self.heard, lambda: NOW, lambda: 0.0)
        take_over(self.feed, {}, lambda decision, leaving: self.adopted.append((decision, leaving)))
        self.mirror._followers[:] = [self.feed]

    def node(self, name: str, cores: int = 4) -> None:
        labels = {"node-restriction.kubernetes.io/slacktide": "true"}
        amounts = {"cpu": str(cores), "memory": "8Gi", "pods": "9"}
        self.mirror.on_node_update(made_objects.node(name, labels=labels, allocatable=amounts))

    def group(self, source: str, name: str, **spec: Any) -> None:
        kinds: dict[str, Kind[Any]] = {
            KUBERNETES: POD_GROUP, WORKLOADS: WORKLOAD, COSCHEDULING: COSCHEDULING_KIND
        }  # fmt: skip
        body = {"metadata": {"name": name, "namespace": "shop"}, "spec": spec}
        self.mirror.pod_groups.see(source, made_objects.decoded(kinds[source], body))

    def gang(self, name: str = "g", least: int = 3, **more: Any) -> None:
        self.group(KUBERNETES, name, schedulingPolicy={"gang": {"minCount": least}}, **more)

    def pod(self, name: str, node: str = "", phase: str = "Pending", cpu: str = "1", **more: Any) -> None:
        """A pod of the group g in the way of Kubernetes 1.36, unless told otherwise."""
        labels = {"slacktide.io/class": "gold", **more.pop("labels", {})}
        metadata = {"name": name, "namespace": "shop", "uid": name, "labels": labels}
        metadata["annotations"] = more.pop("annotations", {})
        metadata |= {"deletionTimestamp": "2026-11-01T00:00:00Z"} if more.pop("goes", False) else {}
        spec: dict[str, Any] = {"schedulerName": "slacktide", "nodeName": node, "terminationGracePeriodSeconds": 1}
        spec |= {"containers": [made_objects.container(cpu=cpu)], "schedulingGroup": {"podGroupName": "g"}} | more
        status = {"phase": phase, "nominatedNodeName": spec.pop("nominated", "")}
        found = made_objects.decoded(POD, {"metadata": metadata, "spec": spec, "status": status})
        self.mirror.on_pod_update(Lightening()(found))

    def drop(self, name: str) -> None:
        self.mirror.on_pod_delete(Identity("shop", name, name, ""), None)

    def waiting(self) -> set[str]:
        """Who takes part in passes."""
        return set(self.engine.waiting())

    def decide(self) -> dict[str, str]:
        return {one.uid: one.host for one in self.engine.run(NOW + 1.0).decisions}

    def told(self) -> list[Any]:
        """What the engine was told of groups since this was last asked."""
        found = [one for one in self.operations if isinstance(one, PodGroup | PodGroupGone | JoinGroup)]
        self.operations.clear()
        return found


@pytest.fixture
def town() -> Town:
    return Town()


def test_pods_come_one_by_one_and_wait_for_the_least_number(town: Town) -> None:
    town.pod("p0")
    assert town.heard.reasons["p0"] == "pod group shop/g (podgroups.scheduling.k8s.io) does not exist"
    town.gang()
    short = "waiting for 3 pods of pod group shop/g (podgroups.scheduling.k8s.io) to be created"
    assert town.heard.reasons["p0"] == short
    town.pod("p1")
    assert (town.heard.reasons["p1"], town.feed.pods["p1"].queue) == (short, UNSCHEDULABLE)
    assert town.waiting() == set()
    assert "p0" not in town.engine.pods, "it takes nothing, a promise neither"
    town.pod("p2")
    assert town.waiting() == {"p0", "p1", "p2"}
    assert {one.queue for one in town.feed.pods.values()} == {ACTIVE}
    assert {one.group for one in town.engine.pods.values()} == {"shop/g (podgroups.scheduling.k8s.io)"}
    assert town.decide().keys() == {"p0", "p1", "p2"}
    story = PodStory(town.feed, PodHistory(lambda _uid: None), lambda: NOW).document("shop", "p1")
    assert story is not None
    assert "has a node, a, and will be bound together with other pods of pod group shop/g" in text_of(story)
    town.pod("p3")
    assert town.decide().keys() == {"p3"}, "a group that grows later"


def test_one_that_has_its_place_taken_away_waits_with_the_others(town: Town) -> None:
    town.gang()
    for name in ("p0", "p1", "p2"):
        town.pod(name)
    town.drop("p2")
    assert town.waiting() == set()
    assert "waiting for 3 pods" in town.heard.reasons["p0"]
    town.pod("p2", schedulingGates=[{"name": "wait"}])
    assert town.waiting() == set(), "a pod with gates cannot start, so the others wait for it"
    town.pod("p2", goes=True)
    assert town.waiting() == set()
    town.pod("p3")
    assert town.waiting() == {"p0", "p1", "p3"}


@pytest.mark.parametrize(
    ("source", "spec", "more"),
    [
        (KUBERNETES, {"schedulingPolicy": {"gang": {"minCount": 2}}}, {}),
        (
            WORKLOADS,
            {"podGroups": [{"name": "w", "policy": {"gang": {"minCount": 2}}}, {"name": "other"}]},
            {"schedulingGroup": None, "workloadRef": {"name": "g", "podGroup": "w"}},
        ),
        (COSCHEDULING, {"minMember": 2}, {"schedulingGroup": None, "labels": {"scheduling.x-k8s.io/pod-group": "g"}}),
        (
            "",
            {},
            {
                "schedulingGroup": None,
                "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
                "annotations": {TOTAL: "2", "example.com/a": "b"},
            },
        ),
    ],
    ids=["kubernetes-1.36", "kubernetes-1.35", "coscheduling", "kueue"],
)
def test_four_ways_of_saying_it_are_one_rule(source: str, spec: dict[str, Any], more: dict[str, Any]) -> None:
    town = Town()
    if source:
        town.group(source, "g", **spec)
    town.pod("p0", **more)
    assert town.waiting() == set()
    assert "waiting for 2 pods of pod group" in town.heard.reasons["p0"]
    town.pod("p1", **more)
    assert town.decide().keys() == {"p0", "p1"}
    if source:
        town.mirror.pod_groups.drop(source, "shop", "g")
        town.pod("p2", **more)
        assert town.heard.reasons["p2"].endswith("does not exist")


def test_replicas_of_a_workloads_group_are_groups_of_their_own(town: Town) -> None:
    town.group(WORKLOADS, "train", podGroups=[{"name": "w", "policy": {"gang": {"minCount": 2}}}])
    for key in "ab":
        reference = {"name": "train", "podGroup": "w", "podGroupReplicaKey": key}
        town.pod(key, schedulingGroup=None, workloadRef=reference)
    assert town.waiting() == set()
    town.pod("c", schedulingGroup=None, workloadRef={"name": "train", "podGroup": "w", "podGroupReplicaKey": "a"})
    assert town.waiting() == {"a", "c"}
    assert town.engine.pods["a"].group == "shop/train/w/a (workloads.scheduling.k8s.io)"


def test_a_label_of_coscheduling_says_nothing_where_that_is_not_installed() -> None:
    town = Town(COSCHEDULING, KUBERNETES)
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    town.pod("p", schedulingGroup=None, labels=labels)
    assert town.waiting() == {"p"}
    town.pod("q")
    assert town.heard.reasons["q"].endswith("the API server does not serve such groups"), "that field says much"
    town.mirror.pod_groups.listed(COSCHEDULING)  # now it is
    assert town.waiting() == set()
    assert town.heard.reasons["p"].endswith("does not exist")
    town.group(COSCHEDULING, "g", minMember=1)
    assert town.waiting() == {"p"}


def test_groups_that_cannot_be_listed_are_not_guessed() -> None:
    """A scheduler of this release with the rights of one before."""
    town = Town()
    town.mirror.pod_groups._listed.clear()
    town.pod("p")
    assert "apply the manifests of this version" in town.heard.reasons["p"]


def test_what_groups_ask_for_and_slacktide_does_not_do_is_refused_by_name(town: Town) -> None:
    town.gang(schedulingConstraints={"topology": [{"key": "rack"}]}, least=1)
    town.pod("p")
    assert "found topology rack" in town.heard.reasons["p"]
    town.gang(resourceClaims=[{"name": "gpus"}], least=1)
    assert "found gpus" in town.heard.reasons["p"]
    town.group(KUBERNETES, "g", schedulingPolicy={"basic": {}})
    assert town.waiting() == {"p"}, "a group that is no gang"
    assert town.engine.pods["p"].group == ""
    town.pod("k", schedulingGroup=None, labels={"kueue.x-k8s.io/pod-group-name": "k"}, annotations={TOTAL: "many"})
    assert "expected how many pods the group has" in town.heard.reasons["k"]


def test_who_has_succeeded_counts_among_all_of_kueues_and_nowhere_else(town: Town) -> None:
    town.gang(least=2)
    kueue: dict[str, Any] = {"schedulingGroup": None, "annotations": {TOTAL: "2"}}
    kueue["labels"] = {"kueue.x-k8s.io/pod-group-name": "k"}
    plain: dict[str, Any] = {}
    for name, more in (("p", plain), ("k", kueue)):
        for i in range(2):
            town.pod(f"{name}{i}", "a", "Running", **more)
        town.pod(f"{name}0", "a", "Succeeded", **more)
        town.drop(f"{name}1")
        town.pod(f"{name}2", **more)
    assert town.waiting() == {"k2"}, "two of Kueue's group in all: one is done, one comes again"
    assert "waiting for 2 pods" in town.heard.reasons["p2"]


def test_a_group_that_may_start_by_now_calls_for_a_pass(town: Town) -> None:
    town.gang(least=3)
    for name in ("p0", "p1", "p2"):
        town.pod(name, cpu="2")
    assert town.decide() == {}, "there is room for two"
    before = town.heard.calls
    town.gang(least=2)
    assert town.heard.calls > before
    assert len(town.decide()) == 2


def test_what_a_pod_that_is_gone_said_of_kueues_total_counts_no_more(town: Town) -> None:
    """The group is made anew, smaller than before, while a pod of the former one is still there."""
    labels = {"kueue.x-k8s.io/pod-group-name": "k"}
    town.pod("old", schedulingGroup=None, labels=labels, annotations={TOTAL: "5"})
    for name in ("p0", "p1"):
        town.pod(name, schedulingGroup=None, labels=labels, annotations={TOTAL: "2"})
    assert "waiting for 5 pods" in town.heard.reasons["p1"]
    town.drop("old")
    assert town.waiting() == {"p0", "p1"}
    town.pod("p1", schedulingGroup=None, labels=labels, annotations={TOTAL: "3"})
    assert "waiting for 3 pods" in town.heard.reasons["p0"]
    assert town.waiting() == set()


def test_no_pod_of_a_group_is_spared_whatever_the_group_says(town: Town) -> None:
    """Or whoever may write PodGroups could keep his pods from ever being preempted."""
    town.gang(disruptionMode="PodGroup", least=2)
    for name in ("p0", "p1"):
        town.pod(name, "a", "Running")
    assert {town.engine.specs[one.spec].spared for one in town.engine.pods.values()} == {False}


def test_the_engine_knows_which_groups_go_as_a_whole(town: Town) -> None:
    for name in ("p0", "p1"):
        town.pod(name, "a", "Running")
    key, groups = "shop/g (podgroups.scheduling.k8s.io)", town.engine.groups
    policies: list[dict[str, dict[str, int]]] = [{"gang": {"minCount": 2}}, {"basic": {}}]
    for policy in policies:
        town.group(KUBERNETES, "g", schedulingPolicy=policy, disruptionMode="PodGroup")
        assert groups.is_whole(key)
        assert {one.group for one in town.engine.pods.values()} == {key}
        town.group(KUBERNETES, "g", schedulingPolicy=policy, disruptionMode="Pod")
        assert not groups.is_whole(key)
    town.group(KUBERNETES, "g", schedulingPolicy={"basic": {}}, disruptionMode="PodGroup")
    town.pod("p2")
    assert town.waiting() == {"p2"}, "they start one by one"
    town.gang(disruptionMode="PodGroup", least=1)
    town.drop("p0")
    town.drop("p1")
    town.drop("p2")
    assert groups.numbers == {}


def test_a_group_that_waits_takes_nothing_of_a_quota(town: Town) -> None:
    body = {"metadata": {"name": "q", "namespace": "shop"}, "spec": {"class": "gold", "hard": {"cpu": "1"}}}
    town.mirror.on_quota_update(made_objects.decoded(PROMISE_QUOTA, body))
    town.gang(least=2)
    town.pod("p0")
    town.lead()
    town.pod("other", schedulingGroup=None)
    assert town.waiting() == {"other"}


@pytest.mark.parametrize("half", ["bound", "nominated"])
def test_a_new_leader_completes_what_a_former_one_began(town: Town, half: str) -> None:
    """It was killed between two bindings, or while members that had their places waited for another's victims."""
    town.gang()
    for name in ("p0", "p1", "p2"):
        town.pod(name)
    assert len(town.decide()) == 3
    if half == "bound":
        town.pod("p0", "a", "Running")
    else:
        town.pod("p0", nominated="a")
    town.lead()
    assert town.engine.groups.placed("shop/g (podgroups.scheduling.k8s.io)") == 1
    assert town.told() == [PodGroup("shop/g (podgroups.scheduling.k8s.io)", 3)] + [
        JoinGroup(name, "shop/g (podgroups.scheduling.k8s.io)") for name in ("p0", "p1", "p2")
    ]
    assert [one.uid for one, _ in town.adopted] == (["p0"] if half == "nominated" else [])
    assert town.decide().keys() == {"p1", "p2"}


def test_a_new_leader_knows_groups_whose_pods_wait_for_others(town: Town) -> None:
    town.gang()
    for name in ("p0", "p1"):
        town.pod(name)
    town.lead()
    assert town.waiting() == set()
    town.pod("p2")
    assert town.waiting() == {"p0", "p1", "p2"}
    for name in ("p0", "p1", "p2"):
        town.drop(name)
    assert town.engine.groups.numbers == {}
    assert town.engine.groups.members == {}
    assert {one.state for one in town.engine.pods.values()} <= {types.WAITING}


def test_the_priority_of_a_group_counts_in_place_of_its_pods(town: Town) -> None:
    """Among those that name no class; who names one is as important as that."""
    usual = ServiceClassSpec(0.5, 2, default=True, namespaces=("*",))
    town.mirror.on_class_update(ServiceClass(Metadata("usual"), usual))
    unnamed: dict[str, Any] = {"labels": {"slacktide.io/class": ""}, "priority": 7}
    for name in ("p0", "p1"):
        town.pod(name, **unnamed)
    town.pod("alone", schedulingGroup=None, **unnamed)
    town.gang(least=2, priority=1000)
    town.pod("named")

    def priority(name: str) -> int:
        return town.engine.controllers[town.feed.pods[name].key].service.priority

    assert [priority(name) for name in ("p0", "p1", "alone", "named")] == [1000, 1000, 7, 0]
    assert town.decide().keys() >= {"p0", "p1"}


def test_a_group_without_a_priority_leaves_its_pods_theirs(town: Town) -> None:
    usual = ServiceClassSpec(0.5, 2, default=True, namespaces=("*",))
    town.mirror.on_class_update(ServiceClass(Metadata("usual"), usual))
    town.gang(least=1)
    town.pod("p0", labels={"slacktide.io/class": ""}, priority=7)
    assert town.engine.controllers[town.feed.pods["p0"].key].service.priority == 7
