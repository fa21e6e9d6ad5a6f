"""``slacktide run --dry-run``: says what it would have done and delivered beside a scheduler, and writes nothing."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.installation import ACCOUNT
from cluster.labtools import deployment, pods, until
from cluster.running import Running, audit_log, service_class
from slacktide.lab import Binaries, ControlPlane

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [f"system:serviceaccount:{':'.join(ACCOUNT)}"]}, {"level": "None"}],
}
"""Whatever the scheduler's account asks for is written down."""

GOLD, BRONZE = {"slacktide.io/class": "gold"}, {"slacktide.io/class": "bronze"}


@pytest.fixture
def beside(binaries: Binaries, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane with kube-scheduler at work, that writes down all that slacktide's account asks for."""
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={audit_log(tmp_path)}"]
    plane = ControlPlane.create(tmp_path / "plane", binaries, with_kube_scheduler=True, flags={"kube-apiserver": flags})
    plane.start(guarded=True)
    try:
        plane.install()
        for one in (service_class("gold", 0.999, 1), service_class("bronze", 0.5, 3)):
            plane.api.post("/apis/slacktide.io/v1beta1/serviceclasses", one)
        plane.create_nodes(4, cpu="2", managed=False)
        yield plane
    finally:
        plane.kill()


def deploy(plane: ControlPlane, name: str, replicas: int, labels: dict[str, str], startup: float, **spec: Any) -> None:
    body = deployment(name, replicas, cpu="1", labels=labels, **spec)
    metadata = body["spec"]["template"]["metadata"]
    metadata["annotations"] = {
        "slacktide.io/startup-seconds": str(startup),
        "slacktide.io/approach": "aggregated",
    }
    plane.api.post("/apis/apps/v1/namespaces/default/deployments", body)


def report_of(run: Running) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/report") as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def of_class(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next((dict(one) for one in report["classes"] if one["class"] == name), {})


def state_of(plane: ControlPlane) -> dict[str, Any]:
    """All objects that a scheduler could have written to or made, but for what they say of the time."""
    paths = {
        "events": "/api/v1/events",
        "leases": "/apis/coordination.k8s.io/v1/leases",
        "ledgers": "/apis/slacktide.io/v1beta1/availabilities",
        "pods": "/api/v1/pods",
        "nodes": "/api/v1/nodes",
    }
    return {name: plane.api.get(path)["items"] for name, path in paths.items()}


def written_by(directory: Path) -> list[str]:
    """What slacktide's account asked for other than reading."""
    lines = audit_log(directory).read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert any(one["verb"] == "watch" for one in entries), "the audit sees what the account does"
    return [f"{one['verb']} {one['requestURI']}" for one in entries if one["verb"] not in ("get", "list", "watch")]


def test_a_dry_run_beside_kube_scheduler(beside: ControlPlane, tmp_path: Path) -> None:
    """Eight cores full of bronze; four gold pods come. kube-scheduler lets them wait, we would not."""
    deploy(beside, "low", 8, BRONZE, startup=0.5)
    until(lambda: len(pods(beside.api, "default", "Running")) == 8, "bronze runs")
    run = Running(
        beside, "--dry-run", kube__scheduler_name="default-scheduler", kube__all_nodes=True, startup__cold="constant:1"
    )
    until(lambda: "dry run beside default-scheduler" in run.log, "it watches", 900)
    deploy(beside, "high", 4, GOLD, startup=0.5)

    def gold_has_run() -> dict[str, Any] | None:
        report = report_of(run)
        found = of_class(report, "gold").get("would", {})
        return report if found and found["waiting"] == 0 and found["delivered"] > 0.4 else None

    report = until(gold_has_run, "gold would be ready, and would have been for a while")
    gold, bronze = of_class(report, "gold"), of_class(report, "bronze")
    assert (report["would"]["preempted"], bronze["would"]["preemptions"]) == (4, 4)
    assert (report["did"]["preempted"], report["did"]["bound"]) == (0, 0)
    assert (gold["did"]["waiting"], gold["did"]["delivered"], gold["did"]["owed"]) == (4, 0.0, 1.0)
    assert (bronze["did"]["waiting"], bronze["did"]["share"]) == (0, 1.0)
    assert bronze["would"]["waiting"] == 4
    # Half of them are gone a second (their grace period) after the gold pods came; those are nearly all of the time.
    expected = 1 - 0.5 * (report["seconds"] - 1) / report["seconds"]
    assert expected - 0.1 < bronze["would"]["share"] < 1.0

    beside.api.delete("/apis/apps/v1/namespaces/default/deployments/low?propagationPolicy=Background")
    until(lambda: report_of(run)["did"]["bound"] == 4, "kube-scheduler binds gold, once bronze is gone")
    run.component.signal(signal.SIGUSR1)
    until(lambda: "slacktide would have bound 4 and preempted 4" in run.log, "the report on a signal")
    until(lambda: "default-scheduler bound 4 pods and preempted 0" in run.log, "all of the report")

    run.stop()
    assert run.log.count("By class, delivered so far") == 2, "one more at the end"
    assert not run.complaints(), run.log
    assert written_by(tmp_path) == []
    found = state_of(beside)
    assert found["ledgers"] == []
    assert not [one for one in found["leases"] if "slacktide" in one["metadata"]["name"]]
    for one in found["events"]:
        assert "slacktide" not in str(one.get("reportingComponent")) + str(one.get("source"))
    for one in (*found["pods"], *found["nodes"]):
        assert not [each for each in one["metadata"].get("managedFields", ()) if each["manager"] == "slacktide"]


def test_what_kube_scheduler_preempts_goes_on_where_we_would_not(beside: ControlPlane) -> None:
    """Bronze with a PriorityClass preempts gold without one there, and never here."""
    priority = {"metadata": {"name": "urgent"}, "value": 1000}
    beside.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    deploy(beside, "low", 8, GOLD, startup=0.2)
    until(lambda: len(pods(beside.api, "default", "Running")) == 8, "gold runs")
    time.sleep(1)
    run = Running(beside, "--dry-run", kube__scheduler_name="default-scheduler", kube__all_nodes=True)
    until(lambda: "dry run beside default-scheduler" in run.log, "it watches", 900)
    deploy(beside, "other", 2, BRONZE, startup=0.2, priorityClassName="urgent")
    until(lambda: (found := report_of(run))["did"]["preempted"] == 2 and found, "kube-scheduler preempts")
    until(lambda: (found := report_of(run))["did"]["bound"] == 2 and found, "and binds")

    def has_lost() -> dict[str, Any] | None:
        low = next(dict(one) for one in report_of(run)["controllers"] if one["controller"] == "Deployment/default/low")
        two = (low["did"]["preemptions"], low["did"]["waiting"]) == (2, 2)
        return low if two and low["did"]["received"] < low["did"]["lifetime"] - 1 else None

    low = until(has_lost, "two pods were preempted, wait, and lose time")
    # With us all eight have run all the time.
    assert low["would"]["preemptions"] == 0
    assert low["would"]["received"] == pytest.approx(low["would"]["lifetime"], abs=0.01)
    run.stop()
    assert not run.complaints(), run.log
