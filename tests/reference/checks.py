"""What must hold of any run of the twin, whatever the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from reference.metric import ACCOUNTINGS
from reference.outcome import Outcome
from reference.policies import Choice, Pass
from reference.simulator import Simulation, fields_of
from reference.state import Instance
from reference.windows import STEP
from slacktide.model import Requests
from support.clusters import Cluster
from support.runs import told_to_the_twin


class Watched(Simulation):
    """A run that looks at its own trials, and at hosts and metrics after each decision."""

    def attempt(
        self, this: Pass, tried: Sequence[Instance], queue: Sequence[Instance], may_preempt: bool
    ) -> list[Instance] | None:
        before, waiting = self.state() if len(tried) > 1 else [], set(self.waiting)
        victims = super().attempt(this, tried, queue, may_preempt)
        if victims is None:
            assert set(self.waiting) == waiting
            assert len(tried) == 1 or self.state() == before, "a failed trial leaves a trace"
        else:
            assert set(self.waiting) == (waiting - set(tried)) | set(victims)
        return victims

    def state(self) -> list[dict[str, Any]]:
        return [fields_of(thing) for thing in [*self.instances, *self.hosts, *self.outcome.requests]]

    def carry_out(self, j: Instance, choice: Choice, number: int) -> None:
        assert all(k.host is choice.host for k in choice.victims)
        assert j.request is not None
        assert not j.request.decides or all(k.request is not j.request for k in choice.victims), "siblings are equals"
        super().carry_out(j, choice, number)
        assert min(choice.host.free()) >= 0
        assert choice.host.up
        assert all(k.metric_at(self.now, self.config) > -inf for k in self.running)


def watched(one: Cluster) -> Simulation:
    """A run of the twin that is over, with all its objects."""
    events = told_to_the_twin(one)
    simulation = Watched(one.workload, one.hosts, one.config, one.hot, one.cold, events)
    simulation.run()
    return simulation


def check_ledgers(simulation: Simulation) -> None:
    """Every second of every request is e, d or p, and its instances' seconds are its own."""
    outcome = simulation.outcome
    for group in outcome.groups:
        rows = [outcome.requests[row] for row in group.rows]
        ends = [next((t for t in (r.completed, r.removed) if t is not None), simulation.now) for r in rows]
        # Who never had a host, and came at the end, was owed one step of the grid of times.
        least = [STEP if r.starts == 0 and r.removed is None else 0.0 for r in rows]
        lived = [end - (r.admission or 0.0) for r, end in zip(rows, ends, strict=True)]
        lifetime = sum(map(max, lived, least))
        for accounting in ACCOUNTINGS:
            totals = group.totals[accounting]
            assert totals.running + totals.discarded + totals.pending == totals.lifetime == lifetime
            assert min(totals.running, totals.discarded, totals.pending) >= 0.0
            owed = [r.ledgers[accounting].e + r.ledgers[accounting].p for r in rows]
            assert sum(owed) == lifetime
            if group.approach == "aggregated":
                assert totals.running == sum(r.ledgers[accounting].e for r in rows)


def check_availability(outcome: Outcome, index: int, keeps: bool) -> None:
    """Aggregated: the mean of the instances' weighed by lifetime; concurrent: no better than that or the worst."""
    group = outcome.groups[index]
    for accounting in ACCOUNTINGS:
        available = outcome.request_availability(index, accounting)
        assert 0.0 <= available <= 1.0
        each = [outcome.availability(row, accounting) for row in group.rows]
        ledgers = [outcome.requests[row].ledgers[accounting] for row in group.rows]
        weights = [ledger.e + ledger.p for ledger in ledgers]
        if sum(weights) == 0.0 or not keeps or group.approach == "independent":
            continue
        mean = sum(a * w for a, w in zip(each, weights, strict=True)) / sum(weights)
        if group.approach == "aggregated":
            assert available == pytest.approx(mean)
        else:
            assert available <= mean + 1e-12
            spans = {(outcome.requests[row].admission, w) for row, w in zip(group.rows, weights, strict=True)}
            assert len(spans) > 1 or available <= min(each) + 1e-12


def overfull(one: Cluster, outcome: Outcome) -> list[str]:
    """Decisions after which a host has to give more than it has; from the log alone."""
    gone = [next((t for t in (r.completed, r.removed) if t is not None), inf) for r in outcome.requests]
    events, where, found = list(one.events), dict[int, int](), list[str]()
    for number, time, row, host, victims in outcome.decisions:
        while events and round(events[0][0] * 2**20) / 2**20 <= time:
            _, down, kind, *_ = events.pop(0)
            where = {k: h for k, h in where.items() if h != down or kind not in ("fail", "drain")}
        where = {k: h for k, h in where.items() if gone[k] > time and k not in victims}
        if row in where or gone[row] <= time:
            found.append(f"{number}: {row} is there already, or gone")
        where[row] = host
        used = sum(one.workload.demand[k] for k, h in where.items() if h == host)
        if np.any(used > one.hosts.capacity[host] + 1e-6):
            found.append(f"{number}: host {host} is overfull")
    return found


def in_requests(one: Cluster, batch: bool, approach: int, ghosts: bool) -> Cluster:
    """Each row in a request of its own; ``ghosts`` gives it a second row that is never admitted."""
    rows = len(one.workload)
    known = one.workload
    assert one.config.simulation.end is not None
    if ghosts:
        never = np.full(rows, one.config.simulation.end + 1.0)
        names = ("duration", "demand", "service_class", "job", "anti_affinity", "term")
        doubled: dict[str, Any] = {name: np.concatenate([getattr(known, name)] * 2) for name in names}
        ids = np.arange(2 * rows, dtype=np.int64)
        known = replace(known, ids=ids, admission=np.concatenate([known.admission, never]), **doubled)
    requests = Requests(
        ids=np.arange(rows, dtype=np.int64),
        batch=np.full(rows, batch),
        approach=np.full(rows, approach, np.int8),
        parallelism=np.zeros(rows, np.int64),
    )
    index = np.arange(len(known), dtype=np.int32) % max(1, rows)
    return replace(one, workload=replace(known, request=index.astype(np.int32), requests=requests))
