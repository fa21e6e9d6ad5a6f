"""A pass over the tables of a live cluster, by the compiled policies."""

from __future__ import annotations

import numpy as np

from slacktide.errors import PluginError
from slacktide.kernels.drive import scheduling_pass
from slacktide.kernels.tables.log_records import PREEMPTED
from slacktide.model import Workload
from slacktide.policy.api import Policy, View
from slacktide.policy.plan_pass import carry_out, decided
from slacktide.state import compaction
from slacktide.state.growth import Growing

Made = tuple[int, int, float, list[tuple[int, float]]]
"""Row, host, metric, and victims with theirs."""


def run_pass(tables: Growing, now: float, own: Policy | None = None) -> tuple[list[Made], int, int, str]:
    """Decide at ``now``: what was decided in order, how many wait on, operations, and what went wrong. O(a pass).

    ``own`` is a user's policy, which decides in place of the compiled ones. Where it breaks its contract, what it
    decided before that in this pass stands.
    """
    compaction.compact_if_due(tables)
    tables.settle()
    tb = tables.tb
    control = tb.control
    before = int(control["operations"])
    control["now"] = max(now, float(control["now"]))
    control["decisions"] = control["victims"] = control["events"] = 0
    problem = ""
    if own is not None:
        try:
            view, name = _view(tables), tables.config.policy.name
            carry_out(decided(own, view, name), view, tables.serve, name)
        except PluginError as broken:
            problem = str(broken)
    else:
        while tables.serve(int(scheduling_pass.run_pass(tb.state))):
            pass
    events = tb["events"][: int(control["events"])]
    lost = events[events["kind"] == PREEMPTED]["qos"].tolist()
    rows = tb["victims"][: int(control["victims"])].tolist()
    made: list[Made] = []
    for row, _, metric, _, host, victims, first in tb["decisions"][: int(control["decisions"])].tolist():
        theirs = slice(first, first + victims)
        made.append((row, host, metric, list(zip(rows[theirs], lost[theirs], strict=True))))
    control["decisions"] = control["victims"] = control["events"] = 0
    waiting = int(control["queue"] + control["incoming"])
    return made, waiting, int(control["operations"]) - before, problem


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
    return View(tb, workload, tables.hosts(), float(tb.control["now"]), np.random.default_rng(seed))
