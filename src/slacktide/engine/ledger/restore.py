"""Going on from a checkpoint after a crash or under a new leader: what happened meanwhile is read off the pods.

Of an instance known to the checkpoint whose pod is still there, the pod's own timestamps tell
what happened since. One whose pod vanished went on as it was until its replacement was
created, or until now where none was. Replacements are told by their creation: each
continues the instance of its name, else the one that has been without a pod the
longest, else the oldest that vanished.

What cannot be seen is decided so: a pod ready at both ends was ready in between, unless
``stopped`` says when it was not; one not ready at either end was not. Nobody is given
more time than passed between the checkpoint's instant and now, whatever clocks say. Where now
is before the checkpoint's instant (the clock was set back), nothing is added and the ledger
starts at now. A clock set forward cannot be told from an outage: the time counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from slacktide.engine.core import disruptions, operations, types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import snap
from slacktide.engine.ledger.at_checkpoint import AtCheckpoint, MissingPod
from slacktide.engine.ledger.checkpoint import Checkpoint, read
from slacktide.engine.ledger.pod_observation import PodObservation, observe
from slacktide.engine.ledger.slo_status import known
from slacktide.errors import StateError
from slacktide.kernels.drive import live_events
from slacktide.model import APPROACHES, INDEPENDENT
from slacktide.model.causes import CLUSTER, OPERATOR, WORKLOAD

ENDS, COMES, IS_BOUND, BLAMED, STOPS, IS_READY = range(6)  # in this order at one instant
Event = tuple[float, int, PodObservation]


@dataclass(frozen=True, slots=True)
class Before:
    """How a pod was at ``base``, the checkpoint's instant: ``known`` to it, ``placed`` on a host, ready (``up``)."""

    base: float
    known: bool
    placed: bool
    up: bool


def timeline(pod: PodObservation, before: Before, clip: Callable[[float], float]) -> list[Event]:
    """What happened since then, when and to whom; ``clip`` brings an instant between the base and now."""
    events: list[Event] = []
    if not before.known:
        if pod.ended is not None and clip(pod.ended) <= clip(pod.created):
            return []
        events.append((clip(pod.created), COMES, pod))
    if pod.host and not (before.known and before.placed):
        events.append((clip(pod.since), IS_BOUND, pod))
    if pod.cause and not pod.ready and pod.ended is None:
        events.append((clip(pod.cause_since), BLAMED, pod))
    if before.up and not pod.ready:
        events.append((clip(pod.ready_since), STOPS, pod))
    elif before.up and pod.stopped is not None and before.base < pod.stopped < pod.ready_since:
        events.append((clip(pod.stopped), STOPS, pod))
        events.append((clip(pod.ready_since), IS_READY, pod))
    elif pod.ready and pod.host and not before.up:
        events.append((clip(pod.ready_since), IS_READY, pod))
    if pod.ended is not None:
        if pod.stopped is not None and before.base < pod.stopped >= pod.ready_since:
            events.append((clip(pod.stopped), STOPS, pod))
        events.append((clip(pod.ended), ENDS, pod))
    return events


def restore(
    engine: Engine, key: str, saved: Mapping[str, Any] | None, pods: Iterable[Mapping[str, Any]], now: float
) -> None:
    """Go on from a controller's ledger as :func:`.checkpoint_export.export` wrote it, or without any, from its pods.

    ``pods`` are all of its pods now (:class:`.pod_observation.PodNow`). The controller must be known and
    have no instances yet, its hosts and specs too; its desired count should be told before. Pods on no host are
    asleep afterwards, the others bound. This is one operation of the engine. Raises :class:`StateError` where the
    ledger is broken, of another approach, or of a newer version; then nothing has changed.
    """
    told = [dict(pod) for pod in pods]
    with engine.as_one(operations.Restore(key, None if saved is None else dict(saved), told, now)):
        controller = known(engine, key)
        if controller.rows or controller.past != types.Past():
            found = len(controller.rows)
            raise StateError(f"controller {key}: found {found} instances, expected none before its books")
        seen = sorted(map(observe, told), key=lambda pod: (pod.created, pod.uid))
        _check(engine, seen)
        checkpoint = None if saved is None else read(saved)
        if checkpoint is not None and checkpoint.approach != controller.approach:
            found_one, expected = APPROACHES[checkpoint.approach], APPROACHES[controller.approach]
            raise StateError(f"controller {key}: books: approach: found {found_one}, expected {expected}")
        _Restoring(engine, controller, snap(now)).run(checkpoint, seen)


def _check(engine: Engine, seen: list[PodObservation]) -> None:
    uids: set[str] = set()
    for pod in seen:
        if pod.uid in uids or pod.uid in engine.pods:
            raise StateError(f"incarnation {pod.uid}: found twice, expected once")
        if pod.ended is None and pod.host and pod.host not in engine.hosts:
            raise StateError(f"incarnation {pod.uid}: host {pod.host}: not known")
        if pod.ended is None and pod.spec not in engine.specs:
            raise StateError(f"incarnation {pod.uid}: spec {pod.spec}: not known")
        uids.add(pod.uid)


def _was_as_good_as_gone(pod: PodObservation, at: float) -> bool:
    """Whether a pod that is over had delivered nothing since ``at`` and was told to go: another one may have gone on
    with its instance by then, and the checkpoint knows that one."""
    return pod.ended is not None and pod.leaving and (not pod.ready or (pod.stopped is not None and pod.stopped <= at))


class _Restoring(AtCheckpoint):
    """One controller being restored: what happened to its pods since the base, in order."""

    def __init__(self, engine: Engine, controller: types.Controller, now: float) -> None:
        super().__init__(engine, controller, now)
        self.desired = -1
        self.turned = controller.service.window is None
        self.names: set[str] = set()  # of all pods there are
        self.seen: dict[str, PodObservation] = {}  # all pods there are, by uid
        self.replacing: set[int] = set()  # rows whose pod before ended by the workload's doing, until the next is ready
        self.succeeded: set[str] = set()  # uids of pods for which others came before they were gone

    def run(self, checkpoint: Checkpoint | None, seen: list[PodObservation]) -> None:
        self.desired, self.controller.desired = self.controller.desired, -1
        if checkpoint is not None:
            seen = [pod for pod in seen if not _was_as_good_as_gone(pod, checkpoint.at)]
        self.names, self.seen = {pod.name for pod in seen}, {pod.uid: pod for pod in seen}
        if checkpoint is not None:
            self.begin(checkpoint, seen)
        drained = [pod.ended_until for pod in seen if pod.ended_by == OPERATOR]
        self.controller.drained = max([self.controller.drained, *drained])
        held = self._held(seen)
        events = [
            (max(at, held.get(pod.uid, at)), kind, pod)
            for one in seen
            for at, kind, pod in timeline(one, self._before(one), self._clip)
        ]
        events.sort(key=lambda event: event[:2])
        for at, kind, pod in events:
            self._happens(at, kind, pod)
        self.controller.desired = self.desired
        self._finish()
        if checkpoint is not None and checkpoint.suffered is not None:
            self._go_on_suffering(checkpoint.suffered)

    def _held(self, seen: list[PodObservation]) -> dict[str, float]:
        """When pods that came in the place of preempted ones began to count, by uid: as long as these were there, their
        instances went on in them. It is known of those that were seen to go."""
        ends = {one.uid: self._clip(one.ended) for one in seen if one.ended is not None}
        going = sorted(ends[uid] for uid, one in self.missing.items() if one.preempted and uid in ends)
        held: dict[str, float] = {}
        for pod in seen:
            if pod.uid in self.missing or pod.uid in self.engine.pods:
                continue
            came, bound = self._clip(pod.created), self._clip(pod.since) if pod.host else self.now
            end = next((end for end in going if came < end <= bound), None)
            if end is not None and end < ends.get(pod.uid, float("inf")):
                going.remove(end)
                held[pod.uid] = end
        return held

    def _before(self, pod: PodObservation) -> Before:
        """How a pod was at the base."""
        missing, one = self.missing.get(pod.uid), self.engine.pods.get(pod.uid)
        placed = missing.runs if missing is not None else one is not None and one.state == types.PLACED
        return Before(self.base, missing is not None or one is not None, placed, pod.uid in self.up)

    def _clip(self, at: float) -> float:
        return min(max(at, self.base), self.now)

    def _happens(self, at: float, kind: int, pod: PodObservation) -> None:
        engine, missing = self.engine, self.missing.get(pod.uid)
        self._turn(at)
        self._open_again(at)
        engine.tables.ensure_capacity()
        if kind == COMES:
            self._comes(self._row_for(pod, at), pod, at)
        elif missing is not None:
            self._happens_to_missing(at, kind, pod, missing)
        elif pod.uid not in engine.pods:
            return
        elif kind == IS_BOUND:
            engine.bound_elsewhere(pod.uid, pod.host, at)
            self.bound(engine.pods[pod.uid], pod, at)
            if engine.pods[pod.uid].row in self.replacing:
                engine.blame(pod.uid, WORKLOAD, at)
        elif kind == IS_READY:
            engine.ready(pod.uid, at)
            self.replacing.discard(engine.pods[pod.uid].row)
            if engine.pods[pod.uid].cause:  # of the time before: where it stops one day, that is to be found out then
                engine.blame(pod.uid, CLUSTER, at)
        elif kind == BLAMED:
            engine.blame(pod.uid, pod.cause, at)
        elif kind == STOPS:
            if pod.ready and pod.stopped_by:
                engine.blame(pod.uid, pod.stopped_by, at)
            engine.unready(pod.uid, at)

    def _comes(self, row: int, pod: PodObservation, at: float) -> None:
        """A pod continues an instance, or begins one. That it waits now is the cluster's doing, unless its predecessor
        was drained; that it starts is the workload's where that ended its predecessor."""
        span = self.blame.spans.get(row)
        if span is not None and span.cause == WORKLOAD:
            self.blame.end(self.controller, row, at, on_host=False)
            self.replacing.add(row)
        before = None
        if 0 <= self.desired <= len(self.controller.rows.keys() - {row}):
            before = self._one_that_goes(at)
        if before is not None and before.ended_by == WORKLOAD:
            self.replacing.add(row)
        if pod.ended is None:
            self.enter(row, pod)
        else:
            self.controller.rows[row] = pod.name
            self.missing[pod.uid] = MissingPod(row, pod.name, end=True)
        if before is not None and before.ended_by == OPERATOR and before.ended_until > at:
            self.until[row] = before.ended_until
            if pod.ended is None:
                self.engine.blame(pod.uid, OPERATOR, at)
            else:
                self.blame.begin(self.controller, row, OPERATOR, at, on_host=False)

    def _one_that_goes(self, at: float) -> PodObservation | None:
        """The first pod that was told to go, by others than us, is still there and has no successor yet; this is it."""
        for pod in self.seen.values():
            missing, one = self.missing.get(pod.uid), self.engine.pods.get(pod.uid)
            known = missing if missing is not None else one
            if known is None or known.preempted or not (pod.leaving and pod.host) or pod.uid in self.succeeded:
                continue
            if pod.ended is None or self._clip(pod.ended) > at:
                self.succeeded.add(pod.uid)
                return pod
        return None

    def _open_again(self, at: float) -> None:
        """Maintenance windows in which pods were drained are over, where that is before ``at``: what those who replace
        them lose from then on is the cluster's."""
        for row, until in [one for one in self.until.items() if one[1] <= at]:
            del self.until[row]
            span = self.blame.spans.get(row)
            if span is None or span.cause != OPERATOR:
                continue
            pod = self.engine.pods.get(self.engine.uid_of_row.get(row, ""))
            if pod is None:
                runs = any(one.runs for one in self.missing.values() if one.row == row)
                self.blame.end(self.controller, row, until, on_host=runs)
            elif self.seen[pod.uid].cause != OPERATOR:  # else its node is lost, which is worked on
                self.engine.blame(pod.uid, CLUSTER, until)

    def _turn(self, at: float) -> None:
        """A calendar window that began since the base begins, where that is before ``at``."""
        cls = int(self.tb["requests"]["cls"][self.controller.q])
        begun = float(self.tb["classes"]["begins"][cls])
        if self.turned or not self.base < begun <= at:
            return
        self.turned = True
        if self.controller.approach != INDEPENDENT:
            if not self.controller.batch:
                live_events.turn_request(self.tb.state, self.controller.q, begun)
            return
        for row in self.controller.rows:
            live_events.turn(self.tb.state, row, cls, begun)

    def _happens_to_missing(self, at: float, kind: int, pod: PodObservation, missing: MissingPod) -> None:
        span = self.blame.spans.get(missing.row)
        if kind == IS_READY:
            self.replacing.discard(missing.row)
        if kind == IS_BOUND:
            self.blame.end(self.controller, missing.row, at, on_host=False)
            live_events.bring_up_to(self.tb.state, self.controller.q, at)
            self.begin_leaving(missing, at)
            cause = WORKLOAD if missing.row in self.replacing else CLUSTER if span is None else span.cause
            if cause:
                self.blame.begin(self.controller, missing.row, cause, at, on_host=True)
        elif kind in (IS_READY, STOPS) and span is not None:
            self.blame.end(self.controller, missing.row, at, on_host=missing.runs)
            if kind == IS_READY and missing.runs:
                live_events.ready(self.tb.state, missing.row, at)
        elif kind == IS_READY and missing.runs:
            live_events.ready(self.tb.state, missing.row, at)
        elif kind == STOPS and missing.runs:
            live_events.unready(self.tb.state, missing.row, at)
            if pod.stopped_by and not missing.preempted:
                self.blame.begin(self.controller, missing.row, pod.stopped_by, at, on_host=True)
        elif kind == ENDS:
            del self.missing[pod.uid]
            self.end(missing, at, pod.completed)
            if pod.completed:
                self.engine.instances.depart(self.controller, missing.row, at, True)
            else:  # its replacement may be there already
                self.controller.desired = self.desired
                over = pod.ended_by == OPERATOR and 0.0 < pod.ended_until <= at
                cause = CLUSTER if missing.preempted or over else pod.ended_by
                self.engine.instances.vacate(self.controller, missing.row, at, cause)
                self.controller.desired = -1
                if cause == OPERATOR and pod.ended_until:
                    self.until[missing.row] = pod.ended_until
                self._goes_on_with(missing.row)

    def _goes_on_with(self, row: int) -> None:
        """Where an instance was one too many, its pod goes on with this one."""
        rows = self.controller.rows
        if any(other not in rows for other in self.replacing):
            self.replacing = {other for other in self.replacing if other in rows} | {row}
        for until in [self.until.pop(other) for other in tuple(self.until) if other not in rows]:
            if row in rows:
                self.until[row] = until

    def _row_for(self, pod: PodObservation, at: float) -> int:
        """The instance that a pod created at ``at`` continues, or a new one."""
        controller = self.controller
        for row in controller.vacant:
            if controller.rows[row] == pod.name:
                controller.vacant.remove(row)
                return row
        vanished = [uid for uid, missing in self.missing.items() if not missing.end]
        found = next((uid for uid in vanished if self.missing[uid].name == pod.name), None)
        vanished = [uid for uid in vanished if self.missing[uid].name not in self.names]  # others wait for theirs
        if found is None and controller.vacant:
            return controller.vacant.popleft()
        if found is None and not vanished:
            return self.engine.instances.row_for(controller, pod.name, at)
        missing = self.missing.pop(found or vanished[0])
        self.end(missing, at, False)
        return missing.row

    def _go_on_suffering(self, said: types.Suffered) -> None:
        engine = self.engine

        def stands(row: int) -> tuple[bool, float]:
            pod = engine.pods.get(engine.uid_of_row.get(row, ""))
            if pod is None:
                return False, self.now
            found = self.seen[pod.uid]
            return pod.state == types.PLACED and pod.ready and not found.leaving, found.created

        awaited = disruptions.go_on(engine.instances, self.controller, said, stands, self.now)
        engine.awaited |= dict.fromkeys(awaited, self.now + disruptions.ARRIVES_SECONDS)

    def _finish(self) -> None:
        """Whoever vanished without a replacement goes now; so do instances in excess of what is desired."""
        controller = self.controller
        now = max(self.now, float(self.tb["requests"]["since"][controller.q]))
        self._turn(now)
        self._open_again(now)
        for missing in self.missing.values():
            self.end(missing, now, False)
            self.engine.instances.vacate(controller, missing.row, now, CLUSTER)
        for row in self.replacing:  # who hears of its pod from now on knows by this why it was made
            pod = self.engine.pods.get(self.engine.uid_of_row.get(row, ""))
            if pod is not None and pod.state == types.ASLEEP:
                self.engine.blame(pod.uid, WORKLOAD, now)
        self.engine.instances.drop_surplus(controller, now)
