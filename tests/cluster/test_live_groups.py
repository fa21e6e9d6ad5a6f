"""Pods that start together or not at all: groups of Kubernetes and of coscheduling, on a real API server.

Some scenes are played for kube-scheduler as well, with its own gang scheduling (alpha) switched on. What becomes of
victims, of places that are lost and of a leader that ends meanwhile: ``simulated/test_groups.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster import ledgers
from cluster.judging import Json
from cluster.labtools import HANG_SECONDS, condition, pod, until
from cluster.running import BETWEEN_EQUALS, Cast, Place, Stage, nothing_wrong, prepared, scene, service_class, staged
from slacktide.lab import Binaries

CLASS, LABEL = "slacktide.io/class", "scheduling.x-k8s.io/pod-group"
KUBERNETES, COSCHEDULING = "scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEDULERS = {"theirs": "default-scheduler", "ours": "slacktide"}


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
