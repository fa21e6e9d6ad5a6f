"""Kubernetes events, written in the background.

Events are for people: a decision never waits for one. What cannot be written in time is dropped and counted. Repeats of
the same reason about the same object become one event with a count and the latest note.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slacktide.config import KubeSettings
from slacktide.kube.client.http import (
    CONFLICT,
    FORBIDDEN,
    NOT_FOUND,
    ApiError,
    Connection,
    Unreachable,
)
from slacktide.kube.client.pacing import Limiter
from slacktide.kube.client.turns import Gate
from slacktide.kube.clock import monotonic_seconds, wall_seconds
from slacktide.kube.feed.feed import Feed
from slacktide.kube.resources.objects import Part, Reference, encode, rfc3339

LOG = logging.getLogger(__name__)

WORKERS = 16
REMEMBERED_EVENTS = 4096
"""Repeats of older events start a new one."""
REPEAT_SECONDS = 600.0
"""A repeat after a longer pause starts a new event."""
ATTEMPTS, LONGEST_PAUSE_SECONDS = 8, 3.0
LONGEST_NOTE = 1024
LONGEST_NAME = 220
WRITE_SECONDS = 10.0
MOST_FORBIDDEN = 2
"""An API server that has just begun knows no rights for a moment; a namespace that ends takes no events at all."""

Key = tuple[Reference, str, str, str, str]


class _EventSeries:
    """One event: as it should be (``count``, ``note``, ``last``), and as it was written (``written`` times)."""

    __slots__ = ("action", "count", "event_type", "first", "last", "name", "note", "queued", "reason", "reference",
                 "related", "seen", "written")  # fmt: skip

    def __init__(
        self, reference: Reference, reason: str, event_type: str, action: str, related: Reference | None
    ) -> None:
        self.reference, self.reason, self.event_type = reference, reason, event_type
        self.action, self.related = action, related
        self.name = ""
        self.note = ""
        self.count = 0
        self.written = 0
        self.first = self.last = wall_seconds()
        self.seen = monotonic_seconds()
        self.queued = False


class EventSource(Part, frozen=True):
    """Who writes: the component, as users know it, and this replica of it."""

    component: str
    instance: str


class EventRecorder:
    """Writes events as ``component``, replica ``instance``, at most ``qps`` a second (0: no limit).

    ``record`` only notes down; ``run`` writes until cancelled. ``written``, ``dropped`` (for want of room or of an
    answer) and ``pending`` count events.
    """

    def __init__(
        self,
        connection: Connection,
        component: str,
        instance: str,
        *,
        qps: float = 50.0,
        burst: int = 100,
        capacity: int = 10_000,
    ) -> None:
        self.written = 0
        self.dropped = 0
        self._connection = connection
        self._source = EventSource(component, instance)
        self._limiter = Limiter(qps, burst)
        self._queue: asyncio.Queue[_EventSeries] = asyncio.Queue(capacity)
        self._known: OrderedDict[Key, _EventSeries] = OrderedDict()
        self._numbers = itertools.count(int(wall_seconds() * 1e9))

    @property
    def pending(self) -> int:
        """Events that wait to be written."""
        return self._queue.qsize()

    def record(
        self,
        reference: Reference,
        reason: str,
        note: str,
        *,
        event_type: str = "Normal",
        action: str = "",
        related: Reference | None = None,
    ) -> None:
        """Notes an event down: ``reason`` is one word, ``note`` a sentence, ``event_type`` Normal or Warning."""
        key = (reference, reason, event_type, action, related.uid if related else "")
        now = monotonic_seconds()
        series = self._known.get(key)
        if series is None or now - series.seen > REPEAT_SECONDS:
            series = _EventSeries(reference, reason, event_type, action, related)
            self._known[key] = series
            if len(self._known) > REMEMBERED_EVENTS:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        series.seen = now
        series.last = wall_seconds()
        series.count += 1
        series.note = note if len(note) <= LONGEST_NOTE else note[: LONGEST_NOTE - 3] + "..."
        self._enqueue(series)

    async def run(self) -> None:
        """Writes events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def drain(self, seconds: float) -> bool:
        """Waits at most so long for everything noted down to be written (by ``run``); whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self._queue.join()
        except TimeoutError:
            return False
        return True

    def _enqueue(self, series: _EventSeries) -> None:
        if series.queued:
            return
        try:
            self._queue.put_nowait(series)
            series.queued = True
        except asyncio.QueueFull:
            self.dropped += 1

    async def _work(self) -> None:
        while True:
            series = await self._queue.get()
            try:
                await self._limiter.take()
                count = await self._write(series)
                # Only now, so that no two workers write the same event.
                series.queued = False
                if count:
                    series.written = count
                    self.written += 1
                    if series.count > count:
                        self._enqueue(series)
                else:
                    self.dropped += 1
            finally:
                self._queue.task_done()

    async def _write(self, series: _EventSeries) -> int:
        """How many times it is written to have happened by now; 0 where it could not be written."""
        forbidden = 0
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(min(attempt, LONGEST_PAUSE_SECONDS))
            try:
                # Each attempt writes the present note with the present count: no old count beside a newer note.
                count = series.count
                await self._send(series, count)
                return count
            except ApiError as error:
                if error.status == NOT_FOUND and series.written:
                    series.written = 0  # The API server forgets events after an hour.
                elif error.status == CONFLICT and not series.written:
                    series.written = 1  # The answer to an earlier attempt was lost; if not, a change finds nothing.
                elif error.status == FORBIDDEN and forbidden < MOST_FORBIDDEN:
                    forbidden += 1
                elif not error.passes:
                    LOG.debug("event %s about %s: %s", series.reason, series.reference.name, error)
                    return 0
            except Unreachable as error:
                LOG.debug("event %s about %s: %s", series.reason, series.reference.name, error)
        return 0

    async def _send(self, series: _EventSeries, count: int) -> None:
        # Cluster-scoped objects have their events in the namespace 'default'.
        namespace = series.reference.namespace or "default"
        events = f"/api/v1/namespaces/{namespace}/events"
        if series.written:
            change = {"count": count, "message": series.note, "lastTimestamp": rfc3339(series.last)}
            await self._connection.patch(f"{events}/{series.name}", encode(change), timeout=WRITE_SECONDS, urgent=True)
            return
        # The name stays the same at each attempt, so that an event whose answer was lost is not written twice.
        series.name = series.name or f"{series.reference.name[:LONGEST_NAME]}.{next(self._numbers):x}"
        await self._connection.post(
            events, encode(self._event(series, namespace, count)), timeout=WRITE_SECONDS, urgent=True
        )

    def _event(self, series: _EventSeries, namespace: str, count: int) -> dict[str, Any]:
        event: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": namespace},
            "involvedObject": series.reference,
            "reason": series.reason,
            "message": series.note,
            "type": series.event_type,
            "count": count,
            "firstTimestamp": rfc3339(series.first),
            "lastTimestamp": rfc3339(series.last),
            "source": {"component": self._source.component},
            "reportingComponent": self._source.component,
            "reportingInstance": self._source.instance,
        }
        if series.action:
            event["action"] = series.action
        if series.related is not None:
            event["related"] = series.related
        return event


@dataclass(frozen=True)
class SessionContext:
    """A session's connection, feed and clock; ``leading`` is asked before every act, and only while ``gate`` is open
    may the engine be told or asked about what a pass changes."""

    connection: Connection
    settings: KubeSettings
    feed: Feed
    recorder: EventRecorder
    clock: Callable[[], float]
    leading: Callable[[], bool]
    gate: Gate


class SessionPart:
    """One who acts or publishes during a leader's session."""

    def __init__(self, session: SessionContext) -> None:
        self._connection, self._settings, self._feed = session.connection, session.settings, session.feed
        self._recorder, self._clock = session.recorder, session.clock
        self._leading, self._gate = session.leading, session.gate
