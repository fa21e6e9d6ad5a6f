"""A pass over the tables of a live cluster, by the compiled policies."""

from __future__ import annotations

from slacktide.kernels import passes
from slacktide.kernels.tables import PREEMPTED
from slacktide.state import compacting
from slacktide.state.growing import Growing

Made = tuple[int, int, float, list[tuple[int, float]]]
"""Row, host, metric, and victims with theirs."""


def run_pass(tables: Growing, now: float) -> tuple[list[Made], int, int]:
    """Decide at ``now``: what was decided in order, how many wait on, and operations. O(a pass)."""
    compacting.compact_if_due(tables)
    tables.settle()
    tb = tables.tb
    control = tb.control
    before = int(control["operations"])
    control["now"] = max(now, float(control["now"]))
    control["decisions"] = control["victims"] = control["events"] = 0
    while tables.serve(int(passes.run_pass(tb.state))):
        pass
    events = tb["events"][: int(control["events"])]
    lost = events[events["kind"] == PREEMPTED]["qos"].tolist()
    rows = tb["victims"][: int(control["victims"])].tolist()
    made: list[Made] = []
    for row, _, metric, _, host, victims, first in tb["decisions"][: int(control["decisions"])].tolist():
        made.append((row, host, metric, list(zip(rows[first : first + victims], lost[first : first + victims]))))
    control["decisions"] = control["victims"] = control["events"] = 0
    waiting = int(control["queue"] + control["incoming"])
    return made, waiting, int(control["operations"]) - before
