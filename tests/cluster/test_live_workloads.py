"""Every kind of workload on a real control plane: placed, watched over, and its ledger as one works it out by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from cluster import ledgers
from cluster.auditor import Life
from cluster.judging import Json
from cluster.labtools import HANG_SECONDS, NUMBERS, condition, deployment, job, pod, set_ready, until
from cluster.running import (
    CLASSES,
    WATCHDOG_SECONDS,
    Cast,
    Place,
    Stage,
    admitted,
    at,
    nothing_wrong,
    scene,
    service_class,
    staged,
)
from slacktide.lab import Binaries

SILVER, BRONZE = 0.9, 0.05
CLASS, APPROACH, SLO = "slacktide.io/class", "slacktide.io/approach", "slacktide.io/slo"
HEARD_LATE = 3.0
"""Seconds: times of objects are whole ones, and what is seen late counts late."""
STARTUP, RUN, EXIT = "slacktide.io/startup-seconds", "slacktide.io/run-seconds", "slacktide.io/exit-code"


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    # These ledgers are worked out by hand of all that pods say of themselves; whose doing it is, another module asks.
    classes = [
        service_class("silver", SILVER, 2),
        service_class("bronze", BRONZE, 3, default=True, marginSeconds=0.5),
        service_class("local", 0.8, 2),
        service_class("mapped", 0.7, 2),
        service_class("closed", 0.6, 2),
        service_class("fleeting", 0.5, 2),
        service_class("summed", SILVER, 2, approach="aggregated"),
    ]
    for one in classes:
        one["spec"]["counts"] = "everything"
    classes.append(service_class("excused", SILVER, 2))
    yield from staged(
        binaries, tmp_path_factory.mktemp("workloads"), classes,
        qos__alpha=ledgers.ALPHA, scheduler__watchdog=WATCHDOG_SECONDS, kube__priority_classes="urgent=mapped",
    )  # fmt: skip


def web(replicas: int, name: str = "web", service: str = "silver", startup: float = 1, **settings: Any) -> Json:
    annotations = {STARTUP: str(startup), **settings.pop("annotations", {})}
    return deployment(name, replicas, labels={CLASS: service}, annotations=annotations, **settings)


def settled(place: Place, name: str, running: int, after: float = 0.0) -> Json:
    """The ledger once so many run and nobody else is there, as of no earlier than ``after``."""

    def fits(status: Json) -> bool:
        return bool(status["running"] == running and status["waiting"] == 0 and at(status) >= after)

    return place.status(name, fits, f"{running} running, 0 waiting")


def chains(lives: list[Life], replaced: dict[str, str]) -> list[list[Life]]:
    """Pods in the order in which they were one instance; ``replaced``: the successor's name by the predecessor's."""
    named = {life.name: life for life in lives}
    firsts = [life for life in lives if life.name not in replaced.values()]
    found = []
    for first in firsts:
        chain = [first]
        while chain[-1].name in replaced:
            chain.append(named[replaced[chain[-1].name]])
        found.append(chain)
    return found


def only_new(lives: list[Life], known: set[str]) -> str:
    (name,) = (life.name for life in lives if life.name not in known)
    return name


# -- kinds -------------------------------------------------------------------------------------------------------------


@scene
def test_a_deployment_with_a_budget(place: Place) -> None:
    place.nodes(2)
    budget = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    place.api.post(place.kinds_path("poddisruptionbudgets"), {"metadata": {"name": "web"}, "spec": budget})
    made = place.create("deployments", web(3, startup=2))
    names = {one["metadata"]["name"] for one in place.ready("web", 3)}
    status = settled(place, "deployment-web", 3)
    assert (status["class"], status["preemptions"]) == ("silver", 0)
    assert status["target"] == {
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": made["metadata"]["uid"],
    }  # fmt: skip
    ledgers.independent(status, [[life] for life in place.lives("web")], SILVER, 2)
    time.sleep(6)
    victim = sorted(names)[0]
    place.delete("pods", victim)
    place.ready("web", 3)
    status = settled(place, "deployment-web", 3, at(status) + 4)
    found = place.lives("web")
    ledgers.independent(status, chains(found, {victim: only_new(found, names)}), SILVER, 4)


@scene
def test_a_stateful_set_whose_members_count_together(place: Place) -> None:
    place.nodes(1)
    body = web(2, "pair", annotations={APPROACH: "concurrent", SLO: "0.7"})
    body["kind"] = "StatefulSet"
    body["spec"] |= {"serviceName": "pair", "podManagementPolicy": "Parallel"}
    place.create("statefulsets", body)
    place.ready("pair", 2)
    first = settled(place, "statefulset-pair", 2)
    time.sleep(6)
    place.delete("pods", "pair-1")
    until(lambda: len(place.lives("pair-1")) == 2, "it comes again by the same name")
    place.ready("pair", 2)
    status = settled(place, "statefulset-pair", 2, at(first) + 4)
    ledgers.concurrent(status, [place.lives("pair-0"), place.lives("pair-1")], 0.7, 6)


@scene
def test_a_job_that_completes(place: Place) -> None:
    place.nodes(1)
    body = job("digest", 4, annotations={STARTUP: "1"})
    body["spec"] |= {"completions": 3, "parallelism": 2}
    place.create("jobs", body)
    until(lambda: condition(place.get("jobs", "digest") or {}, "Complete"), "the job is complete")
    status = place.status("job-digest", lambda s: s["running"] == s["waiting"] == 0, "nobody is there any more")
    lives = place.lives("digest")
    assert len(lives) == 3
    ledgers.aggregated(status, lives, BRONZE, 6)
    assert status["accumulators"]["sums"]["discarded"] == 0.0


@scene
def test_a_job_that_fails(place: Place) -> None:
    place.nodes(1)
    body = job("broken", 3, annotations={EXIT: "1"})
    body["spec"] |= {"backoffLimit": 1}
    place.create("jobs", body)
    until(lambda: condition(place.get("jobs", "broken") or {}, "Failed"), "the job has failed")
    status = place.status("job-broken", lambda s: s["running"] == s["waiting"] == 0, "nobody is there any more")
    lives = place.lives("broken")
    assert len(lives) == 2
    # One instance: the second pod continues the first, and what both had done is lost.
    ledgers.aggregated(status, lives, BRONZE, 2, running=0.0, lifetime=at(status) - lives[0].created)
    discarded = sum(one.running(at(status)) for one in lives)
    error = ledgers.error_of(lives, at(status), 2)
    ledgers.close(status["accumulators"]["sums"]["discarded"], discarded, error, "work lost")
    assert (status["delivered"], status["state"]) == (0.0, "Missed")


@scene
def test_a_cron_job(place: Place) -> None:
    place.nodes(1)
    template = job("x", 2)["spec"]
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": template}}
    made = place.create("cronjobs", {"metadata": {"name": "report"}, "spec": spec})
    words = ("create", "job", "report-now", "--from=cronjob/report")
    place.kubectl.ok("-n", place.namespace, *words)
    until(lambda: len([one for one in place.lives("report") if one.phase == "Succeeded"]) >= 2, "two runs")
    place.patch("cronjobs", "report", {"spec": {"suspend": True}})

    def both_over(status: Json) -> bool:
        return bool(status["accumulators"]["counts"]["starts"] >= 2 and status["running"] + status["waiting"] == 0)

    status = place.status("cronjob-report", both_over, "two runs are over")
    lives = [one for one in place.lives("report") if one.created < at(status)]
    ledgers.aggregated(status, lives, BRONZE, 2 * len(lives))
    assert status["target"]["uid"] == made["metadata"]["uid"]
    assert len(place.api.get(place.kinds_path("availabilities"))["items"]) == 1  # none of the jobs has its own


@scene
def test_bare_pods(place: Place) -> None:
    place.nodes(1)
    place.create("pods", pod("plain", annotations={STARTUP: "2"}))
    place.create("pods", pod("own", labels={CLASS: "silver"}, annotations={SLO: "0.25", STARTUP: "1"}))
    place.create("pods", pod("short", annotations={RUN: "4"}, restartPolicy="Never"))
    plain, own = settled(place, "pod-plain", 1), settled(place, "pod-own", 1)
    assert (plain["class"], own["class"]) == ("bronze", "silver@0.25")
    ledgers.independent(plain, [place.lives("plain")], BRONZE, 2)
    ledgers.independent(own, [place.lives("own")], 0.25, 2)
    until(lambda: place.pod("short")["status"]["phase"] == "Succeeded", "it has ended")
    short = place.status("pod-short", lambda s: s["running"] + s["waiting"] == 0, "over")
    (life,) = place.lives("short")
    lived, t = life.alive(at(short)), at(short)
    ledgers.close(short["delivered"], life.running(t) / lived, ledgers.error_of([life], t, 2) / lived, "delivered")
    assert short["state"] == "Kept"


# -- changes -----------------------------------------------------------------------------------------------------------


def _rolled(place: Place, prefix: str, old: set[str]) -> bool:
    here = place.pods(prefix)
    return len(here) == 2 and not any(one["metadata"]["name"] in old for one in here) and bool(place.ready(prefix, 2))


@scene
def test_a_rolling_update_keeps_the_ledger_of_all_together(place: Place) -> None:
    place.nodes(2)
    place.create("deployments", web(2, service="summed"))
    old = {one["metadata"]["name"] for one in place.ready("web", 2)}
    before = until(lambda: place.ledger("deployment-web"), "its ledger")
    time.sleep(5)
    place.patch("deployments", "web", {"spec": {"template": {"metadata": {"annotations": {"revision": "2"}}}}})
    until(lambda: _rolled(place, "web", old), "the update is through")
    status = settled(place, "deployment-web", 2, at(before["status"]) + 5)
    assert (place.ledger("deployment-web") or {})["metadata"]["uid"] == before["metadata"]["uid"]
    lives, t = place.lives("web"), at(status)
    assert len(lives) == 4
    # All pods there count, and never fewer than two instances: a surge is one more for its time.
    ledgers.aggregated(status, lives, SILVER, 8, lifetime=_instances(lives, 2, t))


def _instances(lives: list[Life], desired: int, t: float) -> float:
    """Lifetimes until ``t`` of so many instances, and of pods beyond them."""
    marks = sorted({t, *(m for one in lives for m in (one.created, one.ended or t) if m <= t)})
    total = 0.0
    for a, b in pairwise(marks):
        here = sum(one.created <= a and (one.ended or t) >= b for one in lives)
        total += max(here, desired) * (b - a)
    return total


@scene
def test_a_workload_of_the_same_name_goes_on(place: Place) -> None:
    place.nodes(1)
    place.create("deployments", web(1))
    place.ready("web", 1)
    time.sleep(6)
    place.delete("deployments", "web")
    until(lambda: place.get("deployments", "web") is None, "it is deleted")
    last = place.status("deployment-web", lambda s: "deletedAt" in s, "its ledger says so")
    made = place.create("deployments", web(1))
    owner = made["metadata"]["uid"]
    until(lambda: len(place.pods("web")) == 1, "the old one's pod is gone")
    place.ready("web", 1)

    def is_new(status: Json) -> bool:
        return bool(status["target"]["uid"] == owner and (status["running"], status["waiting"]) == (1, 0))

    status = place.status("deployment-web", is_new, "the new one's ledger")
    assert "deletedAt" not in status
    old, new = sorted(place.lives("web"), key=lambda life: life.created)
    ran = old.running(at(last)) + new.running(at(status))
    lived = at(last) - old.created + at(status) - new.created
    error = ledgers.error_of([old, new], at(status), 5)
    ledgers.close(status["delivered"], ran / lived, error / lived, "of both")


# -- nodes -------------------------------------------------------------------------------------------------------------


@scene
def test_a_node_is_drained(place: Place) -> None:
    first, second = place.nodes(2)
    place.kubectl.ok("cordon", second)
    place.heard()
    place.create("deployments", web(2, service="summed"))
    place.ready("web", 2)
    place.kubectl.ok("uncordon", second)
    time.sleep(4)
    place.kubectl.ok("drain", first, "--ignore-daemonsets", "--timeout=60s")
    up = place.ready("web", 2)
    assert {one["spec"]["nodeName"] for one in up} == {second}
    status = settled(place, "deployment-web", 2)
    lives, t = place.lives("web"), at(status)
    ledgers.aggregated(status, lives, SILVER, 8, lifetime=_instances(lives, 2, t))
    assert status["preemptions"] == 0  # kubectl did it


@scene
def test_a_drain_within_a_maintenance_window(place: Place) -> None:
    (first,) = place.nodes(1, labels={"drained": place.name})
    place.create("deployments", web(1, service="excused"))
    place.ready("web", 1)
    before = settled(place, "deployment-web", 1)["lostSeconds"]["cluster"]
    begin, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + s)) for s in (-5, 3600))
    spec = {"start": begin, "end": end, "nodeSelector": {"matchLabels": {"drained": place.name}}}
    about = {"apiVersion": "slacktide.io/v1beta1", "kind": "MaintenanceWindow", "metadata": {"name": place.name}}
    place.api.post("/apis/slacktide.io/v1beta1/maintenancewindows", {**about, "spec": spec})
    place.kubectl.ok("drain", first, "--ignore-daemonsets", "--timeout=60s")
    status = place.status("deployment-web", lambda one: one["lostSeconds"]["operator"] >= 8.0, "the operator's doing")
    assert status["lostSeconds"]["cluster"] - before <= HEARD_LATE
    place.kubectl.ok("uncordon", first)
    place.ready("web", 1)


@scene
def test_a_node_that_is_not_ready(place: Place) -> None:
    first, second = place.nodes(2)
    place.kubectl.ok("cordon", second)
    place.heard()
    short = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
        for why in ("not-ready", "unreachable")
    ]
    place.create("deployments", web(1, service="silver", tolerations=short))
    place.ready("web", 1)
    place.kubectl.ok("uncordon", second)
    time.sleep(5)
    set_ready(place.api, first, False)
    place.heard()
    place.create("pods", pod("after", nodeSelector={"kubernetes.io/hostname": first}))
    place.waits("after", r"^0/\d+ nodes are available: .*\b\d+ node\(s\) were not ready")
    # Its pod counts as long as it says that it is ready; then its toleration is over, and it goes elsewhere.
    until(lambda: [one["spec"].get("nodeName") for one in place.pods("web")] == [second], "it runs elsewhere")
    place.ready("web", 1)
    status = settled(place, "deployment-web", 1)
    ledgers.independent(status, [place.lives("web")], SILVER, 4)
    set_ready(place.api, first, True)
    assert place.bound("after", HANG_SECONDS) == first  # its taint goes with the next round of the controller


# -- classes -----------------------------------------------------------------------------------------------------------


@scene
def test_classes_by_default_and_by_priority(place: Place) -> None:
    place.nodes(1)
    labels = {"slacktide.io/default-class": "local"}
    place.api.patch(f"/api/v1/namespaces/{place.name}", {"metadata": {"labels": labels}})
    place.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent"}, "value": 7})
    until(lambda: _class_of_a_pod(place) == "local", "the scheduler knows the namespace's class")
    place.create("pods", pod("nothing"))
    until(lambda: admitted(place, pod("label", labels={CLASS: "silver"}, priorityClassName="urgent")), "it is known")
    place.create("pods", pod("priority", priorityClassName="urgent"))
    place.ready("", 3)
    for name, service, slo in (("nothing", "local", 0.8), ("label", "silver", SILVER), ("priority", "mapped", 0.7)):
        status = settled(place, f"pod-{name}", 1)
        assert (status["class"], status["promised"]) == (service, slo)


def _class_of_a_pod(place: Place) -> str:
    """The class that a pod gets which says nothing of it."""
    name = f"probe-{next(NUMBERS)}"
    place.create("pods", pod(name))
    found = str(settled(place, f"pod-{name}", 1)["class"])
    place.delete("pods", name, 0)
    until(lambda: place.get("pods", name) is None, "the probe is gone")
    return found


def gated(name: str, service: str) -> Json:
    return pod(name, labels={CLASS: service}, schedulingGates=[{"name": "example.com/wait"}])


def open_gate(place: Place, name: str) -> None:
    place.api.patch(f"{place.kinds_path('pods')}/{name}", {"spec": {"schedulingGates": None}})


@scene
def test_a_class_that_the_namespace_may_not_use(place: Place) -> None:
    place.nodes(1)
    place.create("pods", gated("late", "closed"))  # admission lets it in: the class is closed only afterwards
    path = f"{CLASSES}/closed"
    place.api.patch(path, {"spec": {"namespaces": ["elsewhere"]}})
    place.heard()
    open_gate(place, "late")
    place.waits("late", f"service class 'closed': may not be used in namespace {place.name}")
    place.api.patch(path, {"spec": {"namespaces": ["elsewhere", place.name]}})
    place.bound("late")


@scene
def test_a_gated_pod_is_left_alone_and_owed_nothing(place: Place) -> None:
    place.nodes(1)
    place.create("pods", gated("gate", "silver"))
    time.sleep(8)  # which would be seen in the ledger
    assert place.node_of("gate") == ""
    assert place.ledger("pod-gate") is None
    assert condition(place.pod("gate"), "PodScheduled")["reason"] == "SchedulingGated"  # the API server's word
    opened = time.time()
    open_gate(place, "gate")
    place.bound("gate")
    status = settled(place, "pod-gate", 1)
    (life,) = place.lives("gate")
    # Owed since the gate was opened, not since it was created, which is eight seconds more.
    lived = at(status) - opened
    slack = life.running(at(status)) / SILVER - lived - ledgers.ALPHA
    ledgers.close(status["slackSeconds"], slack, ledgers.error_of([life], at(status), 2) / SILVER, f"slack, {lived=}")


@scene
def test_a_resource_claim_that_is_missing_is_waited_for(place: Place) -> None:
    place.nodes(1)
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    body = pod("claims", resourceClaims=claims)
    place.create("pods", body)
    place.waits("claims", "ResourceClaim gpu not found")
    assert place.node_of("claims") == ""


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)
