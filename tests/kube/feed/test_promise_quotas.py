"""Quotas of promises: who gets one where there are not enough, whoever leads and in whichever order it hears."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.kube.client.metadata import rfc3339
from slacktide.kube.feed.fed_pod import UNSCHEDULABLE, FedPod, FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import DEPLOYMENT, POD, PROMISE_QUOTA, SERVICE_CLASS, Identity, Pod
from slacktide.kube.translate.service_classes import concerns_class
from slacktide.settings import load_live
from support import made_objects

NOW = 1_790_000_000.0


class Heard(FeedListener):
    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.changed_ones: list[str] = []

    def changed(self, key: str) -> None:
        self.changed_ones.append(key)

    def waits(self, pod: FedPod) -> None:
        self.waiting.append(pod.uid)


class Town:
    """A mirror with a node of a hundred cores and the class gold, promised .5, and a feed that follows it."""

    def __init__(self) -> None:
        self.config = load_live()
        self.mirror = ClusterMirror(self.config, lambda: NOW)
        self.pods: dict[str, tuple[str, float, str, int, str, str]] = {}
        """Node, creation, owner, CPUs, class and, where it could not be placed, why, by name."""
        self.with_volume: set[str] = set()
        self.mirror.storage.on_class_update(made_objects.storage_class())
        self.service("gold")
        self.service("iron")
        amounts = {"cpu": "100", "memory": "1Ti", "pods": "900"}
        self.mirror.on_node_update(
            made_objects.node("a", labels={"node-restriction.kubernetes.io/slacktide": "true"}, allocatable=amounts)
        )
        self.lead()

    def service(self, name: str, slo: float = 0.5) -> None:
        spec = {"slo": slo, "rank": 1, "namespaces": ["*"]}
        self.mirror.on_class_update(made_objects.decoded(SERVICE_CLASS, {"metadata": {"name": name}, "spec": spec}))

    def lead(self) -> None:
        """A new leader."""
        self.engine, self.heard = Engine(self.config), Heard()
        self.feed = LiveFeed(self.mirror, self.engine, self.heard, lambda: NOW, lambda: 0.0)
        take_over(self.feed, {}, lambda _decision, _leaving: None)
        self.mirror._followers[:] = [self.feed]

    def quota(self, name: str = "q", service: str = "gold", **hard: Any) -> None:
        body = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"class": service, "hard": hard}}
        self.mirror.on_quota_update(made_objects.decoded(PROMISE_QUOTA, body))

    def owner(self, name: str, created: float) -> None:
        metadata = {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": rfc3339(NOW + created)}
        found = made_objects.decoded(DEPLOYMENT, {"metadata": metadata, "spec": {}})
        self.mirror.on_controller_update(found, "apps/v1", "Deployment", -1)

    def pod(
        self,
        name: str,
        created: float,
        node: str = "",
        owner: str = "",
        cpu: int = 1,
        service: str = "gold",
        aside: str = "",
    ) -> None:
        """``aside``: it is gated, being deleted, or without its volume."""
        self.pods[name] = node, created, owner, cpu, service, aside
        self.with_volume |= {name} if aside == "volume" else set()
        self.mirror.on_pod_update(self._object(name))

    def alter(self, name: str, node: str = "", aside: str = "") -> None:
        """A pod that is there is bound, or nothing keeps it any more, or something does."""
        _, created, owner, cpu, service, _ = self.pods[name]
        self.pod(name, created, node, owner, cpu, service, aside)

    def claim_made(self, name: str) -> None:
        """The PersistentVolumeClaim of a pod without a volume."""
        self.pods[name] = *self.pods[name][:5], ""
        self.mirror.volumes.on_claim_update(made_objects.claim(name, metadata={"namespace": "shop"}))

    def _object(self, name: str) -> Pod:
        node, created, owner, cpu, service, aside = self.pods[name]
        owners = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": owner, "controller": True}]
        metadata = {
            "name": name, "namespace": "shop", "uid": name, "labels": {"slacktide.io/class": service},
            "ownerReferences": owners if owner else [], "creationTimestamp": rfc3339(NOW + created),
        }  # fmt: skip
        spec: dict[str, Any] = {"schedulerName": "slacktide", "nodeName": node}
        spec |= {"containers": [made_objects.container(cpu=str(cpu), memory="1Gi")]}
        spec |= {"schedulingGates": [{"name": "example.com/later"}]} if aside == "gated" else {}
        if name in self.with_volume:
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        if aside == "deleted":
            metadata |= {"deletionTimestamp": rfc3339(NOW), "finalizers": ["example.com/stays"]}
        return made_objects.decoded(POD, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def drop(self, name: str) -> None:
        del self.pods[name]
        self.mirror.on_pod_delete(Identity("shop", name, name, ""), None)

    def refused(self) -> set[str]:
        """Pods that wait because of a quota."""
        found = {uid for uid, pod in self.feed.pods.items() if "PromiseQuota" in pod.problem}
        for uid, pod in self.feed.pods.items():
            waits = uid in self.engine.pods and self.engine.pods[uid].state == types.WAITING
            aside = self.pods[uid][5] != ""
            assert pod.pod.spec.node_name or waits == (uid not in found and not aside), f"{uid} {pod.problem}"
        return found


@pytest.fixture
def town() -> Town:
    return Town()


def test_who_came_first_has_a_promise_and_the_next_waits_and_is_told_why(town: Town) -> None:
    town.quota(cpu="1")
    for number, name in enumerate(("x", "c", "b")):  # not in the order of their names
        town.pod(name, number)
    assert town.refused() == {"b"}
    late = town.feed.pods["b"]
    assert late.problem == "service class 'gold': PromiseQuota 'q' exceeded: it allows 1 cpu times promise"
    assert concerns_class(late.problem), "slacktide top lists it among those without a promise"
    assert (late.queue, town.heard.waiting) == (UNSCHEDULABLE, ["b"])
    town.pod("other", 9, service="iron")
    assert town.refused() == {"b"}, "another class is none of this quota's business"
    town.drop("x")
    assert town.refused() == set()


def test_an_earlier_pod_that_is_heard_of_later_comes_first_unless_the_other_is_bound(town: Town) -> None:
    town.quota(memory="512Mi")
    town.pod("late", 5)
    town.pod("early", 1)
    assert town.refused() == {"late"}
    town.pod("early", 1, node="a")
    town.pod("earliest", 0)
    assert town.refused() == {"late", "earliest"}, "what runs is not displaced"


def test_a_place_that_is_decided_is_not_taken_away(town: Town) -> None:
    town.quota(cpu="1")
    town.pod("two", 2, cpu=2)
    assert [one.uid for one in town.engine.run(NOW).decisions] == ["two"]
    town.pod("one", 1, cpu=2)
    assert town.feed.pods["two"].problem == ""
    assert "PromiseQuota" in town.feed.pods["one"].problem


def test_so_many_workloads_the_first_created_first_and_all_their_pods(town: Town) -> None:
    town.quota(workloads=1)
    town.owner("old", 0)
    town.owner("new", 1)
    town.pod("n1", 2, owner="new")
    assert town.refused() == set()
    town.pod("o1", 3, owner="old")
    assert town.refused() == {"n1"}
    town.pod("n1", 2, node="a", owner="new")
    assert town.refused() == {"o1"}, "one that runs has its place"
    town.pod("n2", 4, owner="new")
    assert town.refused() == {"o1"}


def test_the_ledger_of_a_workload_says_how_many_of_its_pods_wait_and_why(town: Town) -> None:
    town.owner("w", 0)
    town.quota(cpu="1")
    for number in range(4):
        town.pod(f"p{number}", number, owner="w")
    key = "Deployment/shop/w/w"
    reason = "PromiseQuota 'q' exceeded: it allows 1 cpu times promise"
    assert town.feed.promise_quotas.beyond(key) == (reason, 2)
    assert town.heard.changed_ones[-1] == key
    town.drop("p0")
    town.drop("p1")
    assert town.feed.promise_quotas.beyond(key) is None
    assert town.engine.controllers[key].rows


def test_a_quota_that_shrinks_takes_nothing_from_what_runs(town: Town) -> None:
    town.pod("runs", 0, node="a", cpu=4)
    town.pod("waits", 1)
    assert town.refused() == set()
    town.quota(cpu="1")
    assert town.refused() == {"waits"}
    assert town.feed.pods["runs"].key
    town.lead()
    assert town.refused() == {"waits"}
    assert town.feed.pods["runs"].key
    town.mirror.on_quota_delete("shop", "q")
    assert town.refused() == set()


def test_a_class_that_promises_more_takes_more(town: Town) -> None:
    town.quota(cpu="1")
    town.pod("a1", 0)
    town.pod("a2", 1)
    assert town.refused() == set()
    town.service("gold", 0.9)
    assert town.refused() == {"a2"}


@pytest.mark.parametrize("gone", [True, False])
def test_who_keeps_a_promise_of_a_lost_class_is_counted_as_before(town: Town, gone: bool) -> None:
    town.owner("w", 0)
    town.quota(cpu="1")
    town.pod("a1", 0, node="a", owner="w", cpu=2)
    town.pod("a2", 1, owner="w")
    assert town.refused() == {"a2"}
    if gone:
        town.mirror.on_class_delete("gold")
    else:
        spec = {"slo": 0.5, "rank": 1, "namespaces": ["elsewhere"]}
        town.mirror.on_class_update(made_objects.decoded(SERVICE_CLASS, {"metadata": {"name": "gold"}, "spec": spec}))
    assert town.refused() == {"a2"}
    town.quota(cpu="2")
    assert town.refused() == set()
    (group,) = town.feed.promise_quotas.groups.values()
    assert group.used[0] == 1_500_000_000


def test_sums_are_of_decimals_as_they_are_written(town: Town) -> None:
    town.service("gold", 0.55)  # as a binary number it is a little more
    town.quota(cpu="1.1")
    town.pod("a1", 0)
    town.pod("a2", 1)
    assert town.refused() == set()
    town.pod("a3", 2)
    assert town.refused() == {"a3"}


def test_what_cannot_be_read_allows_nothing(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    town.quota(cpu="much")
    town.pod("a1", 0)
    assert town.refused() == {"a1"}
    assert "PromiseQuota shop/q: spec.hard.cpu: " in caplog.text


@pytest.mark.parametrize("why", ["gated", "deleted", "volume"])
def test_who_could_not_be_placed_anyway_keeps_nothing_from_others_whoever_leads(town: Town, why: str) -> None:
    town.quota(cpu="1")
    town.pod("first", 0, cpu=2, aside=why)
    town.pod("late", 5, cpu=2)
    assert town.refused() == set()
    town.lead()
    assert town.refused() == set(), "another leader says the same"
    town.quota(cpu="1.2")
    assert town.refused() == set(), "and nothing is taken away where there is more"
    town.service("gold", 0.49)
    assert town.refused() == set()
    if why == "gated":
        town.pod("first", 0, cpu=2)
    elif why == "volume":
        town.claim_made("first")
    if why != "deleted":
        assert town.refused() == {"late"}, "from now on it claims what it is to have"
        town.pod("first", 0, cpu=2, aside="deleted")
    assert town.refused() == set()


def test_a_bare_pod_that_runs_and_names_no_class_any_more_holds_what_it_has(town: Town) -> None:
    town.pod("runs", 0, node="a", cpu=2)
    town.pod("waits", 1, cpu=2)
    town.pod("runs", 0, node="a", cpu=2, service="lead")
    town.quota(cpu="1")
    assert town.refused() == {"waits"}


def by_the_book(town: Town, hard: dict[str, Any]) -> set[str]:
    """The same, slowly and plainly: pods that are bound count; others one by one, the first created first, of those
    that could be placed."""
    gold = {name: one for name, one in town.pods.items() if one[4] == "gold" and (one[0] or not one[5])}
    workloads: dict[str, tuple[bool, float, str]] = {}
    for name, (node, created, owner, _, _, _) in gold.items():
        came = float(owner.removeprefix("w")) if owner else created
        key = f"Deployment/shop/{owner}/{owner}" if owner else f"Pod/shop/{name}/{name}"
        workloads[owner or name] = min(workloads.get(owner or name, (True, came, key)), (not node, came, key))
    allowed = sorted(workloads, key=workloads.__getitem__)[: hard["workloads"]]
    left, found = Fraction(hard["cpu"]), set()
    for name, (node, _, owner, cpu, _, _) in sorted(gold.items(), key=lambda one: (not one[1][0], one[1][1], one[0])):
        if node or ((owner or name) in allowed and left >= Fraction(cpu, 2)):
            left -= Fraction(cpu, 2)
        else:
            found.add(name)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_every_leader_decides_by_the_book(seed: int) -> None:
    chance, town = random.Random(seed), Town()
    for number in range(4):
        town.owner(f"w{number}", number)
    hard: dict[str, Any] = {"cpu": 4, "workloads": 3}
    town.quota(**hard)
    seen = 0
    for step in range(120):
        waiting = sorted(name for name, one in town.pods.items() if not one[0])
        able = [name for name in waiting if not town.pods[name][5]]
        held = {name: town.pods[name][5] for name in waiting if town.pods[name][5] in ("gated", "volume")}
        match chance.choice(("new", "new", "bound", "gone", "quota", "lead", "freed", "deleted")):
            case "new":
                owner = chance.choice(("", "w0", "w1", "w2", "w3"))
                service = chance.choice(("gold", "gold", "gold", "iron"))
                aside = chance.choice(("", "", "", "gated", "volume"))
                town.pod(f"p{step}", chance.randrange(50), "", owner, chance.randint(1, 4), service, aside)
            case "bound" if fit := [one for one in able if one not in town.refused()]:
                town.alter(chance.choice(fit), node="a")
            case "freed" if held:
                name = chance.choice(sorted(held))
                if held[name] == "volume":
                    town.claim_made(name)
                else:
                    town.alter(name)
            case "deleted" if waiting:
                town.alter(chance.choice(waiting), aside="deleted")
            case "gone" if town.pods:
                town.drop(chance.choice(sorted(town.pods)))
            case "quota":
                hard = {"cpu": chance.randint(1, 8), "workloads": chance.choice((1, 2, 3, 4, 5, None))}
                town.quota(**hard)
            case "lead":
                town.lead()
        assert town.refused() == by_the_book(town, hard), step
        seen += len(town.refused())
    assert seen > 60
