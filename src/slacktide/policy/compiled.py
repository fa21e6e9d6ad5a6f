"""The built-in policies as objects: what the compiled pass decides, as a plan with reasons.

The compiled simulator and the live engine run the same kernels without this wrapping; a test
holds both together. It is for the stepwise simulator, which shows a plan with its reasons.
"""

from __future__ import annotations

import math

import numpy as np

from slacktide.kernels.builtin import PRIORITY, QOS_DRIVEN
from slacktide.kernels.drive import scheduling_pass
from slacktide.kernels.drive.apply_plan import is_lost, metric_in_queue
from slacktide.kernels.place import infeasibility_reasons
from slacktide.kernels.tables.arrays import ARRAYS, Tables
from slacktide.kernels.tables.request_records import CONCURRENT
from slacktide.kernels.tables.schema import GIVEN_UP, RECORD_DECISIONS, SHIFT
from slacktide.policy.api import Bind, Hold, Plan, View
from slacktide.state.growing_arrays import grow

SHARED = tuple(name for name, array in ARRAYS.items() if array.fixed)
"""Arrays that deciding never writes to."""


class Scratch:
    """Keeps the memory of the copy from one pass to the next."""

    def __init__(self) -> None:
        self._tables: Tables | None = None

    def copy_of(self, tables: Tables) -> Tables:
        """A copy that may be written to; valid until the next call. O(size of the tables)."""
        if self._tables is None:
            arrays = {name: tables[name] if name in SHARED else tables[name].copy() for name in ARRAYS}
            self._tables = Tables(tables.rules.copy(), tables.control.copy(), arrays)
            return self._tables
        mine = self._tables
        for name in ARRAYS:
            if name in SHARED:
                continue
            if mine[name].shape == tables[name].shape:
                np.copyto(mine[name], tables[name])
            else:
                mine.put(name, tables[name].copy())
        mine.adopt(tables)
        return mine


class CompiledPolicy:
    """``qos-driven``, ``priority`` or ``hybrid``, by the rules in the tables it is shown."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._slacks: dict[int, float] = {}
        self.operations = 0
        """Operations, checks of one host for one instance, that the last decision took."""
        self.bounds = 0
        """Looks at bounds that it took."""

    def decide(self, view: View, now: float) -> Plan:
        """Decides on a copy of the view's tables, which stay as they are."""
        tb = self._scratch.copy_of(view.tables)
        tb.rules["record"] = RECORD_DECISIONS
        tb.control["now"] = now
        tb.control["decisions"] = tb.control["victims"] = 0
        while grow(tb, int(scheduling_pass.run_pass(tb.state))):
            pass
        self.operations = int(tb.control["operations"] - view.tables.control["operations"])
        self.bounds = int(tb.control["bounds"] - view.tables.control["bounds"])
        decided = tb["decisions"][: int(tb.control["decisions"])]
        victims = tb["victims"]
        binds = []
        for d in decided:
            gone = tuple(int(v) for v in victims[d["first"] : d["first"] + d["victims"]])
            binds.append(Bind(int(d["row"]), int(d["host"]), gone, reason_of(view, tb, d, gone)))
        return Plan(tuple(binds), tuple(self._holds(view, tb)))

    def _holds(self, view: View, tb: Tables) -> list[Hold]:
        self._slacks.clear()
        counts = np.zeros(infeasibility_reasons.COUNTS, np.int64)
        reasons: dict[int, str] = {}
        holds = []
        left = (tb["queue"][: int(tb.control["queue"])], tb["incoming"][: int(tb.control["incoming"])])
        for entry in (one for entries in left for one in entries):
            kind = int(entry["kind"])
            slack = self._slack(tb, entry, view.now)
            if kind not in reasons:
                infeasibility_reasons.count_hosts(tb.state, int(entry["row"]), slack, counts)
                reasons[kind] = sentence(counts, len(view.hosts))
            holds.append(Hold(int(entry["row"]), waits(tb, entry, slack, view.now) + reasons[kind]))
        return holds

    def _slack(self, tb: Tables, entry: np.void, now: float) -> float:
        """The metric of a waiting instance; one look for all of a request."""
        request = int(entry["request"])
        if request < 0:
            return float(entry["key"]) - SHIFT * int(tb["instances"]["shift"][entry["row"]]) - now
        if request not in self._slacks:
            self._slacks[request] = float(metric_in_queue(tb.state, int(entry["row"]), now))
        return self._slacks[request]


def reason_of(view: View, tb: Tables, decision: np.void, victims: tuple[int, ...]) -> str:
    """Why a request goes where it goes."""
    host = view.hosts.names[int(decision["host"])]
    if not victims:
        return f"{host} has room and the best allocation score"
    mode = int(tb.control["mode"])
    names = ", ".join(str(int(view.workload.ids[v])) for v in victims)
    if mode == PRIORITY:
        return f"{host}: preempts {names} of lower priority at the least cost"
    slacks = ", ".join(f"{view.metric(v):.1f}" for v in victims)
    return f"{host}: preempts {names} (slack {slacks} s) at the least cost; own slack {float(decision['metric']):.1f} s"


def until_needed(slack: float, margin: float, when: str = "in {:.1f} s") -> str:
    """When one may preempt that does so only where it must; both in seconds. ``when`` shows the number."""
    if math.isinf(slack):
        return "may preempt nobody while its promise cannot break as things stand"
    return f"may preempt {when.format(slack - margin)} if still pending"


def waits(tb: Tables, entry: np.void, slack: float, now: float) -> str:
    """What the request's own state says about its waiting."""
    if int(tb.control["mode"]) != QOS_DRIVEN:
        return ""
    margin = float(tb["classes"][tb["kinds"][entry["kind"]]["cls"]]["margin"])
    if tb.rules["needed"] and slack >= margin:
        return f"{until_needed(slack, margin)}; "
    if is_given_up(tb, entry):
        return f"slack {slack:.1f} s; given up by the plan, takes free room; "
    if overloaded := in_overload(tb, entry, slack, now):
        return overloaded
    if tb.rules["gang"] and entry["request"] >= 0:
        request = tb["requests"][entry["request"]]
        if int(request["approach"]) == CONCURRENT and request["live"] > 1:
            return f"slack {slack:.1f} s; starts only together with all instances of its request that wait; "
    return f"slack {slack:.1f} s; "


def is_given_up(tb: Tables, entry: np.void) -> bool:
    """Whether the present plan gives up a request that waits, or its instances."""
    if entry["request"] >= 0:
        return bool(tb["requests"]["shift"][entry["request"]] > GIVEN_UP)
    return bool(tb["instances"]["shift"][entry["row"]] * SHIFT > GIVEN_UP)


def in_overload(tb: Tables, entry: np.void, slack: float, now: float) -> str:
    """What triage makes of a request that waits; empty where its class is not overloaded, or it is above its margin."""
    ours = tb["classes"][tb["kinds"][entry["kind"]]["cls"]]
    if not ours["overloaded"] or slack >= ours["margin"]:
        return ""
    if not is_lost(tb.state, int(entry["row"]), slack, now):
        starves = slack < float(ours["late_below"])
        return f"slack {slack:.1f} s{', below its floor' if starves else ''}; its class is overloaded; "
    slope = float(ours["slope"])
    needs = f"would need {-slack / slope:.0f} s to recover" if slope > 0.0 else "cannot recover"
    if ours["windowed"] and tb["accounts"]["flat"][int(entry["row"])]:
        needs = "recovers when older losses have left its window"
    return f"lost: slack {slack:.1f} s, {needs}; its class is overloaded; "


def sentence(counts: np.ndarray[tuple[int], np.dtype[np.int64]], hosts: int) -> str:
    """``0/20 hosts: ...`` in the manner of kube-scheduler."""
    parts = [f"{int(counts[i])} {text}" for i, text in enumerate(infeasibility_reasons.TEXTS) if counts[i]]
    return f"0/{hosts} hosts: " + ", ".join(parts)
