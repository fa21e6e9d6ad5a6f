"""Who of those that wait is lost, and who starves (:mod:`slacktide.kernels.policies.triage`): told, not decided."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.policies import in_force, triage
from slacktide.kernels.qos import request_ledger, window_ledger
from slacktide.kernels.runtime.compiling import entry, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import WAITING, State

_HOW: tuple[Any, ...] = tuple(np.int64(i) for i in range(3))  # not literals, so that kernels are compiled once
NOT_LATE, LOST, STARVING = _HOW


@entry
def tell_late(tb: State, rows: NDArray[np.int64], now: float, out: NDArray[np.int64]) -> None:
    """Fill ``out`` with what :func:`how_late` says of each instance; changes nothing else; O(rows)."""
    for i in range(len(rows)):
        out[i] = how_late(tb, rows[i], now)


@kernel
def how_late(tb: State, row: int, now: float) -> int:
    """Whether an instance waits in the queue and is late, and how; NOT_LATE where triage is not in force; O(1)."""
    instance = views.instances(tb)[row]
    if not views.rules(tb)["triage"] or not in_force.by_metric(tb) or instance["state"] != WAITING:
        return NOT_LATE
    q, cls = metric_of_waiting(tb, row, now), whole(views.kinds(tb)[instance["kind"]]["cls"])
    if not triage.is_late(tb, cls, q):
        return NOT_LATE
    return LOST if triage.is_lost(tb, row, cls, q, now) else STARVING


@leaf
def metric_of_waiting(tb: State, row: int, now: float) -> float:
    """Q of a waiting instance, seconds, as its entry in the queue has it, without looking for that; O(1)."""
    q = request_ledger.decider_of(tb, row)
    if q >= 0:
        return request_ledger.weigh(tb, q, now, whole(0), 0.0)
    instance = views.instances(tb)[row]
    cls = whole(views.kinds(tb)[instance["kind"]]["cls"])
    return window_ledger.own_key(tb, row, cls, instance["since"]) - now
