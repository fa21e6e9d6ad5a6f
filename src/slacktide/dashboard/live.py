"""A running scheduler as views: the whole, then what has changed. While nobody watches, none of this works.

What changes is noted as the engine is told (:meth:`Live.heard`): names in sets, no more. Rows are made of it a few
times a second, in slices of some milliseconds with the event loop's other work between them, never during a pass.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple, Protocol

import msgspec

from slacktide.dashboard.engine_rows import EngineRows, Made, made, named, same_for_people
from slacktide.dashboard.totals import Totals, class_rows
from slacktide.dashboard.view import WAITING, ClassRow, DecisionRow, Head, PodRow, View
from slacktide.engine.core import operations, types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Operation
from slacktide.engine.core.types import Decision

SLICE = 250
"""So many rows are made without a pause: a few milliseconds."""
PART = 1000
"""So many rows are sent in one view."""
SLICE_SECONDS = 0.003
"""So long reasons are worked out without a pause."""
LOOK_SECONDS = 1.0
"""All workloads are looked at so often, as slack changes while nothing happens."""
REASON_SECONDS = 5.0
"""A reason is worked out again after so long."""
REASONS_SECONDS = 0.1
"""So long reasons are worked out at a time, all in all."""
NEVER = (-1e9, "")
REMEMBERED = 200
"""So many decisions are listed, and as many for which somebody made room."""


class Elsewhere(NamedTuple):
    """A pod that waits and that the engine does not know, and why."""

    uid: str
    namespace: str
    name: str
    since: float
    reason: str


class Watched(Protocol):
    """The scheduler, as far as it is watched."""

    @property
    def engine(self) -> Engine | None:
        """Its engine, while it leads."""

    def clock(self) -> float:
        """Seconds since 1970."""

    async def between_passes(self) -> None:
        """Returns when no pass is under way."""

    def reason(self, uid: str) -> str:
        """Why a pod of the engine waits, or is not on the node that it was given yet."""

    def elsewhere(self) -> Iterable[Elsewhere]:
        """Pods that wait and that the engine does not know. O(pods)."""

    def sentences(self) -> list[str]:
        """What everybody has to know: overloaded classes and the like."""

    def head(self) -> Head:
        """Where the views come from."""


Row = msgspec.Struct


class Live:
    """Views of a scheduler. :meth:`begin`, then :meth:`changes` again and again, until :meth:`end`."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._rows: EngineRows | None = None
        self._pods: set[str] = set()
        self._keys: set[str] = set()
        self._hosts: set[str] = set()
        self._restored: set[str] = set()
        """Controllers all of whose pods are new to the engine."""
        self._fresh: list[DecisionRow] = []
        self._made = 0
        self._last: dict[bool, deque[tuple[int, Made]]] = {costly: deque(maxlen=REMEMBERED) for costly in (True, False)}
        """The last decisions for which somebody made room, and the others, with their numbers: remembered also while
        nobody watches, so that who comes because of one finds it."""
        self._end()

    def _end(self) -> None:
        self._rows = None
        self.tables: dict[str, dict[int, Row]] = {name: {} for name in ("workloads", "nodes", "pods")}
        for one in (self._pods, self._keys, self._hosts, self._restored, self._fresh):
            one.clear()
        self._waiting: set[str] = set()
        self._reasons: dict[str, tuple[float, str]] = {}
        self._asks, self._free = "", frozenset[int]()
        self._looked = 0.0
        self._classes: list[ClassRow] = []
        self._strangers: set[str] = set()
        self._sentences: list[str] = []

    # -- as it happens ---------------------------------------------------------------------------------------------

    def heard(self, operation: Operation) -> None:
        """Hear of an operation of the engine, before it is carried out. O(1)."""
        rows = self._rows
        if rows is None:
            return
        match operation:
            case operations.Host() | operations.HostGone():
                self._hosts.add(operation.name)
            case operations.Other():
                self._hosts.add(operation.host)
            case operations.OtherGone():
                self._hosts.update(rows.engine.others.get(operation.uid, ())[:1])
            case operations.Run() | operations.Decided() | operations.Begin():
                pass
            case _:
                uid, key = getattr(operation, "uid", None), getattr(operation, "key", None)
                if uid is not None:
                    self._touch(uid)
                if key is not None:
                    self._keys.add(key)
                if isinstance(operation, operations.Restore):
                    self._restored.add(operation.key)

    def decided(self, decision: Decision) -> None:
        """Hear of a decision of the last pass. O(victims)."""
        engine, rows = self._watched.engine, self._rows
        one = None if engine is None else made(engine, decision, self._watched.clock())
        if one is not None:
            self._made += 1
            self._last[bool(one.victims)].append((self._made, one))
        if rows is None:
            return
        if one is not None:
            self._fresh.append(rows.decision_row(self._made, one))
        for uid in (decision.uid, *(one.uid for one in decision.victims)):
            self._touch(uid)
        self._hosts.add(decision.host)

    def _touch(self, uid: str) -> None:
        self._pods.add(uid)
        pod = None if self._rows is None else self._rows.engine.pods.get(uid)
        if pod is not None:
            self._keys.add(pod.key)
            if pod.host:
                self._hosts.add(pod.host)

    # -- views -----------------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Make all rows. Raises LookupError where the scheduler does not lead."""
        engine = self._watched.engine
        if engine is None:
            raise LookupError
        self._rows = EngineRows(engine)
        self._pods.update(engine.pods)
        self._keys.update(engine.controllers)
        self._hosts.update(engine.hosts)
        async for _ in self.changes():
            pass

    def end(self) -> None:
        """Nobody watches any more."""
        self._end()

    def whole(self) -> list[View]:
        """All rows as views of some thousand rows each, the first of which is the whole."""
        views = [View(
            at=self._watched.clock(), whole=True, head=self._watched.head(), classes=self._classes, asks=self._asks,
            free=sorted(self._free),
            decisions=self._decisions(), sentences=self._sentences,
        )]  # fmt: skip
        for name, table in self.tables.items():
            rows = list(table.values())
            views += [self._view(**{name: rows[at : at + PART]}) for at in range(0, len(rows), PART)]
        return views

    def _decisions(self) -> list[DecisionRow]:
        rows = self._rows
        return [] if rows is None else [rows.decision_row(*one) for last in self._last.values() for one in last]

    async def changes(self) -> AsyncIterator[View]:
        """What has changed since the last time, in parts; between two of them others have their turn."""
        if self._rows is None:
            return
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = time.monotonic()
            async for view in self._look_at_all():
                yield view
        else:
            async for view in self._workloads(self._taken(self._keys)):
                yield view
        for key in self._taken(self._restored):
            if key in self._rows.engine.controllers:
                self._pods.update(self._rows.pods_of(key))
        async for view in self._pods_changed(self._taken(self._pods)):
            yield view
        async for view in self._nodes_changed(self._taken(self._hosts)):
            yield view
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            yield self._view(decisions=fresh)

    def _view(self, **tables: object) -> View:
        return View(at=self._watched.clock(), **tables)  # type: ignore[arg-type]  # tables by name

    @staticmethod
    def _taken(names: set[str]) -> list[str]:
        found = list(names)
        names.clear()
        return found

    async def _turn(self) -> bool:
        """Let others have their turn; whether there is still somebody who watches."""
        await asyncio.sleep(0)
        await self._watched.between_passes()
        return self._rows is not None and self._watched.engine is self._rows.engine

    async def _look_at_all(self) -> AsyncIterator[View]:
        """All workloads, classes, why pods wait, and who could make room."""
        rows = self._rows
        if rows is None:
            return
        self._keys.clear()
        parts: list[Totals] = []
        async for view in self._workloads(list(rows.engine.controllers), parts):
            yield view
        gone = [key for key in rows.workloads.names() if key not in rows.engine.controllers]
        if gone:
            yield self._view(gone={"workloads": self._drop("workloads", map(rows.workloads.forget, gone))})
        self._classes = class_rows(rows.promises, Totals.joined(parts))
        self._sentences = self._watched.sentences()
        yield self._view(classes=self._classes, sentences=self._sentences)
        async for view in self._strange():
            yield view
        await self._find_reasons(rows)
        if await self._ask_who_goes(rows):
            yield self._view(asks=self._asks, free=sorted(self._free))

    async def _workloads(self, keys: list[str], parts: list[Totals] | None = None) -> AsyncIterator[View]:
        rows, table = self._rows, self.tables["workloads"]
        if rows is None:
            return
        for first in range(0, len(keys), SLICE):
            if not await self._turn():
                return
            found, totals = rows.workload_rows(keys[first : first + SLICE], self._watched.clock())
            if parts is not None:
                parts.append(totals)
            fresh = [one for one in found if not same_for_people(table.get(one.number), one)]
            table.update((one.number, one) for one in fresh)
            if fresh:
                yield self._view(workloads=fresh)

    async def _pods_changed(self, uids: list[str]) -> AsyncIterator[View]:
        rows, table = self._rows, self.tables["pods"]
        if rows is None:
            return
        for first in range(0, len(uids), SLICE):
            if not await self._turn():
                return
            fresh: list[PodRow] = []
            gone: list[int] = []
            for uid in uids[first : first + SLICE]:
                row = rows.pod_row(uid, self._reasons.get(uid, NEVER)[1])
                if row is None:
                    self._forget(uid, gone)
                    continue
                (self._waiting.add if row.state == WAITING else self._waiting.discard)(uid)
                if table.get(row.number) != row:
                    table[row.number] = row
                    fresh.append(row)
            if fresh or gone:
                yield self._view(pods=fresh, gone={"pods": self._drop("pods", gone)} if gone else {})

    def _forget(self, uid: str, gone: list[int]) -> None:
        if self._rows is None or uid in self._strangers:
            return
        self._reasons.pop(uid, None)
        self._waiting.discard(uid)
        number = self._rows.pods.forget(uid)
        if number >= 0:
            gone.append(number)

    def _drop(self, table: str, numbers: Iterable[int]) -> list[int]:
        found = list(numbers)
        for one in found:
            self.tables[table].pop(one, None)
        return found

    async def _nodes_changed(self, names: list[str]) -> AsyncIterator[View]:
        rows, table = self._rows, self.tables["nodes"]
        if rows is None or not names:
            return
        others = rows.others()
        for first in range(0, len(names), SLICE):
            if not await self._turn():
                return
            fresh, gone = [], []
            for name in names[first : first + SLICE]:
                row = rows.node_row(name, others[name])
                if row is None:
                    gone += [number for number in (rows.nodes.forget(name),) if number >= 0]
                elif table.get(row.number) != row:
                    table[row.number] = row
                    fresh.append(row)
            if fresh or gone:
                yield self._view(nodes=fresh, gone={"nodes": self._drop("nodes", gone)} if gone else {})

    async def _strange(self) -> AsyncIterator[View]:
        """Pods that wait though the engine does not know them: without a class, gated, malformed."""
        rows, table = self._rows, self.tables["pods"]
        if rows is None:
            return
        found = {one.uid: one for one in self._watched.elsewhere()}
        fresh = []
        for one in found.values():
            row = PodRow(rows.pods.of(one.uid), one.namespace, one.name, -1, -1, WAITING, one.since, one.reason)
            if table.get(row.number) != row:
                table[row.number] = row
                fresh.append(row)
        left = [uid for uid in self._strangers if uid not in found]
        self._strangers = set(found)
        gone = [rows.pods.forget(uid) for uid in left if uid not in rows.engine.pods]
        self._pods.update(uid for uid in left if uid in rows.engine.pods)
        if fresh or gone:
            yield self._view(pods=fresh, gone={"pods": self._drop("pods", gone)} if gone else {})

    async def _find_reasons(self, rows: EngineRows) -> None:
        """Why pods wait, some of them each time: those first of whom it is not known, then the oldest answers."""
        now = time.monotonic()
        due = [(self._reasons.get(uid, NEVER)[0], uid) for uid in self._waiting]
        until, began = now + REASONS_SECONDS, now
        for at, uid in sorted(due):
            if now - at <= REASON_SECONDS:
                return
            if time.monotonic() - began > SLICE_SECONDS:
                if time.monotonic() > until or not await self._turn():
                    return
                began = time.monotonic()
            if uid in rows.engine.pods:
                self._reasons[uid] = time.monotonic(), self._watched.reason(uid)
                self._pods.add(uid)

    async def _ask_who_goes(self, rows: EngineRows) -> bool:
        """Who could make room for the pod that waits most urgently; whether that is different now."""
        asker = rows.asker(self._watched.clock())
        asks = "" if asker is None else f"{named(asker.key)[1]}/{asker.name}"
        free: list[int] = []
        hosts = list(rows.engine.hosts)
        for first in range(0, len(hosts) if asker is not None else 0, SLICE):
            if not await self._turn() or asker is None or rows.engine.pods.get(asker.uid) is not asker:
                return False
            if asker.state != types.WAITING:
                return False
            free += rows.may_go(asker, hosts[first : first + SLICE], self._watched.clock())
        found = frozenset(free)
        differs = (asks, found) != (self._asks, self._free)
        self._asks, self._free = asks, found
        return differs
