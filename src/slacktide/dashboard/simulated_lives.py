"""Where the instances of a simulation are at an instant, and what is left to each promise, from its events.

The metric is written with events. Between two of them it moves by known slopes: -1 while nothing counts as received,
1 / sigma - 1 while it does (docs/metric.md). So what is left at any instant follows from the events around it,
exactly where an instance has a promise over its lifetime of its own, else on a straight line from event to event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slacktide.dashboard.simulated_tables import NEVER, Events, Floats, Ints, Results
from slacktide.qos.standing import left_of

MOVES = ("placed", "moved", "preempted", "evicted", "completed", "removed")
STARTS = ("placed", "moved")
WAITS = ("preempted", "evicted")
SURE = 1e-3
"""Seconds; metrics are written on a grid of a millionth of a second."""


class Series(NamedTuple):
    """Rows of many owners, those of one owner together and in order of time; those of ``owner`` begin at
    ``first[owner]``. ``time`` in seconds, shape (rows,)."""

    owner: Ints
    time: Floats
    first: Ints
    order: Ints
    """Where each row stood before."""

    @classmethod
    def of(cls, owner: Ints, time: Floats, owners: int) -> Series:
        """Rows sorted; those of one owner and instant stay in their order."""
        order = np.lexsort((time, owner))
        counts = np.bincount(owner, minlength=owners)
        return cls(owner[order], time[order], np.concatenate(([0], np.cumsum(counts)[:-1])), order)

    def last(self, at: float) -> Ints:
        """The last row of each owner up to an instant, -1: none. O(rows)."""
        counts = np.bincount(self.owner[self.time <= at], minlength=len(self.first))
        return np.where(counts > 0, self.first + counts - 1, -1)


class Lives:
    """Units are what has a metric of its own: instances of requests that are judged by instance, and after all of them
    (from ``len(instances)`` on) requests of others."""

    def __init__(self, results: Results, events: Events) -> None:
        self.results, self.events = results, events
        count = len(results.request)
        alone = results.by_instance[results.request]
        self.unit = np.where(alone, np.arange(count), count + results.request)
        """Of each instance."""
        moves = np.flatnonzero(events.is_(*MOVES) & (events.instance >= 0))
        self.moves = Series.of(events.instance[moves], events.time[moves], count)
        self.move = moves[self.moves.order]
        self._point_values(count)

    def _point_values(self, count: int) -> None:
        """What is known of each unit: nothing is left at its admission, what events say, what was left at its end."""
        results, events = self.results, self.events
        units = count + len(results.ids)
        alone = self.unit == np.arange(count)
        written = np.isfinite(events.qos) & (events.instance >= 0)
        silent = ~written & events.is_("evicted") & (events.instance >= 0)
        silent[silent] = alone[events.instance[silent]]
        told = np.flatnonzero(written | silent)
        slo = np.array([one.slo for one in results.classes])
        alpha = np.array([one.alpha_or(results.alpha) for one in results.classes])
        windowed = np.array([one.window is not None for one in results.classes])
        per_unit = np.concatenate((results.cls[results.request], results.cls))
        self.slo, self.windowed = slo[per_unit], windowed[per_unit]
        self.rise = np.where(self.windowed, 0.0, 1.0 / self.slo - 1.0)
        """Seconds that are left more for each second that counts as received."""
        admitted = np.concatenate((results.instance_admission, results.admission))
        ended = np.minimum(np.concatenate((results.instance_ended, results.ended)), results.end)
        judged = np.flatnonzero(~self.windowed[:count] & alone)
        final = left_of(results.instance_achieved[judged], (ended - admitted)[judged], self.slo[judged])
        points = Series.of(
            np.concatenate((np.arange(units), self.unit[events.instance[told]], judged)),
            np.concatenate((admitted, events.time[told], ended[judged])),
            units,
        )
        held_back = alpha[results.cls[results.request[events.instance[told]]]]
        values = np.concatenate((np.zeros(units), events.qos[told] + held_back, final))[points.order]
        begins = np.concatenate((np.ones(units, np.bool_), events.is_(*WAITS)[told], np.zeros(len(judged), np.bool_)))
        self.points, self.waits = points, begins[points.order] & (points.owner < count)
        """The second tells of each point whether its unit waits from it on."""
        # Evictions say no metric: from them on a second is lost each second, up to what is known next.
        for one in np.flatnonzero(np.isnan(values[:-1]))[::-1].tolist():
            if points.owner[one + 1] == points.owner[one]:
                values[one] = values[one + 1] + points.time[one + 1] - points.time[one]
        self.values = values

    def last_move(self, at: float) -> Ints:
        """The last event that said where each instance is, a place in the events; -1: none yet."""
        last = self.moves.last(at)
        found = np.full(len(last), -1)
        found[last >= 0] = self.move[last[last >= 0]]
        return found

    def left(self, at: float) -> Floats:
        """What is left of each unit's promise at an instant, seconds; NaN where it was not admitted,
        or is not known. O(events)."""
        return self.left_from(self.points.last(at), at)

    def left_from(self, last: Ints, at: float) -> Floats:
        """The same where the last known point of each of some units is given."""
        time, value, owner = self.points.time, self.values, self.points.owner
        begun = last >= 0
        here = np.where(begun, last, 0)
        after = np.minimum(here + 1, len(time) - 1)
        follows = (after > here) & (owner[after] == owner[here])
        passed, gap = at - time[here], time[after] - time[here]
        rise, gained = self.rise[owner[here]], value[after] - value[here]
        lost = (gap * rise - gained) / (1.0 + rise)  # so long nothing was received
        exact = follows & (lost > -SURE) & (lost < gap + SURE) & (owner[here] < len(self.unit))
        kinked = value[here] - np.minimum(passed, lost) + np.maximum(passed - lost, 0.0) * rise
        share = np.divide(passed, gap, out=np.zeros(len(gap)), where=gap > 0.0)
        straight = value[here] + np.where(follows, share * gained, 0.0)
        # Who waits loses a second each second, also where work that was lost made the metric leap as the wait began.
        waited = value[after] + gap - passed
        found = np.where(self.waits[here] & follows, waited, np.where(exact, kinked, straight))
        # Behind the last event of a request of several instances, or of a promise over windows, nothing is known.
        unknown = ~follows & (passed > 0.0) & ((owner[here] >= len(self.unit)) | self.windowed[owner[here]])
        return np.where(begun & ~unknown, found, np.nan)

    def history(self, units: Ints, until: float, samples: int) -> list[tuple[float, float]]:
        """The least that was left of these units at instants up to ``until``, seconds each."""
        mine = np.isin(self.points.owner, units) & (self.points.time <= until)
        if not mine.any():
            return []
        times = self.points.time[mine]
        even = np.linspace(times.min(), until, samples)
        corners = times if len(times) <= 4 * samples else times[:: len(times) // (4 * samples) + 1]
        found = []
        for at in np.unique(np.concatenate((even, corners, [until]))).tolist():
            begun = self.points.first[units]
            counts = np.array([np.searchsorted(self._times(unit), at, "right") for unit in units.tolist()])
            left = self.left_from(np.where(counts > 0, begun + counts - 1, -1), at)
            if not np.isnan(left).all():
                found.append((at, float(np.nanmin(left))))
        return found

    def _times(self, unit: int) -> Floats:
        first = int(self.points.first[unit])
        stop = int(self.points.first[unit + 1]) if unit + 1 < len(self.points.first) else len(self.points.time)
        return self.points.time[first:stop]


def alive(admitted: Floats, ended: Floats, at: float) -> Floats:
    """Seconds that each has lived at an instant. Shapes (n,)."""
    return np.maximum(np.minimum(at, np.where(ended == NEVER, at, ended)) - admitted, 0.0)
