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
if "BEGINS" in os.environ:
    open(os.environ["BEGINS"], "w").close()
sys.exit(main())
"""
PROGRAM = [sys.executable, "-c", CODE]
LONGEST_START_SECONDS = 60.0


def begun(command: list[str], mark: Path, **settings: Any) -> subprocess.Popen[bytes]:
    """A process that has imported the program and begins its work; ``mark`` is a file that it makes then."""
    process = subprocess.Popen(command, env=os.environ | {"BEGINS": str(mark)}, **settings)
    end = time.monotonic() + LONGEST_START_SECONDS
    while not mark.exists():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise AssertionError(f"it does not begin; exit code {process.wait()}")
        time.sleep(0.01)
    mark.unlink()
    return process
