"""Why instances of a simulation wait, and to whom time was lost, from its events."""

from __future__ import annotations

import numpy as np

from slacktide.dashboard.simulated_lives import WAITS, Lives
from slacktide.dashboard.simulated_tables import Floats, Ints
from slacktide.dashboard.view import HOSTS, NOT_PLACED, Lost
from slacktide.for_people import clock, counted


class Waits:
    """Stretches in which an instance has no host, shape (stretches,): from its admission to its first place, and from
    where it was taken off a host to its next one."""

    def __init__(self, lives: Lives) -> None:
        self._results, self._events = results, events = lives.results, lives.events
        moves, event = lives.moves, lives.move
        waits = np.flatnonzero(events.is_(*WAITS)[event])
        follows = np.append(moves.owner[1:] == moves.owner[:-1], False) if len(event) else np.zeros(0, bool)
        after = np.append(moves.time[1:], np.inf) if len(event) else np.zeros(0)
        after = np.where(follows, after, results.instance_ended[moves.owner])
        moved = np.bincount(moves.owner, minlength=len(results.request)) > 0
        first = results.instance_ended.copy()
        first[moved] = moves.time[moves.first[moved]]
        by = events.by[event[waits]]
        causes = np.where(by >= 0, results.cls[by], HOSTS)
        self._instance = np.concatenate((np.arange(len(first)), moves.owner[waits]))
        self._begin = np.concatenate((results.instance_admission, moves.time[waits]))
        self._end = np.concatenate((first, after[waits]))
        self._cause = np.concatenate((np.full(len(first), NOT_PLACED), causes))
        placed = np.flatnonzero(events.is_("placed") & (events.instance >= 0))
        ranks = np.array([one.rank for one in results.classes])
        rank = ranks[results.cls[results.request[events.instance[placed]]]]
        self._placed = placed
        self._above = [placed[rank < one] for one in ranks]
        """Of each class the placements of more important ones, places in the events."""

    def lost(self, at: float) -> Floats:
        """Instance seconds that requests have waited by an instant, by whose doing: shape (requests, classes + 2), of
        which the last two are :data:`HOSTS` and :data:`NOT_PLACED`. O(stretches)."""
        results = self._results
        wide = len(results.classes) + 2
        seconds = np.maximum(np.minimum(self._end, min(at, results.end)) - self._begin, 0.0)
        cells = results.request[self._instance] * wide + self._cause % wide
        found: Floats = np.bincount(cells, seconds, len(results.ids) * wide).astype(np.float64)
        return found.reshape(-1, wide)

    def reasons(self, instances: Ints, last: Ints, since: Floats, at: float) -> list[str]:
        """Why each of some instances waits at an instant, of which their ``last`` moves (-1: none) and since when they
        wait is known."""
        results, events = self._results, self._events
        found = np.zeros(len(instances), object)
        cls = results.cls[results.request[instances]]
        for one in np.unique(cls).tolist():
            mine = np.flatnonzero(cls == one)
            counts = []
            for places in (self._placed, self._above[one]):
                times = events.time[places]
                stop = int(np.searchsorted(times, at, "right"))
                counts.append((stop - np.searchsorted(times, since[mine], "left"), places[stop - 1] if stop else -1))
            (every, _), (above, latest) = counts
            for place, others, many in zip(mine.tolist(), every.tolist(), above.tolist(), strict=True):
                found[place] = f"{self._how(int(last[place]))}: {self._meanwhile(others, many, int(latest))}"
        return found.tolist()

    def _how(self, last: int) -> str:
        if last < 0:
            return "never placed"
        by = int(self._events.by[last])
        return "its host failed" if by < 0 else f"preempted by {self._named(by)}"

    def _meanwhile(self, others: int, above: int, latest: int) -> str:
        if not others:
            return "nobody was placed since"
        if not above:
            return f"{counted(others, 'placement')} since, none of a more important class"
        results, events = self._results, self._events
        whom = self._named(int(results.request[events.instance[latest]]))
        last = f"last {clock(events.time[latest], False)} ({whom})"
        return f"{counted(above, 'placement')} went to more important classes, {last}"

    def _named(self, request: int) -> str:
        results = self._results
        return f"{results.title_of(request)}, {results.classes[int(results.cls[request])].name}"


def written(seconds: Floats) -> Lost:
    """A row of :meth:`Waits.lost` as rows of views have it, the most first."""
    wide = len(seconds)
    there = np.flatnonzero(seconds >= 0.05)
    order = there[np.argsort(-seconds[there], kind="stable")].tolist()
    return tuple((one if one < wide - 2 else one - wide, round(float(seconds[one]), 1)) for one in order)
