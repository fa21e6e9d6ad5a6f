"""How a cluster stands at chosen instants of a run: read from its tables, which stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.errors import ConfigError
from slacktide.kernels.qos.metric import GRID
from slacktide.kernels.tables import schema
from slacktide.kernels.tables.arrays import Tables
from slacktide.model import Hosts, Workload
from slacktide.model.workload import CONCURRENT
from slacktide.qos.availability import TIMES, availability
from slacktide.qos.per_request import Columns, Summed, least_counts, sums_over
from slacktide.state.layout import on_grid

SHORTEST = 1e-3
"""Seconds; of shorter intervals there would be more than anybody can read."""
STEPS = 10
"""Between two looks how the cluster stands is noted so often."""
NO_PASS = -1
ON_HOST = (schema.PLACED, schema.LEAVING)
"""Also those that were preempted run until their grace period is over."""


@dataclass(frozen=True, slots=True)
class Step:
    """The cluster at ``time``, seconds.

    capacity       shape (resources,), of the hosts that are up, in the hosts' unit
    queue, passes, operations, placements, preemptions    as of now; all but ``queue`` since the beginning
    longest_queue  the most that waited when a pass since the step before was over; ``queue`` where there was none
    """

    time: float
    capacity: NDArray[np.float64]
    queue: int
    longest_queue: int
    passes: int
    operations: int
    placements: int
    preemptions: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How things stand when all events at ``time`` and their pass are over, seconds; ``begun`` is the one before.

    Of the requests active since ``begun`` (admitted, and with an instance that had not ended by then), shape (k,):

    request        int64, index into ``workload.requests``, or the row where every row is a request
    service_class  int16, index into ``workload.classes``
    availability   e / (e + p) in the accounting of decisions, from admission to ``time`` or to its end, if it ended

    Of their instances that are there at ``time``, shape (i,):

    row            int64, place in the workload
    demand         what they demand now, shape (i, resources), in the hosts' unit; None: what they did at first
    running        bool: on a host; all others wait for one, or for their next incarnation

    Of the cluster:

    steps          at :data:`STEPS` instants since ``begun``; the last is ``time``
    """

    time: float
    begun: float
    request: NDArray[np.int64]
    service_class: NDArray[np.int16]
    availability: NDArray[np.float64]
    row: NDArray[np.int64]
    running: NDArray[np.bool_]
    steps: tuple[Step, ...]
    demand: NDArray[np.float64] | None = None


Observer = Callable[[Snapshot], None]


class Watch:
    """Tells ``observer`` at every multiple of ``every`` seconds, and at the end, how things stand, and how the cluster
    did at :data:`STEPS` instants in between.

    Between two looks it keeps the rows of requests that are not over, so that a look costs O(those + new ones),
    however long the workload. Raises :class:`ConfigError` for an interval that is no number of seconds.
    """

    def __init__(
        self, tb: Tables, workload: Workload, hosts: Hosts, accounting: Accounting, every: float, observer: Observer
    ) -> None:
        if not SHORTEST <= every < float("inf"):
            raise ConfigError(f"intervals: found {every:g}, expected seconds, {SHORTEST:g} or more")
        self._tb, self._workload, self._hosts = tb, workload, hosts
        self._accounting, self._every, self._observer = accounting, every, observer
        self._number, self._last = 0, 0.0
        self._rows = np.zeros(0, np.int64)
        self._closed = np.zeros(0, np.bool_)  # of these rows: had ended when last looked at
        self._arrived = 0
        self._size = None if workload.request is None else np.bincount(workload.request)
        self._steps: list[Step] = []
        tb.control["most_queue"] = NO_PASS
        self._set_next()

    def _set_next(self) -> None:
        self._number += 1
        self.next = float(on_grid(np.array(self._number * self._every / STEPS)))

    def look(self) -> None:
        """The clock has stopped where it was asked to: note it or tell, and ask for the next time."""
        if self._number % STEPS:
            self._note(self.next)
        else:
            self._tell(self.next)
        self._set_next()

    def close(self, final: float) -> None:
        """The run is over at ``final`` seconds: tell how it ended; the ledgers must not be closed yet."""
        if final > self._last:
            self._tell(final)

    def _note(self, time: float) -> None:
        control = self._tb.control
        queue, longest = int(control["queue"] + control["incoming"]), int(control["most_queue"])
        control["most_queue"] = NO_PASS
        self._steps.append(
            Step(
                time=time,
                capacity=self._capacity(),
                queue=queue,
                longest_queue=queue if longest == NO_PASS else longest,
                passes=int(control["batch"]),
                operations=int(control["operations"]),
                placements=int(control["placements"]),
                preemptions=int(control["preemptions"]),
            )
        )

    def _tell(self, time: float) -> None:
        self._note(time)
        tb, arrived = self._tb, int(self._tb.control["arrived"])
        rows = np.concatenate([self._rows, np.arange(self._arrived, arrived)])
        closed = np.concatenate([self._closed, np.zeros(arrived - self._arrived, np.bool_)])
        records = tb["instances"][rows]
        state = records["state"]
        ended = is_gone(state)
        active = ~closed & (state != schema.FUTURE)
        here = active & ~ended
        numbers, reached = self._requests(time, rows, records, active)
        first = numbers
        if self._workload.request is not None:
            first = _first_row(numbers, self._workload.request[rows], rows)
        steps, self._steps = tuple(self._steps), []
        self._observer(
            Snapshot(
                time=time,
                begun=self._last,
                request=numbers,
                service_class=self._workload.service_class[first],
                availability=reached,
                row=rows[here],
                running=np.isin(state[here], ON_HOST),
                steps=steps,
                demand=self._demand(records["kind"][here]),
            )
        )
        kept = self._unfinished(rows, ended)
        self._rows, self._closed = rows[kept], ended[kept]
        self._arrived, self._last = arrived, time

    def _capacity(self) -> NDArray[np.float64]:
        """What the hosts that are up have, in their unit."""
        tb = self._tb
        has = tb["capacity"] * tb["unit"] if len(tb["host_amounts"]) else self._hosts.capacity
        return np.asarray(has[tb["hosts"]["down"] == 0].sum(axis=0))

    def _demand(self, kind: NDArray[np.int32]) -> NDArray[np.float64] | None:
        """What instances of these kinds demand, in the hosts' unit, where demands change."""
        tb = self._tb
        if not len(tb["resizings"]):
            return None
        return np.asarray(tb["demand"][tb["kinds"]["shape"][kind]] * tb["unit"])

    def _requests(
        self, time: float, rows: NDArray[np.int64], records: schema.Records, active: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Requests with an active row, and the availability of each."""
        work, admission = self._workload, self._tb["admission"]
        if work.request is None or work.requests is None or self._size is None:
            times = times_at(records, admission[rows], time)  # every row that is kept is active
            return rows, availability(self._accounting, *(times[name] for name in TIMES))
        had = records["state"] != schema.FUTURE
        wanted = np.unique(work.request[rows[active]])
        had &= np.isin(work.request[rows], wanted)
        rows, records = rows[had], records[had]
        owners = np.searchsorted(wanted, work.request[rows])
        times = times_at(records, admission[rows], time)
        approach, batch = work.requests.approach[wanted], work.requests.batch[wanted]
        least = least_counts(approach, batch, self._size[wanted] == 1)
        concurrent = (approach == CONCURRENT) & ~least
        summed = Summed(sums_over(owners, times, len(wanted)), owners, times, least, concurrent)
        together = self._together(time, owners, rows, concurrent)
        return wanted.astype(np.int64), summed.availability(self._accounting, together)

    def _together(
        self, time: float, owners: NDArray[np.int64], rows: NDArray[np.int64], concurrent: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Seconds that count for each of the concurrent requests among all k."""
        if not concurrent.any():
            return np.zeros(0)
        ledger = np.full(len(concurrent), -1, np.int64)
        ledger[owners] = self._tb["owner"][rows]
        records = self._tb["requests"][ledger[concurrent]]
        live = records["live"]
        counting = records[f"up_{self._accounting}"] + records[f"leaving_{self._accounting}"]
        passed = np.where((live > 0) & (counting == live), time - records["since"], 0.0)
        return np.asarray(records[f"together_{self._accounting}"] + live * passed)

    def _unfinished(self, rows: NDArray[np.int64], ended: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows will matter again: those of requests that have, or will have, an instance."""
        if self._workload.request is None or self._size is None:
            return ~ended
        numbers, owners = np.unique(self._workload.request[rows], return_inverse=True)
        over = np.bincount(owners, weights=ended, minlength=len(numbers))
        return np.asarray((over < self._size[numbers])[owners], dtype=np.bool_)


def is_gone(state: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which instances completed or were removed, shape (n,)."""
    return np.asarray((state == schema.DONE) | (state == schema.REMOVED), dtype=np.bool_)


def times_at(records: schema.Records, admission: NDArray[np.float64], time: float) -> Columns:
    """Seconds of :data:`TIMES`, shape (n,) each, of admitted instances as of ``time`` (as ``ledger.close`` has them).

    ``records``: their records, shape (n,), unchanged since some instant up to ``time``; ``admission``: seconds.
    """
    on_host, since = np.isin(records["state"], ON_HOST), records["since"]
    passed = np.where(on_host, time - since, 0.0)
    spent = np.where(on_host, np.minimum(passed, records["startup"]), 0.0)
    first = records["starts"] == 1
    columns = {
        "running": records["running"] + (passed - spent),
        "pending": np.where(is_gone(records["state"]), since, time) - admission,
        "startup_first": records["startup_first"] + np.where(first, spent, 0.0),
        "startup_restarts": records["startup_restarts"] + np.where(first, 0.0, spent),
        "discarded": records["discarded"].copy(),
    }
    never = (records["starts"] == 0) & (records["running"] == 0.0) & (records["state"] != schema.REMOVED)
    columns["pending"] = np.where(never, np.maximum(columns["pending"], 1.0 / GRID), columns["pending"])
    for name in TIMES:
        if name != "pending":
            columns["pending"] -= columns[name]
    return columns


def _first_row(numbers: NDArray[np.int64], request: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """A row of each request, shape (k,); all rows of a request are of one class."""
    found = np.zeros(len(numbers), np.int64)
    at = np.searchsorted(numbers, request)
    there = at < len(numbers)
    there[there] = numbers[at[there]] == request[there]
    found[at[there]] = rows[there]
    return found
