"""Nodes as network namespaces, joined by a forwarder that delays what passes between them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from slacktide.edge.emulation.programs import Programs
from slacktide.errors import ConfigError

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
