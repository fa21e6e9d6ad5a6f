"""Simulations of a past: what a policy delivers to each request, how often it preempts, how long pods wait."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.experiment.planning import bracket, next_sizes
from slacktide.kernels.runtime import chance
from slacktide.metrics.summary import achieved
from slacktide.model import ServiceClass
from slacktide.sim import EVENT_KINDS, RunResult, run
from slacktide.sim.startup import batch_returns
from slacktide.verdict.cluster_past import ClusterPast, by_priority, sized, with_classes, write_events

KUBERNETES, SLACKTIDE = "kubernetes", "slacktide"
POLICY = {KUBERNETES: "priority", SLACKTIDE: "qos-driven"}
"""By which policy each scheduler is simulated."""
EQUALS: dict[str, Literal["admission", "kube-scheduler"]] = {KUBERNETES: "kube-scheduler", SLACKTIDE: "admission"}
ADMITTED, PLACED, PREEMPTED, EVICTED, REMOVED = (
    EVENT_KINDS.index(one) for one in ("admitted", "placed", "preempted", "evicted", "removed")
)
BEGIN_TO_WAIT = (ADMITTED, PREEMPTED, EVICTED)
MOST = 4
"""Times as many nodes as today's are tried at the most."""
KEPT = 1e-9


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one run: ``delivered`` and ``preempted`` by the request's number; ``waits``: seconds that instances waited for
    a node before each placement, with the request's number, shape (n, 2); ``unplaced``: waits that had no end."""

    delivered: dict[int, float]
    preempted: dict[int, int]
    waits: NDArray[np.float64]
    unplaced: int
    nodes: int

    def kept(self, promised: Mapping[int, ServiceClass]) -> set[int]:
        """Requests that got what they were promised."""
        return {number for number, one in promised.items() if self.delivered.get(number, 1.0) >= one.slo - KEPT}


def simulated(
    past: ClusterPast, scheduler: str, *, seed: int = 0, size: int | None = None, events: bool = False,
    promised: Mapping[int, ServiceClass] | None = None, change: Callable[[ClusterPast], ClusterPast] | None = None,
) -> Outcome:  # fmt: skip
    """A run on ``size`` nodes (None: those that there were). With ``events`` it is noted how long pods wait."""
    past = past if change is None else change(past)
    if promised is None:
        promised = by_priority(past) if scheduler == KUBERNETES else past.promised
    workload = with_classes(past, dict(promised))
    config = _config(past, scheduler, seed)
    with tempfile.TemporaryDirectory() as folder:
        hosts = past.hosts
        if size is not None and size != len(hosts):
            hosts, happens = sized(past, size)
            path = Path(folder) / "events.csv"
            write_events(happens, path)
            config = replace(config, failures=replace(config.failures, file=str(path) if happens else None))
        result = run(workload, hosts, replace(config, classes=workload.classes), events=events)
    return _outcome(past, config, result, len(hosts))


def _config(past: ClusterPast, scheduler: str, seed: int) -> Config:
    config = past.config
    return replace(
        config,
        policy=replace(config.policy, name=POLICY[scheduler], equals=EQUALS[scheduler]),
        simulation=replace(config.simulation, seed=seed),
    )


def _outcome(past: ClusterPast, config: Config, result: RunResult, nodes: int) -> Outcome:
    requests, found = past.workload.requests, result.requests
    numbers = (past.workload.ids if requests is None else requests.ids)[found["row"]]
    shares = achieved(found, config.qos.startup)
    waits, unplaced = _waits(past, config, result)
    return Outcome(
        dict(zip(numbers.tolist(), shares.tolist(), strict=True)),
        dict(zip(numbers.tolist(), found["preemptions"].tolist(), strict=True)),
        waits,
        unplaced,
        nodes,
    )


def _away(past: ClusterPast, config: Config) -> Callable[[int, int], float]:
    """Seconds from a preemption of a row that was started so often to its next pod, for which it does not wait yet. On
    a cluster those of services come at once, while their victims still go; those of Jobs come when these are gone, and
    Jobs do not back off any more."""
    table, workload = batch_returns(config.simulation.batch_recreation), past.workload
    requests, request, seed = workload.requests, workload.request, np.uint64(config.simulation.seed)

    def seconds(row: int, starts: int) -> float:
        if table is None or requests is None or request is None or not requests.batch[request[row]]:
            return 0.0
        with np.errstate(over="ignore"):  # it multiplies modulo 2^64
            drawn = table[chance.draw(seed, chance.RETURN, row, starts) % len(table)]
        return float(drawn) + (0.0 if workload.grace is None else float(workload.grace[row]))

    return seconds


def _waits(past: ClusterPast, config: Config, result: RunResult) -> tuple[NDArray[np.float64], int]:
    """How long instances waited before each placement: on a cluster they are bound when their victims are gone."""
    events, grace = result.events, past.workload.grace
    if events is None:
        return np.zeros((0, 2)), 0
    since: dict[int, float] = {}
    lasts: dict[int, float] = {}
    away, starts, found = _away(past, config), Counter[int](), list[tuple[float, float]]()
    for at, kind, row, by in zip(*(events[name].tolist() for name in ("time", "kind", "row", "by")), strict=True):
        if kind == PREEMPTED and grace is not None:
            lasts[by] = max(lasts.get(by, 0.0), float(grace[row]))
        starts[row] += kind == PLACED
        if kind in BEGIN_TO_WAIT:
            since[row] = at if kind == ADMITTED else at + away(row, starts[row])
        elif kind == PLACED and row in since:
            found.append((float(past.number_of(row)), at - since.pop(row) + lasts.pop(row, 0.0)))
        elif kind == REMOVED:
            since.pop(row, None)
    return np.array(found).reshape(-1, 2), sum(begun <= past.seconds for begun in since.values())


def together(cases: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
    """Runs side by side."""
    with ThreadPoolExecutor(max(1, min(len(cases), os.cpu_count() or 1))) as hands:
        return [one.result() for one in [hands.submit(case) for case in cases]]


@dataclass(frozen=True, slots=True)
class Sizing:
    """The smallest number of nodes that will do, None where ``most`` do not; ``shares``: of which part of the seeds
    each size tested does."""

    nodes: int | None
    most: int
    shares: dict[int, float]


def smallest(past: ClusterPast, scheduler: str, target: set[int], seeds: int) -> Sizing:
    """The smallest number of nodes on which all requests of ``target`` get what they were promised, with every seed."""
    most, shares = MOST * len(past.hosts), dict[int, float]()
    does: dict[int, bool] = {}
    while wanted := next_sizes(
        does, start=len(past.hosts), most=most, at_once=2, within=max(1, len(past.hosts) // 100)
    ):
        for size in wanted:
            cases = [_case(past, scheduler, seed, size) for seed in range(seeds)]
            kept = [target <= one.kept(past.promised) for one in together(cases)]
            shares[size], does[size] = sum(kept) / seeds, all(kept)
    return Sizing(bracket(does).meets, most, dict(sorted(shares.items())))


def _case(past: ClusterPast, scheduler: str, seed: int, size: int) -> Callable[[], Outcome]:
    return lambda: simulated(past, scheduler, seed=seed, size=size)
