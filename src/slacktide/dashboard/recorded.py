"""A recorded session (docs/record.md) as a timeline: an engine does it all again, and is looked at as it goes.

Looking is what the live page does (:class:`.engine_rows.EngineRows`), so both show the same. Between two looks only
rows that changed are kept, and all of them now and then, so that any instant is a few steps away.
"""

from __future__ import annotations

import bisect
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from slacktide.dashboard.engine_rows import EngineRows, Made, made, named, same_for_people
from slacktide.dashboard.timeline import MOST_DECISIONS, Points, Told, marks_of
from slacktide.dashboard.totals import class_rows
from slacktide.dashboard.view import ClassRow, DecisionRow, Head, NodeRow, PodRow, View, WorkloadRow
from slacktide.engine.core import operations
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Operation
from slacktide.engine.explain.reasons import Explainer
from slacktide.engine.journal.record import Session
from slacktide.engine.journal.replay import Report, carry_out, retrace
from slacktide.errors import fail
from slacktide.for_people import slack_text

LOOKS = 600
"""So often a session is looked at, at instants of equal distance."""
WHOLE_EVERY = 40
"""All rows are kept with every so many looks."""
REASON_SECONDS = 0.01
"""So long it is worked out at each look why pods wait."""
MOST_ASKED = 5_000
"""Who could make room is asked where there are at most so many pods."""
WORDS = {
    "arrive": "created, pending",
    "found": "was found running on {host}",
    "bound_elsewhere": "was bound to {host} by another scheduler",
    "bound": "bound to {host}",
    "ready": "ready",
    "unready": "no longer ready",
    "refused": "could not be bound, or its nomination was withdrawn; back in the queue",
    "spared": "is not evicted after all",
    "gone": "gone",
}
TABLES = ("workloads", "nodes", "pods")

Tables = dict[str, dict[int, Any]]


class Look(NamedTuple):
    """What is kept of an instant: rows that changed since the look before, and numbers of those that are gone; of some
    looks ``whole``, which are all rows."""

    at: float
    changed: dict[str, list[Any]]
    gone: dict[str, list[int]]
    classes: list[ClassRow]
    decisions: int
    """How many had been made."""
    asks: str
    free: list[int]
    whole: Tables | None


class Recording:
    """A :class:`.timeline.Timeline`. ``say`` hears how far it is, a share from 0 to 1.

    Raises :class:`InputError` for a record that cannot be read.
    """

    def __init__(self, session: Session, title: str, say: Callable[[float], None] = lambda _: None) -> None:
        self._looks: list[Look] = []
        self._decisions: list[Made] = []
        self._past: dict[int, Points] = defaultdict(list)
        self._told: dict[tuple[str, str], list[Told]] = defaultdict(list)
        self._pods_of: dict[int, dict[tuple[str, str], None]] = defaultdict(dict)
        span = _span(session)
        self._engine = Engine(session.config)
        self._rows = EngineRows(self._engine)
        self._explainer = Explainer(self._engine)
        self._tables: Tables = {name: {} for name in TABLES}
        self._pods: set[str] = set()
        self._hosts: set[str] = set()
        self._reasons: dict[str, tuple[float, str]] = {}
        self._run_at = span[0]
        self._do_again(session, span, say)
        times = [one.at for one in self._decisions for _ in one.victims]
        self.head = Head(
            source="record",
            title=f"{title}, session {session.number}",
            policy=session.config.policy.name,
            clock="epoch",
            span=span,
            marks=marks_of(np.array(times), span),
            remarks=[f"{session.torn}: the record is cut off here."] if session.torn else [],
        )

    # -- doing it again --------------------------------------------------------------------------------------------

    def _do_again(self, session: Session, span: tuple[float, float], say: Callable[[float], None]) -> None:
        due = np.linspace(*span, LOOKS).tolist() if span[1] > span[0] else [span[0]]
        follow = partial(self._followed, self._engine)
        for one, _ in retrace(follow, session, Report()):
            match one.operation:
                case operations.Decided(outcome):
                    for decision in outcome.decisions:
                        self._decided(made(self._engine, decision, self._run_at))
                        self._pods.update((decision.uid, *(victim.uid for victim in decision.victims)))
                        self._hosts.add(decision.host)
                case operations.Run(now):
                    self._run_at = now
                    while due and due[0] <= now:
                        say(len(self._looks) / LOOKS)
                        self._look(due.pop(0))
        for at in due:
            self._look(at)

    def _followed(self, engine: Engine, operation: Operation) -> Any:
        """Carry out an operation, and note what it is about."""
        uid, host = getattr(operation, "uid", None), getattr(operation, "host", None)
        match operation:
            case operations.Host() | operations.HostGone():
                host = operation.name
            case operations.OtherGone():
                host = engine.others.get(operation.uid, ("",))[0]
        leaving = engine.pods.get(uid) if uid is not None else None
        if leaving is not None:
            self._hosts.add(leaving.host)
        outcome = carry_out(engine, operation)
        if host:
            self._hosts.add(host)
        if isinstance(operation, operations.Restore):
            self._pods.update(self._rows.pods_of(operation.key))
        if uid is not None and not isinstance(operation, operations.Other | operations.OtherGone):
            self._pods.add(uid)
            pod = engine.pods.get(uid, leaving)
            if pod is not None and operation.method in WORDS:
                self._hosts.add(pod.host)
                text = WORDS[operation.method].format(host=host or pod.host)
                at = float(getattr(operation, "at", getattr(operation, "since", self._run_at)))
                self._tell((named(pod.key)[1], pod.name), self._rows.workloads.of(pod.key), at, text)
        return outcome

    def _tell(self, pod: tuple[str, str], workload: int, at: float, text: str, by: int = -1) -> None:
        self._told[pod].append((at, text, by))
        self._pods_of[workload][pod] = None

    def _decided(self, one: Made | None) -> None:
        if one is None:
            return
        self._decisions.append(one)
        losers = ", ".join(f"{victim.pod} ({slack_text(victim.slack)})" for victim in one.victims)
        cost = f", preempting {losers}" if losers else ""
        mine = one.pod
        self._tell(_pod(mine.pod), self._rows.workloads.of(mine.key), one.at,
                   f"placed on {one.node} with {slack_text(mine.slack)}{cost}")  # fmt: skip
        for victim in one.victims:
            slacks = f"it had {slack_text(victim.slack)}, the preemptor {slack_text(mine.slack)}"
            by = self._rows.workloads.of(mine.key)
            self._tell(_pod(victim.pod), self._rows.workloads.of(victim.key), one.at,
                       f"preempted on {one.node}: {slacks}", by)  # fmt: skip

    # -- looking ---------------------------------------------------------------------------------------------------

    def _look(self, at: float) -> None:
        rows, engine, tables = self._rows, self._engine, self._tables
        at = max(at, engine.latest)  # what was told just before the pass is in it
        changed: dict[str, list[Any]] = {name: [] for name in TABLES}
        gone: dict[str, list[int]] = {name: [] for name in TABLES}
        found, totals = rows.workload_rows(engine.controllers, at)
        for one in found:
            if not same_for_people(tables["workloads"].get(one.number), one):
                changed["workloads"].append(one)
                self._past[one.number].append((at, one.slack))
        asks, free = self._who_goes(at)
        self._find_reasons(at)
        others = rows.others() if self._hosts else {}
        for name in self._hosts - {""}:
            self._note("nodes", rows.node_row(name, others.get(name, 0)), rows.nodes.known(name), changed, gone)
        for uid in self._pods:
            row = rows.pod_row(uid, self._reasons.get(uid, (0.0, ""))[1])
            self._note("pods", row, rows.pods.known(uid), changed, gone)
        gone["workloads"] = [
            rows.workloads.known(key) for key in rows.workloads.names() if key not in engine.controllers
        ]
        gone["workloads"] = [one for one in gone["workloads"] if one in tables["workloads"]]
        self._pods.clear()
        self._hosts.clear()
        apply(tables, changed, gone)
        whole = {name: dict(table) for name, table in tables.items()} if len(self._looks) % WHOLE_EVERY == 0 else None
        classes = class_rows(rows.promises, totals)
        self._looks.append(Look(at, changed, gone, classes, len(self._decisions), asks, free, whole))

    def _note(
        self, table: str, row: Any, number: int, changed: dict[str, list[Any]], gone: dict[str, list[int]]
    ) -> None:
        if row is None:
            if number in self._tables[table]:
                gone[table].append(number)
        elif self._tables[table].get(row.number) != row:
            changed[table].append(row)

    def _who_goes(self, at: float) -> tuple[str, list[int]]:
        """The pod that waits most urgently and may preempt, and the numbers of those that could make room for it."""
        engine = self._engine
        asker = self._rows.asker(at) if len(engine.pods) <= MOST_ASKED else None
        if asker is None:
            return "", []
        return f"{named(asker.key)[1]}/{asker.name}", self._rows.may_go(asker, list(engine.hosts), at)

    def _find_reasons(self, at: float) -> None:
        """Why pods wait, of as many as there is time for: those first whose reason is the oldest."""
        until = time.perf_counter() + REASON_SECONDS
        waiting = set(self._engine.waiting())
        for uid in [uid for uid in self._reasons if uid not in waiting]:
            del self._reasons[uid]
        for uid in sorted(waiting, key=lambda uid: self._reasons.get(uid, (0.0, ""))[0]):
            if time.perf_counter() > until:
                return
            reason = self._explainer.reason(uid, at)
            if self._reasons.get(uid, (0.0, ""))[1] != reason:
                self._pods.add(uid)
            self._reasons[uid] = at, reason

    # -- answers ---------------------------------------------------------------------------------------------------

    def at(self, instant: float) -> View:
        """The whole state at the last look up to an instant."""
        place = max(0, bisect.bisect_right(self._looks, instant, key=lambda one: one.at) - 1)
        first = place - place % WHOLE_EVERY
        whole = self._looks[first].whole or {name: {} for name in TABLES}
        tables = {name: dict(table) for name, table in whole.items()}
        for one in self._looks[first + 1 : place + 1]:
            apply(tables, one.changed, one.gone)
        look = self._looks[place]
        workloads: list[WorkloadRow] = list(tables["workloads"].values())
        nodes: list[NodeRow] = list(tables["nodes"].values())
        pods: list[PodRow] = list(tables["pods"].values())
        return View(
            at=look.at, whole=True, head=self.head, classes=look.classes, workloads=workloads, nodes=nodes, pods=pods,
            decisions=list(self._last(look.decisions)), asks=look.asks, free=look.free,
        )  # fmt: skip

    def _last(self, stop: int) -> Iterator[DecisionRow]:
        """The last decisions of the first so many, and the last of these for which somebody made room."""
        half = MOST_DECISIONS // 2
        chosen = set(range(max(0, stop - half), stop))
        costly = 0
        for number in range(stop - 1, -1, -1):
            if costly == half:
                break
            if self._decisions[number].victims:
                chosen.add(number)
                costly += 1
        for number in sorted(chosen, reverse=True):
            yield self._rows.decision_row(number, self._decisions[number])

    def history(self, workload: int, until: float, samples: int) -> tuple[Points, list[Told]]:
        """Slack over time of a workload up to an instant, and what happened to its pods."""
        points = [one for one in self._past.get(workload, []) if one[0] <= until]
        points = points[:: max(1, len(points) // max(samples, 1))]
        told = [
            (at, f"{name}: {text}", by)
            for namespace, name in self._pods_of.get(workload, {})
            for at, text, by in self._told[namespace, name]
            if at <= until
        ]
        return points, sorted(told)

    def story(self, namespace: str, name: str, until: float) -> list[Told] | None:
        """What happened to a pod up to an instant; None where it is not known."""
        told = self._told.get((namespace, name))
        if told is None:
            return None
        return [one for one in told if one[0] <= until]


def apply(tables: Tables, changed: dict[str, list[Any]], gone: dict[str, list[int]]) -> None:
    """Bring tables from one look to the next."""
    for name, table in tables.items():
        for number in gone[name]:
            table.pop(number, None)
        table.update((row.number, row) for row in changed[name])


def _pod(title: str) -> tuple[str, str]:
    namespace, _, name = title.partition("/")
    return namespace, name


def _span(session: Session) -> tuple[float, float]:
    """The first and the last instant of a session's passes."""
    times = [one.operation.now for one in session.operations() if isinstance(one.operation, operations.Run)]
    if not times:
        place = f"session {session.number}"
        raise fail(place, "a session with a pass: nothing was decided in this one")
    return min(times), max(times)
