"""Interrupted at a random moment, again and again, by Ctrl-C and by kill: resumed, the results are those of an
uninterrupted experiment, and no process is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from slacktide.results import experiment
from support.experiments import GRID, alive, children_of, run, started, tables, written

TIMES = 8
MANY = (
    GRID.replace("small: small.csv", "small: {generator: light, with: {hosts: 20, requests: 1500}}")
    .replace("all: hosts.csv", "all: {generator: light, with: {hosts: 17}}")
    .replace("seeds: 2", "seeds: 4")
)


def at_work(process: subprocess.Popen[str], out: Path) -> None:
    """Wait until the program has taken its folder; before, Ctrl-C ends Python itself."""
    until = time.monotonic() + 180
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError):
            if f"process {process.pid} " in (out / ".lock").read_text():
                return
        time.sleep(0.02)


def another_done(process: subprocess.Popen[str], out: Path) -> None:
    """Wait until one more run is done."""
    before = len(list(out.glob("runs/*/manifest.json")))
    while process.poll() is None and len(list(out.glob("runs/*/manifest.json"))) == before:
        time.sleep(0.01)


def gone(pids: list[int], patience: float = 60.0) -> bool:
    """Whether all of these processes end soon."""
    until = time.monotonic() + patience
    while any(map(alive, pids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.slow
def test_interruptions_change_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    grid = written(tmp_path, MANY)
    chance = random.Random(1)
    process = started(grid, tmp_path / "whole", "--jobs", "2")
    at_work(process, tmp_path / "whole")
    begun = time.monotonic()
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    takes = time.monotonic() - begun  # from before the first worker is there to the last run
    expected = tables(tmp_path / "whole")
    assert len(expected) == 16
    resumed: list[int] = []
    for number in range(TIMES):
        out = tmp_path / f"interrupted-{number % 4}"
        how = signal.SIGINT if number % 8 < 4 else signal.SIGKILL
        process = started(grid, out, "--jobs", str(1 + number % 3 % 2))
        at_work(process, out)
        if number % 2:
            time.sleep(chance.uniform(0.0, takes))
        else:  # among the runs, however long processes take to begin
            another_done(process, out)
            time.sleep(chance.uniform(0.0, 0.4))
        workers = children_of(process.pid)
        process.send_signal(how)
        _, err = process.communicate(timeout=300)
        assert gone(workers), f"left behind after {how.name}: {workers}"
        assert process.returncode in (0, 130 if how is signal.SIGINT else -how, -how), err
        if process.returncode == 130:
            assert "resume" in err
            assert "Traceback" not in err
        whole = tables(out) if (out / "experiment.json").is_file() else {}
        assert all(expected[key] == found for key, found in whole.items())
        assert process.returncode != -signal.SIGINT or len(whole) == 16, "only Python's own end is interrupted so"
        resumed.append(len(whole))
    assert any(0 < count < 16 for count in resumed), "no interruption came in the middle"
    request.getfixturevalue("in_process")  # which runs what is missing sooner
    for out in sorted(tmp_path.glob("interrupted-*")):
        assert run(grid, out) == 0
        assert tables(out) == expected
        assert [one.key for one in experiment.read(out).runs] == list(expected)
        left = [one.name for one in (out / "runs").iterdir() if one.name not in expected]
        assert left == []  # nothing half-written stays


def test_ctrl_c_on_a_terminal_reaches_the_whole_group_and_still_ends_cleanly(tmp_path: Path) -> None:
    grid = written(tmp_path, MANY)
    process = started(grid, tmp_path / "out", "--jobs", "2")
    while not children_of(process.pid) and process.poll() is None:
        time.sleep(0.01)
    workers = children_of(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert gone(workers)
