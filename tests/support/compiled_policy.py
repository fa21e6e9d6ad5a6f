"""A built-in policy as one of a user's own: what the compiled pass decides on a copy of the tables, as a plan."""

from __future__ import annotations

from slacktide.kernels.drive import scheduling_pass
from slacktide.kernels.tables.arrays import ARRAYS, Tables
from slacktide.kernels.tables.schema import RECORD_DECISIONS
from slacktide.policy import Bind, Plan, View
from slacktide.state.growing_arrays import grow


class CompiledPolicy:
    """``qos-driven``, ``priority`` or ``hybrid``, by the rules in the tables it is shown."""

    def decide(self, view: View, now: float) -> Plan:
        shown = view.tables
        tb = Tables(shown.rules.copy(), shown.control.copy(), {name: shown[name].copy() for name in ARRAYS})
        tb.rules["record"] = RECORD_DECISIONS
        tb.control["now"] = now
        tb.control["decisions"] = tb.control["victims"] = 0
        while grow(tb, int(scheduling_pass.run_pass(tb.state))):
            pass
        binds = []
        for one in tb["decisions"][: int(tb.control["decisions"])]:
            victims = tb["victims"][one["first"] : one["first"] + one["victims"]].tolist()
            binds.append(Bind(int(one["row"]), int(one["host"]), tuple(victims), "as the compiled pass decides"))
        return Plan(tuple(binds))
