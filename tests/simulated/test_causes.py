"""Whose doing it was that instances did not run (docs/causes.md): what counts against a promise, and what does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.labtools import deployment, job, pod
from simulated.crowding import HEARD_SECONDS
from simulated.pod_model import set_condition, timestamp
from simulated.resources import BY_NAME, Json
from simulated.stage import START_SECONDS, Stage, service_class, staged

CLASS, STARTUP, APPROACH = "slacktide.io/class", "slacktide.io/startup-seconds", "slacktide.io/approach"
ALLOWED_SECONDS = 5
SHARP = 0.2
"""Seconds, for each thing that happens: what takes its way to the scheduler."""


@pytest.fixture
def place() -> Iterator[Stage]:
    classes = [
        service_class("silver", 0.9, 2, marginSeconds=1),
        service_class("bronze", 0.05, 3, marginSeconds=1, default=True),
        service_class("gold", 0.999, 1),
        service_class("all", 0.9, 2, counts="everything"),
    ]
    with staged(classes, qos__alpha=1.0, kube__startup_allowance=ALLOWED_SECONDS, scheduler__watchdog=15) as stage:
        yield stage


def web(replicas: int = 1, name: str = "web", service: str = "silver", **settings: Any) -> Json:
    return deployment(name, replicas, labels={CLASS: service}, **settings)


def running(place: Stage, name: str = "deployment-web", count: int = 1) -> Json:
    return place.status(name, lambda one: (one["running"], one["waiting"]) == (count, 0), f"{count} running")


def lost(place: Stage, name: str, cause: str, least: float) -> Json:
    """The ledger once it has lost so many seconds by a cause."""
    return place.status(name, lambda one: one["lostSeconds"][cause] >= least, f"{least} s lost by the {cause}")


def stays_good(status: Json, before: Json) -> None:
    """Nothing was counted against the promise between two looks at a ledger."""
    assert status["lostSeconds"]["cluster"] - before["lostSeconds"]["cluster"] <= SHARP
    assert status["delivered"] >= before["delivered"] - SHARP / max(1.0, before["goodSeconds"])


def say(place: Stage, name: str, **container: Any) -> None:
    """What its kubelet says of a pod's only container; its probe fails from now on."""
    place.world.kubelets.sick.add((place.namespace, name))
    body = json.loads(json.dumps(place.pod(name)))
    body["status"] |= {"phase": "Running", "startTime": timestamp(place.world.store.now())}
    told = (body["status"].get("containerStatuses") or [{"name": "c"}])[0]
    body["status"]["containerStatuses"] = [{**told, "ready": False, "restartCount": 0, **container}]
    for kind in ("ContainersReady", "Ready"):
        set_condition(body, place.world.store.now(), kind, "False", "ContainersNotReady")
    place.world.store.write(BY_NAME["pods"], body)


def test_a_failing_probe_gains_slack_and_is_an_ordinary_victim(place: Stage) -> None:
    """One node with room for one. Somebody fails its probe, and an honest equal that comes has its place."""
    place.nodes(1, cpu="1")
    place.create("deployments", web(name="sick", cpu="800m"))
    (sick,) = place.ready("sick")
    before = running(place, "deployment-sick")
    failed = place.now
    place.probe(sick, False)
    after = lost(place, "deployment-sick", "workload", 12.0)
    assert after["lostSeconds"]["workload"] == pytest.approx(place.instant(after["at"]) - failed, abs=1.0 + SHARP)
    stays_good(after, before)
    assert (after["running"], after["waiting"], after["state"]) == (0, 1, "Kept")
    assert after["slackSeconds"] > before["slackSeconds"]
    place.status("deployment-sick", lambda one: one["slackSeconds"] > 6.0, "it has slack to lose")
    place.create("deployments", web(name="honest", cpu="800m"))
    place.ready("honest")
    status = place.status("deployment-sick", lambda one: one["preemptions"] == 1, "it was an ordinary victim")
    assert status["lostSeconds"]["workload"] >= 12.0
    assert sick not in place.names()


@pytest.mark.parametrize(
    ("container", "startup"),
    [
        ({"restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
          "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}, "1"),
        ({"state": {"waiting": {"reason": "ImagePullBackOff"}}}, "600"),
    ],
    ids=["a crash loop", "an image that cannot be pulled"],
)  # fmt: skip
def test_a_container_that_does_not_run_is_the_workloads_doing(place: Stage, container: Json, startup: str) -> None:
    place.nodes(1)
    place.create("deployments", web(annotations={STARTUP: startup}))
    name = place.until(lambda: next(iter(place.names("web")), ""))
    place.bound(name)
    place.wait(3.0)
    say(place, name, **container)
    place.wait(HEARD_SECONDS)
    before = lost(place, "deployment-web", "workload", 0.1)
    stays_good(lost(place, "deployment-web", "workload", 60.0), before)
    place.probe(name, True)
    running(place)


def test_a_start_up_that_never_ends(place: Stage) -> None:
    """The containers run; what lasts longer than is allowed is the workload's."""
    place.nodes(1)
    place.create("deployments", web(annotations={STARTUP: "600"}))
    name = place.until(lambda: next(iter(place.names("web")), ""))
    place.bound(name)
    place.wait(1.0)
    began = int(place.now)  # in whole seconds, as the container's state says it
    status = lost(place, "deployment-web", "workload", 60.0)
    expected = began + ALLOWED_SECONDS - place.life(name).created
    assert status["lostSeconds"]["cluster"] == pytest.approx(expected, abs=1.0 + SHARP)


def test_an_impossible_replica_of_a_concurrent_workload(place: Stage) -> None:
    """Its sibling counts as before; once a node can take it, it is bound."""
    place.nodes(2, cpu="2")
    template = {"metadata": {"labels": {"app": "pair"}}, "spec": pod("none")["spec"]}
    spec = {"replicas": 2, "serviceName": "pair", "selector": {"matchLabels": {"app": "pair"}}, "template": template}
    made = place.create("statefulsets", {"metadata": {"name": "pair"}, "spec": spec})
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "pair", "uid": made["metadata"]["uid"]}

    def replica(name: str, cpu: str) -> None:
        body = pod(name, cpu=cpu, labels={CLASS: "silver", "app": "pair"}, annotations={APPROACH: "concurrent"})
        body["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        place.create("pods", body)

    replica("pair-0", "100m")
    replica("pair-1", "100m")
    place.ready("pair", 2)
    before = running(place, "statefulset-pair", 2)
    place.delete("pods", "pair-1", 0)
    replica("pair-1", "64")
    place.waits("pair-1", "Insufficient cpu")
    status = lost(place, "statefulset-pair", "workload", 60.0)
    stays_good(status, before)
    assert (status["running"], status["waiting"], status["state"]) == (1, 1, "Kept")
    place.nodes(1, prefix="big", cpu="130")
    place.bound("pair-1")
    place.ready("pair", 2)


def test_deleting_and_creating_anew_wins_nothing(place: Stage) -> None:
    place.nodes(1)
    place.create("deployments", web())
    place.ready("web")
    place.status("deployment-web", lambda one: one["slackSeconds"] > 1.0, "it has slack")
    place.delete("deployments", "web")
    last = place.status("deployment-web", lambda one: "deletedAt" in one, "its ledger stays")
    assert last["goodSeconds"] > 15.0
    place.until(lambda: not place.pods("web"), "its pod is gone")
    uid = place.create("deployments", web())["metadata"]["uid"]
    place.ready("web")
    status = place.status("deployment-web", lambda one: one["target"]["uid"] == uid and one["running"] == 1, "the new")
    assert status["goodSeconds"] >= last["goodSeconds"]
    assert status["slackSeconds"] >= 0.0  # a new one would begin at -1


def test_a_single_pod_with_another_label_does_not_raise_its_deployment(place: Stage) -> None:
    place.nodes(1)
    place.create("deployments", web(2, service="bronze"))
    one, other = place.ready("web", 2)
    running(place, count=2)
    place.patch("pods", one, {"metadata": {"labels": {CLASS: "gold"}}})
    place.probe(other, False)  # so that the ledger is written again
    assert lost(place, "deployment-web", "workload", 0.1)["class"] == "bronze"
    place.probe(other, True)
    place.patch("deployments", "web", {"spec": {"template": {"metadata": {"labels": {CLASS: "silver"}}}}})
    place.status("deployment-web", lambda status: status["class"] == "silver", "the class of its template")


def test_a_pod_that_is_terminating_on_a_dead_node(place: Stage) -> None:
    """Whoever comes for it goes on with its instance, and it counts no more though it is there."""
    first, second = place.nodes(2)
    place.cordon(second)
    place.wait(HEARD_SECONDS)
    place.create("deployments", web())
    (old,) = place.ready("web")
    place.patch("pods", old, {"metadata": {"finalizers": ["example.com/lost"]}})
    running(place)
    place.cordon(second, False)
    place.world.kubelets.fail(first)
    place.until(lambda: place.pod(old)["metadata"].get("deletionTimestamp"), "its node was given up")
    place.until(lambda: place.names("web") and place.node_of(place.names("web")[0]) == second, "its replacement")
    before = running(place)
    assert place.get("pods", old) is not None
    after = place.status("deployment-web", lambda one: one["goodSeconds"] > before["goodSeconds"] + 60.0, "it runs on")
    stays_good(after, before)
    assert (after["running"], after["waiting"]) == (1, 0)


def test_a_suspended_job_is_not_charged(place: Stage) -> None:
    place.nodes(1)
    body = job("long", 3600)
    body["spec"] |= {"parallelism": 2, "completions": 4}
    place.create("jobs", body)
    place.ready("long", 2)
    before = running(place, "job-long", 2)
    place.merge("jobs", "long", {"spec": {"suspend": True}})
    suspended = place.now
    place.until(lambda: not place.pods("long"), "its pods are gone")
    status = lost(place, "job-long", "operator", 60.0)
    since = 2 * (place.instant(status["at"]) - suspended)
    assert status["lostSeconds"]["operator"] == pytest.approx(since, abs=2 * (1.0 + SHARP))  # they take their grace
    stays_good(status, before)
    assert status["state"] != "Missed"
    place.merge("jobs", "long", {"spec": {"suspend": False}})
    place.ready("long", 2)
    resumed = running(place, "job-long", 2)["lostSeconds"]["cluster"] - status["lostSeconds"]["cluster"]
    assert resumed == pytest.approx(2 * START_SECONDS, abs=2 * SHARP)


def drain(place: Stage, node: str) -> None:
    """Cordon a node, and evict its pods as a user does."""
    place.cordon(node)
    for one in place.pods():
        if one["spec"].get("nodeName") == node:
            name, uid = one["metadata"]["name"], one["metadata"]["uid"]
            place.world.invariants.drained.add(uid)
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            place.send("POST", f"{place.path('pods', name)}/eviction", eviction)


@pytest.mark.parametrize("within", [True, False], ids=["within a maintenance window", "without one"])
def test_a_drain(place: Stage, within: bool) -> None:
    (first,) = place.nodes(1, labels={"drained": "yes"})
    place.create("deployments", web())
    place.ready("web")
    before = running(place)
    if within:
        now = place.world.store.now()
        spec = {"start": timestamp(now - 5), "end": timestamp(now + 3600),
                "nodeSelector": {"matchLabels": {"drained": "yes"}}}  # fmt: skip
        place.create("maintenancewindows", {"metadata": {"name": "window"}, "spec": spec})
        place.wait(HEARD_SECONDS)
    drained = place.now
    drain(place, first)
    place.until(lambda: any(not one["spec"].get("nodeName") for one in place.pods("web")), "its replacement waits")
    cause, other = ("operator", "cluster") if within else ("cluster", "operator")
    status = lost(place, "deployment-web", cause, before["lostSeconds"][cause] + 60.0)
    charged = status["lostSeconds"][cause] - before["lostSeconds"][cause]
    assert charged == pytest.approx(place.instant(status["at"]) - drained, abs=1.0 + SHARP)
    assert status["lostSeconds"][other] == pytest.approx(before["lostSeconds"][other], abs=SHARP)
    place.cordon(first, False)
    place.ready("web")


def test_a_class_that_counts_everything(place: Stage) -> None:
    place.nodes(1)
    place.create("deployments", web(service="all"))
    (one,) = place.ready("web")
    before = running(place)
    place.probe(one, False)
    status = lost(place, "deployment-web", "workload", 6.0)
    assert before["slackSeconds"] - status["slackSeconds"] >= 6.0 - SHARP
    assert status["delivered"] < 1.0 - 5.0 / (status["goodSeconds"] + 20.0)


def test_causes_survive_a_kill_and_are_in_the_metrics(place: Stage) -> None:
    place.nodes(1)
    place.create("deployments", web())
    before = running(place)
    (one,) = place.names("web")
    place.probe(one, False)
    first = lost(place, "deployment-web", "workload", 2.0)
    place.kill()
    status = lost(place, "deployment-web", "workload", first["lostSeconds"]["workload"] + 60.0)
    stays_good(status, before)
    found = place.metrics("slacktide_workload_lost_seconds_total")
    (told,) = [value for labels, value in found.items() if 'cause="workload"' in labels and 'name="web"' in labels]
    assert told >= status["lostSeconds"]["workload"]
