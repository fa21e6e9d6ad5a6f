"""Long work that gives the event loop its turn, and the gate that is closed while a pass is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

from slacktide.kube.clock import work_seconds

T = TypeVar("T")

FIRST = 100
MOST = 2**40
PARTS = 4
"""Parts of a search are as long as this one of a turn: they end a turn late by one part at most."""
FASTER = 2.0
"""The next part is given so many times the last one's work at most: work may cost more from now on."""


class Turns:
    """Work is done for ``budget`` seconds, then the event loop has its turn.

    Work that has no clock is told how much to do: :meth:`allowance` follows from how long the part before took.
    """

    def __init__(self, budget: float, clock: Callable[[], float] = work_seconds) -> None:
        self._budget, self._clock = budget, clock
        self._allowed = float(FIRST)
        self._asked: float | None = None
        self._began = clock()

    def allowance(self) -> int:
        """How much work to do in the part that begins."""
        self._asked = self._clock()
        return int(self._allowed)

    async def part_over(self) -> None:
        """Part of the work is done. Where the turn is over, the event loop has the next."""
        now = self._clock()
        if self._asked is not None:
            wanted = self._budget / PARTS / max(now - self._asked, 1e-9)
            self._allowed = min(max(1.0, self._allowed * min(wanted, FASTER)), MOST)
            self._asked = None
        if now - self._began >= self._budget:
            await asyncio.sleep(0)
            self._began = self._clock()

    async def through(self, parts: Generator[None, None, T]) -> T:
        """Goes through all parts; what they came to. They are closed when this is cancelled."""
        self._began = self._clock()
        with closing(parts):
            while True:
                try:
                    next(parts)
                except StopIteration as over:
                    result: T = over.value
                    return result
                await self.part_over()


class Gate:
    """Open at first. Those who wait go on in the order in which they came.

    Whoever returns from one of these functions finds the gate open until it waits for something else.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._opened = asyncio.Event()
        self._calls: list[Callable[[], None]] = []

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Closes the gate for a while."""
        self.is_closed = True
        self._opened.clear()
        try:
            yield
        finally:
            self.is_closed = False
            calls, self._calls = self._calls, []
            for call in calls:
                call()
            self._opened.set()

    async def passed(self) -> None:
        """Waits until it is open; at once where it is."""
        while self.is_closed:
            await self._opened.wait()

    async def after(self, request: Awaitable[T]) -> T:
        """The answer to a request, or its failure, once the gate is open; the request itself does not wait."""
        try:
            answer = await request
        except Exception:
            await self.passed()
            raise
        await self.passed()
        return answer

    def call(self, function: Callable[[], None]) -> None:
        """Calls now, or when it is opened."""
        if self.is_closed:
            self._calls.append(function)
        else:
            function()
