"""What a failure proves: until when, and at which hosts, looking again is of no use (docs/metric.md).

Where users are makes no difference to that, so that it is kept at the first of the kinds that are alike.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible import victim_order
from slacktide.kernels.memo import earliest_feasible, lesser_demands
from slacktide.kernels.place.search import MANY
from slacktide.kernels.policies import in_force, qos_driven
from slacktide.kernels.qos import metric_dynamics
from slacktide.kernels.qos.metric import NEAR
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State

PAYS = 8
"""For so many passes a failure must have held, so that its end was worth working out: that costs as much as some looks
at all hosts, of which each pass saves one."""


@leaf
def covers(tb: State, kind: Records, mine: float) -> bool:
    """Whether the last failure in this pass, with a metric no larger, is one of this metric as well; O(1)."""
    if kind["batch"] != views.control(tb)["batch"]:
        return False
    key = in_force.on_path(tb, mine, 1.0)
    return key >= kind["pass_key"] and victim_order.says_the_same(tb, kind["swayed"], key == kind["pass_key"])


@kernel
def known_since(tb: State, k: int, mine: float) -> int:
    """Position in the change log up to which every host is known to be of no use to kind ``k`` with this metric, or -1.

    O(1); O(resources) where only others of its class say so.
    """
    alike = whole(views.kinds(tb)[k]["alike"])
    control, kind = views.control(tb), views.kinds(tb)[alike]
    if views.rules(tb)["naive"]:
        return -1
    position = whole(-1)
    tight = kind["loosened"] == control["loosened"]
    lasts = control["now"] < kind["until"] and (tight or in_force.by_metric(tb))
    in_pass = tight and covers(tb, kind, mine)
    if in_pass:
        position = kind["pass_position"]
    elif lasts and in_force.on_path(tb, mine, kind["fall"]) >= kind["key"] - kind["slop"]:
        position = kind["position"]
    else:
        position = lesser_demands.known_since(tb, alike, mine)
    if position >= 0 and control["changes"] - position > min(len(views.changes(tb)), 2 * len(views.hosts(tb)) + MANY):
        return -1  # there is less to look at everywhere
    if in_pass and kind["swayed"]:
        control["swayed"] = 1  # a look at what changed since tells no more than that one did
    return position


@kernel
def earliest_at_changes(tb: State, kind: int, mine: float, fall: float, position: int) -> float:
    """As :func:`.earliest_feasible.earliest_anywhere`, of the hosts that changed since ``position``."""
    until, now, cls = np.inf, views.control(tb)["now"], views.kinds(tb)[kind]["cls"]
    if not in_force.by_metric(tb) or mine == np.inf:
        return until
    margin = views.classes(tb)[cls]["margin"]
    if qos_driven.can_wait(tb, cls, mine):
        return now + (mine - margin) / fall - NEAR
    by_ceiling = mine >= margin
    if by_ceiling:
        until = now + (mine - margin) / fall
    for i in range(position, views.control(tb)["changes"]):
        h = whole(views.changes(tb)[i % len(views.changes(tb))])
        if by_ceiling:
            until = min(until, earliest_feasible.meets_ceiling(tb, h, mine, fall, now))
        else:
            until = min(until, earliest_feasible.earliest(tb, h, kind, mine, fall))
        if until <= now:
            break
    return max(until, now) - NEAR


@kernel
def worth_computing(tb: State, kind: Records) -> bool:
    """Whether to compute how long a failure lasts; after disappointments ever more rarely. Changes no result."""
    if kind["wait"] > 0:
        kind["wait"] -= 1
        return False
    passes = views.control(tb)["batch"]
    if kind["until"] > -np.inf:
        if passes - kind["worked_out"] < PAYS:
            kind["penalty"] = min(2 * kind["penalty"] + 1, 63)
            kind["wait"] = kind["penalty"]
            return False
        kind["penalty"] = 0
    kind["worked_out"] = passes
    return True


@kernel
def lasts_until(tb: State, k: int, mine: float, fall: float, position: int) -> float:
    """Until when a failure holds at hosts that do not change; ``position`` as for :func:`note_failure`."""
    now, kind = views.control(tb)["now"], views.kinds(tb)[k]
    if position >= 0:
        return min(kind["until"], earliest_at_changes(tb, k, mine, fall, position)) if kind["until"] > now else now
    simple = not in_force.by_metric(tb) or qos_driven.can_wait(tb, whole(kind["cls"]), mine)
    if simple or worth_computing(tb, kind):
        return earliest_feasible.earliest_anywhere(tb, k, mine, fall)
    return -np.inf


@kernel
def note_failure(tb: State, entry: Records, mine: float, position: int) -> None:
    """Remember until when looking again is of no use; ``position`` is where the look began, or -1: everywhere.

    What an earlier failure proved for a metric that falls at its speed is kept at that speed.
    """
    k = whole(views.kinds(tb)[entry["kind"]]["alike"])
    control, kind = views.control(tb), views.kinds(tb)[k]
    # Triage changes who is eligible from one pass to the next, and the order that bounds of the future rely on.
    if kind["batch"] != control["batch"] and control["overloaded"] == 0:
        fall, kink, slop = 1.0, np.inf, 0.0
        if position >= 0:
            fall, slop = kind["fall"], kind["slop"]
        elif entry["request"] >= 0 and in_force.by_metric(tb):
            fall, kink, slop = metric_dynamics.waiting_pace(tb, whole(entry["request"]), control["now"])
        until = min(kink, lasts_until(tb, k, mine - 2.0 * slop, fall, position))
        kind["key"] = in_force.on_path(tb, mine, fall)
        kind["fall"], kind["slop"], kind["until"] = fall, slop, until
        kind["position"] = control["changes"]
        kind["batch"] = control["batch"]
    note_in_pass(tb, k, mine)
    if position < 0:  # who looked at changed hosts only costs little, and so does the next one
        lesser_demands.note(tb, k, mine)


@kernel
def note_in_pass(tb: State, k: int, mine: float) -> None:
    """Remember for the rest of the pass that this metric found no host; O(1)."""
    control, kind = views.control(tb), views.kinds(tb)[views.kinds(tb)[k]["alike"]]
    kind["batch"] = control["batch"]
    kind["pass_key"] = in_force.on_path(tb, mine, 1.0)
    kind["pass_position"] = control["changes"]
    kind["loosened"], kind["swayed"] = control["loosened"], victim_order.mark(tb)


@kernel
def fails_again(tb: State, k: int, mine: float) -> bool:
    """Whether a kind with rules surely finds no host: one :func:`covers` it, and nothing changed; O(1)."""
    control, kind = views.control(tb), views.kinds(tb)[views.kinds(tb)[k]["alike"]]
    unchanged = kind["pass_position"] == control["changes"] and kind["loosened"] == control["loosened"]
    return not views.rules(tb)["naive"] and unchanged and covers(tb, kind, mine)
