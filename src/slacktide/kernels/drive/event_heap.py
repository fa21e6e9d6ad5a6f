"""What instances have ahead of them, by time: ends of start-ups and runs, and returns of stopped instances.

A stop makes the events of its instance void. They stay in the heap, and are passed over when they come up.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.log_records import LEAVES, RUN_ENDS, STARTUP_ENDS, WINDOW_MOVES
from slacktide.kernels.tables.schema import LEAVING, PLACED, VACANT, Records, State

BEFORE_ALL = 2**40
"""More than there are rows: before or behind all of them."""


@leaf
def turn(kind: int, row: int) -> int:
    """The order of events of one instant: windows, ends of start-ups, the last row first, others by row, ends of grace
    periods; O(1)."""
    if kind == WINDOW_MOVES:
        return whole(row) - BEFORE_ALL
    if kind == LEAVES:
        return whole(row) + BEFORE_ALL  # who completes at that instant has completed
    return -1 - whole(row) if kind == STARTUP_ENDS else whole(row)


@leaf
def comes_before(a: Records, b: Records) -> bool:
    """Whether event ``a`` happens before ``b``; O(1)."""
    if a["time"] != b["time"]:
        return a["time"] < b["time"]
    return turn(a["kind"], a["row"]) < turn(b["kind"], b["row"])


@kernel
def push(tb: State, kind: int, time: float, row: int, starts: int) -> None:
    """Note what happens to ``row`` at ``time``, unless it was stopped or started after ``starts`` starts; O(log n)."""
    heap = views.heap(tb)
    k = views.control(tb)["heap"]
    views.control(tb)["heap"] += 1
    while k > 0:
        parent = (k - 1) >> 1
        above = heap[parent]
        if above["time"] < time:
            break
        if above["time"] == time and turn(above["kind"], above["row"]) <= turn(kind, row):
            break
        heap[k] = heap[parent]
        k = parent
    heap[k]["time"] = time
    heap[k]["row"] = row
    heap[k]["starts"] = starts
    heap[k]["kind"] = kind


@kernel
def pop(tb: State) -> None:
    """Remove the earliest event; O(log n)."""
    heap = views.heap(tb)
    views.control(tb)["heap"] -= 1
    n = views.control(tb)["heap"]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and comes_before(heap[child + 1], heap[child]):
            child += 1
        if not comes_before(heap[child], heap[n]):
            break
        heap[k] = heap[child]
        k = child
    heap[k] = heap[n]


@leaf
def in_state(kind: int, state: int) -> bool:
    """Whether an event happens to an instance in this state; O(1)."""
    if kind == STARTUP_ENDS or kind == RUN_ENDS:
        return state == PLACED or state == LEAVING
    return state == (LEAVING if kind == LEAVES else VACANT)


@leaf
def run_ends(tb: State, event: Records) -> float:
    """When an instance completes, which may be later than was noted: it was not ready for a while; O(1)."""
    instance = views.instances(tb)[event["row"]]
    return instance["since"] + instance["startup"] + (views.duration(tb)[event["row"]] - instance["running"])


@kernel
def next_due(tb: State) -> float:
    """The instant of the next event that no stop has made void, inf for none; drops void ones before it."""
    while views.control(tb)["heap"] > 0:
        event = views.heap(tb)[0]
        instance = views.instances(tb)[event["row"]]
        if event["kind"] == WINDOW_MOVES:
            if views.accounts(tb)[event["row"]]["due"] == event["time"] and instance["state"] == PLACED:
                return event["time"]
        elif in_state(event["kind"], whole(instance["state"])) and instance["starts"] == event["starts"]:
            may_be_late = event["kind"] == RUN_ENDS and len(views.spells(tb)) > 0
            if not may_be_late or event["time"] == run_ends(tb, event):
                return event["time"]
        pop(tb)
    return np.inf
