"""``slacktide lab status``, of processes that are no servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slacktide.cli import main
from slacktide.lab import state
from slacktide.lab.processes import Component
from slacktide.lab.programs import Layout


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
