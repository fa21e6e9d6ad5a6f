"""``python leash.py COMMAND...``: runs a command; when it ends, no process of it is left.

A test suite that is interrupted (SIGINT), terminated (SIGTERM) or whose terminal goes away (SIGHUP) has processes in
sessions of their own, threads that wait for scenes to end, and libraries that catch signals. So the command gets the
signal, and ``PATIENCE`` seconds; then it and all that descends from it is killed. The exit code is the command's, or
128 + the signal's number.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

PATIENCE = 2.0
"""Seconds for finalizers, such as those that take network namespaces away."""
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere processes whose parent is gone are not found again."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Ids of all that descends from a process, children first, but not those that have ended."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue  # it has just ended
        state, parent = rest.split()[:2]
        if state not in "ZX":
            children.setdefault(int(parent), []).append(int(head.split()[0]))
    found, ahead = list[int](), [root]
    while ahead:
        ahead = [child for parent in ahead for child in children.get(parent, [])]
        found += ahead
    return found


def kill_all() -> None:
    """Kill whatever descends from this process, until nothing is left."""
    while found := descendants(os.getpid()):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        _reap()
        time.sleep(0.01)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process, once it has ended. Others that end are buried meanwhile: those whose parents are gone
    are our children, and to a script that waits for one of them it would seem to live on."""
    while True:
        pid, status = os.wait()
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


class _Ended(BaseException):
    """A signal that ends us."""


def _end(number: int, _: FrameType | None) -> None:
    for one in ENDS:
        signal.signal(one, signal.SIG_IGN)
    raise _Ended(number)


def main(command: list[str]) -> int:
    """Run the command; what is left of it is killed. Its exit code."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    for one in ENDS:
        signal.signal(one, _end)
    process = None
    try:
        # Of a session of its own, so that a terminal's Ctrl-C comes once, by way of us.
        process = subprocess.Popen(command, start_new_session=True, preexec_fn=_die_with_parent)  # noqa: PLW1509  # no threads
        code = _wait(process)
        return code if code >= 0 else 128 - code
    except _Ended as ended:
        number: int = ended.args[0]
        if process is not None:
            try:
                os.killpg(process.pid, number)
                process.wait(PATIENCE)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
        return 128 + number
    finally:
        kill_all()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
