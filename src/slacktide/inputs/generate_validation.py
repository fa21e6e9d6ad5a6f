"""The validation runs of the specification, section 8."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from slacktide.inputs.generator import Generator, Value
from slacktide.model import DEFAULT_CLASSES, Hosts, Workload

HOSTS = 20
CAPACITY = 3.75  # of 4 vCPU and 4 GB, what the cluster's own daemons leave
DEMAND = 0.375


def _hosts() -> Hosts:
    return Hosts(
        ids=np.arange(1, HOSTS + 1),
        names=tuple(f"host-{number}" for number in range(1, HOSTS + 1)),
        capacity=np.full((HOSTS, 2), CAPACITY),
        attributes=({},) * HOSTS,
    )


def _requests(counts: tuple[int, int, int], seed: int) -> Workload:
    """Gold, silver and bronze requests, one a second in random order, none of which ever completes."""
    service_class = np.repeat(np.arange(3, dtype=np.int16), counts)
    ids = np.arange(1, len(service_class) + 1)
    order = np.random.default_rng(seed).permutation(len(ids))
    return Workload(
        ids=ids[order],
        admission=np.arange(len(ids), dtype=np.float64),
        duration=np.full(len(ids), np.inf),
        demand=np.full((len(ids), 2), DEMAND),
        service_class=service_class[order],
        job=ids[order],
        anti_affinity=np.zeros(len(ids), dtype=np.bool_),
        term=np.zeros(len(ids), dtype=np.int32),
        classes=DEFAULT_CLASSES,
    )


def _run_1(_values: Mapping[str, Value], seed: int) -> tuple[Iterator[Workload], Hosts]:
    return iter([_requests((80, 80, 96), seed)]), _hosts()


def _run_2(_values: Mapping[str, Value], seed: int) -> tuple[Iterator[Workload], Hosts]:
    return iter([_requests((0, 221, 0), seed)]), _hosts()


VALIDATION_1 = Generator(
    "validation-1", "20 equal hosts for 200 requests; 80 gold, 80 silver and 96 bronze, one a second", (), _run_1
)
VALIDATION_2 = Generator("validation-2", "20 equal hosts for 200 requests; 221 silver, one a second", (), _run_2)
