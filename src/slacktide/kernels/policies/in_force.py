"""The policy that decides the present pass, as the kernels ask for it: the one place that tells policies apart.

The search, the queue and the memory of failures are written for any policy. What differs
is asked here, and answered in :mod:`.qos_driven` or :mod:`.priority`, or by the :mod:`.pieces` of a user's own.

There are two ways of deciding. By metric (:func:`by_metric`): what the kernels remember and bound is
worked out from the rules of :mod:`.qos_driven`, which they also ask directly. By class: nothing changes
while nothing happens, the class of both decides who may be preempted, and the queue has the more
important first, so that nobody who was served in a pass may be preempted for one served after it. The
memory of failures rests on that. Functions that end in ``by_class`` are asked only then.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.builtin import FEWEST_VICTIMS, HYBRID, OF_PIECES, PRIORITY
from slacktide.kernels.policies import hybrid, pieces, priority, qos_driven, triage
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.runtime.compiling import kernel, leaf
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State


@leaf
def of_next_pass(tb: State) -> int:
    """The policy, QOS_DRIVEN or PRIORITY, by which a pass that begins now decides; O(1)."""
    control, rules = views.control(tb), views.rules(tb)
    if rules["policy"] == HYBRID:
        return hybrid.decider(control["queue"] + control["incoming"], rules["queue_limit"])
    return rules["policy"]


@leaf
def by_metric_next(tb: State) -> bool:
    """As :func:`by_metric`, of a pass that begins now; O(1)."""
    return of_next_pass(tb) != PRIORITY


@leaf
def ever_by_metric(tb: State) -> bool:
    """Whether some pass may decide by metric; O(1)."""
    return views.rules(tb)["policy"] != PRIORITY


@leaf
def by_metric(tb: State) -> bool:
    """Whether what the policy decides depends on metrics, so that it changes while nothing happens; O(1)."""
    return views.control(tb)["mode"] != PRIORITY


@kernel
def on_path(tb: State, q_j: float, fall: float) -> float:
    """What stays the same while a metric falls by ``fall`` a second; 0 where metrics do not matter; O(1)."""
    if not by_metric(tb):
        return 0.0
    return q_j + fall * views.control(tb)["now"]


@leaf
def by_contents(tb: State) -> bool:
    """Whether victims and cost on a host depend on nothing but its contents and the class that asks; O(1)."""
    return not by_metric(tb) and (cost(tb) == FEWEST_VICTIMS or cost(tb) == OF_PIECES)


@leaf
def cost(tb: State) -> int:
    """The number of the cost that compares hosts: the setting's, or the policy's own; O(1)."""
    return views.rules(tb)["cost"] if by_metric(tb) else views.rules(tb)["priority_cost"]


@kernel
def comes_before(tb: State, a: Records, b: Records) -> bool:
    """The order of waiting instances that does not change while they wait; O(1)."""
    if by_metric(tb):
        return qos_driven.comes_before(a, b)
    return pieces.comes_before(a, b) if pieces.decide(tb) else priority.comes_before(tb, a, b)


@leaf
def has_tiers(tb: State) -> bool:
    """Whether the queue's order has tiers, in which an instance's place changes while it waits; O(1)."""
    return by_metric(tb) and views.rules(tb)["by_importance"]


@leaf
def standing(tb: State, row: int, k: int, q_j: float) -> float:
    """What the search for a host is given in place of the metric ``q_j`` of the waiting instance ``row`` of kind
    ``k``; O(1)."""
    if not by_metric(tb):
        return q_j
    if pieces.weigh(tb):
        return pieces.metric_of_waiting(tb, row, k)
    return triage.standing(tb, row, k, q_j, views.control(tb)["now"])


@leaf
def worth(tb: State, slot: Records, now: float) -> float:
    """The metric by which an instance on a host is judged: availability's, or a user's own; O(1)."""
    return pieces.metric_at(tb, slot, now) if pieces.weigh(tb) else request_ledger.metric_of(tb, slot, now)


@leaf
def can_still_wait(tb: State, cls: int, q_j: float) -> bool:
    """Whether an instance of the class preempts nobody, whoever there is, with this metric; O(1)."""
    if not by_metric(tb):
        return priority.can_wait(tb) and not pieces.decide(tb)
    return q_j == np.inf or qos_driven.can_wait(tb, cls, q_j)


@leaf
def eligible_by_class(tb: State, slot: Records, cls: int) -> bool:
    """As :func:`eligible`, where no metric is asked for; O(1).

    Where one is not eligible, nobody after it in the order of victims is (:func:`ends_by_class`).
    """
    if pieces.decide(tb):
        return pieces.level(tb, slot, 0.0, cls, views.control(tb)["now"]) == np.inf
    return priority.eligible(tb, slot, cls)


@leaf
def ends_by_class(tb: State) -> bool:
    """Whether the search on a host ends with the first who is not eligible; O(1)."""
    return not pieces.decide(tb)


@leaf
def note_look(tb: State, cls: int) -> None:
    """One of class ``cls`` looks for a host, and what it finds out about hosts may be kept; O(1)."""
    if pieces.decide(tb):
        theirs, control = views.classes(tb)[cls], views.control(tb)
        theirs["looked_in"], theirs["looked_at"] = control["batch"], control["changes"]


@leaf
def later_victim_by_class(tb: State, a: Records, b: Records) -> bool:
    """Whether a comes after b in the order of victims, where no metric is asked for; O(1)."""
    return priority.later_victim(a, b, views.classes(tb), views.rules(tb)["as_kube"])


@leaf
def eligible_by_metric(tb: State, slot: Records, q_k: float, cls: int, q_j: float, now: float) -> bool:
    """As :func:`eligible`, of one with metric ``q_k``, where metrics are asked for; O(1)."""
    if pieces.decide(tb):
        return pieces.may_go(tb, slot, q_k, cls, q_j, now)
    return qos_driven.eligible(tb, slot, q_k, cls, q_j, now)


@leaf
def eligible_below(tb: State, slot: Records, q_k: float, cls: int, now: float) -> float:
    """Instance k, eligible for one of class ``cls``, is so for every Q_j clearly below this; O(1)."""
    if pieces.decide(tb):
        return pieces.level(tb, slot, q_k, cls, now)
    return qos_driven.eligible_below(tb, slot, q_k, cls, now)


@leaf
def none_after(tb: State, slot: Records, q_k: float, idle: bool, cls: int, q_j: float) -> bool:
    """Whether it is clear that neither k nor anybody after it in the order of victims is eligible; O(1)."""
    return not pieces.decide(tb) and qos_driven.none_after(tb, slot, q_k, idle, cls, q_j)


@kernel
def excludes(tb: State, most: float, least: int, cls: int, q_j: float) -> bool:
    """Whether nobody is eligible where no metric is above ``most``, no rank number above ``least``; O(1), O(classes)
    for a user's own rule."""
    if pieces.decide(tb):
        return pieces.exclude(tb, most, cls, q_j)
    return qos_driven.excludes(tb, most, least, cls, q_j)


@kernel
def eligible(tb: State, slot: Records, cls: int, q_j: float, now: float) -> bool:
    """Whether the instance on a host may be preempted for one of class ``cls`` with metric ``q_j``; O(1)."""
    if not by_metric(tb):
        return eligible_by_class(tb, slot, cls)
    return eligible_by_metric(tb, slot, worth(tb, slot, now), cls, q_j, now)
