"""A cluster at the edge: small nodes at sites, users near them, bursts, three service classes.

Applications are what is deployed: each has a class, a demand, an image, a home site and its users;
a request is one more instance of one of them. By Little's law the expected CPU demand is ``load``
times the capacity at every instant, from the first on: at 0 as many instances are running already,
with the remaining durations of the equilibrium. Of the others a share comes in bursts, each of
which is at one site.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.inputs.generators.api import Generator, Parameter, Value
from slacktide.model import DEFAULT_CLASSES, Access, Hosts, Image, Network, Workload

KILOMETRES = 2500.0
"""Towns lie in a square with sides of this length."""
SITES_OF_A_TOWN = 5
TOWN = 30.0
"""Standard deviation of a site's place around its town's, kilometres along either axis."""
GLASS = 200_000.0
"""Kilometres a second."""
DETOUR = (1.3, 2.3)
"""By how much the way between two sites is longer than the straight line, drawn evenly for each pair."""
FIBRE, RADIO = (0.001, 0.004), (0.008, 0.020)
"""Seconds of round trip from a site to the backbone, drawn evenly."""
BY_RADIO = 0.4
"""Share of the sites."""
WITHIN = 0.0005
"""Seconds of round trip between two nodes of a site."""
CLOUD = "cloud"
"""The place of users that are near no site, in the middle of the square."""
DEMANDS = ((0.25, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, 4.0))
"""CPUs and GB of memory, and how often."""
OFTEN = (0.4, 0.35, 0.2, 0.05)
CLASS_SHARES = (0.2, 0.5, 0.3)
"""Of gold, silver and bronze among applications."""
LASTING = (2.0, 1.0, 0.5)
"""Durations of a class in relation to silver's."""
SPREAD = 1.0
"""Sigma of the log-normal durations of an application."""
BURST = 60.0
"""Seconds that a burst lasts."""
DATA, DATA_SPREAD = 0.0015, 0.7
"""Median of the volume of an exchange with a user, Gbit, and its sigma."""
LOGINS = (0.5, 0.3, 0.15, 0.05)
"""Shares of users: at one node, elsewhere at its site, at another site, in the cloud."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Streams of random numbers, so that a parameter of one thing leaves the others as they were.
_PLACES, _HOSTS, _APPLICATIONS, _STANDING, _ARRIVALS = range(5)


@dataclass(frozen=True, slots=True)
class _Applications:
    """By application: place of its home site, class, demand (a, 3), and its users."""

    home: Integers
    service_class: Integers
    demand: Floats
    accesses: tuple[Access, ...]

    def lasting(self) -> Floats:
        """How long its instances run in relation to silver's."""
        return np.array(LASTING)[self.service_class]


def _make(values: Mapping[str, Value], seed: int) -> tuple[Iterator[Workload], Hosts]:
    nodes, sites = int(values["nodes"]), int(values["sites"])
    if sites > nodes:
        raise ConfigError(f"sites: found {sites}, expected at most the {nodes} nodes: every site has one")
    random = np.random.default_rng([seed, _PLACES])
    weight = random.lognormal(0.0, 0.8, sites)  # how many people live near a site
    weight /= weight.sum()
    network = _network(sites, int(values["images"]), random)
    hosts = _hosts(nodes, network, weight, np.random.default_rng([seed, _HOSTS]))
    count = int(values["applications"]) or max(1, int(values["requests"]) // 20)
    applications = _applications(count, hosts, network, weight, np.random.default_rng([seed, _APPLICATIONS]))
    return iter([_workload(values, seed, hosts, applications, weight)]), hosts


def _network(sites: int, images: int, random: np.random.Generator) -> Network:
    """Distances in the plane with a detour of each pair's own, plus each site's way to the backbone."""
    towns = random.uniform(0.0, KILOMETRES, (max(1, sites // SITES_OF_A_TOWN), 2))
    at = towns[np.arange(sites) % len(towns)] + random.normal(0.0, TOWN, (sites, 2))
    at = np.vstack([at, [KILOMETRES / 2, KILOMETRES / 2]])
    low, high = np.where(random.random(sites)[:, None] < BY_RADIO, RADIO, FIBRE).T
    backbone = np.append(random.uniform(low, high), FIBRE[0])
    apart = np.sqrt(((at[:, None, :] - at[None, :, :]) ** 2).sum(axis=2))
    way = np.triu(apart * random.uniform(*DETOUR, apart.shape), 1)
    rtt = 2.0 * (way + way.T) / GLASS + backbone[:, None] + backbone[None, :]
    np.fill_diagonal(rtt, WITHIN)
    sizes = random.lognormal(0.5, 0.7, images).round(2)  # Gbit
    kinds = tuple(Image(f"image-{i}", size=float(size)) for i, size in enumerate(sizes))
    return Network((*(f"site-{s:02d}" for s in range(sites)), CLOUD), np.round(rtt, 6), "site", kinds)


def _hosts(nodes: int, network: Network, weight: Floats, random: np.random.Generator) -> Hosts:
    """Small nodes mostly, more of them where more people live; every site has one at least."""
    sites = len(weight)
    site = np.concatenate([np.arange(sites), random.choice(sites, nodes - sites, p=weight)])
    site.sort()
    cpu = random.choice([4.0, 8.0, 16.0], nodes, p=[0.6, 0.3, 0.1])
    capacity = np.stack([cpu, cpu * random.choice([2.0, 4.0], nodes), cpu * 1.25], axis=1)  # CPUs, GB, Gbit/s
    names = tuple(f"node-{h:05d}" for h in range(nodes))
    attributes = tuple({"site": network.places[s]} for s in site.tolist())
    return Hosts(np.arange(1, nodes + 1), names, capacity, attributes, ("cpu", "memory", "network"), network)


def _applications(
    count: int, hosts: Hosts, network: Network, weight: Floats, random: np.random.Generator
) -> _Applications:
    at: dict[str, list[str]] = {}
    for name, one in zip(hosts.names, hosts.attributes, strict=True):
        at.setdefault(one["site"], []).append(name)
    home, other = random.choice(len(weight), (2, count), p=weight)
    demand = np.array(DEMANDS)[random.choice(len(DEMANDS), count, p=OFTEN)]
    bandwidth = np.round(random.uniform(0.05, 0.4, count), 3)
    data = np.round(random.lognormal(math.log(DATA), DATA_SPREAD, count), 6)
    accesses = tuple(
        _access(network, at, places, volume, random)
        for places, volume in zip(np.stack([home, other], axis=1).tolist(), data.tolist(), strict=True)
    )
    service_class = random.choice(len(CLASS_SHARES), count, p=CLASS_SHARES)
    return _Applications(home, service_class, np.column_stack([demand, bandwidth]), accesses)


def _access(
    network: Network, at: dict[str, list[str]], places: list[int], data: float, random: np.random.Generator
) -> Access:
    """Users of an application: most near one node, some elsewhere."""
    home, other = (network.places[place] for place in places)
    shares: dict[str, float] = {}
    for name, share in zip((at[home][int(random.integers(len(at[home])))], home, other, CLOUD), LOGINS, strict=True):
        shares[name] = shares.get(name, 0.0) + share
    image = network.images[int(random.integers(len(network.images)))].name if network.images else ""
    return Access(data=data, image=image, logins=tuple(shares.items()), preferred=home, deadline=0.2)


def _workload(
    values: Mapping[str, Value], seed: int, hosts: Hosts, applications: _Applications, weight: Floats
) -> Workload:
    """Little's law: rate * mean of CPU * duration = load * capacity; what of it runs at 0 is given by the durations."""
    seconds, requests = float(values["hours"]) * 3600.0, int(values["requests"])
    lasting, mean = applications.lasting(), math.exp(SPREAD**2 / 2)
    cpu = applications.demand[:, 0]
    busy = float(values["load"]) * float(hosts.capacity[:, 0].sum()) / float((cpu * lasting).mean() * mean)
    standing = round(busy * float(lasting.mean()) * mean)
    if requests <= standing:
        raise ConfigError(f"requests: found {requests}, expected more than the {standing} that this load has at once")
    scale = busy * seconds / (requests - standing)  # seconds of silver's median duration
    random = np.random.default_rng([seed, _STANDING])
    first = random.choice(len(lasting), standing, p=lasting / lasting.sum())
    # Long ones are met more often: of a log-normal duration that is one with its logarithm shifted by sigma squared.
    left = random.lognormal(SPREAD**2, SPREAD, standing) * random.random(standing) * lasting[first]
    random = np.random.default_rng([seed, _ARRIVALS])
    then, instant = _arrivals(values, seconds, requests - standing, applications, weight, random)
    whole = random.lognormal(0.0, SPREAD, len(then)) * lasting[then]
    which = np.concatenate([first, then])
    demand = applications.demand[which]
    return Workload(
        ids=np.arange(1, requests + 1),
        admission=np.concatenate([np.zeros(standing), instant]),
        duration=np.round(np.concatenate([left, whole]) * scale, 3) + 0.001,
        demand=demand,
        service_class=applications.service_class[which].astype(np.int16),
        job=which + 1,
        anti_affinity=np.zeros(requests, np.bool_),
        term=np.zeros(requests, np.int32),
        resources=hosts.resources,
        classes=DEFAULT_CLASSES,
        limit=demand * [2.0, 1.0, 1.0],
        access=which.astype(np.int32),
        accesses=applications.accesses,
    )


def _arrivals(
    values: Mapping[str, Value],
    seconds: float,
    count: int,
    applications: _Applications,
    weight: Floats,
    random: np.random.Generator,
) -> tuple[Integers, Floats]:
    """Application and instant of each arrival, by time: evenly, but for those that come in bursts at one site."""
    bursts = int(values["bursts"])
    sudden = round(count * float(values["burst_share"])) if bursts else 0
    which = random.integers(len(applications.home), size=count)
    instant = random.uniform(0.0, seconds, count)
    start = random.uniform(0.0, max(0.0, seconds - BURST), max(1, bursts))
    site = random.choice(len(weight), max(1, bursts), p=weight)
    burst = random.integers(max(1, bursts), size=sudden)
    instant[:sudden] = start[burst] + random.uniform(0.0, min(BURST, seconds), sudden)
    for b in range(bursts):
        near = np.flatnonzero(applications.home == site[b])
        mine = np.flatnonzero(burst == b)
        if len(near):
            which[mine] = near[random.integers(len(near), size=len(mine))]
    instant = np.round(instant, 3)
    order = np.argsort(instant, kind="stable")
    return which[order], instant[order]


EDGE = Generator(
    "edge",
    "nodes at sites, users near them: delays between the sites, bursts, three service classes; with network.yaml",
    (
        Parameter("nodes", 1000, "number of hosts", 1),
        Parameter("sites", 50, "number of places they are at", 1),
        Parameter("hours", 1.0, "hours of arrivals", 1e-3),
        Parameter("requests", 20_000, "number of requests, those that run at the start included", 1),
        Parameter("load", 0.9, "expected CPU demand as a share of the hosts' capacity", 1e-6),
        Parameter("applications", 0, "number of applications; 0: one for 20 requests"),
        Parameter("bursts", 12, "number of bursts, of a minute and at a site each"),
        Parameter("burst_share", 0.3, "share of the arrivals that comes in bursts", 0.0, 1.0),
        Parameter("images", 20, "number of container images"),
    ),
    _make,
)
