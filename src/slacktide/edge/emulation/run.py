"""A placement run with real work, and what is measured of it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import fmean
from types import FrameType, TracebackType
from typing import Any

from slacktide.edge.emulation.quotas import Quotas, cores
from slacktide.edge.emulation.spaces import Programs, Spaces, inside, why_not
from slacktide.edge.testbed import Run, Testbed
from slacktide.errors import ConfigError

SHARE = 0.8
"""Of the machine's processors that all nodes' vCPUs get together; the rest is for users, links and whoever measures."""
PORT = 8000
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OWN = "slacktide.edge.emulation"


@dataclass(frozen=True, slots=True)
class PodRun:
    """One pod: seconds from the common start until it began, of computing, and of a processor's work in it, which made
    so many iterations; of its users' requests; and until all is done."""

    name: str
    node: str
    began: float
    processing: float
    cpu: float
    iterations: int
    delays: tuple[float, ...]
    finished: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One run, of all pods."""

    pods: tuple[PodRun, ...]

    @property
    def completion(self) -> float:
        """Seconds until the last user has everything; without any pod 0."""
        return max((pod.finished for pod in self.pods), default=0.0)

    @property
    def processing(self) -> float:
        """Mean processing delay of a pod, seconds."""
        return fmean(pod.processing for pod in self.pods) if self.pods else 0.0

    @property
    def network(self) -> float:
        """Mean delay of one request, over all requests, seconds."""
        delays = [delay for pod in self.pods for delay in pod.delays]
        return fmean(delays) if delays else 0.0


class Emulation:
    """A scenario's nodes, ready for any number of runs; a context manager that leaves nothing behind.

    ``factor`` is how many of the machine's cores a vCPU is, 1 at most. With ``behaviour`` a node's pods have only those
    of its vCPUs that its daemons and the cluster's own pods leave. With ``deviation`` each answer of a pod to another
    node takes longer, by the standard deviation of its node's round-trip times to the others: a term of
    Lai, Wang and Wei's equation 11 put into the links, one whole for what are two requests there.

    Raises ConfigError where root, namespaces or control groups are missing. Ctrl-C, SIGTERM and SIGHUP end it like an
    error, as KeyboardInterrupt.
    """

    def __init__(self, testbed: Testbed, behaviour: Run | None = None, *, deviation: bool = True) -> None:
        if missing := why_not():
            raise ConfigError(f"emulation {missing}" if missing.startswith("needs") else missing)
        network, hosts = testbed.network, testbed.hosts
        if unknown := [name for name in hosts.names if name not in network.places]:
            raise ConfigError(f"{testbed.name}: found host {unknown[0]!r}, expected one of the network's places")
        cpu = hosts.resources.index("cpu")
        self.testbed = testbed
        self.vcpus = dict(zip(hosts.names, hosts.capacity[:, cpu].tolist(), strict=True))
        if behaviour is not None:
            self.vcpus = {name: machine.left for name, machine in testbed.machines(behaviour).items()}
        for name, left in self.vcpus.items():
            if left <= 0.0:
                raise ConfigError(
                    f"{testbed.name}: daemons and own pods leave {left:g} vCPUs of {name}, nothing for pods"
                )
        self.factor = min(SHARE * cores() / sum(self.vcpus.values()), 1.0)
        name = f"slacktide-{os.getpid()}"
        lags = {node: testbed.deviation(node) for node in hosts.names} if deviation else {}
        self.spaces = Spaces(name, network.places, network.rtt, lags)
        self.quotas = Quotas(name)
        self._cleaning = ExitStack()
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Emulation:
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, _interrupted) for one in ENDS}
        try:
            self._cleaning.enter_context(self.quotas)
            for node, vcpus in self.vcpus.items():
                self.quotas.group(node, cores=vcpus * self.factor)
            self._cleaning.enter_context(self.spaces)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        for one in self._before:
            signal.signal(one, signal.SIG_IGN)
        try:
            self._cleaning.close()
        finally:
            for one, handler in self._before.items():
                signal.signal(one, signal.SIG_DFL if handler is None else handler)

    def run(self, placement: Mapping[str, str], *, work: float, requests: int, seconds: float = 600.0) -> Measured:
        """All pods of users where ``placement`` puts them (node by request's number as text), from a common start.

        Each computes for ``work`` seconds of a core; then each of its users fetches the result once and ``requests``
        times more.
        Raises RunsError when a program fails, or a run takes more than ``seconds``.
        """
        running = Programs(self.spaces.check)
        try:
            pods = self._start(running, placement, work, requests, seconds)
            everyone = [name for pod in pods for name in (pod.program, *pod.users)]
            for name in everyone:
                running.line(name)
            for pod in pods:  # not before: Python's start is no part of a run
                self.quotas.move(pod.process, pod.node, pod.name)
            start = time.monotonic()
            for name in everyone:
                running.begin(name)
            return Measured(tuple(_collect(running, pod, start, start + seconds) for pod in pods))
        finally:
            running.end()
            for name, node in placement.items():
                self.quotas.remove(node, name)

    def _start(
        self, running: Programs, placement: Mapping[str, str], work: float, requests: int, seconds: float
    ) -> list[_Pod]:
        """Start pods and users in their namespaces, with the pods' groups made, and none of them at work."""
        workload = self.testbed.workload
        limits = workload.demand if workload.limit is None else workload.limit
        cpu, pods = workload.resources.index("cpu"), []
        rows = [row for row, number in enumerate(workload.ids.tolist()) if str(number) in placement]
        for port, row in enumerate(rows, PORT):
            name = str(int(workload.ids[row]))
            node = placement[name]
            self.quotas.group(node, name, cores=min(float(limits[row, cpu]), self.vcpus[node]) * self.factor)
            where = [self.spaces.addresses[node], str(port)]
            pod = f"pod {name}"
            process = running.start(pod, self._inside(node, "pod", *where, str(work)))
            users = []
            for place, share in self.testbed.access(row).logins:
                users.append(f"user of {pod} at {place}")
                count = max(round(requests * share), 1)
                running.start(users[-1], self._inside(place, "user", *where, str(count), str(seconds)))
            pods.append(_Pod(name, node, pod, process, tuple(users)))
        return pods

    def _inside(self, place: str, program: str, *words: str) -> list[str]:
        return inside(self.spaces.spaces[place], sys.executable, "-m", f"{OWN}.{program}", *words)


@dataclass(frozen=True, slots=True)
class _Pod:
    """What was started for one pod."""

    name: str
    node: str
    program: str
    process: int
    users: tuple[str, ...]


def _collect(running: Programs, pod: _Pod, start: float, end: float) -> PodRun:
    """Wait for a pod and all its users, until ``end`` on the monotonic clock."""
    computed = json.loads(running.line(pod.program, end - time.monotonic()))
    said = [json.loads(running.line(user, end - time.monotonic())) for user in pod.users]
    delays = tuple(float(delay) for one in said for delay in one["delays"])
    finished = max(float(one["finished"]) for one in said) - start
    began, seconds, cpu = (float(computed[key]) for key in ("began", "processing", "cpu"))
    return PodRun(pod.name, pod.node, began - start, seconds, cpu, int(computed["iterations"]), delays, finished)


def _interrupted(number: int, _: FrameType | None) -> None:
    for one in ENDS:
        signal.signal(one, signal.SIG_IGN)  # a second Ctrl-C must not leave half of it behind
    raise KeyboardInterrupt(signal.Signals(number).name)
