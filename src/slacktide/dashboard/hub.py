"""Those who watch, and the one task that works for all of them: server-sent events to each."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from aiohttp import hdrs, web

from slacktide.dashboard.live import Live
from slacktide.dashboard.pages import HEADERS, refusal
from slacktide.dashboard.view import View, encode

LOG = logging.getLogger(__name__)

FLUSH_SECONDS = 0.25
"""What has changed is told so often."""
MOST_WATCHERS = 16
BEHIND = 400
"""Whose unsent views are more than these is too slow; he is let go, and begins anew."""
WRITE_SECONDS = 20.0
"""Who takes nothing of what is sent for so long is let go: else it would be kept for as long as he likes."""
CHECK_SECONDS = 10.0
"""So often it is asked whether a watcher still may."""
UNAVAILABLE, TOO_MANY = 503, 429

Check = Callable[[], Awaitable[bool]]
MAY_STILL: ContextVar[Check | None] = ContextVar("may_still", default=None)
"""Set by whoever let a request in: whether its sender still may. A stream lasts longer than a right may."""


class Hub:
    """Serves the route ``/view``. ``absent`` says why there is nothing to see, while the scheduler does not lead."""

    def __init__(self, live: Live, absent: Callable[[], str]) -> None:
        self._live, self._absent = live, absent
        self._watchers: set[asyncio.Queue[bytes | None]] = set()
        self._told: set[asyncio.Queue[bytes | None]] = set()
        """Those of them who are not too slow."""
        self._task: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()

    @property
    def watchers(self) -> int:
        """How many watch now."""
        return len(self._watchers)

    async def view(self, request: web.Request) -> web.StreamResponse:
        """The stream of one watcher."""
        if why := self._absent():
            return refusal(UNAVAILABLE, why)
        if len(self._watchers) >= MOST_WATCHERS:
            return refusal(TOO_MANY, f"/view: {MOST_WATCHERS} watch already, which is the most that are served")
        mine: asyncio.Queue[bytes | None] = asyncio.Queue(BEHIND)
        self._watchers.add(mine)
        self._told.add(mine)
        try:
            return await self._stream(request, mine)
        finally:
            self._watchers.discard(mine)
            self._told.discard(mine)
            if not self._watchers and self._task is not None:
                self._task.cancel()
                self._task = None
                self._live.end()

    async def _stream(self, request: web.Request, mine: asyncio.Queue[bytes | None]) -> web.StreamResponse:
        headers = {**HEADERS, hdrs.CONTENT_TYPE: "text/event-stream", hdrs.CACHE_CONTROL: "no-store"}
        answer = web.StreamResponse(headers=headers)
        await answer.prepare(request)
        if self._task is None or self._task.done():
            self._begun = asyncio.Event()
            self._task = asyncio.create_task(self._work(self._begun))
        await self._begun.wait()
        while not mine.empty():  # what was told before the whole is in it
            mine.get_nowait()
        may_still = MAY_STILL.get()
        with contextlib.suppress(ConnectionError):
            for view in self._live.whole():
                await _write(request, answer, _event(view))
            checked = asyncio.get_running_loop().time()
            while (told := await self._next(mine)) is not None:
                await _write(request, answer, told)
                now = asyncio.get_running_loop().time()
                if may_still is not None and now - checked > CHECK_SECONDS:
                    checked = now
                    if not await may_still():
                        break
        return answer

    async def _next(self, mine: asyncio.Queue[bytes | None]) -> bytes | None:
        """What is to be sent next; a comment where there is nothing for long, so that dead connections show."""
        if self._task is None or (self._task.done() and mine.empty()):
            return None
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                return await mine.get()
        except TimeoutError:
            return b": nothing new\n\n"

    async def _work(self, begun: asyncio.Event) -> None:
        """Makes views for all who watch, until nobody does or the scheduler does not lead any more."""
        try:
            await self._live.begin()
            begun.set()
            while not self._absent():
                async for view in self._live.changes():
                    self._tell(_event(view))
                await asyncio.sleep(FLUSH_SECONDS)
        except LookupError:
            pass  # it ceased to lead meanwhile
        except Exception:  # ours to mend; nobody's pods wait for that
            LOG.exception("updates of the page stopped")
        finally:
            begun.set()
            if asyncio.current_task() is self._task:  # else those who watch now have another one
                self._live.end()
                self._tell(None)

    def _tell(self, told: bytes | None) -> None:
        for queue in list(self._told):
            try:
                queue.put_nowait(told)
            except asyncio.QueueFull:
                self._told.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)


async def _write(request: web.Request, answer: web.StreamResponse, told: bytes) -> None:
    """Raises :class:`ConnectionError` where the connection is lost, or given up as nothing is taken."""
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await answer.write(told)
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("nothing is taken of what is sent") from None


def _event(view: View) -> bytes:
    return b"data: " + encode(view) + b"\n\n"
