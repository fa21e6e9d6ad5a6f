"""Whether the API server answers, and who waits for it to answer again."""

from __future__ import annotations

import asyncio


class Presence:
    """What one connection knows of its server. All its users share what one of them finds out."""

    def __init__(self) -> None:
        self._away = False
        self._back = asyncio.Event()

    def lost(self) -> None:
        """A request got no answer."""
        self._away = True

    def answered(self) -> None:
        """A request was answered as it should be."""
        if self._away:
            self._away = False
            self._back.set()
            self._back = asyncio.Event()

    async def back(self, seconds: float) -> bool:
        """Wait for so many seconds, or until the server, which was away, answers somebody; whether it did."""
        try:
            async with asyncio.timeout(seconds):
                await self._back.wait()
        except TimeoutError:
            return False
        return True
