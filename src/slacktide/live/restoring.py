"""Going on from books after a crash or under a new leader: what happened meanwhile is read off the pods.

Of an instance known to the books whose pod is still there, the pod's own timestamps tell
what happened since. One whose pod vanished went on as it was until its replacement was
created, or until now where none was. Replacements are told by their creation: each
continues the instance of its name, else the one that has been without a pod the
longest, else the oldest that vanished.

What cannot be seen is decided so: a pod ready at both ends was ready in between, unless
``stopped`` says when it was not; one not ready at either end was not. Nobody is given
more time than passed between the books' instant and now, whatever clocks say. Where now
is before the books' instant (the clock was set back), nothing is added and the books
start at now. A clock set forward cannot be told from an outage: the time counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slacktide.errors import StateError
from slacktide.kernels import live
from slacktide.kernels import tables as codes
from slacktide.live import books, parts
from slacktide.live.books import LEAVING, PLACED, VACANT, Books
from slacktide.live.parts import Incarnation, snap
from slacktide.live.recall import recall
from slacktide.live.sightings import Sighting, sighting
from slacktide.live.standing import SUMS, accrue, known, totals
from slacktide.model import APPROACHES, INDEPENDENT
from slacktide.qos.availability import ACCOUNTINGS

if TYPE_CHECKING:
    from slacktide.live.engine import Engine

ENDS, COMES, IS_BOUND, STOPS, IS_READY = range(5)  # in this order at one instant


@dataclass(slots=True)
class Ghost:
    """An instance that runs, or ran, in a pod that is no more. ``end``: known when; it is leaving in the tables."""

    row: int
    name: str
    preempted: bool = False
    runs: bool = False
    end: bool = False


def restore(
    engine: Engine, key: str, said: Mapping[str, Any] | None, pods: Iterable[Mapping[str, Any]], now: float
) -> None:
    """Carry out ``Engine.restore``."""
    controller = known(engine, key)
    if controller.rows or controller.past != parts.Past():
        raise StateError(f"controller {key}: found {len(controller.rows)} instances, expected none before its books")
    seen = sorted((sighting(pod) for pod in pods), key=lambda pod: (pod.created, pod.uid))
    _check(engine, seen)
    memory = None if said is None else books.read(said)
    if memory is not None and memory.approach != controller.approach:
        found, expected = APPROACHES[memory.approach], APPROACHES[controller.approach]
        raise StateError(f"controller {key}: books: approach: found {found}, expected {expected}")
    _Restoring(engine, controller, snap(now)).run(memory, seen)


def _check(engine: Engine, seen: list[Sighting]) -> None:
    uids = set(engine.incarnations)
    for pod in seen:
        if pod.uid in uids:
            raise StateError(f"incarnation {pod.uid}: found twice, expected once")
        if pod.ended is None and pod.host and pod.host not in engine.hosts:
            raise StateError(f"incarnation {pod.uid}: host {pod.host}: not known")
        if pod.ended is None and pod.spec not in engine.specs:
            raise StateError(f"incarnation {pod.uid}: spec {pod.spec}: not known")
        uids.add(pod.uid)


class _Restoring:
    """One controller being restored; ``base``: the instant at which its books start."""

    def __init__(self, engine: Engine, controller: parts.Controller, now: float) -> None:
        self.engine, self.controller, self.now = engine, controller, now
        self.tb = engine.tables.tb
        self.base = float("-inf")
        self.up: set[str] = set()  # uids ready at the base
        self.names: set[str] = set()  # of all pods there are
        self.ghosts: dict[str, Ghost] = {}  # by uid; vanished ones by a name of ours, oldest first

    def run(self, memory: Books | None, seen: list[Sighting]) -> None:
        desired, self.controller.desired = self.controller.desired, -1
        self.names = {pod.name for pod in seen}
        if memory is not None:
            self._begin(memory, seen)
        events = [event for pod in seen for event in self._story(pod)]
        events.sort(key=lambda event: event[:2])
        for at, kind, pod in events:
            self._happens(at, kind, pod)
        self.controller.desired = desired
        self._finish()

    # -- at the base -----------------------------------------------------------------------------------------------

    def _begin(self, memory: Books, seen: list[Sighting]) -> None:
        self.base = min(snap(memory.at), self.now)
        full, spared = memory, 0
        if memory.approach != INDEPENDENT:
            full, spared = recall(memory, seen, batch=self.controller.batch)
        by_uid = {books.hashed(pod.uid): pod for pod in seen}
        for record, name in zip(full.records, full.names, strict=True):
            self._install(record, name, by_uid.get(int(record["uid"])) if record["uid"] else None)
        self._settle_sums(full, spared)

    def _install(self, record: Any, name: str, pod: Sighting | None) -> None:
        """An instance as of the base; its pod is ``pod``, or it vanished or has none."""
        row = self.engine.tables.new_row()
        self.tb["owner"][row] = self.controller.q
        live.join(self.tb.state, row, self.base, False)
        self.tb["admission"][row] = self.base - float(record["lifetime"])
        instance = self.tb["instances"][row : row + 1]
        copied = ("running", "startup_first", "startup_restarts", "discarded", "overhead", "starts", "preemptions")
        for field in copied:
            instance[field] = record[field]
        since = self.base - float(record["age"])
        instance["since"] = since
        self.controller.rows[row] = name
        state, on_host = int(record["state"]), int(record["state"]) in (PLACED, LEAVING)
        instance["starts"] -= on_host  # until it starts
        if state == VACANT:
            self.controller.vacant.append(row)
        elif pod is None or pod.ended is not None:
            ghost = Ghost(row, name, preempted=state == LEAVING, end=pod is not None)
            self.ghosts[pod.uid if pod else f"row {row}"] = ghost
            if on_host:
                self._haunt(ghost, since)
                if record["startup"] < float("inf"):
                    live.ready(self.tb.state, row, since + float(record["startup"]))
                    self.up.update([pod.uid] if pod else [])
        else:
            self._install_pod(row, record, pod, since, on_host and bool(pod.host))

    def _install_pod(self, row: int, record: Any, pod: Sighting, since: float, on_host: bool) -> None:
        one = self._incarnation(row, pod)
        if not on_host:
            return
        self.engine._place(one, pod.host, since)
        self._bound(one, pod, since)
        if record["startup"] < float("inf"):
            one.ready = True
            live.ready(self.tb.state, row, since + float(record["startup"]))
            self.up.add(pod.uid)
        if record["state"] == LEAVING:
            one.preempted = pod.leaving
            self.tb["instances"]["preemptions"][row] -= not pod.leaving

    def _bound(self, one: Incarnation, pod: Sighting, since: float) -> None:
        one.bound = True
        self.engine._guard(one, since)
        if pod.leaving:  # there is nothing left to preempt
            self.tb["guard"][one.row] = float("inf")

    def _incarnation(self, row: int, pod: Sighting) -> Incarnation:
        one = Incarnation(pod.uid, pod.name, self.controller.key, row, pod.spec, parts.ASLEEP, budget=pod.budget)
        self.engine._enter(self.controller, one)
        return one

    def _haunt(self, ghost: Ghost, since: float) -> None:
        """The ghost is in its start-up since then; the request's sums must be up to then."""
        row, record = ghost.row, self.tb["requests"][self.controller.q : self.controller.q + 1]
        instance = self.tb["instances"][row : row + 1]
        instance["starts"] += 1
        instance["state"], instance["since"], instance["startup"] = codes.LEAVING, since, float("inf")
        record["leaving_never"] += 1
        record["leaving_restart"] += instance["starts"] == 1
        ghost.runs = True

    def _settle_sums(self, full: Books, spared: int) -> None:
        """The request's sums and past, so that all together is what the books say."""
        controller, past = self.controller, self.controller.past
        had = accrue(self.tb, controller.rows, len(controller.rows), self.base)
        if full.approach == INDEPENDENT:
            past.preemptions, past.starts = full.counts["preemptions"], full.counts["starts"]
        else:
            past.preemptions = full.counts["preemptions"] - spared - int(had.records["preemptions"].sum())
            past.starts = full.counts["starts"] - int(had.records["starts"].sum())
        for name in SUMS:
            present = 0.0 if full.approach == INDEPENDENT else float(getattr(had, name).sum())
            setattr(past, name, full.sums[name] - present)
        sums = totals(controller, had)
        record = self.tb["requests"][controller.q : controller.q + 1]
        accounting = self.engine.config.qos.startup
        record["total"] = sums["lifetime"]
        record["received"] = sums["running"]
        if accounting != "always":
            record["received"] += sums["startup_first"]
        if accounting == "never":
            record["received"] += sums["startup_restarts"]
        for name in ACCOUNTINGS:
            record[f"together_{name}"] = full.together[name]
        refund = full.leaving_startup * spared / max(1, full.counts.get("leaving", 0))
        record["overhead"] = max(0.0, full.sums["overhead"] - snap(refund))
        record["since"], record["weighed"] = self.base, float("-inf")

    # -- in between ------------------------------------------------------------------------------------------------

    def _story(self, pod: Sighting) -> list[tuple[float, int, Sighting]]:
        """What happened to a pod since the base: instant, what, who."""
        placed, was_up = False, pod.uid in self.up
        story = []
        ghost, one = self.ghosts.get(pod.uid), self.engine.incarnations.get(pod.uid)
        if ghost is None and one is None:
            if pod.ended is not None and self._clip(pod.ended) <= self._clip(pod.created):
                return []
            story.append((self._clip(pod.created), COMES, pod))
        else:
            placed = ghost.runs if ghost else one is not None and one.state == parts.PLACED
        if pod.host and not placed:
            story.append((self._clip(pod.since), IS_BOUND, pod))
        if was_up and not pod.ready:
            story.append((self._clip(pod.ready_since), STOPS, pod))
        elif was_up and pod.stopped is not None and self.base < pod.stopped < pod.ready_since:
            story.append((self._clip(pod.stopped), STOPS, pod))
            story.append((self._clip(pod.ready_since), IS_READY, pod))
        elif pod.ready and pod.host and not was_up:
            story.append((self._clip(pod.ready_since), IS_READY, pod))
        if pod.ended is not None:
            story.append((self._clip(pod.ended), ENDS, pod))
        return story

    def _clip(self, at: float) -> float:
        return min(max(at, self.base), self.now)

    def _happens(self, at: float, kind: int, pod: Sighting) -> None:
        engine, ghost = self.engine, self.ghosts.get(pod.uid)
        if kind == COMES:
            row = self._row_for(pod, at)
            if pod.ended is None:
                self._incarnation(row, pod)
            else:
                self.controller.rows[row] = pod.name
                self.ghosts[pod.uid] = Ghost(row, pod.name, end=True)
        elif ghost is not None:
            self._happens_to_ghost(at, kind, pod, ghost)
        elif pod.uid not in engine.incarnations:
            return
        elif kind == IS_BOUND:
            engine.bound_elsewhere(pod.uid, pod.host, at)
            self._bound(engine.incarnations[pod.uid], pod, at)
        elif kind == IS_READY:
            engine.ready(pod.uid, at)
        elif kind == STOPS:
            engine.unready(pod.uid, at)

    def _happens_to_ghost(self, at: float, kind: int, pod: Sighting, ghost: Ghost) -> None:
        if kind == IS_BOUND:
            live.bring_up_to(self.tb.state, self.controller.q, at)
            self._haunt(ghost, at)
        elif kind == IS_READY and ghost.runs:
            live.ready(self.tb.state, ghost.row, at)
        elif kind == STOPS and ghost.runs:
            live.unready(self.tb.state, ghost.row, at)
        elif kind == ENDS:
            del self.ghosts[pod.uid]
            self._lay(ghost, at, pod.completed)
            if pod.completed:
                self.engine._depart(self.controller, ghost.row, at, True)
            else:
                self.controller.vacant.append(ghost.row)

    def _lay(self, ghost: Ghost, at: float, completed: bool) -> None:
        """The ghost is gone: nobody runs there."""
        if ghost.runs:
            lose = self.controller.batch and not completed
            live.gone(self.tb.state, ghost.row, at, lose, ghost.preempted)

    def _row_for(self, pod: Sighting, at: float) -> int:
        """The instance that a pod created at ``at`` continues, or a new one."""
        controller = self.controller
        for row in controller.vacant:
            if controller.rows[row] == pod.name:
                controller.vacant.remove(row)
                return row
        vanished = [uid for uid, ghost in self.ghosts.items() if not ghost.end]
        found = next((uid for uid in vanished if self.ghosts[uid].name == pod.name), None)
        vanished = [uid for uid in vanished if self.ghosts[uid].name not in self.names]  # others wait for theirs
        if found is None and controller.vacant:
            return controller.vacant.popleft()
        if found is None and not vanished:
            return self.engine._row_for(controller, pod.name, at)
        ghost = self.ghosts.pop(found or vanished[0])
        self._lay(ghost, at, False)
        return ghost.row

    def _finish(self) -> None:
        """Whoever vanished without a replacement goes now; so do instances in excess of what is desired."""
        engine, controller = self.engine, self.controller
        now = max(self.now, float(self.tb["requests"]["since"][controller.q]))
        for ghost in self.ghosts.values():
            self._lay(ghost, now, False)
            if 0 <= controller.desired < len(controller.rows):
                engine._depart(controller, engine._hand_over(controller, ghost.row, now), now, False)
            else:
                controller.vacant.append(ghost.row)
        while 0 <= controller.desired < len(controller.rows) and controller.vacant:
            engine._depart(controller, controller.vacant.pop(), now, False)
