"""The core stopped at an instant, and what it computes if nothing happens afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from slacktide.config import Accounting
from slacktide.kernels.drive import event_loop, instance_ledger
from slacktide.kernels.runtime.compiling import callable_from_python
from slacktide.kernels.tables.arrays import ARRAYS, Tables
from slacktide.kernels.tables.schema import PLACED, WAITING
from slacktide.model.workload import AGGREGATED, CONCURRENT, INDEPENDENT
from slacktide.policy import View
from slacktide.policy.loader import load
from slacktide.sim import RunResult
from slacktide.sim.engine import Recorder, drive, prepare, result_of
from support.clusters import Cluster
from support.runs import settings_of

stop = callable_from_python(instance_ledger.stop)


@dataclass(frozen=True)
class Had:
    """Of one request in the accounting of decisions: lifetime T and e of its ledger, seconds."""

    total: float
    e: float


@dataclass(frozen=True)
class Standstill:
    """A cluster at ``t``, seconds: everything up to then has happened."""

    cluster: Cluster
    tables: Tables
    t: float

    @property
    def accounting(self) -> Accounting:
        return self.cluster.config.qos.startup

    def alpha(self, row: int) -> float:
        """Of an instance's class, as decisions use it, on the grid of times."""
        return float(self.tables["classes"]["alpha"][self.cluster.workload.service_class[row]])

    def metric(self, row: int) -> float:
        """Q of an instance that waits or runs."""
        view = View(self.tables, self.cluster.workload, self.cluster.hosts, self.t, np.random.default_rng(0))
        return view.metric(row)

    def runs(self, row: int) -> bool:
        return bool(self.tables["instances"][row]["state"] == PLACED)

    def live(self, request: int) -> list[int]:
        """Rows of a request that wait or run."""
        of = self.cluster.workload.request
        assert of is not None
        rows = np.flatnonzero(of == request).tolist()
        return [row for row in rows if self.tables["instances"][row]["state"] in (WAITING, PLACED)]

    def ready(self, row: int) -> float:
        """When the start-up of a running instance ends."""
        instance = self.tables["instances"][row]
        return float(instance["since"] + instance["startup"])

    def counts(self, row: int) -> bool:
        """Whether an instance counts as running."""
        if not self.runs(row):
            return False
        starts = int(self.tables["instances"][row]["starts"])
        pending = self.accounting == "always" or (self.accounting == "restart" and starts > 1)
        return self.ready(row) <= self.t or not pending

    def to_lose(self, row: int) -> float:
        """Useful running seconds that go with the present incarnation of a batch request's instance."""
        workload = self.cluster.workload
        assert workload.request is not None
        assert workload.requests is not None
        batch = bool(workload.requests.batch[workload.request[row]])
        if not self.runs(row) or not batch or self.cluster.config.simulation.preempted_work == "kept":
            return 0.0
        return max(0.0, self.t - self.ready(row))

    def without(self, row: int) -> Standstill:
        """The same with this instance preempted, where it runs."""
        copy = Tables(self.tables.rules, self.tables.control, {name: self.tables[name].copy() for name in ARRAYS})
        if self.runs(row):
            stop(copy.state, row, self.t, True)
        return Standstill(self.cluster, copy, self.t)

    def result(self, after: float = 0.0) -> RunResult:
        """What a run ends with that goes on for so long without any event."""
        copy = Tables(self.tables.rules, self.tables.control, {name: self.tables[name].copy() for name in ARRAYS})
        return result_of(copy, self.cluster.workload, Recorder(), self.t + after)

    def had(self, request: int, after: float = 0.0) -> Had:
        """Of a request, after so long without any event."""
        columns = self.result(after).requests
        place = columns["row"].tolist().index(request)
        names = ("running", "startup_first", "startup_restarts", "discarded", "pending")
        total = float(sum(columns[name][place] for name in names))
        return Had(total, float(columns[f"availability_{self.accounting}"][place]) * total)

    def measured_together(self) -> Iterator[tuple[int, str]]:
        """Requests whose ledger decides and that have live instances, with what they are."""
        kinds, of = self.cluster.workload.requests, self.cluster.workload.request
        assert kinds is not None
        assert of is not None
        sizes = np.bincount(of, minlength=len(kinds))
        names = {AGGREGATED: "aggregated", CONCURRENT: "concurrent"}
        for request in range(len(kinds)):
            batch, approach = bool(kinds.batch[request]), int(kinds.approach[request])
            if self.live(request) and (batch or (approach != INDEPENDENT and sizes[request] > 1)):
                yield request, "batch" if batch else names[approach]


def halted(one: Cluster, t: float, folder: Path) -> Standstill:
    """The cluster's run up to ``t``."""
    one = one.with_(simulation={"end": t})
    config = settings_of(one, folder)
    tables = prepare(one.workload, one.hosts, config, load(config), record=0)
    recorder = Recorder()
    drive(tables, lambda: event_loop.run(tables.state, 2000), recorder, lambda: None)
    return Standstill(one, tables, float(tables.rules["end"]))
