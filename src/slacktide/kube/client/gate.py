"""Closed while a pass is under way: whoever wants to tell the engine something waits until it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


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
