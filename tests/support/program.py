"""The program as a person starts it: a test run in the background ignores Ctrl-C, and so would what it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CODE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from slacktide.cli import main
if "SIMULATES" in os.environ:
    from slacktide.experiment import run_folder
    marks, usual = [os.environ["SIMULATES"]], run_folder.run
    def report(simulated, *_):
        if marks and simulated >= float(os.environ["UP_TO"]):
            open(marks.pop(), "w").close()
    run_folder.run = lambda *words, **named: usual(*words, **named | {"progress": report})
sys.exit(main())
"""
PROGRAM = [sys.executable, "-c", CODE]
LONGEST_START_SECONDS = 180.0


def simulating(command: list[str], mark: Path, up_to: float, **settings: Any) -> subprocess.Popen[bytes]:
    """A process of ``simulate --out`` in the middle of its run: so many seconds are simulated.

    ``mark`` is a file that it makes then.
    """
    process = subprocess.Popen(command, env=os.environ | {"SIMULATES": str(mark), "UP_TO": str(up_to)}, **settings)
    end = time.monotonic() + LONGEST_START_SECONDS
    while not mark.exists():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise AssertionError(f"it does not simulate; exit code {process.wait()}")
        time.sleep(0.01)
    mark.unlink()
    return process
