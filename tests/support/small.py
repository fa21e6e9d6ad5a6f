"""Clusters small enough to work out by hand: named requests on named hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from slacktide.config import Config
from slacktide.model import NO_CONSTRAINT, Hosts, Requests, Term, Workload
from slacktide.model.workload import AGGREGATED, APPROACHES, INDEPENDENT
from slacktide.sim import RunResult
from support.clusters import Cluster, HostEvent
from support.runs import core

GOLD, SILVER, BRONZE = 0, 1, 2
FOREVER = float("inf")


@dataclass(frozen=True)
class Request:
    """One row of a hand-made workload; its size is asked of CPU and of memory.

    ``of`` is the request of several instances that it belongs to, -1 for one of its own.
    """

    kind: int
    admission: float = 0.0
    duration: float = FOREVER
    size: float = 1.0
    job: int = -1
    anti_affinity: bool = False
    term: Term = NO_CONSTRAINT
    of: int = -1


@dataclass(frozen=True)
class Several:
    """A request of several instances: one of ``APPROACHES``, or ``batch`` with its parallelism."""

    approach: str
    parallelism: int = 0


Scale = tuple[float, int, int]
"""Time (s), request, how many instances it shall have."""


def workload(requests: Sequence[Request], several: Sequence[Several] = (), scales: Sequence[Scale] = ()) -> Workload:
    """Rows in this order, which is that of their admissions; those without a job have one of their own."""
    terms = tuple(dict.fromkeys(r.term for r in requests)) or (NO_CONSTRAINT,)
    return Workload(
        ids=np.arange(len(requests), dtype=np.int64),
        admission=np.array([r.admission for r in requests], np.float64),
        duration=np.array([r.duration for r in requests], np.float64),
        demand=np.array([[r.size, r.size] for r in requests], np.float64).reshape(-1, 2),
        service_class=np.array([r.kind for r in requests], np.int16),
        job=np.array([row if r.job < 0 else 10_000_000 + r.job for row, r in enumerate(requests)], np.int64),
        anti_affinity=np.array([r.anti_affinity for r in requests], np.bool_),
        term=np.array([terms.index(r.term) for r in requests], np.int32),
        terms=terms,
        **(_requests_of(requests, several, scales) if several else {}),
    )


def _requests_of(rows: Sequence[Request], several: Sequence[Several], scales: Sequence[Scale]) -> dict[str, Any]:
    """The two fields about requests: first those of several instances, then one for each other row."""
    alone = [place for place, row in enumerate(rows) if row.of < 0]
    index = {place: len(several) + number for number, place in enumerate(alone)}
    kinds = [AGGREGATED if s.approach == "batch" else APPROACHES.index(s.approach) for s in several]
    count = len(several) + len(alone)
    return {
        "request": np.array([index.get(place, row.of) for place, row in enumerate(rows)], np.int32),
        "requests": Requests(
            ids=np.arange(count, dtype=np.int64),
            batch=np.array([s.approach == "batch" for s in several] + [False] * len(alone), np.bool_),
            approach=np.array(kinds + [INDEPENDENT] * len(alone), np.int8),
            parallelism=np.array([s.parallelism for s in several] + [0] * len(alone), np.int64),
            scale_time=np.array([time for time, _, _ in scales], np.float64),
            scale_request=np.array([request for _, request, _ in scales], np.int32),
            scale_replicas=np.array([replicas for _, _, replicas in scales], np.int64),
        ),
    }


def machines(*capacities: float) -> Hosts:
    """Hosts with this capacity of CPU and of memory and the attribute ``row``."""
    return Hosts(
        ids=np.arange(len(capacities), dtype=np.int64),
        names=tuple(f"host-{row}" for row in range(len(capacities))),
        capacity=np.array([[c, c] for c in capacities], np.float64),
        attributes=tuple({"row": str(row)} for row in range(len(capacities))),
    )


def small(
    requests: Sequence[Request],
    hosts: Hosts,
    *,
    end: float | None = None,
    hot: float = 0.0,
    cold: float = 0.0,
    events: Sequence[HostEvent] = (),
    config: Config | None = None,
    several: Sequence[Several] = (),
    scales: Sequence[Scale] = (),
    **sections: dict[str, Any],
) -> Cluster:
    """A cluster with constant start-up delays; ``sections`` as for :meth:`Cluster.with_`."""
    base = Config() if config is None else config
    base = replace(base, simulation=replace(base.simulation, end=end))
    return Cluster(0, workload(requests, several, scales), hosts, base, (hot,), (cold,), tuple(events)).with_(
        **sections
    )


def outcome(one: Cluster, folder: Path, **asked: Any) -> RunResult:
    """The compiled run of a small cluster."""
    return core(one, folder, **asked)
