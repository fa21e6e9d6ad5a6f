"""Carrying out a plan that was decided elsewhere, with the same ledgers as a compiled pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.drive import instance_ledger, leavers, scheduling_pass
from slacktide.kernels.feasible import affinity, disruption_budgets, host_slots
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.queue import request_heap, waiting_queue
from slacktide.kernels.runtime.compiling import entry
from slacktide.kernels.tables import buffer_capacity, views
from slacktide.kernels.tables.log_records import BEGUN, PREEMPTED
from slacktide.kernels.tables.schema import GONE, NOBODY, RECORD_DECISIONS, State


@entry
def open_pass(tb: State) -> None:
    """Begin a pass whose decisions come one by one."""
    leavers.bring_up_requests(tb)
    scheduling_pass.begin(tb)


@entry
def lacking_capacity(tb: State) -> int:
    """What must grow before the next decision can be carried out, or FINISHED."""
    return buffer_capacity.lacking(tb)


@entry
def bind(tb: State, row: int, host: int, victims: NDArray[np.int64], qos: float, lost: NDArray[np.float64]) -> None:
    """Evict ``victims`` (rows; their metrics in ``lost``) and start the waiting instance ``row`` on ``host``."""
    control = views.control(tb)
    now = control["now"]
    if views.rules(tb)["record"] & RECORD_DECISIONS:
        decision = views.decisions(tb)[control["decisions"]]
        decision["row"], decision["time"], decision["metric"] = row, now, qos
        decision["batch"], decision["host"] = control["batch"] - 1, host
        decision["victims"], decision["first"] = len(victims), control["victims"]
        control["decisions"] += 1
        for v in victims:
            views.victims(tb)[control["victims"]] = v
            control["victims"] += 1
    for i in range(len(victims)):
        instance_ledger.record(tb, PREEMPTED, victims[i], host, row, lost[i])
    for v in victims:
        instance_ledger.stop(tb, v, now, instance_ledger.YES)
    control["pass_preempted"] += len(victims)
    instance_ledger.start(tb, row, host, now)
    instance_ledger.record(tb, BEGUN, row, host, NOBODY, qos)
    control["pass_placed"] += 1
    mark_done(tb, row)


@entry
def mark_done(tb: State, row: int) -> None:
    """Strike an instance off the queue; O(queue)."""
    control = views.control(tb)
    for i in range(control["queue"]):
        if views.queue(tb)[i]["row"] == row and not views.queue(tb)[i]["done"]:
            views.queue(tb)[i]["done"] = GONE
            return
    for i in range(control["incoming"]):
        if views.incoming(tb)[i]["row"] == row and not views.incoming(tb)[i]["done"]:
            views.incoming(tb)[i]["done"] = GONE
            return


@entry
def close_pass(tb: State) -> None:
    """End a pass begun with :func:`open_pass`."""
    control = views.control(tb)
    control["queue"] = waiting_queue.drop_done(views.queue(tb), control["queue"])
    control["incoming"] = waiting_queue.drop_done(views.incoming(tb), control["incoming"])
    scheduling_pass.end(tb)


@entry
def host_changed(tb: State, h: int) -> None:
    """A host's room or state changed from outside; O(log hosts)."""
    host_slots.note_release(tb, h)
    host_slots.touch(tb, h)


@entry
def welcoming(tb: State, kind: int, mask: NDArray[np.bool_]) -> None:
    """Clear the elements of ``mask``, shape (hosts,), where the rules of a kind do not hold; O(hosts * rules)."""
    affinity.prepare(tb, kind)
    for h in range(len(mask)):
        if mask[h] and affinity.rules_at(tb, kind, h) != affinity.HOLD:
            mask[h] = False


@entry
def spared(tb: State, host: int, victims: NDArray[np.int64], now: float) -> int:
    """The first of ``victims`` (rows on a host) that must not be preempted beside those before it, or -1."""
    views.control(tb)["companions"] = 0
    for i in range(len(victims)):
        at = host_slots.slot_of(tb, host, victims[i])
        if disruption_budgets.spared(tb, host, at, i, now):
            return victims[i]
        views.taken(tb)[i] = at
    return -1


@entry
def metric_on_host(tb: State, host: int, row: int, now: float) -> float:
    """Q of an instance that is on a host, seconds; O(instances on it)."""
    slot = views.slots(tb)[host, host_slots.slot_of(tb, host, row)]
    return request_ledger.metric_of(tb, slot, now) - request_ledger.slot_shift(tb, slot)


@entry
def metric_in_queue(tb: State, row: int, now: float) -> float:
    """Q of a waiting instance, seconds, NaN where it does not wait; O(queue)."""
    at = waiting_queue.position_of(tb, row)
    if at < 0:
        return np.nan
    return request_heap.metric_of_entry(tb, waiting_queue.entry_at(tb, at), now) - request_ledger.shift_of(tb, row)
