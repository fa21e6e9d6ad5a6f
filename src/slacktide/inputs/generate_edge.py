"""A cluster at the edge: nodes at sites, users near them, bursts, three service classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.model import DEFAULT_CLASSES, Access, Hosts, Image, Network, Workload

KILOMETRES = 2500.0
"""Sites lie in a square with sides of this length."""
PER_KILOMETRE = 2.0 * 1.6 / 200_000.0
"""Seconds of round trip: there and back, by ways 1.6 times as long as the straight line, at 200,000 km/s in glass."""
ACCESS_SECONDS = (0.002, 0.012)
"""Round trip from a site to the backbone, drawn evenly: fibre to mobile."""
WITHIN = 0.0005
"""Seconds of round trip between two nodes of a site."""
CLOUD = "cloud"
"""The place of users that are near no site: the master's."""
DEMANDS = ((0.25, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, 4.0))
"""CPUs and GB of memory."""
SHARES = (0.2, 0.5, 0.3)
"""Of gold, silver and bronze."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What is generated: ``load`` is the CPU demand of an average instant over the capacity."""

    nodes: int = 1000
    sites: int = 50
    requests: int = 20_000
    seconds: float = 3600.0
    load: float = 0.9
    bursts: int = 12
    images: int = 20
    seed: int = 0


def generate(edge: Edge) -> tuple[Workload, Hosts]:
    """The workload and the hosts with their network; equal parameters give equal ones. Raises :class:`ConfigError`."""
    if not 1 <= edge.sites <= edge.nodes or edge.requests < 1 or not 0.0 < edge.load < 10.0 or edge.seconds <= 0.0:
        raise ConfigError(f"edge: found {edge}, expected 1 site or more, as many nodes, a request, and a load below 10")
    random = np.random.default_rng([edge.seed, 0xED6E])
    weight = random.lognormal(0.0, 0.8, edge.sites)  # how many people live near a site
    weight /= weight.sum()
    hosts = _hosts(edge, weight, random)
    return _workload(edge, hosts, weight, random), hosts


def _network(edge: Edge, random: np.random.Generator) -> Network:
    """Distances in the plane, plus each site's way to the backbone; the cloud lies in the middle."""
    at = random.uniform(0.0, KILOMETRES, (edge.sites, 2))
    at = np.vstack([at, [KILOMETRES / 2, KILOMETRES / 2]])
    access = np.append(random.uniform(*ACCESS_SECONDS, edge.sites), 0.001)
    apart = np.sqrt(((at[:, None, :] - at[None, :, :]) ** 2).sum(axis=2))
    rtt = apart * PER_KILOMETRE + access[:, None] + access[None, :]
    np.fill_diagonal(rtt, WITHIN)
    rtt = np.round((rtt + rtt.T) / 2.0, 6)
    images = tuple(
        Image(f"image-{i}", size=float(size)) for i, size in enumerate(random.lognormal(0.5, 0.7, edge.images).round(2))
    )
    return Network((*(f"site-{s:02d}" for s in range(edge.sites)), CLOUD), rtt, "site", images)


def _hosts(edge: Edge, weight: NDArray[np.float64], random: np.random.Generator) -> Hosts:
    """Small nodes mostly, larger ones at large sites; every site has one at least."""
    network = _network(edge, random)
    site = np.concatenate([np.arange(edge.sites), random.choice(edge.sites, edge.nodes - edge.sites, p=weight)])
    site.sort()
    cpu = random.choice([4.0, 8.0, 16.0], edge.nodes, p=[0.6, 0.3, 0.1])
    capacity = np.stack([cpu, cpu * random.choice([2.0, 4.0], edge.nodes), cpu * 1.25], axis=1)  # CPUs, GB, Gbit/s
    names = tuple(f"node-{h:05d}" for h in range(edge.nodes))
    attributes = tuple({"site": network.places[s]} for s in site.tolist())
    return Hosts(np.arange(edge.nodes), names, capacity, attributes, ("cpu", "memory", "network"), network)


def _admission(edge: Edge, random: np.random.Generator) -> NDArray[np.float64]:
    """Two thirds come evenly, the others in bursts of a minute."""
    even = random.uniform(0.0, edge.seconds, edge.requests - edge.requests // 3)
    starts = random.uniform(0.0, max(0.0, edge.seconds - 60.0), max(1, edge.bursts))
    burst = starts[random.integers(len(starts), size=edge.requests // 3)] + random.uniform(
        0.0, 60.0, edge.requests // 3
    )
    return np.sort(np.round(np.concatenate([even, burst]), 3))


def _workload(edge: Edge, hosts: Hosts, weight: NDArray[np.float64], random: np.random.Generator) -> Workload:
    count = edge.requests
    demand = np.array(DEMANDS)[random.choice(len(DEMANDS), count, p=[0.4, 0.35, 0.2, 0.05])]
    bandwidth = np.round(random.uniform(0.05, 0.4, count), 3)
    duration = random.lognormal(0.0, 1.0, count)
    duration *= edge.load * float(hosts.capacity[:, 0].sum()) * edge.seconds / float((demand[:, 0] * duration).sum())
    limit = np.concatenate([demand * [2.0, 1.0], bandwidth[:, None]], axis=1)
    accesses = tuple(_access(edge, hosts, weight, random) for _ in range(max(1, count // 4)))
    return Workload(
        ids=np.arange(count),
        admission=_admission(edge, random),
        duration=np.round(duration, 3) + 0.001,
        demand=np.concatenate([demand, bandwidth[:, None]], axis=1),
        service_class=random.choice(3, count, p=SHARES).astype(np.int16),
        job=np.arange(count),
        anti_affinity=np.zeros(count, np.bool_),
        term=np.zeros(count, np.int32),
        resources=hosts.resources,
        classes=DEFAULT_CLASSES,
        limit=limit,
        access=random.integers(len(accesses), size=count).astype(np.int32),
        accesses=accesses,
    )


def _access(edge: Edge, hosts: Hosts, weight: NDArray[np.float64], random: np.random.Generator) -> Access:
    """Users of an application: most at one node, some at others of the same site or elsewhere, some in no site."""
    network = hosts.network
    assert network is not None
    home = int(random.choice(edge.sites, p=weight))
    there = [
        name for name, one in zip(hosts.names, hosts.attributes, strict=True) if one["site"] == network.places[home]
    ]
    shares = {str(random.choice(there)): 0.5, network.places[home]: 0.3}
    other = network.places[int(random.choice(edge.sites, p=weight))]
    shares[other] = shares.get(other, 0.0) + 0.15
    shares[CLOUD] = 0.05
    return Access(
        data=round(float(random.lognormal(-3.5, 0.6)), 5),
        image=network.images[int(random.integers(len(network.images)))].name if network.images else "",
        logins=tuple(shares.items()),
        preferred=network.places[home],
        deadline=0.2,
    )
