"""Why a pod may not preempt the instances on hosts: the rules of the policies, asked without choosing anybody."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.feasible import disruption_budgets, disruption_limits, host_slots, pod_groups
from slacktide.kernels.place import companions
from slacktide.kernels.policies import in_force, pieces, qos_driven
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.qos.metric import metric, promise_of
from slacktide.kernels.runtime.compiling import entry, kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State

_OBSTACLES: tuple[Any, ...] = tuple(np.int64(i) for i in range(9))  # not literals, so that kernels are compiled once
NOTHING, PROTECTED, OVERHEAD, NOT_ELIGIBLE, TOO_MANY, COOLING, CLOSED, GUARDED, GROUPED = _OBSTACLES
LIMITS: Any = NOT_ELIGIBLE
"""What forbids a disruption (:data:`.limit_records.TOO_MANY` and those after it) follows behind this one."""


@entry
def obstacles(tb: State, hosts: NDArray[np.int64], row: int, q_j: float, now: float, out: NDArray[np.int64]) -> None:
    """What first keeps the waiting pod ``row`` of metric ``q_j`` from preempting each instance on ``hosts``.

    ``out``, shape (instances on these hosts,), host by host in the order of slots: one of the numbers above. Changes
    nothing but scratch space. O(instances * budgeted instances of a host).
    """
    at = 0
    pod_groups.begins_to_ask(tb, row)
    kind = whole(views.instances(tb)[row]["kind"])
    cls = whole(views.kinds(tb)[kind]["cls"])
    q_j = in_force.standing(tb, row, kind, q_j + request_ledger.shift_of(tb, row))
    for h in hosts:
        number = whole(0)
        views.control(tb)["companions"] = 0
        for i in range(views.hosts(tb)[h]["count"]):
            limit = whole(disruption_limits.protects(tb, h, i, number, now))
            if disruption_budgets.spared_until(tb, views.slots(tb)[h, i]) == np.inf:
                out[at] = GUARDED
            elif limit != disruption_limits.ALLOWED:
                out[at] = LIMITS + limit
            elif pod_groups.in_company(tb, whole(views.slots(tb)[h, i]["row"])):
                out[at] = obstacle(tb, views.slots(tb)[h, i], cls, q_j, now)
                if out[at] == NOTHING and views.kinds(tb)[kind]["conditions"] > 0:
                    out[at] = GROUPED  # a group does not go for who has rules
                elif out[at] == NOTHING:
                    number = whole(companions.take_if_it_may_go(tb, h, whole(i), number, cls, q_j, now))
                    out[at] = NOTHING if companions.is_taken(tb, whole(i), number) else GROUPED
            elif disruption_budgets.spared(tb, h, i, number, now):
                out[at] = PROTECTED
            else:
                views.taken(tb)[number] = i
                number += 1
                out[at] = obstacle(tb, views.slots(tb)[h, i], cls, q_j, now)
            at += 1
    pod_groups.has_asked(tb)


@entry
def held(tb: State, cls: int, q_j: float) -> bool:
    """Whether a pod of class ``cls`` and metric ``q_j`` may preempt nobody until it is below its margin; O(1)."""
    return bool(in_force.by_metric(tb) and qos_driven.can_wait(tb, cls, q_j))


@entry
def first_place(tb: State, hosts: NDArray[np.int64], rows: NDArray[np.int64], row: int, q_j: float, now: float) -> int:
    """The first of the instances ``rows`` on ``hosts`` that the waiting pod ``row`` of metric ``q_j`` could preempt did
    it run, or -1. None of them does yet, so that no budget and no limit protects it. O(instances of these hosts)."""
    kind = whole(views.instances(tb)[row]["kind"])
    cls = whole(views.kinds(tb)[kind]["cls"])
    q_j = in_force.standing(tb, row, kind, q_j + request_ledger.shift_of(tb, row))
    for i in range(len(rows)):
        slot = views.slots(tb)[hosts[i], host_slots.slot_of(tb, hosts[i], rows[i])]
        if obstacle(tb, slot, cls, q_j, now) == NOTHING:
            return whole(i)
    return whole(-1)


@kernel
def obstacle(tb: State, slot: Records, cls: int, q_j: float, now: float) -> int:
    """As :func:`obstacles`, of one instance that nothing protects; O(1)."""
    if not in_force.by_metric(tb):
        return NOTHING if in_force.eligible_by_class(tb, slot, cls) else NOT_ELIGIBLE
    if not pieces.decide(tb) and not qos_driven.within_overhead(tb, slot, cls, now):
        return OVERHEAD
    may_go = in_force.eligible_by_metric(tb, slot, metric_now(tb, slot, now), cls, q_j, now)
    return NOTHING if may_go else NOT_ELIGIBLE


@kernel
def metric_now(tb: State, slot: Records, now: float) -> float:
    """Q of an instance on a host, as :func:`.request_ledger.metric_of`; remembers nothing; O(1)."""
    if pieces.weigh(tb):
        return pieces.metric_at(tb, slot, now)
    if slot["request"] < 0:
        return metric(slot, promise_of(slot, views.classes(tb)), views.classes(tb)[slot["cls"]]["alpha"], now)
    up, lost = request_ledger.counts_as_up(slot, now), request_ledger.unearned(tb, slot, now)
    q = whole(slot["request"])
    return request_ledger.weigh(tb, q, now, up, lost) + views.requests(tb)[q]["shift"]
