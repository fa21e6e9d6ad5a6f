"""Whose doing a loss is, on a real control plane: what somebody could forge gains nothing and costs nobody anything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from cluster.judging import Json
from cluster.labtools import HANG_SECONDS, deployment, readiness, until
from cluster.running import Cast, Place, Stage, nothing_wrong, scene, service_class, staged
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
