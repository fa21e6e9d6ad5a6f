"""Nodes as network namespaces, joined by a forwarder that delays what passes between them."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

import slacktide
from slacktide.errors import ConfigError, RunsError

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


DEVICE = "link0"
PARTS = "10.98.0"
"""Nodes' addresses, in namespaces that have no other network."""
MOST = 250


def why_not() -> str:
    """What is missing for namespaces and links; empty where nothing is."""
    if sys.platform != "linux":
        return "needs Linux, for network namespaces and control groups"
    if shutil.which("ip") is None:
        return "needs the program 'ip' of iproute2, for network namespaces"
    if os.geteuid() != 0:
        return "needs root, for network namespaces and CPU quotas"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun, for the links between nodes"
    name = f"slacktide-{os.getpid()}-probe"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"the kernel gives no network namespace: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return ""


def inside(space: str, *words: str) -> list[str]:
    """The command line that runs a program in a namespace, as the same process."""
    return ["ip", "netns", "exec", space, *words]


class Spaces:
    """A namespace each of ``places``; ``rtt``: (p, p) round-trip times, seconds. A context manager.

    ``lags``: seconds by place that what its pods send to other places takes longer; 0 for a place it does not name.

    Raises ConfigError where they cannot be made.
    """

    def __init__(self, name: str, places: Sequence[str], rtt: NDArray[np.float64], lags: Mapping[str, float]) -> None:
        if len(places) > MOST:
            raise ConfigError(f"found {len(places)} places, expected at most {MOST}, one namespace each")
        self.spaces: Mapping[str, str] = {place: f"{name}-{number}" for number, place in enumerate(places)}
        self.addresses: Mapping[str, str] = {place: f"{PARTS}.{number + 1}" for number, place in enumerate(places)}
        self._rtt = rtt
        self._lags = [lags.get(place, 0.0) for place in places]
        self._made: list[str] = []
        self._programs = Programs()

    def __enter__(self) -> Spaces:
        try:
            for place, space in self.spaces.items():
                self._made.append(space)  # first: an interrupt may come between
                _ip(f"netns add {space}")
                _ip(
                    "link set lo up",
                    f"tuntap add dev {DEVICE} mode tun",
                    f"address add {self.addresses[place]}/32 dev {DEVICE}",
                    f"link set {DEVICE} up",
                    f"route add {PARTS}.0/24 dev {DEVICE}",
                    space=space,
                )
            self._forward()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._programs.end()
        while self._made:
            subprocess.run(["ip", "netns", "del", self._made.pop()], capture_output=True, check=False)

    def check(self) -> None:
        """Raises RunsError when the forwarder has ended."""
        self._programs.check()

    def _forward(self) -> None:
        nodes = [
            {"space": space, "device": DEVICE, "address": self.addresses[place]} for place, space in self.spaces.items()
        ]
        plan = json.dumps({"nodes": nodes, "delays": (self._rtt / 2.0).tolist(), "lags": self._lags})
        self._programs.start("forwarder", [sys.executable, "-m", "slacktide.edge.emulation.forwarder", plan])
        self._programs.line("forwarder")


def _ip(*lines: str, space: str = "") -> None:
    """Commands of ``ip``, in a namespace or outside; raises ConfigError with what it says."""
    command = ["ip", *(["-n", space] if space else []), "-batch", "-"]
    text = "\n".join(lines) + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise ConfigError(f"ip {'; '.join(lines)}: {done.stderr.strip()}")
