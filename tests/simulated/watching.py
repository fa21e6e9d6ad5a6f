"""Watches as the API server keeps them: what happened since a version, then what happens, with bookmarks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import Context

import aiohttp

from simulated.chance import Chance
from simulated.network import Wire
from simulated.resources import Refused, Resource, encode
from simulated.store import Change, Store

BOOKMARK_SECONDS = 60.0
SHORTEST_SILENCE, LONGEST_SILENCE = 5.0, 120.0
KEEPALIVE_SECONDS = 30.0
"""After so long without an answer a connection is given up."""


class Watch:
    """One watch. ``told`` gets lines as they arrive at the process; None is the end, an exception a broken one."""

    def __init__(
        self, store: Store, wire: Wire, chance: Chance, resource: Resource, namespace: str, query: Mapping[str, str]
    ) -> None:
        self.resource, self.namespace = resource, namespace
        self._store, self._wire, self._chance = store, wire, chance
        self._followers = store.watching[resource.plural]
        self._subject = f"watch of {resource.plural} by {wire.actor.name}"
        self.told: deque[bytes | Exception | None] = deque()
        self._wanted: asyncio.Future[None] | None = None
        """Done when somebody waits for what is told, and there is something."""
        self._loop = asyncio.get_running_loop()
        self._latest = self._loop.time()
        self.silent_until = 0.0
        self._under_way: deque[bytes | Exception | None] = deque()
        self._backlog: list[bytes | Exception | None] = []
        self.over = False
        """The API server says nothing more."""
        self.closed = False
        """Nobody listens any more."""
        self.bookmarks = query.get("allowWatchBookmarks") == "true"
        self._version = int(query.get("resourceVersion") or store.revision)
        self._later(float(query.get("timeoutSeconds", "1800")), self.end)
        if self.bookmarks:
            self._later(chance.between(self._subject, 0.9, 1.0) * BOOKMARK_SECONDS, self._bookmark)

    async def more(self, silence: float | None) -> None:
        """Wait until something is told. Raises ``aiohttp.SocketTimeoutError`` after so long a silence."""
        self._wanted = wanted = self._loop.create_future()
        late = None if silence is None else self._loop.call_later(silence, _give_up, wanted)
        try:
            await wanted
        finally:
            self._wanted = None
            if late is not None:
                late.cancel()

    def _tell(self, line: bytes | Exception | None) -> None:
        self.told.append(line)
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)

    def begin(self) -> None:
        """Tell what happened since, or that it is not known any more."""
        past = self._store.since(self.resource, self._version)
        if past is None:
            self.expire()
            return
        for change in past:
            self.see(change)
        self._followers.append(self.see)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self._loop.call_later(seconds, call, context=Context())

    def see(self, change: Change) -> None:
        """Something was written."""
        if not self.namespace or change.key[0] == self.namespace:
            self._send(b'{"type":"%b","object":%b}\n' % (change.type.encode(), change.data))

    def _bookmark(self) -> None:
        if self.over:
            return
        if self._store.history[self.resource.plural] or self._store.forgotten[self.resource.plural] > 1000:
            kind, version = self.resource.kind, self.resource.version
            body = {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": str(self._store.revision)}}
            self._send(b'{"type":"BOOKMARK","object":%b}\n' % encode(body))
        self._later(BOOKMARK_SECONDS, self._bookmark)

    def expire(self) -> None:
        """The version is too old."""
        status = Refused(410, f"too old resource version: {self._version}", "Expired").status
        self._send(b'{"type":"ERROR","object":%b}\n' % encode(status))
        self.end()

    def end(self) -> None:
        """The API server ends it."""
        if not self.over:
            self._stop()
            self._send(None)

    def close(self) -> None:
        """Nobody listens any more."""
        self.closed = True
        self._stop()

    def _stop(self) -> None:
        self.over = True
        if self.see in self._followers:
            self._followers.remove(self.see)

    def break_off(self) -> None:
        """The connection is reset."""
        if not self.over:
            self._stop()
            self._send(aiohttp.ClientOSError("the connection was reset"))

    def fall_silent(self) -> None:
        """Nothing comes for a while, or until the end."""
        wait = self._chance.between(self._subject, SHORTEST_SILENCE, LONGEST_SILENCE)
        self.silent_until = self._loop.time() + wait

    def _send(self, line: bytes | Exception | None) -> None:
        """Lines arrive in order, each when it may."""
        now, wire = self._loop.time(), self._wire
        delay = wire.delay()
        if self._chance.happens(self._subject, wire.weather.lagging):
            delay += self._chance.between(self._subject, 0.0, 10.0)
        self._latest = max(self._latest, now + delay, self.silent_until)
        self._under_way.append(line)
        self._loop.call_at(self._latest, self._arrive, context=Context())

    def _arrive(self) -> None:
        line = self._under_way.popleft()  # of several at one instant the loop does not know the order
        if self._wire.cut.is_set():
            self._backlog.append(line)
        else:
            self._tell(line)

    def mended(self, seconds: float) -> None:
        """The network is whole again, after so long."""
        backlog, self._backlog = self._backlog, []
        if seconds >= KEEPALIVE_SECONDS:
            self._stop()
            self._tell(aiohttp.ClientOSError("keepalive timeout"))
        else:
            for line in backlog:
                self._tell(line)


def _give_up(wanted: asyncio.Future[None]) -> None:
    if not wanted.done():
        wanted.set_exception(aiohttp.SocketTimeoutError("no byte came"))
