"""What the Makefile's targets leave behind when they are interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.leash import descendants
from support.repository import REPOSITORY

STUBBORN = f"""#!{sys.executable}
import os, pathlib, signal, subprocess, sys, threading, time
for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(one, signal.SIG_IGN)
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
server = subprocess.Popen(sleeper, start_new_session=True)
between = subprocess.run([sys.executable, "-c", "import subprocess; print(subprocess.Popen("
    + repr(sleeper) + ", start_new_session=True, stdout=-3, stderr=-3).pid)"], capture_output=True, text=True)
folder = pathlib.Path(os.environ["STUBBORN"])
made = folder / f"{{os.getpid()}}.new"
made.write_text(f"{{os.getpid()}} {{server.pid}} {{between.stdout}}")
made.rename(folder / f"{{os.getpid()}}.pids")
time.sleep(600)
"""
"""In pytest's place: ignores signals, and has servers in sessions of their own, one without a parent."""


def until_there(folder: Path, count: int) -> list[int]:
    end = time.monotonic() + 60
    while len(found := list(folder.glob("*.pids"))) < count:
        assert time.monotonic() < end, f"{count} programs have not begun"
        time.sleep(0.02)
    return [int(pid) for one in found for pid in one.read_text().split()]


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.skipif(sys.platform != "linux", reason="processes without a parent are found on Linux only")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
@pytest.mark.parametrize("targets", [("live",), ("uncompiled",), ("live", "uncompiled")], ids="+".join)
def test_a_suite_that_is_ended_leaves_nothing_running(
    targets: tuple[str, ...], ending: signal.Signals, tmp_path: Path
) -> None:
    """As a terminal's Ctrl-C, or what ends a job of CI, does: every process of the group gets the signal."""
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "pytest").write_text(STUBBORN)
    (fake / "pytest").chmod(0o755)
    (fake / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (fake / "python").chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key not in ("CI", "MAKEFLAGS", "MAKELEVEL")}
    stamps = [word for name in ("dev", "run") for word in ("-o", f".venv/{name}.stamp")]
    make = subprocess.Popen(
        ["make", "--jobs=2", *stamps, *targets, f"BIN={fake}"],
        cwd=REPOSITORY,
        env=environment | {"STUBBORN": str(tmp_path)},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        pids = until_there(tmp_path, len(targets))
        assert all(map(is_there, pids))
        os.killpg(make.pid, ending)
        assert make.wait(30) != 0
        assert [pid for pid in pids if is_there(pid)] == []
    finally:
        for pid in [*descendants(make.pid), make.pid]:
            if is_there(pid):
                os.kill(pid, signal.SIGKILL)


def test_on_the_leash_who_ends_without_a_parent_does_not_seem_to_live_on() -> None:
    """Scripts wait so for what they began in another shell; a page's commands did, and hung."""
    script = "read pid < <(sh -c 'sleep 0.2 >/dev/null & echo $!'); while kill -0 $pid 2>/dev/null; do sleep 0.05; done"
    leash = [sys.executable, str(REPOSITORY / "tests/support/leash.py"), "bash", "-c", f"{script}; exit 3"]
    done = subprocess.run(leash, timeout=60, check=False)
    assert done.returncode == 3
