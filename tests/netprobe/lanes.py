"""Nodes as network namespaces: each joined by a veth pair to a namespace in which a program forwards, with a delay.

The forwarder stands for the network: the agent of node a knows b under an address of the forwarder's, as a peer behind
a router with port forwarding. It holds every datagram for half of the pair's round-trip time, counted from the instant
at which the kernel had it.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

KEY = "this is the key of a test, of 32 characters and more"
PROBES, HTTP = 10360, 10361
START_SECONDS = 60
LETTERS = itertools.cycle("abcdefghijklopqrstuvwxyz")
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000


def command(*words: str) -> str:
    """The output of a program that must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


def why_not() -> str:
    """Why there can be no namespaces here; empty where there can be."""
    if sys.platform != "linux" or shutil.which("ip") is None:
        reason = "needs Linux and the program 'ip' of iproute2"
        if os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1":
            raise RuntimeError(f"{reason}, but SLACKTIDE_REQUIRE_SERVERS=1")
        return reason
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    name = f"slt{os.getpid()}probe"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        return ""
    return f"the kernel gives no network namespace: {done.stderr.strip()}"


class Lanes:
    """Nodes, their links, the forwarder, and agents on them; ``delays`` has the pairs' round-trip times in seconds."""

    def __init__(self, folder: Path, delays: dict[tuple[str, str], float], *, ipv6: bool = False) -> None:
        self.folder, self.ipv6 = folder, ipv6
        self.delays = delays
        self.nodes = sorted({name for pair in delays for name in pair})
        self._mark = f"s{os.getpid() % 100_000}{next(LETTERS)}"  # names of links have at most 15 characters
        self.middle = f"{self._mark}m"
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "key").write_text(KEY)

    def __enter__(self) -> Lanes:
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._programs.values():
            program.kill()
            program.wait()
        for name in (self.middle, *map(self.space, self.nodes)):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    # -- where things are ------------------------------------------------------------------------------------------

    def space(self, node: str) -> str:
        """The namespace of a node."""
        return f"{self._mark}{node}"

    def address(self, node: str, *, middle: bool = False) -> str:
        """A node's address, or that of the forwarder on the node's link."""
        number, last = self.nodes.index(node) + 1, 1 if middle else 2
        return f"fd99:{number}::{last}" if self.ipv6 else f"10.99.{number}.{last}"

    def _at(self, address: str, port: int) -> str:
        return f"[{address}]:{port}" if self.ipv6 else f"{address}:{port}"

    def port(self, a: str, b: str) -> int:
        """Where the forwarder takes what a sends to b."""
        return 11_000 + 100 * self.nodes.index(a) + self.nodes.index(b)

    def inside(self, space: str, *words: str) -> list[str]:
        """The command line that runs a program in a namespace."""
        return ["ip", "netns", "exec", space, *words]

    def _build(self) -> None:
        command("ip", "netns", "add", self.middle)
        command(*self.inside(self.middle, "ip", "link", "set", "lo", "up"))
        family, length = ("-6", "64") if self.ipv6 else ("-4", "24")
        for number, node in enumerate(self.nodes):
            space, near, far = self.space(node), f"{self._mark}n{number}", f"{self._mark}f{number}"
            command("ip", "netns", "add", space)
            pair = ("ip", "link", "add", near, "netns", space, "type", "veth", "peer", "name", far)
            command(*pair, "netns", self.middle)
            for where, link, middle in ((space, near, False), (self.middle, far, True)):
                # Without the pause for duplicate address detection IPv6 addresses are usable at once.
                extra = ("nodad",) if self.ipv6 else ()
                address = f"{self.address(node, middle=middle)}/{length}"
                command(*self.inside(where, "ip", family, "address", "add", address, "dev", link, *extra))
                command(*self.inside(where, "ip", "link", "set", link, "up"))
            command(*self.inside(space, "ip", "link", "set", "lo", "up"))
        plan = []
        for (one, other), seconds in self.delays.items():
            for a, b in ((one, other), (other, one)):
                plan.append(
                    {
                        "listen": [self.address(a, middle=True), self.port(a, b)],
                        "bind": [self.address(b, middle=True), 0],
                        "to": [self.address(b), PROBES],
                        "seconds": seconds / 2.0,
                    }
                )
        (self.folder / "plan.json").write_text(json.dumps(plan))
        program = str(Path(__file__).with_name("forwarder.py"))
        self._start("forwarder", self.middle, sys.executable, program, str(self.folder / "plan.json"))
        self.until(lambda: "ready" in self.log("forwarder"), "the forwarder is ready")

    # -- programs --------------------------------------------------------------------------------------------------

    def _start(self, name: str, space: str, *words: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._programs[name] = subprocess.Popen(
                self.inside(space, *words), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def log(self, name: str) -> str:
        """What a program has said."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def start(self, node: str, *words: str) -> None:
        """The agent of a node, as users run it."""
        peers = []
        for other in self.nodes:
            if other != node and ((node, other) in self.delays or (other, node) in self.delays):
                peers += ["--peer", f"{other}={self._at(self.address(node, middle=True), self.port(node, other))}"]
        self._start(
            node, self.space(node), sys.executable, "-m", "slacktide", "netprobe", "run", "--node", node,
            "--key-file", str(self.folder / "key"), "--bind", self._at(self.address(node), PROBES),
            "--listen", self._at(self.address(node), HTTP), "--interval", "0.2", "--timeout", "1.5", *peers, *words,
        )  # fmt: skip

    def stop(self, node: str) -> None:
        """SIGTERM, and wait; it must end well."""
        program = self._programs.pop(node)
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 0, self.log(node)

    def cut(self, node: str, *, down: bool = True) -> None:
        """Take a node's link down, or up again."""
        link = f"{self._mark}n{self.nodes.index(node)}"
        command(*self.inside(self.space(node), "ip", "link", "set", link, "down" if down else "up"))
        if not down and self.ipv6:
            raise NotImplementedError("an IPv6 address goes with its link")

    def script(self, space: str, text: str, *words: str) -> str:
        """Run a Python program in a namespace; its output."""
        return command(*self.inside(space, sys.executable, "-c", text, *words))

    # -- what agents say -------------------------------------------------------------------------------------------

    def get(self, node: str, path: str) -> str:
        """An agent's answer, asked on its own node."""
        url = f"http://{self._at(self.address(node), HTTP)}{path}"

        def ask() -> str:
            # Only this thread moves into the namespace, and it ends with the question.
            with open(f"/run/netns/{self.space(node)}") as namespace:
                assert LIBC.setns(namespace.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            with urllib.request.urlopen(url, timeout=20) as answer:
                return str(answer.read().decode())

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(ask).result()

    def row(self, node: str) -> dict[str, Any]:
        """An agent's row."""
        return dict(json.loads(self.get(node, "/row")))

    def peers(self, node: str) -> dict[str, dict[str, Any]]:
        """What an agent measured, by peer."""
        return {one["node"]: one for one in self.row(node)["peers"]}

    def metric(self, node: str, name: str, **labels: str) -> float:
        """One number of an agent's metrics."""
        words = ",".join(f'{key}="{value}"' for key, value in labels.items())
        start = f"slacktide_netprobe_{name}{{{words}}} " if words else f"slacktide_netprobe_{name} "
        lines = [line for line in self.get(node, "/metrics").splitlines() if line.startswith(start)]
        assert len(lines) == 1, f"{start!r} stands {len(lines)} times"
        return float(lines[0].rpartition(" ")[2])

    def until(self, condition: Any, what: str, seconds: float = START_SECONDS) -> Any:
        """The condition's first true value; an agent that does not answer yet counts as false."""
        end, said = time.monotonic() + seconds, ""
        while time.monotonic() < end:
            try:
                if found := condition():
                    return found
            except (AssertionError, OSError, KeyError) as error:  # it does not answer yet, or has not measured
                said = str(error)
            for name, program in self._programs.items():
                assert program.poll() is None, f"{name} has ended: {self.log(name)}"
            time.sleep(0.3)
        rows = {node: self._last_row(node) for node in self.nodes}
        raise AssertionError(f"not within {seconds} s: {what}; {said}; rows: {rows}")

    def _last_row(self, node: str) -> object:
        try:
            return self.row(node)
        except OSError as error:
            return str(error)

    def until_measured(self, node: str, samples: int, *, peers: int = 0) -> dict[str, dict[str, Any]]:
        """An agent's peers, once each of them has answered so many probes."""

        def found() -> dict[str, dict[str, Any]] | None:
            here = self.peers(node)
            enough = len(here) == (peers or len(self.nodes) - 1)
            return here if enough and all(one["samples"] >= samples for one in here.values()) else None

        return dict(self.until(found, f"{node} has measured", 2 * START_SECONDS))


needs_namespaces = pytest.mark.skipif(bool(why_not()), reason=why_not() or "they are there")
