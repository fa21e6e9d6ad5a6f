"""Processes that one run starts, tells to begin, and ends: those and no others."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, cast

import slacktide
from slacktide.errors import RunsError

START_SECONDS = 120.0
"""A machine may be slow, and loaded."""
SOURCES = str(Path(slacktide.__file__).resolve().parents[1])


class Programs:
    """Programs by name; each says lines on stdout and ends, at the latest, when its stdin does.

    ``others`` checks, like :meth:`check`, what these programs need beside.
    """

    def __init__(self, others: Callable[[], None] = lambda: None) -> None:
        self._others = others
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._errors: dict[str, IO[bytes]] = {}
        self._said: dict[str, bytes] = {}

    def start(self, name: str, command: Sequence[str]) -> int:
        """Start one; the answer is its process id. In a session of its own: Ctrl-C is for whoever started it."""
        paths = [SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])]
        # One thread each: a pod's work is one processor's.
        more = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (end() closes it)
        self._errors[name] = errors
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            env={**os.environ, **more}, start_new_session=True,
        )  # fmt: skip
        self._running[name] = process
        self._said[name] = b""
        return process.pid

    def begin(self, name: str) -> None:
        """The line on stdin for which a program waits."""
        stdin = cast(IO[bytes], self._running[name].stdin)
        try:
            stdin.write(b"begin\n")
            stdin.flush()
        except OSError as error:
            raise RunsError(f"{name} has ended: {self._trouble(name)}") from error

    def line(self, name: str, seconds: float = START_SECONDS) -> str:
        """The next line that a program says; raises RunsError when it ends before, or says nothing for so long."""
        stdout = cast(IO[bytes], self._running[name].stdout)
        end = time.monotonic() + seconds
        while b"\n" not in self._said[name]:
            left = end - time.monotonic()
            if left <= 0:
                raise RunsError(f"{name} says nothing for {seconds:g} s")
            if not select.select([stdout], [], [], min(left, 0.5))[0]:
                self.check()
                continue
            read = os.read(stdout.fileno(), 65536)
            if not read:
                raise RunsError(f"{name} has ended: {self._trouble(name)}")
            self._said[name] += read
        said, _, self._said[name] = self._said[name].partition(b"\n")
        return said.decode()

    def check(self) -> None:
        """Raises RunsError when one has failed, or one of the others."""
        self._others()
        for name, process in self._running.items():
            if process.poll() not in (None, 0):
                raise RunsError(f"{name} has ended with code {process.returncode}: {self._trouble(name)}")

    def end(self) -> None:
        """End and reap all."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    except OSError:  # nobody reads what was still to be written
                        continue
        for errors in self._errors.values():
            errors.close()
        self._running.clear()
        self._errors.clear()

    def _trouble(self, name: str) -> str:
        errors = self._errors[name]
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it says nothing"
