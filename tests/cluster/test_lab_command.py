"""``slacktide lab`` as a user runs it, and where its programs come from."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.labtools import pod, pods, pods_path, until
from slacktide.lab import Binaries, ControlPlane, LabError, state
from slacktide.lab.binaries import NEEDED, find
from slacktide.lab.building import SOURCES, build, cached
from slacktide.lab.processes import Component, born


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
def test_up_and_down(directory: Path) -> None:
    size = ("--nodes", "3", "--cpu", "8", "--memory", "1Gi", "--pods", "9")
    up = slacktide("lab", "up", "--dir", directory, *size, "--without-scheduler")
    assert up.returncode == 0, up.stderr
    assert f"kubeconfig: {directory / 'kubeconfig'}" in up.stdout
    assert f"slacktide lab down --dir '{directory}'" in up.stdout
    lab = ControlPlane.attach(directory)
    assert lab.token not in up.stdout + up.stderr
    nodes = lab.api.get("/api/v1/nodes")["items"]
    room = [one["status"]["allocatable"] for one in nodes]
    assert [(one["cpu"], one["memory"], one["pods"]) for one in room] == [("8", "1Gi", "9")] * 3
    running = pids(directory)
    assert len(running) == 4
    assert all(born(pid) for pid in running)

    again = slacktide("lab", "up", "--dir", directory)
    assert again.returncode != 0
    assert f"a lab runs in {directory} (etcd, kube-apiserver, kube-controller-manager, kwok)" in again.stderr
    assert pids(directory) == running
    assert all(born(pid) for pid in running)

    down = slacktide("lab", "down", "--dir", directory)
    assert down.returncode == 0, down.stderr
    assert down.stdout.startswith("ended: etcd, kube-apiserver")
    assert not any(born(pid) for pid in running)
    assert sorted(entry.name for entry in directory.iterdir()) == ["lock", "logs"]

    none = slacktide("lab", "down", "--dir", directory)
    assert none.returncode != 0
    assert "no lab in" in none.stderr


@pytest.mark.usefixtures("binaries")
def test_up_schedules(directory: Path) -> None:
    up = slacktide("lab", "up", "--dir", directory, "--nodes", "1")
    assert up.returncode == 0, up.stderr
    lab = ControlPlane.attach(directory)
    lab.api.post(pods_path("default"), pod("one", schedulerName="slacktide"))

    def told() -> str:
        said = pods(lab.api, "default")[0].get("status", {}).get("conditions", [])
        return next((one.get("message", "") for one in said if one["type"] == "PodScheduled"), "")

    until(
        lambda: "the cluster has no ServiceClass: kubectl apply -f examples" in told(), "it is said what to apply", 200
    )
    lab.api.post("/apis/slacktide.io/v1beta1/serviceclasses", service_class("only", default=True))
    until(lambda: pods(lab.api, "default", "Running"), "the scheduler has placed a pod", 200)
    found = slacktide("explain", "pod", "one", "--kubeconfig", directory / "kubeconfig")
    assert found.returncode == 0, found.stderr
    assert "did not answer" not in found.stdout, "the lab's own scheduler is asked, wherever it listens"
    assert "History, the latest entry last:" in found.stdout
    inherited = slacktide("explain", "pod", "one", "--json", KUBECONFIG=str(directory / "kubeconfig"))
    assert json.loads(inherited.stdout)["name"] == "one"
    address = state.scheduler_address(directory, lab.url)
    assert re.fullmatch(r"127\.0\.0\.1:\d+", address)
    assert state.scheduler_address(directory, "https://127.0.0.1:1") == "", "another cluster's scheduler is not asked"
    down = slacktide("lab", "down", "--dir", directory)
    assert "slacktide" in down.stdout
    assert state.scheduler_address(directory, lab.url) == ""


@pytest.mark.usefixtures("binaries")
def test_up_applies_classes_and_takes_settings(directory: Path) -> None:
    own = ("--classes", "--set", "kube.scheduler_name=mine")
    up = slacktide("lab", "up", "--dir", directory, "--nodes", "1", *own)
    assert up.returncode == 0, up.stderr
    lab = ControlPlane.attach(directory)
    found = lab.api.get("/apis/slacktide.io/v1beta1/serviceclasses")["items"]
    assert sorted(one["metadata"]["name"] for one in found) == ["bronze", "gold", "silver"]
    lab.api.post(pods_path("default"), pod("one", schedulerName="mine"))
    until(lambda: pods(lab.api, "default", "Running"), "the scheduler has placed a pod", 200)
    status = slacktide("lab", "status")
    assert status.returncode == 0, status.stderr
    assert str(directory) in status.stdout
    assert slacktide("lab", "down").stdout.startswith("ended: ")


def service_class(name: str, **more: object) -> dict[str, object]:
    spec = {"slo": 0.9, "rank": 1, "namespaces": ["*"], **more}
    return {"apiVersion": "slacktide.io/v1beta1", "kind": "ServiceClass", "metadata": {"name": name}, "spec": spec}


@pytest.mark.usefixtures("binaries")
def test_a_lab_whose_processes_are_gone_is_cleaned_up_by_down_and_by_up(directory: Path) -> None:
    assert slacktide("lab", "up", "--dir", directory, "--nodes", "0", "--without-scheduler").returncode == 0
    lab = ControlPlane.attach(directory)
    for component in lab.components.values():
        component.kill()
    again = slacktide("lab", "up", "--dir", directory, "--nodes", "1", "--without-scheduler")
    assert again.returncode == 0, again.stderr
    for component in ControlPlane.attach(directory).components.values():
        component.kill()
    down = slacktide("lab", "down", "--dir", directory)
    assert down.returncode == 0
    assert "nothing of it ran any more" in down.stdout


def test_a_process_that_got_the_number_of_one_that_ended_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        component = Component("etcd", ["etcd"], tmp_path / "log", pid=stranger.pid, born="another boot/1")
        assert not component.running
        component.kill()
        component.stop()
        assert stranger.poll() is None
        assert stranger.stdin is not None
        stranger.stdin.close()


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No lab variables, an empty cache, and a PATH of one folder besides the system's shell."""
    for name in ("SLACKTIDE_LAB_BIN", "KUBEBUILDER_ASSETS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLACKTIDE_LAB_CACHE", str(tmp_path / "cache"))
    on_path = tmp_path / "path"
    on_path.mkdir()
    monkeypatch.setenv("PATH", str(on_path))
    return on_path


def test_programs_are_found_in_order_of_precedence(
    empty_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find("kwok") is None
    in_cache = program(cached("kwok"), "exit 1")
    assert find("kwok") == in_cache
    on_path = program(empty_machine / "kwok", "echo 'kwok version v0.8.7 go1.26 (linux/amd64)'")
    assert find("kwok") == on_path
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert find("kwok") == on_path  # envtest's folder has no kwok
    in_assets = program(tmp_path / "assets" / "kwok", "")
    assert find("kwok") == in_assets
    monkeypatch.setenv("SLACKTIDE_LAB_BIN", str(tmp_path / "named"))
    in_named = program(tmp_path / "named" / "kwok", "")
    assert find("kwok") == in_named
    own = program(tmp_path / "own" / "kwok", "")
    assert find("kwok", tmp_path / "own") == own


@pytest.mark.parametrize(
    ("name", "says", "fits"),
    [
        ("kube-apiserver", "Kubernetes v1.36.9", True),
        ("kube-apiserver", "Kubernetes v1.35.9", False),
        ("kwok", "kwok version v0.7.0 go1.25 (linux/amd64)", False),
        ("etcd", "etcd Version: 3.4.23", False),
        ("etcd", "etcd Version: 3.5.13", True),
        ("etcd", "etcd Version: 4.0.0", True),
        ("etcd", "no version", False),
        ("kubectl", "whatever", True),
    ],
)
def test_a_program_on_the_path_must_have_a_version_that_fits(
    empty_machine: Path, name: str, says: str, fits: bool
) -> None:
    program(empty_machine / name, f"echo '{says}'")
    assert (find(name) is not None) == fits


@pytest.mark.usefixtures("empty_machine")
def test_without_programs_and_go_the_error_says_what_is_missing_and_how_to_get_it() -> None:
    with pytest.raises(LabError) as error:
        Binaries.find()
    text = str(error.value)
    assert all(name in text for name in NEEDED)
    assert "no 'go' on the PATH" in text
    assert "https://go.dev/dl" in text
    assert "--bin DIR" in text


def test_a_wrong_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"--bin .*nowhere: is no directory"):
        Binaries.find(directory=tmp_path / "nowhere")


def test_two_that_build_at_once_build_once(empty_machine: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    # The shell's own commands only: this PATH has nothing else.
    program(empty_machine / "go", f'echo "$@" >> {calls}\nread line < go.sum\n[ -n "$line" ] && echo built > kwok')
    said: list[str] = []
    builders = [threading.Thread(target=build, args=(["kwok"], said.append)) for _ in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert cached("kwok").read_text() == "built\n"
    assert len(calls.read_text().splitlines()) == 1
    assert "sigs.k8s.io/kwok/cmd/kwok" in calls.read_text()
    assert [text for text in said if text.startswith("building")] == [
        f"building kwok {SOURCES['kwok'].version} with Go (takes minutes, happens once)"
    ]


def test_a_failed_build_shows_gos_words_and_leaves_nothing(empty_machine: Path) -> None:
    program(empty_machine / "go", "echo half > kwok; echo cannot find module >&2; exit 3")
    with pytest.raises(LabError, match=r"could not build kwok 0\.8\.0 \(exit code 3\):\ncannot find module"):
        build(["kwok"], lambda _text: None)
    assert not cached("kwok").exists()
    assert sorted(entry.name for entry in cached("kwok").parents[1].iterdir()) == ["kwok-0.8.0", "lock"]


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
