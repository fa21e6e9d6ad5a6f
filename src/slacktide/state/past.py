"""What requests that were admitted before the run begins got and lost by then (docs/semantics.md, 'A past')."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.kernels.drive import past as kernels
from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.window_records import CALENDAR, LIFETIME
from slacktide.model import INDEPENDENT, Past, Workload
from slacktide.model.request_events import lost_in
from slacktide.state.layout import on_grid


def rows_with_past(workload: Workload) -> int:
    """How many rows were admitted before the run begins: the first ones."""
    return 0 if workload.lost is None else int(np.searchsorted(workload.admission, 0.0, "left"))


def on_grid_past(past: Past) -> list[tuple[float, float]]:
    """The outages on the grid of times."""
    return [(float(on_grid(np.array(end))), float(on_grid(np.array(seconds)))) for end, seconds in past]


def write_ledgers(workload: Workload, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write into the ledgers of instances, and of requests that have one, what they got before the run; O(rows)."""
    count = rows_with_past(workload)
    if workload.lost is None or not count:
        return
    lost = np.array([lost_in(tuple(on_grid_past(one))) for one in workload.losses])[workload.lost[:count]]
    lived = -arrays["admission"][:count]
    received = lived - lost
    arrays["instances"]["running"][:count] = received
    if not len(arrays["requests"]):
        return
    mine = arrays["owner"][:count] >= 0
    owner, table = arrays["owner"][:count][mine], arrays["requests"]
    np.add.at(table["total"], owner, lived[mine])
    np.add.at(table["received"], owner, received[mine])
    for name in get_args(Accounting):
        np.add.at(table[f"together_{name}"], owner, received[mine])


def write_accounts(workload: Workload, tb: Tables) -> None:
    """Tell the accounts of windows which outages there were, where an instance's own ledger decides; O(outages).

    What a request of several instances lost before counts for no window: its window begins with the run.
    """
    count = rows_with_past(workload)
    if workload.lost is None or not count or not len(tb["accounts"]):
        return
    for row in range(count):
        cls, past = int(workload.service_class[row]), on_grid_past(workload.losses[int(workload.lost[row])])
        theirs = tb["classes"][cls]
        if theirs["windowed"] == LIFETIME or not _decides(tb, row):
            continue
        while int(tb.control["outages"]) + len(past) + 1 >= len(tb["outages"]):
            tb.put("outages", np.concatenate([tb["outages"], np.zeros_like(tb["outages"])]))
        admission = float(tb["admission"][row])
        for at, seconds, until in _pieces(past, admission):
            kernels.lose(tb.state, row, cls, at, seconds, until)
        before = _received_by(past, admission, float(theirs["begins"])) if theirs["windowed"] == CALENDAR else 0.0
        kernels.go_on(tb.state, row, cls, before)


def _decides(tb: Tables, row: int) -> bool:
    owner = int(tb["owner"][row]) if len(tb["owner"]) else -1
    return owner < 0 or int(tb["requests"]["approach"][owner]) == INDEPENDENT


def _pieces(past: list[tuple[float, float]], admission: float) -> Iterator[tuple[float, float, float]]:
    """Of each outage: what had been received, how long it was, when it ended."""
    lost = 0.0
    for end, seconds in past:
        lost += seconds
        yield end - admission - lost, seconds, end


def _received_by(past: list[tuple[float, float]], admission: float, until: float) -> float:
    """Seconds received from the admission to ``until``."""
    if until <= admission:
        return 0.0
    return until - admission - sum(max(0.0, min(end, until) - (end - seconds)) for end, seconds in past)
