"""Scores that compare hosts with each other (docs/delay-aware.md): delay-aware and its comparators, in plain Python.

Delays are seconds; sums are taken in the order in which the documentation writes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from reference.amounts import Amounts, scale
from reference.state import Host, Instance
from reference.times import on_grid
from slacktide.config import Config
from slacktide.model import Access, Hosts

FAR = 2.0**36
MOST_SERVED = 64
UNIT = 2.0**20


def is_compared(config: Config) -> bool:
    """Whether the score of these settings is one of these."""
    return score_name(config) in CHOICES


def score_name(config: Config) -> str:
    """A policy that is a score decides by itself."""
    if config.policy.name in (*CHOICES, "least-requested"):
        return config.policy.name
    if config.policy.score == "default":
        return "mean" if config.policy.name == "priority" else "balanced"
    return config.policy.score


@dataclass
class Map:
    """Hosts and login places of a run, how far they are from each other, and which images hosts have."""

    hosts: Hosts
    config: Config
    images: dict[int, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name = {name: row for row, name in enumerate(self.hosts.names)}
        network = self.hosts.network
        if network is not None:
            self.places = {name: number for number, name in enumerate(network.places)}
            self.rtts = [[on_grid(float(value)) for value in row] for row in network.rtt]
            self.farthest = max((value for row in self.rtts for value in row), default=0.0)
            for image in network.images:
                for name in image.present:
                    self.images.setdefault(self.by_name[name], set()).add(image.name)
        self.factors = [scale([float(c) for c in self.hosts.capacity[:, r]]) for r in range(len(self.hosts.resources))]
        self.sigmas = [self.sigma_of(row) for row in range(len(self.hosts))]

    def place(self, row: int) -> int | None:
        """A host's place; ``None``: at none of them."""
        network = self.hosts.network
        if network is None:
            return 0
        name = self.hosts.attributes[row].get(network.site_key, "") if network.site_key else self.hosts.names[row]
        return self.places.get(name)

    def distance(self, a: int | None, b: int | None) -> float:
        """Round-trip time between two places."""
        if self.hosts.network is None:
            return 0.0
        return self.farthest if a is None or b is None else self.rtts[a][b]

    def place_of_login(self, name: str) -> int | None:
        return self.place(self.by_name[name]) if name in self.by_name else self.places[name]

    def sigma(self, row: int) -> float:
        return self.sigmas[row]

    def sigma_of(self, row: int) -> float:
        """Equations 12 and 13, over all other hosts."""
        others = [self.distance(self.place(row), self.place(other)) for other in range(len(self.hosts)) if other != row]
        if not others:
            return 0.0
        mean = math.fsum(others) / len(others)
        return math.sqrt(max(math.fsum(rtt * rtt for rtt in others) / len(others) - mean * mean, 0.0))

    def image_delay(self, access: Access, row: int) -> float:
        network = self.hosts.network
        if not access.image or network is None or access.image in self.images.get(row, set()):
            return 0.0
        image = next(one for one in network.images if one.name == access.image)
        if image.size == 0.0:
            return image.seconds
        if "network" not in self.hosts.resources:
            return FAR
        bandwidth = float(self.hosts.capacity[row, self.hosts.resources.index("network")])
        return image.size / bandwidth if bandwidth else FAR

    def unit(self, r: int) -> float:
        """One whole amount of a resource in the hosts' unit."""
        return 1.0 / self.factors[r]

    def memory_in_cpu(self) -> float:
        cpu, memory = (float(self.hosts.capacity[:, r].sum()) for r in (0, 1))
        worth = self.config.delay.memory_per_cpu or (memory / cpu if cpu > 0.0 and memory > 0.0 else 1.0)
        return self.unit(1) / worth

    def began(self, one: Instance, host: Host) -> None:
        """Its image is present from now on, where images stay."""
        if self.config.delay.keep_images and one.access.image:
            self.images.setdefault(host.row, set()).add(one.access.image)


def granted(one: Instance, r: int, residual: int, config: Config) -> int:
    """Equation 9 in whole amounts."""
    least = one.demand[r]
    if one.most is None:
        return least
    return max(least, min(math.floor(config.delay.phi * residual), max(one.most[r], least)))


def taken(one: Instance, host: Host, config: Config) -> Amounts | None:
    """Equations 14 to 16: what it takes of the host it is put on; ``None``: its demand."""
    if one.most is None or not config.delay.grants or score_name(config) != "delay-aware":
        return None
    free = host.free()
    return tuple(granted(one, r, free[r], config) for r in range(len(one.demand)))


def processing_delay(one: Instance, cpu: int, known: Map) -> float:
    """Equation 8."""
    seconds = known.config.delay.processing * one.access.data
    if seconds == 0.0:
        return 0.0
    return seconds / (cpu * known.unit(0)) if cpu > 0 else FAR


def transfer(one: Instance, known: Map) -> float:
    """The data's part of equation 10; bandwidth in the user's unit."""
    if "network" not in known.hosts.resources or one.bandwidth <= 0.0:
        return 0.0
    return known.config.delay.transfer * one.access.data / one.bandwidth


def away(one: Instance, host: Host, known: Map) -> float:
    """The last term of equation 11, by the shares of users."""
    total = 0.0
    for name, share in one.access.logins:
        if known.by_name.get(name) != host.row:
            rtt = known.distance(known.place(host.row), known.place_of_login(name))
            total += share * ((rtt + known.sigma(host.row)) / 2.0)
    return total


def omega(one: Instance, host: Host, free: Amounts, known: Map) -> float:
    """Algorithm 2, lines 2 to 9; ``free`` is what there is before it comes."""
    delay = known.config.delay
    processing = processing_delay(one, granted(one, 0, free[0], known.config), known)
    network = delay.fetching * known.image_delay(one.access, host.row) + transfer(one, known) + away(one, host, known)
    total = delay.alpha * processing + (1.0 - delay.alpha) * network
    if host.instances:
        served = min(len(host.instances), MOST_SERVED)
        total += delay.context_switch + 2.0 ** (served - 1) * delay.competition
    return min(total, FAR)


def residual(free: Amounts, known: Map) -> float:
    return min(free[0] * known.unit(0), free[1] * known.memory_in_cpu())


@dataclass(frozen=True)
class Asked:
    """Where an instance may go: ``hosts`` with room and their points by its preferences; ``everywhere`` are all."""

    hosts: Sequence[Host]
    points: Sequence[float]
    everywhere: Sequence[Host]
    known: Map

    def tie(self, host: Host) -> int:
        return host.tie(self.known.config.simulation.seed)


def delay_aware(one: Instance, asked: Asked) -> Host:
    """Algorithm 2; among final candidates those of most points first."""
    hosts, known, points = asked.hosts, asked.known, asked.points
    delays = [omega(one, host, host.free(), known) for host in hosts]
    final = [i for i, delay in enumerate(delays) if delay <= min(delays) + known.config.delay.tolerance]
    best = max(final, key=lambda i: (points[i], residual(hosts[i].free(), known), asked.tie(hosts[i])))
    return hosts[best]


def nearness(one: Instance, host: Host, known: Map) -> int:
    """NAS: the preferred host, then by distance."""
    name = one.access.preferred
    if not name:
        return 0
    if known.by_name.get(name) == host.row:
        return 1
    return round(-known.distance(known.place_of_login(name), known.place(host.row)) * UNIT)


def nas(one: Instance, asked: Asked) -> Host:
    return max(asked.hosts, key=lambda host: (nearness(one, host, asked.known), asked.tie(host)))


def task_time(one: Instance, host: Host, tasks: int, known: Map) -> float:
    """TSRA: execution beside ``tasks - 1`` others, and transmission."""
    most = one.demand[0] if one.most is None else max(one.demand[0], one.most[0])
    cpu = min(most * known.unit(0), host.capacity[0] * known.unit(0) / tasks)
    sent = 0.0
    for name, share in one.access.logins:
        if known.by_name.get(name) != host.row:
            sent += share
    work = known.config.delay.processing * one.access.data
    executing = 0.0 if work == 0.0 else work / cpu if cpu > 0.0 else FAR
    return min(executing + transfer(one, known) * sent + known.image_delay(one.access, host.row), FAR)


def tasks_on(host: Host) -> list[Instance]:
    return [other for other in host.instances if other.access.data > 0.0]


def tsra_time(one: Instance, host: Host, known: Map) -> int:
    return round(-task_time(one, host, len(tasks_on(host)) + 1, known) * UNIT)


def tsra(one: Instance, asked: Asked) -> Host:
    known = asked.known

    def gained(host: Host) -> int:
        if one.access.data == 0.0:
            return 0
        before = tasks_on(host)
        kept = sum(task_time(other, host, len(before), known) <= other.access.deadline for other in before)
        with_it = [*before, one]
        return sum(task_time(o, host, len(with_it), known) <= o.access.deadline for o in with_it) - kept

    return max(asked.hosts, key=lambda host: (gained(host), tsra_time(one, host, known), asked.tie(host)))


def elastic_fog(one: Instance, asked: Asked) -> Host:
    """By what each host lacks of its part of the application's traffic."""
    siblings = {host.row: [other for other in host.instances if other.job == one.job] for host in asked.everywhere}
    known = asked.known
    seen = [one, *(other for there in siblings.values() for other in there)]
    at = dict.fromkeys(siblings, 0.0)
    total = 0.0
    for other in seen:
        for name, share in other.access.logins:
            total += share
            if name in known.by_name:
                at[known.by_name[name]] += share
                continue
            near = {row: 1.0 / max(known.distance(known.places[name], known.place(row)), 1e-9) for row in at}
            for row, weight in near.items():
                at[row] += share * (weight / sum(near.values()))

    def lacks(host: Host) -> int:
        there = len(siblings[host.row])
        missing = at[host.row] * len(seen) / (total or 1.0) - there
        return round((missing if there else missing + (len(seen) + 1.0)) * UNIT)

    return max(asked.hosts, key=lambda host: (lacks(host), asked.tie(host)))


def utilisation(one: Instance, host: Host, free: Amounts, r: int) -> float:
    if host.capacity[r] == 0:
        return 0.0
    return (host.capacity[r] - (free[r] - one.demand[r])) / host.capacity[r]


def kcss(one: Instance, asked: Asked) -> Host:
    """TOPSIS over utilisation, containers, power and image time."""
    hosts, known = asked.hosts, asked.known
    rows = []
    for host in hosts:
        cpu, memory = (utilisation(one, host, host.free(), r) for r in (0, 1))
        power = host.capacity[0] * known.unit(0) * (0.5 + 0.5 * cpu)
        rows.append((cpu, memory, -(len(host.instances) + 1.0), -power, -known.image_delay(one.access, host.row)))
    columns = list(zip(*rows, strict=True))
    lengths = [math.sqrt(sum(value * value for value in column)) or 1.0 for column in columns]

    def away_from(row: Sequence[float], points: Sequence[float]) -> float:
        return math.sqrt(sum(((v - p) / n) ** 2 for v, p, n in zip(row, points, lengths, strict=True)))

    def value(i: int) -> int:
        bottom = away_from(rows[i], [min(column) for column in columns])
        both = away_from(rows[i], [max(column) for column in columns]) + bottom
        return round((bottom / both if both > 0.0 else 0.0) * UNIT)

    return hosts[max(range(len(hosts)), key=lambda i: (value(i), asked.tie(hosts[i])))]


CHOICES = {"delay-aware": delay_aware, "elastic-fog": elastic_fog, "tsra": tsra, "nas": nas, "kcss": kcss}
"""By name: which of the hosts with room an instance is given."""


def preempting_score(one: Instance, host: Host, free: Amounts, known: Map) -> float | None:
    """What tells places to preempt apart; ``None``: the score of the settings that is no comparison."""
    name = score_name(known.config)
    if name == "delay-aware":
        return round(-omega(one, host, free, known) * UNIT)
    if name == "tsra":
        return tsra_time(one, host, known)
    if name == "nas":
        return nearness(one, host, known)
    if name == "kcss":
        both = utilisation(one, host, host.free(), 0) + utilisation(one, host, host.free(), 1)
        return round(both * UNIT)
    return None
