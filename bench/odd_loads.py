"""Loads of kinds that nobody tunes for, each in two sizes: whether one of them has a cliff.

    python bench/odd_loads.py [--case NAME ...] [--policy NAME ...] [--repeats 3] [--scale 1]

The larger size has four times as many requests. Where hosts are many for each request, they are as many in both, so
that an exponent of 0 is a cost of a request that does not grow. Processor time of the simulation alone, the shortest of
all repetitions; counts are of the larger size.

many classes      200 service classes, each with a promise and a rank of its own
many terms        a term of its own for each 20 requests
many demands      no two requests ask for the same
many resources    40 of them, of which each request asks for four
many tiny hosts   a host for each request of the smaller size
one giant job     one aggregated batch request is all there is
one instant       all are admitted at once
batch only        batch requests of ten instances, four at a time
never fits        nine in ten fit nowhere, and wait to the end
resizes           each instance is resized three times
many budgets      a disruption budget for each ten
full of one class gold instances on a cluster that is too small, of which none may preempt another
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from measuring import plain, settings, simulated
from sized_cases import Point, exponent, measure, tell

from slacktide.inputs.rows import equal_hosts
from slacktide.model import (
    NEVER_RESIZED,
    NO_CONSTRAINT,
    Budget,
    Constraint,
    Hosts,
    Requests,
    Resizing,
    ServiceClass,
    Term,
    Workload,
)
from slacktide.model.workload import AGGREGATED

HEAD = (
    *("case", "settings", "requests", "hosts", "µs per request at each"),
    *("operations", "bound checks", "passes", "exponent"),
)
POLICIES: dict[str, dict[str, Any]] = {"priority": {"policy.name": "priority"}, "recommended": {}}
LIFE = 600.0
"""Mean seconds of a request."""
FACTOR = 4


class Load(NamedTuple):
    """One size of a case."""

    workload: Workload
    hosts: Hosts
    end: float | None = None


def machines(count: int, *, cores: float = 8.0, resources: int = 2, zones: int = 1) -> Hosts:
    """Hosts of so many cores; each in a zone."""
    attributes = tuple({"zone": str(row % zones)} for row in range(count))
    return replace(equal_hosts(count, dict.fromkeys(named(resources), cores)), attributes=attributes)


def named(count: int) -> tuple[str, ...]:
    """Names of so many resources."""
    return ("cpu", "memory", *(f"device-{number}" for number in range(count - 2)))


def basic(count: int, hosts: int, load: float = 0.9, cores: float = 8.0) -> Workload:
    """Poisson arrivals of 1 to 4 cores, in three classes."""
    rng = np.random.default_rng(7)
    rate = load * hosts * cores / (2.5 * LIFE)
    demand = rng.integers(1, 5, count).astype(np.float64)
    admission = np.cumsum(rng.exponential(1.0 / rate, count))
    duration = np.maximum(rng.exponential(LIFE, count), 1e-3)
    return plain(admission, duration, demand, rng.choice(3, count, p=[0.1, 0.5, 0.4]).astype(np.int16))


def many_classes(count: int) -> Load:
    classes = tuple(ServiceClass(f"class-{n}", round(1.0 - n / 250.0, 3), n + 1) for n in range(200))
    of = np.random.default_rng(1).integers(0, 200, count).astype(np.int16)
    return Load(replace(basic(count, 500), service_class=of, classes=classes), machines(500))


def many_terms(count: int) -> Load:
    zones = 50
    several = tuple(
        Term((Constraint("zone", "/=", str(n % zones)), Constraint("rack", "/=", str(n)))) for n in range(count // 20)
    )
    term = 1 + np.arange(count) % len(several)
    return Load(
        replace(basic(count, 500), term=term.astype(np.int32), terms=(NO_CONSTRAINT, *several)),
        machines(500, zones=zones),
    )


def many_demands(count: int) -> Load:
    demand = np.random.default_rng(2).uniform(1.0, 4.0, (count, 2))
    return Load(replace(basic(count, 1500, 1.05), demand=demand), machines(1500))


def many_resources(count: int) -> Load:
    rng, load = np.random.default_rng(3), basic(count, 500)
    demand = np.zeros((count, 40))
    demand[:, :2] = load.demand
    for _ in range(2):
        demand[np.arange(count), rng.integers(2, 40, count)] = 1.0
    return Load(replace(load, demand=demand, resources=named(40)), machines(500, resources=40))


def tiny_hosts(hosts: int) -> Callable[[int], Load]:
    def made(count: int) -> Load:
        demand = np.full((count, 2), 0.5)
        return Load(replace(basic(count, hosts, 3.0, 1.0), demand=demand), machines(hosts, cores=1.0))

    return made


def of_several(count: int, each: int, parallelism: int) -> Workload:
    """Batch requests of ``each`` instances."""
    load = basic(count, 500)
    requests = -(-count // each)
    first = np.minimum(np.arange(count) // each * each, count - 1)
    return replace(
        load,
        admission=load.admission[first],
        service_class=load.service_class[first],
        request=(np.arange(count) // each).astype(np.int32),
        requests=Requests(
            np.arange(requests),
            np.ones(requests, np.bool_),
            np.full(requests, AGGREGATED, np.int8),
            np.full(requests, parallelism),
        ),
    )


def giant_job(count: int) -> Load:
    return Load(of_several(count, count, 0), machines(500))


def batch_only(count: int) -> Load:
    return Load(of_several(count, 10, 4), machines(500))


def one_instant(count: int) -> Load:
    return Load(replace(basic(count, 500), admission=np.zeros(count)), machines(500))


def never_fits(count: int) -> Load:
    load = basic(count, 500)
    demand = np.where(np.arange(count)[:, None] % 10 > 0, 9.0 + np.arange(count)[:, None] % 7, load.demand)
    return Load(replace(load, demand=demand), machines(500), float(load.admission[-1]) + LIFE)


def resizes(count: int) -> Load:
    load = basic(count, 500)
    several = tuple(
        Resizing(tuple((50.0 * (k + 1), (("cpu", float(1 + (n + k) % 4)),)) for k in range(3))) for n in range(4)
    )
    resizings = (NEVER_RESIZED, *several)
    resize = (1 + np.arange(count) % 4).astype(np.int32)
    return Load(replace(load, resize=resize, resizings=resizings), machines(500))


def many_budgets(count: int) -> Load:
    several = tuple(Budget(f"budget-{n}", max_unavailable=1 + n % 3) for n in range(count // 10))
    budget = (np.arange(count) // 10 % len(several)).astype(np.int32)
    return Load(replace(basic(count, 500, 1.05), budget=budget, budgets=several), machines(500))


def one_class(count: int) -> Load:
    load = basic(count, 500, 1.3)
    return Load(replace(load, service_class=np.zeros(count, np.int16)), machines(500), float(load.admission[-1]))


CASES: dict[str, tuple[Callable[[int], Load], int]] = {
    "many classes": (many_classes, 10_000),
    "many terms": (many_terms, 10_000),
    "many demands": (many_demands, 10_000),
    "many resources": (many_resources, 10_000),
    "many tiny hosts": (tiny_hosts(20_000), 20_000),
    "one giant job": (giant_job, 5_000),
    "one instant": (one_instant, 5_000),
    "batch only": (batch_only, 10_000),
    "never fits": (never_fits, 5_000),
    "resizes": (resizes, 5_000),
    "many budgets": (many_budgets, 10_000),
    "full of one class": (one_class, 5_000),
}


def measured(name: str, policy: str, repeats: int, scale: float) -> Iterator[list[str]]:
    """The line of a case under a policy."""
    (made, size), points = CASES[name], []
    for count in (int(size * scale), int(size * scale) * FACTOR):
        tell(name, policy, f"{count:,}")
        load = made(count)
        config = settings("recommended", {**POLICIES[policy], "simulation.end": load.end})
        runs = [simulated(load.workload, load.hosts, config) for _ in range(repeats)]
        points.append(Point(count, min(one.seconds for one in runs) / count * 1e6))
    result = runs[0].result
    yield [
        *(name, policy, "; ".join(f"{int(one.size):,}" for one in points), f"{len(load.hosts):,}"),
        *("; ".join(f"{one.spent:.2f}" for one in points), f"{result.operations:,}", f"{result.bound_checks:,}"),
        *(f"{result.pass_count:,}", exponent(*points)),
    ]


def tiny() -> None:
    """A run of no length."""
    simulated(basic(100, 10), machines(10), settings("recommended", {}))


def main() -> None:
    """Print the table."""
    measure(__doc__, HEAD, tuple(CASES), tuple(POLICIES), measured, tiny)


if __name__ == "__main__":
    main()
