"""A real Dask scheduler and its workers on this machine: the same results, also when a worker is killed under way."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from slacktide.cli import main
from slacktide.results import experiment
from support.experiments import GRID, alive, run, started, tables, written

# Found, not imported: that takes a second of every process that collects tests.
pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="the extra 'experiments' is not installed")

MANY = (
    GRID.replace("small: small.csv", "small: {generator: light, with: {hosts: 20, requests: 4000}}")
    .replace("all: hosts.csv", "all: {generator: light, with: {hosts: 17}}")
    .replace("seeds: 2", "seeds: 6")
)


def dask(*words: str, log: Path) -> subprocess.Popen[bytes]:
    """A process of Dask; its log is there for who has to look."""
    with log.open("wb") as file:
        command = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]]
        return subprocess.Popen(command, stdout=file, stderr=file)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler and two workers of one thread each, processes that can be killed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    words = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    processes = [dask("dask_scheduler", *words, log=tmp_path / "scheduler.log")]
    workers = []
    for number in range(2):
        here = tmp_path / f"worker-{number}"
        words = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(here)]
        workers.append(dask("dask_worker", *words, "--host", "127.0.0.1", log=tmp_path / f"worker-{number}.log"))
    processes += workers
    try:
        until = time.monotonic() + 180
        while not all("Registered to" in (tmp_path / f"worker-{n}.log").read_text() for n in range(2)):
            assert time.monotonic() < until, (tmp_path / "worker-0.log").read_text()
            time.sleep(0.05)
        yield address, workers
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait(10)


@pytest.mark.slow
def test_a_killed_worker_costs_nothing(tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]) -> None:
    address, workers = cluster
    grid = written(tmp_path, MANY)
    out = tmp_path / "out"
    process = started(grid, out, "--cluster", address)
    while process.poll() is None and len(list(out.glob("runs/*/manifest.json"))) < 2:
        time.sleep(0.01)
    os.kill(workers[0].pid, signal.SIGKILL)
    done = len(list(out.glob("runs/*/manifest.json")))
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert 2 <= done < 24, "the worker was killed mid-run"
    assert len(experiment.read(out).done) == 24
    assert workers[1].poll() is None
    assert not alive(process.pid)

    local = tmp_path / "local"
    assert run(grid, local) == 0
    assert tables(local) == tables(out)


def test_a_scheduler_that_does_not_answer_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    command = ["experiment", "run", str(written(tmp_path)), "--out", str(tmp_path / "out"), "--cluster"]
    assert main([*command, "nonsense://x"]) == 2
    assert "expected the address of a Dask scheduler that answers" in capsys.readouterr().err
    assert main([*command, address, "--jobs", "2"]) == 2
