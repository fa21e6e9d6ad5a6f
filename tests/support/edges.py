"""Random clusters at the edge: those of :mod:`clusters` with users, images, limits and a network between the hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slacktide.config import DelaySettings
from slacktide.model import Access, Image, Network
from support.clusters import Cluster, _pick, cluster

Random = np.random.Generator

SCORES = ("delay-aware", "delay-aware", "elastic-fog", "tsra", "nas", "kcss")
POLICIES = ("delay-aware", "elastic-fog", "tsra", "nas", "kcss", "least-requested")
"""What is drawn from. Both stay as they are, so that every seed keeps its cluster."""


def edge(
    seed: int,
    largest: int = 8,
    requests: int = 30,
    several: bool = False,
    neighbours: bool = False,
    resizes: bool = False,
) -> Cluster:
    """The cluster of this seed, its hosts at places and its instances with users; in a third of them the score is the
    whole policy."""
    one = cluster(seed, largest, requests, several, neighbours, resizes)
    random = np.random.default_rng([seed, 0xED6E])
    hosts = one.hosts
    resources = (*hosts.resources, "network")
    bandwidth = random.choice([0.0, 10.0, 40.0], (len(hosts), 1), p=[0.05, 0.35, 0.6])
    network = _network(random, hosts.names)
    hosts = replace(
        hosts,
        resources=resources,
        capacity=np.hstack([hosts.capacity, bandwidth]),
        network=_pick(random, network, network, None),
    )
    names = [*hosts.names, *(hosts.network.places if hosts.network else ())]
    workload = one.workload
    count = len(workload)
    demand = np.hstack([workload.demand, random.choice([0.0, 1.0, 4.0], (count, 1))])
    limit = None
    if random.random() < 0.7:
        limit = demand * random.choice([1.0, 1.0, 2.0, 5.0], (count, 1))
        if random.random() < 0.5:
            limit[:, -1] = demand[:, -1]
    images = () if hosts.network is None else tuple(image.name for image in hosts.network.images)
    accesses = tuple(_access(random, names, images) for _ in range(int(random.integers(1, 7))))
    workload = replace(
        workload,
        resources=resources,
        demand=demand,
        limit=limit,
        access=random.integers(len(accesses), size=count).astype(np.int32),
        accesses=accesses,
    )
    score = str(_pick(random, *SCORES))
    alone = random.random() < 0.33
    one = replace(one, workload=workload, hosts=hosts, config=replace(one.config, delay=_delay(random)))
    if alone:
        return one.with_(policy={"name": str(_pick(random, *POLICIES))})
    return one.with_(policy={"score": score})


def _network(random: Random, names: tuple[str, ...]) -> Network:
    by_zone = random.random() < 0.4
    places = ("a", "b", "far") if by_zone else (*names[: max(1, len(names) - 1)], "far")  # the last host is nowhere
    rtt = random.choice([0.01, 0.02, 0.05, 0.2], (len(places), len(places)))
    if random.random() < 0.5:
        rtt = random.uniform(0.0, 0.3, rtt.shape)
    rtt = np.triu(rtt) + np.triu(rtt, 1).T
    images = (
        Image("slow", seconds=3.0, present=names[:1]),
        Image("large", size=25.0, present=names[1:3]),
        Image("small", seconds=0.5),
    )
    return Network(places, rtt, "zone" if by_zone else "", images)


def _access(random: Random, names: list[str], images: tuple[str, ...]) -> Access:
    chosen = random.permutation(len(names))[: int(random.integers(0, 4))].tolist()
    weights = random.integers(1, 4, max(1, len(chosen))).astype(np.float64)
    users: dict[str, float] = {}
    for place, weight in zip(chosen, weights, strict=False):
        users[names[place]] = users.get(names[place], 0.0) + float(weight)
    total = sum(users.values())
    return Access(
        data=float(_pick(random, 0.0, 0.4, 2.0)),
        image=str(_pick(random, "", *images)),
        logins=tuple((name, weight / total) for name, weight in users.items()),
        preferred=str(_pick(random, "", *names)),
        deadline=float(_pick(random, np.inf, 1.0, 3.0)),
    )


def _delay(random: Random) -> DelaySettings:
    return DelaySettings(
        alpha=float(_pick(random, 0.0, 0.25, 0.5, 1.0)),
        phi=float(_pick(random, 0.3, 0.5, 1.0)),
        tolerance=float(_pick(random, 0.0, 0.005, 0.1)),
        context_switch=float(_pick(random, 0.0, 2e-6, 0.01)),
        competition=float(_pick(random, 0.0, 3e-6, 1e-3)),
        grants=bool(_pick(random, True, True, False)),
        transfer=float(_pick(random, 1.0, 0.01)),
        memory_per_cpu=float(_pick(random, 0.0, 2.0)),
        fetching=float(_pick(random, 1.0, 1.0, 0.01, 0.0)),
        keep_images=bool(_pick(random, True, False)),
    )
