"""Long work that gives the event loop its turn, again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import closing
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
