"""A pass over the tables of a live cluster, by the compiled policies."""

from __future__ import annotations

import numpy as np

from slacktide.errors import PluginError
from slacktide.kernels import carry, passes
from slacktide.kernels.log_records import PREEMPTED
from slacktide.model import Workload
from slacktide.policy.api import Plan, Policy, View
from slacktide.policy.checking import check_bind, check_types
from slacktide.state import compacting
from slacktide.state.growing import Growing

Made = tuple[int, int, float, list[tuple[int, float]]]
"""Row, host, metric, and victims with theirs."""


def run_pass(tables: Growing, now: float, own: Policy | None = None) -> tuple[list[Made], int, int, str]:
    """Decide at ``now``: what was decided in order, how many wait on, operations, and what went wrong. O(a pass).

    ``own`` is a user's policy, which decides in place of the compiled ones. Where it breaks its contract, what it
    decided before that in this pass stands.
    """
    compacting.compact_if_due(tables)
    tables.settle()
    tb = tables.tb
    control = tb.control
    before = int(control["operations"])
    control["now"] = max(now, float(control["now"]))
    control["decisions"] = control["victims"] = control["events"] = 0
    problem = ""
    if own is not None:
        try:
            _by_own_policy(tables, own)
        except PluginError as broken:
            problem = str(broken)
    else:
        while tables.serve(int(passes.run_pass(tb.state))):
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


def _by_own_policy(tables: Growing, policy: Policy) -> None:
    """A pass by a user's own policy, as the simulator's stepwise engine makes it."""
    tb, name = tables.tb, tables.config.policy.name
    view = _view(tables)
    try:
        plan = policy.decide(view, view.now)
    except Exception as problem:
        raise PluginError(f"{name}: at {view.now:g} s: {type(problem).__name__}: {problem}") from problem
    if not isinstance(plan, Plan):
        raise PluginError(f"{name}: found {type(plan).__name__}, expected a Plan")
    check_types(plan, name)
    carry.open_pass(tb.state)
    try:
        for bind in plan.binds:
            tables.make_room()
            view = _view(tables)
            check_bind(view, bind, name)
            lost = np.array([view.metric(row) for row in bind.victims])
            victims = np.array(bind.victims, np.int64)
            carry.bind(tb.state, bind.row, bind.host, victims, view.metric(bind.row), lost)
    finally:
        carry.close_pass(tb.state)


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
