"""Every kind of workload on a real control plane: placed, watched over, and its ledger as one works it out by hand.

What happens to them: ``simulated/test_workloads.py``; which class they have: ``simulated/test_classes.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from cluster import ledgers
from cluster.auditor import Life
from cluster.judging import Json
from cluster.labtools import condition, deployment, job, pod, until
from cluster.running import (
    WATCHDOG_SECONDS,
    Cast,
    Place,
    Stage,
    at,
    nothing_wrong,
    scene,
    service_class,
    staged,
)
from slacktide.kube.translate.owners import Target
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
    ]
    for one in classes:
        one["spec"]["counts"] = "everything"
    classes.append(service_class("excused", SILVER, 2))
    yield from staged(
        binaries, tmp_path_factory.mktemp("workloads"), classes,
        qos__alpha=ledgers.ALPHA, scheduler__watchdog=WATCHDOG_SECONDS,
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
    spec = {"schedule": "0 0 29 2 *", "jobTemplate": {"spec": template}}
    made = place.create("cronjobs", {"metadata": {"name": "report"}, "spec": spec})
    for name in ("report-now", "report-again"):
        place.kubectl.ok("-n", place.namespace, "create", "job", name, "--from=cronjob/report")
    until(lambda: len([one for one in place.lives("report") if one.phase == "Succeeded"]) >= 2, "two runs")

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


@scene
def test_the_ledger_of_an_owner_that_nobody_watches_goes_with_it(place: Place) -> None:
    """The garbage collector takes it; what the scheduler makes of that: ``simulated/test_changes.py``."""
    place.nodes(1)
    maps = f"/api/v1/namespaces/{place.namespace}/configmaps"
    uid = place.api.post(maps, {"metadata": {"name": "custom"}})["metadata"]["uid"]
    body = pod("piece")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "custom", "uid": uid, "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    place.create("pods", body)
    ledger = Target("v1", "ConfigMap", place.namespace, "custom", uid).ledger
    settled(place, ledger, 1)
    place.api.delete(f"{maps}/custom?propagationPolicy=Background")
    until(lambda: place.get("pods", "piece") is None and place.ledger(ledger) is None, "both are gone")


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


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)
