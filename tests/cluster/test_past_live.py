"""``slacktide past`` beside a real kube-scheduler: the cluster, a dump of it and the audit log tell the same."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cluster.labtools import deployment, pods, until
from slacktide.cli import main
from slacktide.kube.resources.objects import SERVICE_CLASS
from slacktide.lab import Binaries, ControlPlane
from slacktide.pasts.kinds import TOLD

RESOURCES = [
    {"group": "", "resources": ["pods", "pods/status", "pods/binding", "pods/eviction", "nodes", "nodes/status"]},
    {"group": "apps", "resources": ["deployments", "replicasets"]},
]
WRITES = ["create", "update", "patch", "delete", "deletecollection"]
POLICY = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [{"level": "RequestResponse", "verbs": WRITES, "resources": RESOURCES}, {"level": "None"}],
}  # fmt: skip
PRIORITIES = {"high": 1000, "low": 10}


@pytest.fixture
def plane(binaries: Binaries, tmp_path: Path) -> Iterator[ControlPlane]:
    """kube-scheduler preempts two of four pods, and a node is cordoned. The log is in ``tmp_path``."""
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={tmp_path / 'audit.log'}"]
    plane = ControlPlane.create(tmp_path / "plane", binaries, with_kube_scheduler=True, flags={"kube-apiserver": flags})
    plane.start(guarded=True)
    try:
        play(plane)
        yield plane
    finally:
        plane.kill()


def play(plane: ControlPlane) -> None:
    plane.create_nodes(2, cpu="2", managed=False)
    for name, value in PRIORITIES.items():
        made = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        plane.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", made)
    deploy(plane, "low", 4)
    until(lambda: ready(plane, "low") == 4, "four pods run")
    deploy(plane, "high", 2)
    until(lambda: ready(plane, "high") == 2, "two took the places of two")
    until(lambda: len(pods(plane.api, "default")) == 6, "others wait in their stead, and the victims are gone")
    plane.api.patch("/api/v1/nodes/" + plane.api.get("/api/v1/nodes")["items"][0]["metadata"]["name"],
                    {"spec": {"unschedulable": True}})  # fmt: skip


def deploy(plane: ControlPlane, name: str, replicas: int) -> None:
    body = deployment(name, replicas, cpu="1", priorityClassName=name, terminationGracePeriodSeconds=1)
    body["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    plane.api.post("/apis/apps/v1/namespaces/default/deployments", body)


def ready(plane: ControlPlane, name: str) -> int:
    found = plane.api.get(f"/apis/apps/v1/namespaces/default/deployments/{name}")
    return int(found["status"].get("readyReplicas", 0))


def workloads(folder: Path) -> dict[str, dict[str, Any]]:
    with (folder / "workloads.csv").open(newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def test_three_sources_and_their_verdicts(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, log, dump = tmp_path / "now", tmp_path / "log", tmp_path / "dump"
    assert main(["past", "cluster", "--kubeconfig", str(plane.kubeconfig), "--out", str(now)]) == 0
    assert "writes nothing" in capsys.readouterr().err
    items = []
    for kind in (one for one in TOLD if one is not SERVICE_CLASS):  # which this cluster does not have
        found = plane.api.get(kind.path())["items"] or []
        items += [one | {"apiVersion": kind.api_version, "kind": kind.kind} for one in found]
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert main(["past", "objects", str(tmp_path / "dump.json"), "--out", str(dump)]) == 0
    assert main(["past", "audit", str(tmp_path / "audit.log"), "--out", str(log)]) == 0

    for folder in (now, dump, log):
        found = workloads(folder)
        assert {name: (one["kind"], one["priority"]) for name, one in found.items()} == {
            "low": ("Deployment", "10"), "high": ("Deployment", "1000"),
        }, folder  # fmt: skip
        assert [int(found[name]["instances"]) for name in ("low", "high")] == [4, 2], folder
    # Only a log knows what happened.
    assert {name: one["preempted"] for name, one in workloads(log).items()} == {"low": "2", "high": "0"}
    with (log / "pods.csv").open(newline="") as file:
        lives = list(csv.DictReader(file))
    assert len(lives) == 8
    assert sum(one["bound"] == "" for one in lives) == 2

    for folder in (now, dump, log):
        capsys.readouterr()
        with suppress(SystemExit):  # 1 where the simulation does not come out as it was, as of some seconds it may not
            main(["verdict", str(folder), "--seeds", "1", "--json"])
        found = json.loads(capsys.readouterr().out)
        if folder != log:  # its seconds are too few for any promise
            assert found["sizes"]["slacktide"]["nodes"] == 4, (
                "six pods need three nodes beside the one that is cordoned"
            )
        assert found["kept"][-1]["workloads"] == 2
        assert (folder / "verdict.html").exists()
