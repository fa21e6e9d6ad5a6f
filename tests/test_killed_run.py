"""Whatever ends a run, earlier results are whole and nothing half-written is left where results are looked for."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import time
from pathlib import Path

import pytest

from program import PROGRAM, begun
from slacktide.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    out = tmp_path_factory.mktemp("killed") / "cell"
    assert main(["generate", "cell", "--seed", "5", "--out", str(out)]) == 0
    return [str(out / "workload.parquet"), str(out / "hosts.parquet")]


def fingerprint(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def simulate(inputs: list[str], out: Path, *words: str) -> list[str]:
    return ["simulate", *inputs, "--end", "3600", "--out", str(out), "--passes", "--events", *words]


def long_run(inputs: list[str], out: Path) -> subprocess.Popen[bytes]:
    """A run that writes far more than the earlier one: the stepwise engine takes minutes."""
    command = [*PROGRAM, *simulate(inputs, out, "--seed", "2", "--set", "simulation.engine=stepwise")]
    return begun(command, out.parent / ".begins", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
@pytest.mark.parametrize("after", [0.7, 4.0])
def test_earlier_results_outlive_a_run_that_is_ended(
    ending: signal.Signals, after: float, inputs: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "results"
    assert main(simulate(inputs, out, "--seed", "1")) == 0
    before = fingerprint(out)
    with long_run(inputs, out) as process:
        time.sleep(after)
        assert process.poll() is None, "the run was over before it could be ended"
        process.send_signal(ending)
        process.wait(timeout=60)
        assert process.returncode != 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert fingerprint(out) == before
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["results"]
    assert main(simulate(inputs, out, "--seed", "1")) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["results"], "what the ended run left is cleared up"
    earlier, now = before, fingerprint(out)
    assert {name for name in earlier if earlier[name] != now[name]} <= {"manifest.json", "passes.parquet"}
