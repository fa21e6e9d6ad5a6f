"""Clusters with a little too little room for services that stay: where a plan gives some up and others take turns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slacktide.config import preset
from slacktide.model import NO_CONSTRAINT, Constraint, Hosts, ServiceClass, Term, Window
from slacktide.model.constraint import Operator
from slacktide.model.window import EPOCH
from support.clusters import Cluster, HostEvent
from support.small import FOREVER, Request, Several, machines, workload

APPROACHES = ("independent", "aggregated", "concurrent", "batch")


def shortage(seed: int, services: int = 20, end: float = 600.0) -> Cluster:
    """Up to so many services, for which there is a tenth too little room at times or all of the time.

    Windows are of some minutes, rolling or in turns that a calendar says; some promises are over lives. Several classes
    may have one rank. Some services have several instances. Hosts fail, and some of what there is to do ends.
    """
    random = np.random.default_rng([seed, 0x5EED, 37])

    def pick(*options: Any) -> Any:
        return options[int(random.integers(len(options)))]

    classes = tuple(
        ServiceClass(
            f"class-{number}",
            float(pick(0.8, 0.9, 0.9, 0.95, 0.99, 1.0)),
            1 + int(pick(number, number, 0)),
            float(pick(10.0, 0.0, 25.0)),
            window=_window(random, end),
            alpha=pick(None, None, None, 0.0, 6.5),
        )
        for number in range(int(pick(1, 2, 2, 3)))
    )
    rows: list[Request] = []
    several: list[Several] = []
    sizes = pick((1.0,), (1.0,), (1.0, 2.0), (1.0, 1.0, 4.0))
    spread = float(pick(0.0, 12.0, end / 8.0))
    jobs = float(pick(0.0, 0.0, 0.0, 0.2, 0.5))
    together = float(pick(0.0, 0.0, 0.3))
    while len(rows) < services:
        kind, size, at = int(random.integers(len(classes))), float(pick(*sizes)), float(random.uniform(0.0, spread))
        lasts = FOREVER if random.random() >= jobs else float(random.exponential(end / 8.0)) + 1.0
        if random.random() >= together:
            rows.append(Request(kind, at, lasts, size))
            continue
        many = int(random.integers(2, 5))
        rows += [Request(kind, at, lasts, size, of=len(several)) for _ in range(many)]
        several.append(Several(pick(*APPROACHES), int(pick(0, 1, 2))))
    rows.sort(key=lambda row: row.admission)
    names = dict.fromkeys(row.of for row in rows if row.of >= 0)
    order = {of: number for number, of in enumerate(names)}  # requests by their first rows
    rows = [Request(row.kind, row.admission, row.duration, row.size, of=order.get(row.of, -1)) for row in rows]
    hosts = _hosts(random, sum(row.size for row in rows) * float(pick(0.8, 0.9, 0.95, 0.97)), max(sizes))
    made = replace(workload(rows, [several[of] for of in names]), classes=classes)
    delays = (float(pick(0.0, 1.0, 2.5)), float(pick(0.5, 3.0)))
    hot, cold = ((delay,) for delay in delays)
    one = Cluster(seed, made, hosts, preset("recommended"), hot, cold, _failures(random, hosts, end))
    return one.with_(
        policy={
            "name": pick("qos-driven", "qos-driven", "hybrid"),
            "victims": pick("same-pass", "next-pass"),
            "queue_limit": int(pick(3, 30)),
        },
        simulation={"end": end, "seed": seed, "epoch": EPOCH},
        qos={"alpha": float(pick(0.0, 0.5, 2.0, 5.0)), "startup": pick("restart", "always", "never")},
        scheduler={"watchdog": float(pick(5.0, 10.0, 17.5))},
    )


def in_pools(seed: int, services: int = 20, end: float = 600.0) -> Cluster:
    """The same, where many can use some hosts only: those of a zone or of two, or those that have a third resource."""
    one, random = shortage(seed, services, end), np.random.default_rng([seed, 0x9001])
    zones = random.choice(["a", "b", "c"], len(one.hosts), p=[0.5, 0.3, 0.2]).tolist()
    has = random.random(len(one.hosts)) < 0.4
    wanted: tuple[tuple[Operator, str], ...] = (("==", "a"), ("==", "b"), ("/=", "b"))
    terms = (NO_CONSTRAINT, *(Term((Constraint("zone", operator, zone),)) for operator, zone in wanted))
    first = np.arange(len(one.workload))
    if one.workload.request is not None and random.random() < 0.8:  # all instances of a request alike
        first = np.unique(one.workload.request, return_index=True)[1][one.workload.request]
    term = random.choice(len(terms), len(first), p=[0.4, 0.3, 0.1, 0.2])[first].astype(np.int32)
    asks = np.where(random.random(len(first)) < float(random.choice([0.0, 0.3])), 1.0, 0.0)[first]
    resources = (*one.hosts.resources, "accelerator")
    demand = np.column_stack([one.workload.demand, asks])
    capacity = np.column_stack([one.hosts.capacity, np.where(has, 2.0, 0.0)])
    return replace(
        one,
        workload=replace(one.workload, term=term, terms=terms, demand=demand, resources=resources),
        hosts=replace(
            one.hosts, attributes=tuple({"zone": zone} for zone in zones), capacity=capacity, resources=resources
        ),
    )


def _window(random: np.random.Generator, end: float) -> Window | None:
    kind = random.random()
    budget = "accrued" if random.random() < 0.5 else "whole"
    if kind < 0.15:
        return None
    if kind < 0.4:
        begins = f"1970-01-01T00:{int(random.integers(0, 1 + int(end // 75))):02}:{int(random.integers(60)):02}"
        return Window(calendar="1d", start=begins, budget=budget)
    share = float(random.choice([0.1, 0.2, 0.4, 0.8, 2.4]))
    return Window(rolling=60.0 + np.floor(end * share) / 2.0, budget=budget)


def _hosts(random: np.random.Generator, room: float, largest: float) -> Hosts:
    """So much in all, on hosts that have place for the largest."""
    capacities: list[float] = []
    while sum(capacities) < room or not capacities:
        capacities.append(float(random.integers(int(largest), int(largest) + 4)))
    return machines(*capacities)


def _failures(random: np.random.Generator, hosts: Hosts, end: float) -> tuple[HostEvent, ...]:
    found: list[HostEvent] = []
    if random.random() < 0.5:
        for host in random.choice(len(hosts), min(2, len(hosts)), replace=False).tolist():
            at = float(np.floor(random.uniform(0.0, end)))
            found += [
                (at, host, str(random.choice(["fail", "drain"]))),
                (at + float(random.integers(5, 200)), host, "repair"),
            ]
    return tuple(sorted(found, key=lambda event: event[0]))
