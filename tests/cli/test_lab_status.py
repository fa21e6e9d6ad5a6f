"""``slacktide lab status``, of processes that are no servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slacktide.cli import main
from slacktide.cli.machine import lab
from slacktide.lab import manifests, state
from slacktide.lab.processes import Component
from slacktide.lab.programs import Layout


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def components(tmp_path: Path) -> Iterator[dict[str, Component]]:
    """Two programs that a lab's state names, both running."""
    found = {
        name: Component(name, [sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / f"{name}.log")
        for name in ("etcd", "kube-apiserver")
    }
    for one in found.values():
        one.start()
    state.write(Layout(tmp_path, 1, 2, 3), found)
    yield found
    for one in found.values():
        one.stop()


def test_status_says_what_runs_and_what_has_ended(
    components: dict[str, Component], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "status", "--dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "https://127.0.0.1:3" in out
    assert [line.split()[:3] for line in out.splitlines() if line.split()[2:3] == ["runs"]] == [
        [name, str(one.pid), "runs"] for name, one in components.items()
    ]
    components["etcd"].stop()
    with pytest.raises(SystemExit) as ended:
        main(["lab", "status", "--dir", str(tmp_path)])
    assert ended.value.code == 1
    assert f"slacktide lab down --dir {tmp_path}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["lab", "status", "--dir", str(tmp_path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert {name: one["running"] for name, one in told["components"].items()} == {"etcd": False, "kube-apiserver": True}


def test_without_a_lab_it_says_how_to_start_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "status", "--dir", str(tmp_path / "none")]) != 0
    assert f"slacktide lab up --dir {tmp_path / 'none'}" in capsys.readouterr().err


def started(directory: Path) -> Path:
    """A lab of which nothing runs, as 'up --dir' notes it."""
    directory.mkdir()
    state.write(Layout(directory, 1, 2, 3), {})
    state.remember(lab._list_of_labs(), directory)
    return directory


def test_a_lab_that_was_started_elsewhere_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = started(tmp_path / "one")
    assert main(["lab", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["directory"] == str(one)
    other = started(tmp_path / "with space")
    assert main(["lab", "status"]) != 0
    err = capsys.readouterr().err
    assert str(one) in err
    assert f"--dir '{other}'" in err


def test_beside_the_one_at_the_default_others_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    default = lab.default_directory()
    default.parent.mkdir(parents=True)
    started(default)
    one, gone = started(tmp_path / "one"), started(tmp_path / "gone")
    state.forget(gone)
    assert main(["lab", "status"]) == 0
    out = capsys.readouterr().out
    assert str(default) in out
    assert f"Another lab: slacktide lab status --dir {one}" in out
    assert str(gone) not in out
    assert main(["lab", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["others"] == [str(one)]
    started(tmp_path / "two")
    assert state.known(lab._list_of_labs()) == [default, one, tmp_path / "two"]
    assert lab._list_of_labs().read_text().count("\n") == 3  # what is gone is forgotten


def test_a_setting_that_cannot_be_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "up", "--dir", str(tmp_path / "new"), "--set", "qos.margin=soon"]) != 0
    assert "qos.margin" in capsys.readouterr().err
    assert main(["lab", "up", "--dir", str(tmp_path / "new"), "--without-scheduler", "--set", "qos.margin=1"]) != 0
    assert not (tmp_path / "new").exists()


def test_settings_come_after_those_of_the_lab(tmp_path: Path) -> None:
    command = lab._scheduler(tmp_path / "kubeconfig", 4711, ["qos.margin=5", "kube.listen=127.0.0.1:4712"])
    assert command[-4:] == ["--set", "qos.margin=5", "--set", "kube.listen=127.0.0.1:4712"]
    layout = Layout(tmp_path, 1, 2, 3)
    state.write(layout, {state.SCHEDULER: Component(state.SCHEDULER, command, tmp_path / "log")})
    assert state.scheduler_address(tmp_path, layout.url) == "127.0.0.1:4712"


def test_the_labs_classes_are_those_of_the_examples() -> None:
    examples = Path(__file__).parent.parent.parent / "examples" / "kubernetes" / "01-classes.yaml"
    assert manifests.CLASSES.read_text(encoding="utf-8") == examples.read_text(encoding="utf-8")
