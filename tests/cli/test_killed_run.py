"""Whatever ends a run, earlier results are whole and nothing half-written is left where results are looked for."""

from __future__ import annotations

import hashlib
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from slacktide.cli import main
from support import compiled_policy
from support.program import PROGRAM, simulating

pytestmark = pytest.mark.slow

PLANNING = f"{compiled_policy.__file__}:CompiledPolicy"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    out = tmp_path_factory.mktemp("killed") / "cell"
    assert main(["generate", "cell", "--seed", "5", "--out", str(out)]) == 0
    return [str(out / "workload.parquet"), str(out / "hosts.parquet")]


def fingerprint(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def simulate(inputs: list[str], out: Path, *words: str) -> list[str]:
    return ["simulate", *inputs, "--end", "3600", "--out", str(out), "--passes", "--events", *words]


@pytest.fixture(scope="module")
def earlier(inputs: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a run that came to its end."""
    out = tmp_path_factory.mktemp("earlier") / "results"
    assert main(simulate(inputs, out, "--seed", "1")) == 0
    return out


def long_run(inputs: list[str], out: Path, up_to: float) -> subprocess.Popen[bytes]:
    """A run of which so many seconds are simulated: asked for plans, the whole of it takes minutes."""
    command = [*PROGRAM, *simulate(inputs, out, "--seed", "2", "--set", f"policy.name={PLANNING}")]
    return simulating(command, out.parent / ".simulates", up_to, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
@pytest.mark.parametrize("up_to", [0.0, 60.0])
def test_earlier_results_outlive_a_run_that_is_ended(
    ending: signal.Signals, up_to: float, inputs: list[str], earlier: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    shutil.copytree(earlier, out)
    before = fingerprint(out)
    with long_run(inputs, out, up_to) as process:
        assert process.poll() is None, "the run was over before it could be ended"
        process.send_signal(ending)
        process.wait(timeout=300)
        assert process.returncode != 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert fingerprint(out) == before
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["results"]
    assert main(simulate(inputs, out, "--seed", "1")) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["results"], "what the ended run left is cleared up"
    now = fingerprint(out)
    assert now.keys() == before.keys()
    assert {name for name in before if before[name] != now[name]} <= {"manifest.json", "passes.parquet"}
