"""``slacktide lab`` as a user runs it, and where its programs come from."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.labtools import pod, pods, pods_path, until
from slacktide.lab import ControlPlane, state
from slacktide.lab.processes import born


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labs of tests are none of the user's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def slacktide(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slacktide", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "a lab"
    yield place
    if (place / "lab.json").exists():
        ControlPlane.attach(place).kill()


def pids(directory: Path) -> list[int]:
    return [one["pid"] for one in json.loads((directory / "lab.json").read_text())["components"]]


@pytest.mark.usefixtures("binaries")
def test_up_schedules_until_down(directory: Path) -> None:
    size = ("--nodes", "3", "--cpu", "8", "--memory", "1Gi", "--pods", "9")
    up = slacktide("lab", "up", "--dir", directory, *size, "--set", "kube.scheduler_name=mine")
    assert up.returncode == 0, up.stderr
    assert f"kubeconfig: {directory / 'kubeconfig'}" in up.stdout
    assert f"slacktide lab down --dir '{directory}'" in up.stdout
    lab = ControlPlane.attach(directory)
    assert lab.token not in up.stdout + up.stderr
    nodes = lab.api.get("/api/v1/nodes")["items"]
    room = [one["status"]["allocatable"] for one in nodes]
    assert [(one["cpu"], one["memory"], one["pods"]) for one in room] == [("8", "1Gi", "9")] * 3
    running = pids(directory)
    assert len(running) == 5
    assert all(born(pid) for pid in running)
    lab.api.post(pods_path("default"), pod("one", schedulerName="mine"))

    def told() -> str:
        said = pods(lab.api, "default")[0].get("status", {}).get("conditions", [])
        return next((one.get("message", "") for one in said if one["type"] == "PodScheduled"), "")

    until(
        lambda: "the cluster has no ServiceClass: kubectl apply -f examples" in told(), "it is said what to apply", 200
    )
    lab.api.post("/apis/slacktide.io/v1beta1/serviceclasses", service_class("only", default=True))
    until(lambda: pods(lab.api, "default", "Running"), "the scheduler has placed a pod", 200)
    found = slacktide("explain", "one", "--kubeconfig", directory / "kubeconfig")
    assert found.returncode == 0, found.stderr
    assert "did not answer" not in found.stdout, "the lab's own scheduler is asked, wherever it listens"
    assert "History, the latest entry last:" in found.stdout
    inherited = slacktide("explain", "one", "--json", KUBECONFIG=str(directory / "kubeconfig"))
    assert json.loads(inherited.stdout)["name"] == "one"
    address = state.scheduler_address(directory, lab.url)
    assert re.fullmatch(r"127\.0\.0\.1:\d+", address)
    assert state.scheduler_address(directory, "https://127.0.0.1:1") == "", "another cluster's scheduler is not asked"
    status = slacktide("lab", "status")
    assert status.returncode == 0, status.stderr
    assert str(directory) in status.stdout

    again = slacktide("lab", "up", "--dir", directory)
    assert again.returncode != 0
    assert f"a lab runs in {directory} (etcd, kube-apiserver, kube-controller-manager, kwok, slacktide)" in again.stderr
    assert pids(directory) == running
    assert all(born(pid) for pid in running)

    down = slacktide("lab", "down")  # the only one there is
    assert down.returncode == 0, down.stderr
    assert down.stdout.startswith("ended: etcd, kube-apiserver")
    assert not any(born(pid) for pid in running)
    assert sorted(entry.name for entry in directory.iterdir()) == ["lock", "logs"]
    assert state.scheduler_address(directory, lab.url) == ""

    none = slacktide("lab", "down", "--dir", directory)
    assert none.returncode != 0
    assert "no lab in" in none.stderr


def service_class(name: str, **more: object) -> dict[str, object]:
    spec = {"slo": 0.9, "rank": 1, "namespaces": ["*"], **more}
    return {"apiVersion": "slacktide.io/v1beta1", "kind": "ServiceClass", "metadata": {"name": name}, "spec": spec}


@pytest.mark.usefixtures("binaries")
def test_a_lab_whose_processes_are_gone_is_cleaned_up_by_down_and_by_up(directory: Path) -> None:
    assert slacktide("lab", "up", "--dir", directory, "--nodes", "0", "--without-scheduler").returncode == 0
    lab = ControlPlane.attach(directory)
    for component in lab.components.values():
        component.kill()
    again = slacktide("lab", "up", "--dir", directory, "--nodes", "1", "--classes", "--without-scheduler")
    assert again.returncode == 0, again.stderr
    found = ControlPlane.attach(directory).api.get("/apis/slacktide.io/v1beta1/serviceclasses")["items"]
    assert sorted(one["metadata"]["name"] for one in found) == ["bronze", "gold", "silver"]
    for component in ControlPlane.attach(directory).components.values():
        component.kill()
    down = slacktide("lab", "down", "--dir", directory)
    assert down.returncode == 0
    assert "nothing of it ran any more" in down.stdout


@pytest.mark.usefixtures("binaries")
def test_an_interrupted_up_leaves_nothing(directory: Path) -> None:
    command = [sys.executable, "-m", "slacktide", "lab", "up", "--dir", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as up:
        until(lambda: (directory / "lab.json").exists() and len(started(directory)) >= 2, "two programs run")
        running = started(directory)
        while up.poll() is None:  # an interrupt that comes while Python runs a finalizer is lost, and a user repeats it
            up.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                up.wait(timeout=1)
        assert up.returncode in (130, -signal.SIGINT), (
            up.communicate()
        )  # the latter where the last came at its very end
    until(lambda: not any(born(pid) for pid in running), "they have ended")
    assert not (directory / "lab.json").exists()


def started(directory: Path) -> list[int]:
    return [pid for pid in pids(directory) if pid]
