"""Whose doing a loss is, on a real control plane: what somebody could forge gains nothing and costs nobody anything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from cluster.judging import Json
from cluster.labtools import HANG_SECONDS, condition, deployment, job, readiness, until
from cluster.running import Cast, Place, Stage, at, nothing_wrong, scene, service_class, staged
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.lab import Binaries
from slacktide.lab.nodes import set_ready

CLASS, APPROACH, STARTUP = "slacktide.io/class", "slacktide.io/approach", "slacktide.io/startup-seconds"
ALLOWED_SECONDS = 6.0
"""``kube.startup_allowance`` here."""
WINDOWS = "/apis/slacktide.io/v1beta1/maintenancewindows"
ERROR_SECONDS = 3.0
"""Times of objects are whole seconds, and what is seen late counts late; generous, as the machine may be busy."""


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    classes = [
        service_class("silver", 0.9, 2, marginSeconds=1),
        service_class("bronze", 0.05, 3, marginSeconds=1, default=True),
        service_class("gold", 0.999, 1),
        service_class("all", 0.9, 2, counts="everything"),
        service_class("equals", 0.9, 4, marginSeconds=1),
    ]
    yield from staged(
        binaries, tmp_path_factory.mktemp("causes"), classes,
        qos__alpha=1.0, kube__startup_allowance=ALLOWED_SECONDS, scheduler__watchdog=15,
    )  # fmt: skip


def web(replicas: int = 1, name: str = "web", service: str = "silver", **settings: Any) -> Json:
    return deployment(name, replicas, labels={CLASS: service}, **settings)


def say(place: Place, name: str, ready: bool, **container: Any) -> None:
    """What a kubelet would say of a pod whose only container is called main."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    status: Json = {"conditions": readiness(ready, now)}
    if container:
        status["containerStatuses"] = [
            {"name": "main", "image": "none", "imageID": "", "ready": ready, "restartCount": 0, **container}
        ]
    place.api.patch(f"{place.kinds_path('pods')}/{name}/status", {"status": status}, STRATEGIC)


def running(place: Place, name: str = "deployment-web", count: int = 1) -> Json:
    return place.status(name, lambda s: (s["running"], s["waiting"]) == (count, 0), f"{count} running")


def lost(place: Place, name: str, cause: str, least: float) -> Json:
    """The ledger once it has lost so many seconds by a cause; nothing else of note, while that went on."""
    return place.status(name, lambda s: s["lostSeconds"][cause] >= least, f"{least} s lost by the {cause}")


def stays_good(status: Json, before: Json) -> None:
    """Nothing was counted against the promise between two looks at a ledger."""
    assert status["lostSeconds"]["cluster"] - before["lostSeconds"]["cluster"] <= ERROR_SECONDS
    assert status["delivered"] >= before["delivered"] - ERROR_SECONDS / max(1.0, before["goodSeconds"])


@scene
def test_a_failing_probe_gains_slack_and_drives_nobody_out(place: Place) -> None:
    """One node with room for one. Somebody fails its probe, and an honest equal that comes has its place.

    They have a class and a rank of their own: where a pod of another scene is late its rank counts as overloaded, and
    equals take nothing of each other that is not far above its promise.
    """
    place.nodes(1, cpu="1", pods=110)
    place.create("deployments", web(name="sick", service="equals", cpu="800m"))
    (sick,) = place.ready("sick")
    before = running(place, "deployment-sick")
    say(place, sick["metadata"]["name"], False)
    after = lost(place, "deployment-sick", "workload", 12.0)
    stays_good(after, before)
    assert (after["running"], after["waiting"], after["state"]) == (0, 1, "Kept")
    assert after["slackSeconds"] > before["slackSeconds"]
    until(lambda: place.slack("deployment-sick") > 2.0 or _carried(place) > 2.0, "it has slack to lose")
    place.create("deployments", web(name="honest", service="equals", cpu="800m"))
    place.ready("honest")
    status = place.status("deployment-sick", lambda s: s["preemptions"] == 1, "it was an ordinary victim")
    assert status["lostSeconds"]["workload"] >= 12.0
    assert all(one["metadata"]["name"] != sick["metadata"]["name"] for one in place.pods())


def _carried(place: Place) -> float:
    """Slack of the sick one by now: as of one that runs."""
    status = (place.ledger("deployment-sick") or {})["status"]
    return float(status["slackSeconds"] + (time.time() - at(status)) / 9.0)


@scene
def test_a_crash_loop(place: Place) -> None:
    place.nodes(1)
    place.create("deployments", web())
    (one,) = place.ready("web")
    before, name = running(place), one["metadata"]["name"]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ended = {"exitCode": 1, "reason": "Error", "startedAt": now, "finishedAt": now}
    state = {"running": None, "waiting": {"reason": "CrashLoopBackOff"}}
    say(place, name, False, restartCount=1, state=state, lastState={"terminated": ended})
    stays_good(lost(place, "deployment-web", "workload", 5.0), before)
    say(place, name, True, restartCount=1, state={"waiting": None, "running": {"startedAt": now}})
    running(place)


@scene
def test_an_image_that_cannot_be_pulled(place: Place) -> None:
    place.nodes(1)
    place.create("deployments", web(annotations={STARTUP: "600"}))
    name = until(lambda: [one for one in place.pods("web") if one["spec"].get("nodeName")], "bound")[0]["metadata"][
        "name"
    ]
    until(lambda: place.pod(name)["status"].get("containerStatuses"), "the kubelet has it")
    say(place, name, False, state={"waiting": {"reason": "ImagePullBackOff"}})
    before = lost(place, "deployment-web", "workload", 0.1)
    stays_good(lost(place, "deployment-web", "workload", 5.0), before)


@scene
def test_a_start_up_that_never_ends(place: Place) -> None:
    """The containers run; what lasts longer than is allowed is the workload's."""
    place.nodes(1)
    place.create("deployments", web(annotations={STARTUP: "600"}))
    name = until(lambda: [one for one in place.pods("web") if one["spec"].get("nodeName")], "bound")[0]["metadata"][
        "name"
    ]
    until(lambda: place.pod(name)["status"].get("containerStatuses"), "the kubelet has it")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    state = {"waiting": None, "running": {"startedAt": now}}
    body = {"status": {"containerStatuses": [
        {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    ]}}  # fmt: skip
    place.api.patch(f"{place.kinds_path('pods')}/{name}/status", body, STRATEGIC)
    status = lost(place, "deployment-web", "workload", 6.0)
    created = place.lives("web")[0].created
    assert status["lostSeconds"]["cluster"] == pytest.approx(
        _instant(now) + ALLOWED_SECONDS - created, abs=ERROR_SECONDS
    )


def _instant(text: str) -> float:
    return at({"at": text})


@scene
def test_an_impossible_replica_of_a_concurrent_workload(place: Place) -> None:
    place.nodes(2, cpu="2", pods=110)
    body = web(2, "pair", annotations={APPROACH: "concurrent"})
    body["kind"] = "StatefulSet"
    body["spec"] |= {"serviceName": "pair", "podManagementPolicy": "Parallel"}
    place.create("statefulsets", body)
    place.ready("pair", 2)
    before = running(place, "statefulset-pair", 2)
    main = {"name": "main", "resources": {"requests": {"cpu": "64"}}}
    place.patch("statefulsets", "pair", {"spec": {"template": {"spec": {"containers": [main]}}}})
    until(
        lambda: (one := place.get("pods", "pair-1")) and not one["spec"].get("nodeName"),
        "the new pair-1",
    )
    place.waits("pair-1", "Insufficient cpu")
    status = lost(place, "statefulset-pair", "workload", 8.0)
    stays_good(status, before)
    assert (status["running"], status["waiting"], status["state"]) == (1, 1, status["state"])
    assert status["state"] in ("Kept", "AtRisk")
    place.nodes(1, prefix="big", cpu="130", pods=110)
    place.bound("pair-1")  # a node came that can take it, and the other one, which is replaced next
    place.ready("pair", 2)


@scene
def test_deleting_and_creating_anew_wins_nothing(place: Place) -> None:
    place.nodes(1)
    place.create("deployments", web())
    place.ready("web")
    until(lambda: place.slack("deployment-web") > 1.0, "it has slack")
    place.delete("deployments", "web")
    last = place.status("deployment-web", lambda s: "deletedAt" in s, "its ledger stays")
    assert last["goodSeconds"] > 15.0
    until(lambda: not place.pods("web"), "its pod is gone")
    uid = place.create("deployments", web())["metadata"]["uid"]
    place.ready("web")
    status = place.status(
        "deployment-web", lambda s: s["target"]["uid"] == uid and s["running"] == 1, "the new one's ledger"
    )
    assert status["goodSeconds"] >= last["goodSeconds"]
    assert status["slackSeconds"] >= 0.0  # a new one would begin at -1


@scene
def test_a_single_pod_with_another_label_does_not_raise_its_deployment(place: Place) -> None:
    place.nodes(1)
    place.create("deployments", web(2, service="bronze"))
    one, other = (each["metadata"]["name"] for each in place.ready("web", 2))
    running(place, count=2)
    place.patch("pods", one, {"metadata": {"labels": {CLASS: "gold"}}})
    place.heard()
    say(place, other, False)  # so that the ledger is written again
    assert lost(place, "deployment-web", "workload", 0.1)["class"] == "bronze"
    say(place, other, True)
    template = {"metadata": {"labels": {CLASS: "silver"}}}
    place.patch("deployments", "web", {"spec": {"template": template}})
    place.status("deployment-web", lambda s: s["class"] == "silver", "the class of its template")


@scene
def test_a_pod_that_is_terminating_on_a_dead_node(place: Place) -> None:
    first, second = place.nodes(2)
    place.kubectl.ok("cordon", second)
    place.heard()
    short = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
        for why in ("not-ready", "unreachable")
    ]
    place.create("deployments", web(tolerations=short))
    (old,) = place.ready("web")
    # Nobody there ends it, as on a node that is lost.
    place.patch("pods", old["metadata"]["name"], {"metadata": {"finalizers": ["example.com/lost"]}})
    running(place)
    place.kubectl.ok("uncordon", second)
    set_ready(place.api, first, False)
    new = until(lambda: [one for one in place.pods("web") if one["spec"].get("nodeName") == second], "its replacement")[
        0
    ]
    name = new["metadata"]["name"]
    until(lambda: condition(place.pod(name), "Ready").get("status") == "True", "it is ready")
    before = running(place)
    assert "deletionTimestamp" in place.pod(old["metadata"]["name"])["metadata"]
    after = place.status("deployment-web", lambda s: s["goodSeconds"] > before["goodSeconds"] + 8.0, "it runs on")
    stays_good(after, before)
    assert (after["running"], after["waiting"]) == (1, 0)
    place.patch("pods", old["metadata"]["name"], {"metadata": {"finalizers": None}})
    set_ready(place.api, first, True)


@scene
def test_a_suspended_job_is_not_charged(place: Place) -> None:
    place.nodes(1)
    body = job("long", 3600)
    body["spec"] |= {"parallelism": 2, "completions": 4}
    place.create("jobs", body)
    place.ready("long", 2)
    before = running(place, "job-long", 2)
    place.patch("jobs", "long", {"spec": {"suspend": True}})
    until(lambda: not place.pods("long"), "its pods are gone")
    status = lost(place, "job-long", "operator", 10.0)
    stays_good(status, before)
    assert status["state"] != "Missed"
    place.patch("jobs", "long", {"spec": {"suspend": False}})
    place.ready("long", 2)
    stays_good(running(place, "job-long", 2), status)


@scene
def test_a_drain_within_a_maintenance_window(place: Place) -> None:
    (first,), (dead,) = place.nodes(1, labels={"drained": "yes"}), place.nodes(1, prefix="-dead")
    place.create("deployments", web(1, "within", nodeSelector={"drained": "yes"}))
    place.create("deployments", web(1, "fence", nodeSelector={"kubernetes.io/hostname": dead}))
    (fence,) = place.ready("fence")
    place.ready("within")
    set_ready(place.api, dead, False)
    say(place, fence["metadata"]["name"], False)
    before = running(place, "deployment-within")
    begin, end = time.time() - 5, time.time() + 3600
    spec = {"start": _text(begin), "end": _text(end), "nodeSelector": {"matchLabels": {"scene": place.name}}}
    place.api.post(WINDOWS, {"metadata": {"name": place.name}, "spec": spec, "apiVersion": "slacktide.io/v1beta1",
                             "kind": "MaintenanceWindow"})  # fmt: skip
    lost(place, "deployment-fence", "operator", 0.1)  # so the scheduler knows the window, by which that is excused
    place.kubectl.ok("cordon", first)
    place.kubectl.ok("drain", first, "--ignore-daemonsets", "--timeout=60s")
    until(lambda: [one for one in place.pods("within") if not one["spec"].get("nodeName")], "its replacement waits")
    status = lost(place, "deployment-within", "operator", 8.0)
    stays_good(status, before)
    place.kubectl.ok("uncordon", first)
    place.ready("within")
    status = running(place, "deployment-within")
    stays_good(status, before)
    # The window is over: what is not ready from then on is the cluster's.
    place.api.delete(f"{WINDOWS}/{place.name}")
    set_ready(place.api, dead, True)


def _text(instant: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(instant))


@scene
def test_a_drain_without_one(place: Place) -> None:
    (first,) = place.nodes(1)
    place.create("deployments", web(1, "without"))
    place.ready("without")
    running(place, "deployment-without")
    place.kubectl.ok("cordon", first)
    place.kubectl.ok("drain", first, "--ignore-daemonsets", "--timeout=60s")
    status = lost(place, "deployment-without", "cluster", 5.0)
    assert status["lostSeconds"]["operator"] == 0.0
    place.kubectl.ok("uncordon", first)
    place.ready("without")


@scene
def test_a_class_that_counts_everything(place: Place) -> None:
    place.nodes(1)
    place.create("deployments", web(service="all"))
    (one,) = place.ready("web")
    before = running(place)
    say(place, one["metadata"]["name"], False)
    status = lost(place, "deployment-web", "workload", 6.0)
    assert status["slackSeconds"] < before["slackSeconds"]
    assert status["delivered"] < 1.0 - 5.0 / (status["goodSeconds"] + 20.0)


def test_nothing_was_wrong(cast: Cast) -> None:
    nothing_wrong(cast)


def test_causes_survive_a_kill_and_are_in_the_metrics(stage: Stage, cast: Cast) -> None:
    cast.over()
    place = Place(stage, "killed")
    place.nodes(1)
    place.create("deployments", web())
    before = running(place)
    (one,) = place.pods("web")
    say(place, one["metadata"]["name"], False)
    first = lost(place, "deployment-web", "workload", 2.0)
    stage.scheduler.kill()
    stage.scheduler.restart()
    status = lost(place, "deployment-web", "workload", first["lostSeconds"]["workload"] + 8.0)
    stays_good(status, before)
    with urlopen(f"http://127.0.0.1:{stage.scheduler.port}/metrics", timeout=HANG_SECONDS) as answer:
        lines = answer.read().decode().splitlines()
    who = 'class="silver",kind="Deployment",name="web",namespace="killed"'
    (line,) = [one for one in lines if one.startswith("slacktide_workload_lost_seconds_total{") and who in _sorted(one)
               and 'cause="workload"' in one]  # fmt: skip
    assert float(line.rpartition(" ")[2]) >= status["lostSeconds"]["workload"]


def _sorted(line: str) -> str:
    """A sample with its labels in order, the cause left out."""
    labels = line.partition("{")[2].partition("}")[0].split(",")
    return ",".join(sorted(one for one in labels if not one.startswith("cause=")))
