"""Pods that start together or not at all: groups of Kubernetes, of coscheduling and of Kueue, on a real API server.

One scene is played for kube-scheduler as well, with its own gang scheduling (alpha) switched on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster import ledgers
from cluster.judging import Json, is_over
from cluster.labtools import HANG_SECONDS, bind, condition, pod, until
from cluster.running import BETWEEN_EQUALS, Cast, Place, Stage, nothing_wrong, prepared, scene, service_class, staged
from cluster.test_live_preemption import budget_says, evicted, is_bound, revision_of
from slacktide.lab import Binaries

CLASS, LABEL = "slacktide.io/class", "scheduling.x-k8s.io/pod-group"
KUBERNETES, COSCHEDULING = "scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEDULERS = {"theirs": "default-scheduler", "ours": "slacktide"}
SLOW = 8
"""Seconds that a victim takes to be gone."""


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("groups")
    gates, apis = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true", f"{KUBERNETES}=true"
    plane = prepared(binaries, directory, gates=gates, apis=apis, kube_scheduler=True)
    low = service_class("low", 0.5, 3, marginSeconds=0.5, overheadLimit=1.0, default=True)
    settings = {"qos__alpha": ledgers.ALPHA, "policy__min_running": 1.0, "policy__patience": BETWEEN_EQUALS}
    yield from staged(
        binaries, directory, [service_class("high", 0.99, 1), low], plane, scheduler__watchdog=1, **settings
    )


def group(place: Place, name: str, least: int, version: str = KUBERNETES, **more: Any) -> None:
    gang = {"schedulingPolicy": {"gang": {"minCount": least}}} | more
    spec = gang if version == KUBERNETES else {"minMember": least, "scheduleTimeoutSeconds": 10}
    body = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
    path = f"/apis/{version}/namespaces/{place.namespace}/podgroups"
    until(lambda: place.api.post(path, body), "a pod group is made")


def high(name: str, of: str = "", cpu: str = "900m", **settings: Any) -> Json:
    more: Json = {"schedulingGroup": {"podGroupName": of}} if of else {}
    return pod(name, cpu=cpu, labels={CLASS: "high", **settings.pop("labels", {})}, **more, **settings)


def bound_of(place: Place, *names: str) -> list[bool]:
    return [bool(place.node_of(name)) for name in names]


def stands(place: Place, name: str) -> tuple[str, str]:
    """Status and reason of a group's condition, empty where it has none."""
    every = place.api.get(f"/apis/{KUBERNETES}/namespaces/{place.namespace}/podgroups")["items"]
    found = next((condition(one, "PodGroupScheduled") for one in every if one["metadata"]["name"] == name), {})
    return found.get("status", ""), found.get("reason", "")


def plays(place: Place, side: str) -> list[list[bool]]:
    """Which pods of a gang are bound, step by step."""
    found: list[list[bool]] = []
    number = 0

    def create(name: str, cpu: str, of: str = "") -> None:
        body = high(f"{side}-{name}", of, cpu, schedulerName=SCHEDULERS[side], nodeSelector={"side": side})
        place.create("pods", body)

    def after(*names: str) -> None:
        """What became of them once a pod that came later is bound."""
        nonlocal number
        number += 1
        create(f"fence-{number}", "10m")
        place.bound(f"{side}-fence-{number}")
        found.append(bound_of(place, *(f"{side}-{name}" for name in names)))

    place.nodes(2, prefix=f"-{side}", labels={"side": side}, cpu="1")
    create("p0", "900m", f"{side}-g")
    after("p0")  # there is no such group
    group(place, f"{side}-g", 3)
    create("p1", "900m", f"{side}-g")
    after("p0", "p1")  # there are too few of it
    assert stands(place, f"{side}-g") == ("", "")
    create("p2", "900m", f"{side}-g")
    after("p0", "p1", "p2")  # there is room for two of them
    until(lambda: stands(place, f"{side}-g") == ("False", "Unschedulable"), "its condition says that it waits")
    place.nodes(1, prefix=f"-{side}-more", labels={"side": side}, cpu="1")
    for name in ("p0", "p1", "p2"):
        place.bound(f"{side}-{name}")
    until(lambda: stands(place, f"{side}-g") == ("True", "Scheduled"), "its condition says that it runs")
    create("p3", "10m", f"{side}-g")
    place.bound(f"{side}-p3")  # it grows
    place.delete("pods", f"{side}-p1", 0)
    create("p4", "900m", f"{side}-g")
    place.bound(f"{side}-p4")  # another one comes for one that ended
    assert stands(place, f"{side}-g") == ("True", "Scheduled"), "that stays"
    return found


@scene
def test_a_gang_starts_as_it_does_under_kube_scheduler(place: Place) -> None:
    theirs = plays(place, "theirs")
    assert theirs == [[False], [False, False], [False, False, False]]
    assert plays(place, "ours") == theirs


@scene
def test_pods_of_coscheduling(place: Place) -> None:
    """Its custom resource comes while the scheduler runs."""
    place.nodes(2, cpu="1")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "scheduling.x-k8s.io", "scope": "Namespaced", "names": names, "versions": [version]}
    # It belongs to Kubernetes' community, whose reviewers have to have approved of it.
    about = {
        "name": "podgroups.scheduling.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    }
    place.create("pods", high("alone", labels={LABEL: "g"}, cpu="10m"))
    place.bound("alone")  # where coscheduling is not installed its label says nothing
    place.api.post(DEFINITIONS, {"metadata": about, "spec": spec})
    path = f"{DEFINITIONS}/podgroups.scheduling.x-k8s.io"
    until(
        lambda: condition(place.api.get(path), "Established").get("status") == "True", "the definition is established"
    )
    other = {"apiVersion": COSCHEDULING, "kind": "PodGroup", "metadata": {"name": "other"}, "spec": {"minMember": 9}}
    where = f"/apis/{COSCHEDULING}/namespaces/{place.namespace}/podgroups"
    place.api.post(where, other)
    place.create("pods", high("other", labels={LABEL: "other"}, cpu="900m", nodeSelector={"none": "such"}))
    place.waits("other", "waiting for 9 pods of pod group")  # the scheduler knows groups by now
    for name in ("p0", "p1"):
        place.create("pods", high(name, labels={LABEL: "late"}))
    place.waits("p0", r"pod group \S+/late \(podgroups\.scheduling\.x-k8s\.io\) does not exist")
    group(place, "late", 3, COSCHEDULING)
    place.waits("p1", "waiting for 3 pods of pod group")
    assert bound_of(place, "p0", "p1") == [False, False]
    place.create("pods", high("p2", labels={LABEL: "late"}, cpu="50m"))
    for name in ("p0", "p1", "p2"):
        place.bound(name)
    place.create("pods", high("without", labels={LABEL: "nobody"}, cpu="10m"))
    place.waits("without", "does not exist")
    place.api.delete(path)
    until(lambda: place.node_of("without"), "coscheduling is not installed any more", HANG_SECONDS)


@scene
def test_pods_of_kueue(place: Place) -> None:
    place.nodes(2, cpu="1")
    labels = {"kueue.x-k8s.io/pod-group-name": "g"}
    annotations = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    place.create("pods", high("p0", labels=labels, annotations=annotations))
    place.waits("p0", r"waiting for 2 pods of pod group \S+/g \(kueue\.x-k8s\.io\)")
    place.create("pods", high("p1", labels=labels, annotations=annotations))
    place.bound("p0")
    place.bound("p1")


def full(place: Place, *graces: int) -> list[str]:
    """A node full with a pod that may be preempted, for each grace period; the nodes."""
    nodes = []
    for number, grace in enumerate(graces):
        nodes += place.nodes(1, prefix=f"-{number}", labels={"number": str(number)}, cpu="1")
        selector = {"number": str(number)}
        body = pod(f"low-{number}", cpu="900m", terminationGracePeriodSeconds=grace, nodeSelector=selector)
        place.create("pods", body)
    place.ready("low", len(graces))
    return nodes


@scene
def test_victims_are_given_up_for_a_whole_gang_and_it_is_bound_as_a_whole(place: Place) -> None:
    """Also the pod whose place is free from the beginning waits for the other's victim."""
    place.nodes(1, prefix="-free", cpu="1")
    full(place, SLOW)
    group(place, "trio", 3)
    for number in range(3):
        place.create("pods", high(f"trio-{number}", "trio"))
    until(lambda: "at once, and 2 fit" in place.reason("trio-0"), "one has room, and one could preempt")
    assert evicted(place) == {}
    for number in range(3):
        place.delete("pods", f"trio-{number}", 0)
    group(place, "pair", 2)
    for number in range(2):
        place.create("pods", high(f"pair-{number}", "pair"))
    place.bound("pair-0")
    place.bound("pair-1")
    assert set(evicted(place)) == {"low-0"}
    gone = revision_of(place, "low-0", lambda one: one.gone or is_over(one.body))
    assert min(revision_of(place, name, is_bound) for name in ("pair-0", "pair-1")) > gone


@scene
def test_all_of_a_group_go_or_none(place: Place) -> None:
    """A budget lets one of them go: nobody does. Then it is gone, and both go for a pod that needs one node."""
    group(place, "g", 2, disruptionMode="PodGroup")
    for number in range(2):
        place.nodes(1, prefix=f"-{number}", labels={"number": str(number)}, cpu="1")
        settings: Json = {
            "terminationGracePeriodSeconds": 1,
            "labels": {"of": "g"},
            "nodeSelector": {"number": str(number)},
        }
        place.create("pods", pod(f"low-{number}", cpu="900m", schedulingGroup={"podGroupName": "g"}, **settings))
    place.ready("low", 2)
    budget = {"selector": {"matchLabels": {"of": "g"}}, "minAvailable": 1}
    place.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": budget})
    until(lambda: budget_says(place, "b", "disruptionsAllowed") == 1, "the budget lets one go")
    place.create("pods", high("p"))
    until(lambda: "of a pod group that is preempted as a whole" in place.reason("p"), "it is told why it waits")
    assert evicted(place) == {}
    place.delete("poddisruptionbudgets", "b")
    place.bound("p")
    assert set(evicted(place)) == {"low-0", "low-1"}


def shares_a_claim(place: Place, side: str) -> tuple[int, list[str], list[str]]:
    """Two pods of a gang share a claim, on nodes with a device each: on how many nodes they are, and what became of
    the claim."""
    driver, devices = f"{side}.{place.name}.example", "/apis/resource.k8s.io/v1"
    for node in place.nodes(2, prefix=f"-{side}", labels={"side": side}, cpu="2"):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": [{"name": "x"}]}
        place.api.post(f"{devices}/resourceslices", {"metadata": {"name": f"{driver}-{node}"}, "spec": spec})
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    place.api.post(f"{devices}/deviceclasses", {"metadata": {"name": driver}, "spec": {"selectors": selectors}})
    ask = {"name": "r", "exactly": {"deviceClassName": driver}}
    path = f"{devices}/namespaces/{place.namespace}/resourceclaims"
    place.api.post(path, {"metadata": {"name": side}, "spec": {"devices": {"requests": [ask]}}})
    group(place, f"{side}-g", 2)
    for number in range(2):
        claims = [{"name": "c", "resourceClaimName": side}]
        more: Json = {"schedulerName": SCHEDULERS[side], "nodeSelector": {"side": side}, "resourceClaims": claims}
        place.create("pods", high(f"{side}-{number}", f"{side}-g", **more))
    nodes = {place.bound(f"{side}-{number}") for number in range(2)}
    status = place.api.get(f"{path}/{side}")["status"]
    users = sorted(one["name"].partition("-")[2] for one in status["reservedFor"])
    return len(nodes), users, [one["device"] for one in status["allocation"]["devices"]["results"]]


@scene
def test_pods_of_a_gang_share_a_claim_as_under_kube_scheduler(place: Place) -> None:
    """Of what a claim is about to get kube-scheduler 1.36 does not look from where it can be used: its second pod may
    come to a node without the device."""
    _, *theirs = shares_a_claim(place, "theirs")
    assert theirs == [["0", "1"], ["x"]]
    assert shares_a_claim(place, "ours") == (1, *theirs)


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)


def test_a_new_leader_completes_a_gang_that_was_bound_by_half(stage: Stage, cast: Cast) -> None:
    """As if the old one had been killed between two bindings; the auditor would find that nobody bound the first."""
    cast.over()
    place = Place(stage, "half-bound")
    (node, _) = place.nodes(2, cpu="1")
    group(place, "g", 3)
    place.create("pods", high("p0", "g"))
    until(lambda: "waiting for 3 pods of pod group" in str(place.explained("p0")), "it waits for others")
    stage.scheduler.stop()
    for name in ("p1", "p2"):
        place.create("pods", high(name, "g", "150m"))
    bind(place.api, place.namespace, "p1", node)
    stage.scheduler.restart()
    for name in ("p0", "p2"):
        place.bound(name)
