"""A scenario's files as nodes and pods of the slow references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from random import Random

import yaml

from reference.edge import delay_aware, elastic_fog, kcss, least_requested, nas, tsra
from reference.edge.cluster import Cluster, Delay, Draw, Node, Pod
from slacktide.inputs import read_hosts, read_workload
from slacktide.inputs.formats.network_file import read_network
from slacktide.model import NO_CONSTRAINT, Access, Hosts, Network, Workload

Choose = Callable[..., Node | None]
METHODS: dict[str, Choose] = {
    "least-requested": least_requested.choose,
    "elastic-fog": elastic_fog.choose,
    "tsra": tsra.choose,
    "nas": nas.choose,
    "kcss": kcss.choose,
    "delay-aware": delay_aware.choose,
}


@dataclass(frozen=True)
class Scenario:
    """Nodes' capacities, distances, pods in order of arrival (with the only node of those tied to one), settings."""

    capacities: dict[str, dict[str, float]]
    rtt: dict[tuple[str, str], float]
    pods: tuple[tuple[Pod, str], ...]
    delay: Delay
    present: dict[str, set[str]] = field(default_factory=dict)

    @property
    def users(self) -> tuple[Pod, ...]:
        """Pods that somebody uses; the others are the cluster's own."""
        return tuple(pod for pod, _ in self.pods if pod.logins)

    def place(
        self, method: str, *, seed: int = 0, preferred: str = "", draw: Draw | None = None, **delay: float
    ) -> dict[str, str]:
        """By pod of a user, its node; grants are the delay-aware method's alone. ``draw`` is in place of a seed."""
        draw = draw or Random(seed).randrange
        nodes = [
            Node(name, dict(capacity), images=set(self.present.get(name, ())))
            for name, capacity in self.capacities.items()
        ]
        settings = replace(self.delay, grants=method == "delay-aware", **delay)  # type: ignore[arg-type]
        cluster = Cluster(nodes, self.rtt, settings)
        placed = {}
        for pod, only in self.pods:
            wanted = replace(pod, preferred=preferred or pod.preferred)
            there = [node for node in nodes if not only or node.name == only]
            chosen = METHODS[method](wanted, there, cluster, draw)
            if chosen is None:
                continue
            cluster.place(wanted, chosen)
            if pod.logins:
                placed[pod.name] = chosen.name
        return placed

    def counts(self, method: str, *, seed: int = 0, preferred: str = "", **delay: float) -> tuple[int, ...]:
        """Pods of users on each node."""
        placed = list(self.place(method, seed=seed, preferred=preferred, draw=None, **delay).values())
        return tuple(placed.count(name) for name in self.capacities)


def read_scenario(folder: Path) -> Scenario:
    hosts = read_hosts(folder / "hosts.csv")
    workload = read_workload(folder / "workload.csv")
    network = read_network(folder / "network.yaml", hosts)
    settings = yaml.safe_load((folder / "settings.yaml").read_text())["delay"]
    known = {each.name for each in fields(Delay)}
    delay = Delay(**{key: value for key, value in settings.items() if key in known})
    return scenario(hosts, workload, network, delay)


def scenario(hosts: Hosts, workload: Workload, network: Network, delay: Delay) -> Scenario:
    places = network.places
    rtt = {(a, b): float(network.rtt[i, j]) for i, a in enumerate(places) for j, b in enumerate(places)}
    capacities = {
        name: dict(zip(hosts.resources, map(float, row), strict=True))
        for name, row in zip(hosts.names, hosts.capacity, strict=True)
    }
    present: dict[str, set[str]] = {}
    for image in network.images:
        for name in image.present:
            present.setdefault(name, set()).add(image.name)
    pods = tuple((_pod(workload, network, row), _only(workload, hosts, row)) for row in range(len(workload)))
    return Scenario(capacities, rtt, pods, delay, present)


def _pod(workload: Workload, network: Network, row: int) -> Pod:
    access = Access() if workload.access is None else workload.accesses[workload.access[row]]
    seconds = {image.name: image.seconds for image in network.images}
    demand = dict(zip(workload.resources, map(float, workload.demand[row]), strict=True))
    limits = workload.demand if workload.limit is None else workload.limit
    return Pod(
        name=str(workload.ids[row]),
        demand=demand,
        limit=dict(zip(workload.resources, map(float, limits[row]), strict=True)),
        data=access.data,
        logins=access.logins,
        image=access.image,
        image_seconds=seconds.get(access.image, 0.0),
        preferred=access.preferred,
        deadline=access.deadline,
        application=str(workload.job[row]),
    )


def _only(workload: Workload, hosts: Hosts, row: int) -> str:
    term = workload.terms[workload.term[row]]
    if term == NO_CONSTRAINT:
        return ""
    allowed = [name for name, said in zip(hosts.names, hosts.attributes, strict=True) if term.holds(said)]
    assert len(allowed) == 1, f"row {row}: tied to {allowed}"
    return allowed[0]
