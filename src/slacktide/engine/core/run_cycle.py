"""A pass over the tables of a live cluster, by the compiled policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from slacktide.errors import PluginError
from slacktide.kernels.drive import scheduling_pass
from slacktide.kernels.tables.buffer_capacity import PAUSE
from slacktide.kernels.tables.log_records import PREEMPTED
from slacktide.model import Workload
from slacktide.policy.api import Policy, View
from slacktide.policy.plan_pass import carry_out, decided
from slacktide.policy.read_only import read_only
from slacktide.state import compaction
from slacktide.state.growth import Growing

Made = tuple[int, int, float, list[tuple[int, float]]]
"""Row, host, metric, and victims with theirs."""

Allowance = Callable[[], int]
"""How much work (:func:`.scheduling_pass.work`) the next part of a pass may do; 0: all that is left."""


class Cycle:
    """A pass over ``tables`` at ``now``, which can be left and resumed.

    ``own`` is a user's policy, which decides in place of the compiled ones, in one part. Where it breaks its contract,
    what it decided before that in this pass stands, and ``problem`` says so.
    """

    def __init__(self, tables: Growing, now: float, own: Policy | None = None) -> None:
        self._tables, self._own = tables, own
        self.problem = ""
        compaction.compact_if_due(tables)
        tables.settle()
        control = tables.tb.control
        self._operations = int(control["operations"])
        self.now = control["now"] = max(now, float(control["now"]))
        tables.catch_up(self.now)
        control["decisions"] = control["victims"] = control["events"] = 0

    def decide(self, allowance: Allowance) -> Iterator[None]:
        """Decide, part by part. Nothing may be told to the tables between two parts."""
        tables, tb = self._tables, self._tables.tb
        if self._own is not None:
            try:
                view, name = _view(tables), tables.config.policy.name
                carry_out(decided(self._own, view, name), view, tables.serve, name)
            except PluginError as broken:
                self.problem = str(broken)
            return
        tb.control["allowance"] = allowance()
        while tables.serve(code := int(scheduling_pass.run_pass(tb.state))):
            if code == PAUSE:
                yield
                tb.control["allowance"] = allowance()
        tb.control["allowance"] = 0

    def made(self, together: int) -> Iterator[list[Made]]:
        """What was decided, in order, so many decisions at a time; then it is forgotten."""
        tb = self._tables.tb
        control = tb.control
        events = tb["events"][: int(control["events"])]
        lost = events["qos"][events["kind"] == PREEMPTED]
        count = int(control["decisions"])
        for at in range(0, count, together):
            found = tb["decisions"][at : min(at + together, count)].tolist()
            first, end = found[0][-1], found[-1][-1] + found[-1][-2]
            rows, theirs = tb["victims"][first:end].tolist(), lost[first:end].tolist()
            gone = list(zip(rows, theirs, strict=True))
            yield [
                (row, host, metric, gone[begin - first : begin - first + victims])
                for row, _, metric, _, host, victims, begin in found
            ]
        control["decisions"] = control["victims"] = control["events"] = 0

    @property
    def waiting(self) -> int:
        """How many wait."""
        return int(self._tables.tb.control["queue"] + self._tables.tb.control["incoming"])

    @property
    def operations(self) -> int:
        """Host evaluations that the pass took so far."""
        return int(self._tables.tb.control["operations"]) - self._operations


def _view(tables: Growing) -> View:
    tb = tables.tb
    rows = tables.rows
    workload = Workload(
        ids=np.arange(rows),
        admission=tb["admission"][:rows],
        duration=np.full(rows, np.inf),
        demand=np.zeros((rows, len(tables.resources))),
        service_class=tb["kinds"]["cls"][tb["instances"]["kind"][:rows]].astype(np.int16),
        job=np.arange(rows),
        anti_affinity=np.zeros(rows, np.bool_),
        term=np.zeros(rows, np.int32),
        resources=tuple(tables.resources),
        classes=tuple(tables.classes),
    )
    seed = [tables.config.simulation.seed % 2**64, int(tb.control["batch"])]
    return View(
        tb, read_only(workload), read_only(tables.hosts()), float(tb.control["now"]), np.random.default_rng(seed)
    )
