"""A scenario's files as a testbed: its machines, and the delays of its users under a placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import sqrt
from pathlib import Path
from typing import Any

from slacktide.edge.sharing import Contention, Load, Machine, Placed, TestbedResult, remote_delay, run
from slacktide.errors import ConfigError
from slacktide.inputs import read_hosts, read_workload
from slacktide.inputs.formats.network_file import read_network
from slacktide.model import Access, Hosts, Network, Workload
from slacktide.settings_file import read


@dataclass(frozen=True, slots=True)
class Run:
    """How the testbed behaves (``run.yaml``): iterations by load, work, requests, contention, and CPU not for pods.

    daemons  vCPUs that every node's own daemons and its virtualisation take
    own      by scenario and node, vCPUs that the cluster's own pods take beyond that
    """

    iterations: Mapping[str, int]
    load: Mapping[str, float]
    contention: Mapping[str, float]
    daemons: float
    own: Mapping[str, Mapping[str, float]]

    def of(self, load: str) -> Load:
        """The load of this name; raises ConfigError for a name that is not among ``iterations``."""
        if load not in self.iterations:
            raise ConfigError(f"load: found {load!r}, expected one of {', '.join(self.iterations)}")
        return Load(iterations=self.iterations[load], contention=Contention(**self.contention), **self.load)


def read_run(path: Path) -> Run:
    """Raises :class:`ConfigError` for a file that cannot be read, or with an unknown or a missing key."""
    values: Mapping[str, Any] = read(path).values
    known = [each.name for each in fields(Run)]
    wrong = set(values) ^ set(known)
    if wrong:
        raise ConfigError(f"{path}: {sorted(wrong)[0]}: unknown or missing, expected {', '.join(known)}, each once")
    return Run(**values)


@dataclass(frozen=True, slots=True)
class Testbed:
    """Hosts, the pods in order of arrival, and the distances between places."""

    __test__ = False  # pytest takes it for a test otherwise

    name: str
    hosts: Hosts
    workload: Workload
    network: Network

    def machines(self, behaviour: Run) -> dict[str, Machine]:
        """Every node's vCPUs, and those that are not for pods of users."""
        own = behaviour.own.get(self.name, {})
        cpu = self.hosts.resources.index("cpu")
        return {
            name: Machine(float(self.hosts.capacity[row, cpu]), behaviour.daemons + own.get(name, 0.0))
            for row, name in enumerate(self.hosts.names)
        }

    def access(self, row: int) -> Access:
        """What a pod has to do with its users; the cluster's own pods have none."""
        return Access() if self.workload.access is None else self.workload.accesses[self.workload.access[row]]

    def _rtts(self, node: str) -> dict[str, float]:
        """A node's round-trip times by place, seconds."""
        row = self.network.rtt[self.network.places.index(node)]
        return dict(zip(self.network.places, row.tolist(), strict=True))

    def deviation(self, node: str) -> float:
        """Standard deviation of a node's round-trip times to the others, seconds (Lai, Wang and Wei, eq. 12, 13)."""
        rtts = self._rtts(node)
        others = [rtts[name] for name in self.hosts.names if name != node]
        if not others:
            return 0.0
        mean = sum(others) / len(others)
        return sqrt(max(sum(rtt * rtt for rtt in others) / len(others) - mean * mean, 0.0))

    def request_delay(self, row: int, node: str) -> float:
        """Mean network delay of one request of a pod's users, seconds (Lai, Wang and Wei, eq. 10, 11).

        Without image and data.
        """
        rtts, spread = self._rtts(node), self.deviation(node)
        return sum(
            share * remote_delay(None if login == node else rtts[login], spread)
            for login, share in self.access(row).logins
        )

    def placed(self, placement: Mapping[str, str]) -> list[Placed]:
        """The pods of users where they run; ``placement``: node by the request's number as text."""
        images = {image.name: image for image in self.network.images}
        limit = self.workload.demand if self.workload.limit is None else self.workload.limit
        cpu = self.workload.resources.index("cpu")
        pods = []
        for row, number in enumerate(self.workload.ids):
            access = self.access(row)
            if not access.logins or str(number) not in placement:
                continue
            node, image = placement[str(number)], images.get(access.image)
            seconds = 0.0 if image is None or node in image.present else image.seconds
            delay = self.request_delay(row, node)
            pods.append(Placed(str(number), node, delay, seconds, float(limit[row, cpu])))
        return pods

    def run(self, placement: Mapping[str, str], behaviour: Run, load: str) -> TestbedResult:
        """The run of a placement under one of the loads."""
        return run(self.placed(placement), self.machines(behaviour), behaviour.of(load))


def read_testbed(folder: Path) -> Testbed:
    """A scenario from ``hosts.csv``, ``workload.csv`` and ``network.yaml`` of a folder (docs/formats.md)."""
    hosts = read_hosts(folder / "hosts.csv")
    network = read_network(folder / "network.yaml", hosts)
    return Testbed(folder.name, hosts, read_workload(folder / "workload.csv"), network)
