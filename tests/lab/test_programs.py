"""Where a lab's programs come from, and what is left alone."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slacktide.lab import Binaries, ControlPlane, LabError
from slacktide.lab.binaries import NEEDED, find
from slacktide.lab.building import SOURCES, build, cached
from slacktide.lab.processes import Component


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labs of tests are none of the user's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "a lab"
    yield place
    if (place / "lab.json").exists():
        ControlPlane.attach(place).kill()


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
