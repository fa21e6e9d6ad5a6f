"""What happens to hosts in a run, as kernels read it: by how much each event changes whole amounts, and marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.tables import log_records
from slacktide.model import Hosts
from slacktide.model.host_events import CAPACITY, MARKS, HostEvents
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
    events: HostEvents | None,
    capacity: NDArray[np.int64],
    unit: NDArray[np.float64],
    counters: Mapping[str, Sequence[int]],
) -> dict[str, NDArray[Any]]:
    """``happenings``, ``host_amounts`` and ``host_marks``: by how much an event changes what a host has, what others
    take of it, and how many of these count as carriers of a mark (``counters`` by mark; marks that nobody asks about
    have none)."""
    if events is None:
        return {"happenings": np.zeros(0, log_records.HOST_EVENT)}
    table = np.zeros(len(events), log_records.HOST_EVENT)
    table["time"], table["host"], table["kind"] = layout.on_grid(events.times), events.hosts, events.kinds
    found: dict[str, NDArray[Any]] = {}
    if events.of_amounts.any():
        found["host_amounts"] = _changes_of_amounts(events, capacity, unit)
        table["amounts"][events.of_amounts] = np.arange(len(found["host_amounts"]))
    if events.marks:
        changes, number = _changes_of_marks(events, counters)
        table = np.repeat(table, number)  # one for each counter
        found["host_marks"] = changes
        table["amounts"][table["kind"] == MARKS] = np.arange(len(changes))
    return {"happenings": table, **found}


def _changes_of_amounts(
    events: HostEvents, capacity: NDArray[np.int64], unit: NDArray[np.float64]
) -> NDArray[np.int64]:
    """A row for each event that is about amounts."""
    changing = np.flatnonzero(events.of_amounts)
    given = np.isfinite(events.amounts)
    told = layout.amounts(np.where(given, events.amounts, 0.0), unit)
    now = {True: capacity.copy(), False: np.zeros_like(capacity)}  # what hosts have; what others take
    changes = np.zeros((len(changing), capacity.shape[1]), np.int64)
    for place, event in enumerate(changing.tolist()):
        kept, h = now[bool(events.kinds[event] == CAPACITY)], events.hosts[event]
        after = np.where(given[event], told[event], kept[h])
        changes[place] = after - kept[h]
        kept[h] = after
    return changes


def _changes_of_marks(
    events: HostEvents, counters: Mapping[str, Sequence[int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counter and difference, in order of the events, and how many of them each event has, which is one at least: -1
    stands for a counter where there is nothing to count."""
    changes, number = list[tuple[int, int]](), np.ones(len(events), np.int64)
    now: dict[tuple[int, str], int] = {}
    for event, carried in sorted(events.marks.items()):
        h, before = int(events.hosts[event]), len(changes)
        for mark, count in carried:
            by = count - now.get((h, mark), 0)
            now[h, mark] = count
            changes += [(counter, by) for counter in counters.get(mark, ()) if by]
        if len(changes) == before:
            changes.append((-1, 0))  # it happens all the same: a run without an end ends with its last event
        number[event] = len(changes) - before
    return np.array(changes, np.int64).reshape(-1, 2), number
