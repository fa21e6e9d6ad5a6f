"""Places that are kept until victims are gone, looked at again.

A node may be free for a pod that waits by now, as kube-scheduler tries a pod with a nominated node again whenever
something becomes free. Who finds a place at once goes there, and what was kept for it is given back. Victims that were
told to go, go; others stay.

And who is more important and comes meanwhile takes a place that is kept, as with kube-scheduler, which looks at nodes
as if less important nominated pods were not there. Nobody else has to go for that, and the less important pod waits
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.relocation import another_host, kind_has_room
from slacktide.engine.core.types import Decision
from slacktide.kernels.drive.apply_plan import metric_in_queue
from slacktide.kernels.place import preemption_obstacles
from slacktide.kube.act.reservations import Nomination, Reservations


def take_free_nodes(engine: Engine, reservations: Reservations, now: float, *, everybody: bool) -> Iterator[Decision]:
    """Decisions for pods that need not wait any more, the most important first; the engine hears of each, and its
    reservation is dropped.

    ``everybody``: else only those no less important than whoever waits without a place, who may need that room more.
    O(places kept + kinds of their pods * hosts), in a few vector operations where nothing became free.
    """
    if not reservations.nominations:
        return
    limit = np.inf if everybody else _most_important_waiting(engine)
    look = _Look(engine, reservations, limit)
    while (one := look.next()) is not None:
        uid, kind = one
        nomination, before = reservations.nominations[uid], engine.pods[uid].host
        host = before if _is_free(engine, reservations, nomination) else ""
        if not host and kind not in look.hopeless:
            host = _elsewhere(engine, reservations, uid, nomination.decision.metric)
            if not host:
                look.hopeless.add(kind)
        if not host:
            continue
        reservations.drop(uid)
        if host != before:
            engine.refused(uid, now)
            engine.nominated(uid, host, now)
            look.left(before)
        yield Decision(uid, host, nomination.decision.metric)


class _Look:
    """The pods of which something may have become free, the most important first: the contents of their own node
    changed, or some node has room for their kind. ``hopeless``: kinds of which one found no other node.

    Those whose rank is above ``limit`` are left out. O(places kept + kinds * hosts).
    """

    def __init__(self, engine: Engine, reservations: Reservations, limit: float) -> None:
        self._engine, self._reservations = engine, reservations
        self.hopeless: set[int] = set()
        self._due: list[tuple[int, str, int]] = []
        """A heap of ranks, UIDs and kinds."""
        self._seen = -1, ""
        engine.tables.settle()
        tb, nominations = engine.tables.tb, reservations.nominations
        kept = reservations.standing(engine)
        self._uids = [uid for uid, _ in kept]
        self._kinds = tb["instances"]["kind"][np.array([one.row for _, one in kept], np.int64)]
        self._ranks = tb["classes"]["rank"][tb["kinds"]["cls"][self._kinds]]
        self._hosts = np.array([engine.hosts[one.host] for _, one in kept], np.int64)
        self._counts = self._ranks <= limit
        looked = np.array([nominations[uid].looked for uid in self._uids], np.int64)
        self._is_due = self._counts & (tb["hosts"]["version"][self._hosts] != looked)
        self._of_kind = {kind: self._counts & (self._kinds == kind) for kind in np.unique(self._kinds).tolist()}
        self._roomy: set[int] = set()
        self._see_room()
        self._due = self._entries(self._is_due)
        heapify(self._due)

    def next(self) -> tuple[str, int] | None:
        """UID and kind of the next pod; None when there is none."""
        if not self._due:
            return None
        rank, uid, kind = heappop(self._due)
        self._seen = rank, uid
        return uid, kind

    def left(self, node: str) -> None:
        """A pod goes to another node than this one, where others may go now: less important ones are looked at, too."""
        before, h = self._is_due.copy(), self._engine.hosts.get(node, -1)  # its node may be no more
        self._is_due |= self._counts & (self._hosts == h)
        self._see_room()
        for entry in self._entries(self._is_due & ~before):
            if entry[:2] > self._seen:
                heappush(self._due, entry)

    def _see_room(self) -> None:
        """Pods of kinds for which some node has room, as it has not had before."""
        for kind, mine in self._of_kind.items():
            if kind in self._roomy or kind in self.hopeless or not kind_has_room(self._engine, kind):
                continue
            others = np.flatnonzero(mine & ~self._is_due).tolist()
            # Of equal ones the first fails for all: most often what has room is still taken by who goes.
            first = min((self._uids[i] for i in others if self._entry(i)[:2] > self._seen), default="")
            metric = self._reservations.nominations[first].decision.metric if first else 0.0
            if first and not _elsewhere(self._engine, self._reservations, first, metric):
                self.hopeless.add(kind)
            else:
                self._roomy.add(kind)
                self._is_due |= mine

    def _entries(self, which: NDArray[np.bool_]) -> list[tuple[int, str, int]]:
        return [self._entry(i) for i in np.flatnonzero(which).tolist()]

    def _entry(self, i: int) -> tuple[int, str, int]:
        return int(self._ranks[i]), self._uids[i], int(self._kinds[i])


def _elsewhere(engine: Engine, reservations: Reservations, uid: str, metric: float) -> str:
    """Another node where a pod would go at once; empty where there is none."""
    return another_host(engine, uid, lambda name: bool(reservations.in_the_way(engine, Decision(uid, name, metric))))


def _most_important_waiting(engine: Engine) -> float:
    tb = engine.tables.tb
    kinds = [tb[name]["kind"][: int(tb.control[name])] for name in ("queue", "incoming")]
    ranks = tb["classes"]["rank"][tb["kinds"]["cls"][np.concatenate(kinds)]]
    return float(ranks.min(initial=2**62))


def _is_free(engine: Engine, reservations: Reservations, nomination: Nomination) -> bool:
    """Whether a place that is kept is free though nobody of those who were to leave has: others have left the node.
    Asked again only where the node's contents changed. Of a former leader's victims the engine has not freed the room:
    places that wait for them are not free."""
    version = int(engine.tables.tb["hosts"]["version"][engine.hosts[nomination.decision.host]])
    if version == nomination.looked or not reservations.are_going(nomination):
        return False
    nomination.looked = version
    decision = nomination.decision
    return not reservations.in_the_way(engine, Decision(decision.uid, decision.host, decision.metric))


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
