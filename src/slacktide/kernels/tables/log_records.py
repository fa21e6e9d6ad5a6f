"""Records of what happened (decisions, events, passes) and of what is to happen; of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

DECISION = np.dtype(
    [
        ("row", "i8"),
        ("time", "f8"),
        ("metric", "f8"),
        ("batch", "i8"),
        ("host", "i8"),
        ("victims", "i8"),
        ("first", "i8"),
    ],
    align=True,
)
EVENT = np.dtype(
    [
        *(("time", "f8"), ("qos", "f8"), ("row", "i8"), ("by", "i8"), ("host", "i8"), ("kind", "i8")),
        ("received", "f8"),  # of an outage: while it lasted, by others of the same request
    ],
    align=True,
)
PASS = np.dtype(
    [("time", "f8"), ("operations", "i8"), ("queue", "i8"), ("placed", "i8"), ("preempted", "i8")], align=True
)
EVENT_KINDS = (
    *("admitted", "placed", "preempted", "completed", "evicted", "host-down", "host-up", "held", "removed"),
    *("resized", "moved", "deferred", "outage"),
)
_KINDS: tuple[Any, ...] = tuple(
    np.int64(i) for i in range(13)
)  # not literals: kernels would be compiled once more for each
ADMITTED, BEGUN, PREEMPTED, COMPLETED, EVICTED, HOST_DOWN, HOST_UP, HELD, DROPPED, RESIZED, MOVED, DEFERRED = _KINDS[
    :12
]
OUTAGE = _KINDS[12]  # of a promise over a window: it ended; ``qos`` is how much was lost
OF_REQUEST: Any = np.int64(-2)  # ``by`` of an outage of a request whose ledger decides; ``row`` is the ledger then

# What an instance has ahead of it, unless it is stopped first: void where its starts are not ``starts`` any more.
INSTANCE_EVENT = np.dtype([("time", "f8"), ("row", "i4"), ("starts", "i4"), ("kind", "i4")], align=True)
STARTUP_ENDS, RUN_ENDS, RETURNS, RETURNS_PREEMPTED, WINDOW_MOVES, LEAVES = _KINDS[:6]
# RETURNS, RETURNS_PREEMPTED: after ``recreation`` seconds, a stopped instance begins to wait again
# LEAVES: the grace period of a preempted instance is over
# WINDOW_MOVES: an old outage leaves its rolling window, or its budget lasts to the end of the calendar window

SPELL = np.dtype([("time", "f8"), ("seconds", "f8"), ("row", "i8")], align=True)
# an instance that is ready then is not, for so many seconds
HOST_EVENT = np.dtype([("time", "f8"), ("host", "i8"), ("kind", "i8"), ("amounts", "i8")], align=True)
# ``amounts``: of an event that changes some, its row of ``host_amounts``; of one about a mark, of ``host_marks``
