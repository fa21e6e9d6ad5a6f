"""What happens to hosts in a run, as kernels read it: in whole amounts, each event by how much it changes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.tables import log_records
from slacktide.model import Hosts
from slacktide.model.host_events import CAPACITY, HostEvents
from slacktide.state import layout


def largest(hosts: Hosts, events: HostEvents | None) -> NDArray[np.float64]:
    """Capacities of all hosts at all times, shape (n, resources), among others: whole amounts are made for these."""
    if events is None or not events.of_amounts.any():
        return hosts.capacity
    later = events.amounts[events.kinds == CAPACITY]
    return np.concatenate([hosts.capacity, np.where(np.isnan(later), 0.0, later)])


def apart(capacity: NDArray[np.int64], events: HostEvents | None) -> NDArray[np.int64]:
    """By what hosts are grouped: those whose capacity changes in the run are like no other host."""
    if events is None or not (events.kinds == CAPACITY).any():
        return capacity
    mark = np.zeros(len(capacity), np.int64)
    changing = np.unique(events.hosts[events.kinds == CAPACITY])
    mark[changing] = changing + 1
    return np.ascontiguousarray(np.column_stack([capacity, mark]))


def arrays(
    events: HostEvents | None, capacity: NDArray[np.int64], unit: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """``happenings`` and ``host_amounts``: by how much an event changes what a host has, or what others take of it."""
    if events is None:
        return {"happenings": np.zeros(0, log_records.HOST_EVENT)}
    table = np.zeros(len(events), log_records.HOST_EVENT)
    table["time"], table["host"], table["kind"] = layout.on_grid(events.times), events.hosts, events.kinds
    changing = np.flatnonzero(events.of_amounts)
    if not len(changing):
        return {"happenings": table}
    given = np.isfinite(events.amounts)
    told = layout.amounts(np.where(given, events.amounts, 0.0), unit)
    now = {True: capacity.copy(), False: np.zeros_like(capacity)}  # what hosts have; what others take
    changes = np.zeros((len(changing), capacity.shape[1]), np.int64)
    for place, event in enumerate(changing.tolist()):
        kept, h = now[bool(events.kinds[event] == CAPACITY)], events.hosts[event]
        after = np.where(given[event], told[event], kept[h])
        changes[place] = after - kept[h]
        kept[h] = after
    table["amounts"][changing] = np.arange(len(changing))
    return {"happenings": table, "host_amounts": changes}
