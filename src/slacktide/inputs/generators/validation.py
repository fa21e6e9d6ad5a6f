"""The three validation runs: few requests on 20 equal hosts, of which it is known what a policy must reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from slacktide.inputs.generators.api import Generator, Parameter, Value
from slacktide.inputs.rows import equal_hosts, select
from slacktide.model import APPROACHES, DEFAULT_CLASSES, Hosts, Requests, ServiceClass, Workload

HOSTS = 20
CAPACITY = 3.75  # of 4 vCPU and 4 GB, what the cluster's own daemons leave
DEMAND = 0.375

# Run 3: services of two instances, in classes of its own.
SERVICES = (20, 16, 17)
INSTANCES = 2
CLASSES = (ServiceClass("first", 1.0, 1), ServiceClass("second", 0.95, 2), ServiceClass("third", 0.9, 3))


def _requests(
    counts: tuple[int, int, int],
    seed: int,
    demand: float = DEMAND,
    classes: tuple[ServiceClass, ...] = DEFAULT_CLASSES,
) -> Workload:
    """Requests of three classes, one a second in random order, none of which ever completes."""
    service_class = np.repeat(np.arange(3, dtype=np.int16), counts)
    ids = np.arange(1, len(service_class) + 1)
    order = np.random.default_rng(seed).permutation(len(ids))
    return Workload(
        ids=ids[order],
        admission=np.arange(len(ids), dtype=np.float64),
        duration=np.full(len(ids), np.inf),
        demand=np.full((len(ids), 2), demand),
        service_class=service_class[order],
        job=ids[order],
        anti_affinity=np.zeros(len(ids), dtype=np.bool_),
        term=np.zeros(len(ids), dtype=np.int32),
        classes=classes,
    )


def _run(counts: tuple[int, int, int], _values: Mapping[str, Value], seed: int) -> tuple[Iterator[Workload], Hosts]:
    return iter([_requests(counts, seed)]), equal_hosts(HOSTS, {"cpu": CAPACITY, "memory": CAPACITY})


def _run_3(values: Mapping[str, Value], seed: int) -> tuple[Iterator[Workload], Hosts]:
    """Every request of one instance becomes a service of two."""
    single = _requests(SERVICES, seed, 0.187, CLASSES)
    count = len(single)
    both = select(single, np.repeat(np.arange(count), INSTANCES))
    requests = Requests(
        ids=single.ids,
        batch=np.zeros(count, np.bool_),
        approach=np.full(count, APPROACHES.index(str(values["approach"])), np.int8),
        parallelism=np.zeros(count, np.int64),
    )
    request = np.repeat(np.arange(count, dtype=np.int32), INSTANCES)
    return iter([replace(both, request=request, requests=requests)]), equal_hosts(5, {"cpu": 4.0, "memory": CAPACITY})


VALIDATION_1 = Generator(
    "validation-1",
    "20 equal hosts for 200 requests; 80 gold, 80 silver and 96 bronze, one a second",
    (),
    partial(_run, (80, 80, 96)),
)
VALIDATION_2 = Generator(
    "validation-2", "20 equal hosts for 200 requests; 221 silver, one a second", (), partial(_run, (0, 221, 0))
)
VALIDATION_3 = Generator(
    "validation-3",
    "5 equal hosts for 100 instances; 53 services of 2 instances, one service a second",
    (
        Parameter(
            "approach", "independent", f"how availability is measured: {', '.join(APPROACHES)}", choices=APPROACHES
        ),
    ),
    _run_3,
)
