"""Until when a pass can decide nothing, as long as nothing happens (docs/optimisations.md, `standstill`).

A pass that served nobody, and moved nothing, leaves all as it found it. Until the next event only time passes. By
priority time makes no difference. By metric it does from an instant on that the failures of the pass tell
(:mod:`.infeasibility_memo`). Passes before that are counted, and nobody is looked at.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible import affinity, disruption_limits, host_slots, sparing
from slacktide.kernels.policies import in_force, pieces
from slacktide.kernels.qos import metric_dynamics
from slacktide.kernels.qos.metric import NEAR
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import RECORD_TURNS, Records, State

FITS, NOWHERE = 1, 2  # of ``homeless``; 0: not asked yet


@leaf
def begin(tb: State) -> None:
    """A pass begins, of which nobody has failed yet.

    Where each turn is recorded, each pass tells of everybody who is held. On a cluster events are told without a
    clock. Where decisions depend on what was looked at before, there is nothing to be learnt of a failure.
    """
    control, rules = views.control(tb), views.rules(tb)
    wanted = rules["exact"] and not (
        rules["naive"] or rules["pruning"] or rules["live"] or rules["record"] & RECORD_TURNS
    )
    control["still_until"] = np.inf if wanted else -np.inf
    control["late_at"] = np.inf
    control["hopeful"] = 0
    control["still_from"] = control["changes"]


@leaf
def end(tb: State) -> None:
    """The pass is over. What it changed, the next one may use."""
    control = views.control(tb)
    if control["pass_placed"] > 0 or control["incoming"] > 0 or control["changes"] != control["still_from"]:
        control["still_until"] = -np.inf
    elif control["hopeful"] > 0:
        control["still_until"] = min(control["still_until"], control["late_at"])


@leaf
def something_happened(tb: State) -> None:
    """Whatever it was, the next pass looks for itself."""
    views.control(tb)["still_until"] = -np.inf


@kernel
def lasts(tb: State) -> bool:
    """Whether a pass at ``control.now`` would decide nothing; O(1)."""
    control = views.control(tb)
    return (
        control["now"] < control["still_until"]
        and control["changes"] == control["still_from"]
        and control["incoming"] == 0
        and in_force.of_next_pass(tb) == control["mode"]
    )


@kernel
def note(tb: State, entry: Records, q_j: float) -> None:
    """A waiting instance with metric ``q_j`` has found no host in this pass; O(1), once for its kind O(hosts)."""
    control = views.control(tb)
    if control["still_until"] == -np.inf:
        return
    if not in_force.by_metric(tb):
        until = -np.inf if disruption_limits.any_limits(tb) else sparing.next_instant(tb)
        control["still_until"] = min(control["still_until"], until)
        return
    fall, kink, blur = 1.0, np.inf, 0.0
    if pieces.weigh(tb):
        fall, blur = pieces.fall_of_waiting(tb, whole(entry["row"]), whole(entry["kind"])), NEAR
    elif entry["request"] >= 0:
        fall, kink, blur = metric_dynamics.waiting_pace(tb, whole(entry["request"]), control["now"])
    if views.rules(tb)["triage"]:
        cls = whole(views.kinds(tb)[entry["kind"]]["cls"])
        control["late_at"] = min(control["late_at"], kink, late_from(tb, cls, q_j - 2.0 * blur, fall))
    if not homeless(tb, whole(entry["kind"])):
        control["hopeful"] += 1
        control["still_until"] = min(control["still_until"], kink, fails_until(tb, entry, q_j, fall, blur))


@leaf
def late_from(tb: State, cls: int, q_j: float, fall: float) -> float:
    """When a metric of class ``cls`` that falls by ``fall`` a second is late, and its class overloaded: never before
    this; O(1)."""
    if fall <= 0.0:
        return np.inf
    return views.control(tb)["now"] + (q_j - views.classes(tb)[cls]["late_below"]) / fall - NEAR


@kernel
def homeless(tb: State, k: int) -> bool:
    """Whether no host, with nobody else on it, would do for this kind; O(1), the first time O(hosts)."""
    kind = views.kinds(tb)[k]
    if kind["homeless"] == 0:
        kind["homeless"] = NOWHERE
        for h in range(len(views.hosts(tb))):
            if host_slots.holds_alone(tb, whole(h), k):
                kind["homeless"] = FITS
                break
    return kind["homeless"] == NOWHERE


@kernel
def fails_until(tb: State, entry: Records, q_j: float, fall: float, blur: float) -> float:
    """Until when the failure of this pass is known to hold by metric, -inf where nobody knows; O(1).

    It is known for metrics on or above a line that falls as fast as the metric that failed first. Who falls no faster
    stays above it. What rounding may take from the metric must be left, too.
    """
    control, k = views.control(tb), whole(entry["kind"])
    kind = views.kinds(tb)[views.kinds(tb)[k]["alike"]]
    remembered = control["overloaded"] == 0 and control["phase"] == 1 and control["gang"] < 0
    if not remembered or affinity.involved(tb, k) or kind["position"] != control["changes"] or fall > kind["fall"]:
        return -np.inf
    if in_force.on_path(tb, q_j, kind["fall"]) - blur < kind["key"] - kind["slop"]:
        return -np.inf
    return kind["until"]
