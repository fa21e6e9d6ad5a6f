"""Places that are kept for less important pods, for more important ones that wait.

A nominated pod waits until its victims have left the node. Who is more important and comes meanwhile takes its place,
as with kube-scheduler, which looks at nodes as if less important nominated pods were not there. Nobody else has to go
for that, and the less important pod waits again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.kernels.drive.apply_plan import metric_in_queue
from slacktide.kernels.place import preemption_obstacles
from slacktide.kube.act.reservations import Reservations


def places_to_take(
    engine: Engine, reservations: Reservations, waiting: Iterable[str], now: float
) -> Iterator[tuple[str, str, float]]:
    """Who waits, whose place it takes, and its metric; the most important first. The caller carries each out before it
    asks for the next.

    By the rule by which it could preempt that one, and only from one of lower rank, so that no two take each other's
    places. Who has rules about neighbours, and pods of groups, wait on. O(kinds of those who wait * places kept).
    """
    pods = [one for uid in waiting if (one := engine.pods.get(uid)) and not one.group]
    if not reservations.nominations or not pods:
        return
    at = max(types.snap(now), engine.latest)
    places, tb = _Places(engine, reservations), engine.tables.tb
    hopeless: set[int] = set()
    ranks = places.ranks_of([one.row for one in pods]).tolist()
    for rank, uid in sorted(zip(ranks, (one.uid for one in pods), strict=True)):
        one = engine.pods[uid]
        kind = int(tb["instances"]["kind"][one.row])
        if one.state != types.WAITING or kind in hopeless or engine.instances.blame.is_excused(one.row):
            continue
        metric = float(metric_in_queue(tb.state, one.row, at))
        if other := places.for_one(one, rank, metric, at):
            yield uid, other, metric
        else:
            hopeless.add(kind)


class _Places:
    """Those that are kept for pods of no group, as tables have them: shape (places,) each."""

    def __init__(self, engine: Engine, reservations: Reservations) -> None:
        engine.tables.settle()
        self._engine, self._tb = engine, engine.tables.tb
        kept = [(uid, one) for uid, one in reservations.standing(engine) if not one.group]
        self._uids: list[str] = [uid for uid, _ in kept]
        self._rows = np.array([one.row for _, one in kept], np.int64)
        self._hosts = np.array([engine.hosts[one.host] for _, one in kept], np.int64)
        self._ranks = self.ranks_of(self._rows)
        self._taken = np.zeros(len(kept), np.bool_)

    def ranks_of(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Of the classes of instances; 1 is the most important."""
        tb = self._tb
        found: NDArray[np.int64] = tb["classes"]["rank"][tb["kinds"]["cls"][tb["instances"]["kind"][rows]]]
        return found

    def for_one(self, pod: types.Pod, rank: int, metric: float, at: float) -> str:
        """Whose place a pod takes, of the least important that one decided on last; empty where it takes none."""
        tb = self._tb
        kind = tb["kinds"][int(tb["instances"]["kind"][pod.row])]
        rules = self._engine.specs[pod.spec].placement.rules
        if kind["never"] or rules or preemption_obstacles.held(tb.state, int(kind["cls"]), metric):
            return ""
        theirs = tb["demand"][tb["kinds"]["shape"][tb["instances"]["kind"][self._rows]]]
        fits = (tb["free"][self._hosts] + theirs >= tb["demand"][int(kind["shape"])]).all(axis=1)
        is_open = tb["allowed"][int(kind["term"]), tb["hosts"]["group"][self._hosts]] != 0
        able = np.flatnonzero(
            fits & is_open & (tb["hosts"]["down"][self._hosts] == 0) & (self._ranks > rank) & ~self._taken
        )
        able = able[np.lexsort((-able, -self._ranks[able]))]
        first = int(
            preemption_obstacles.first_place(tb.state, self._hosts[able], self._rows[able], pod.row, metric, at)
        )
        if first < 0:
            return ""
        self._taken[able[first]] = True
        return self._uids[int(able[first])]
