"""Keys that are pressed while something is shown live, one at a time and without Enter."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TextIO

QUIT, SORT, WIDE = "q", "s", "w"
Pressed = Callable[[float], Awaitable[str]]


@dataclass(slots=True)
class View:
    """How a table is shown by now; ``orders`` are those that it can be sorted by."""

    order: str
    wide: bool
    orders: tuple[str, ...]
    ended: bool = False

    def take(self, keys: str) -> None:
        """What these keys ask for; others ask for nothing."""
        for key in keys.lower():
            if key == QUIT:
                self.ended = True
            elif key == SORT:
                self.order = self.orders[(self.orders.index(self.order) + 1) % len(self.orders)]
            elif key == WIDE:
                self.wide = not self.wide


@contextlib.contextmanager
def pressed(stream: TextIO | None = None) -> Iterator[Pressed]:
    """A function that waits for keys, at most so many seconds, and returns them (empty: none were pressed).

    ``stream`` (stdin if none is given) is as it was at the end. Where it is no terminal, nothing is ever pressed.
    """
    stream = sys.stdin if stream is None else stream
    if sys.platform == "win32" or not stream.isatty():
        yield _nothing
        return
    import asyncio
    import termios
    import tty

    handle = stream.fileno()
    before = termios.tcgetattr(handle)
    waiting: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        import os

        found = os.read(handle, 64)
        if found:
            waiting.put_nowait(found.decode(errors="ignore"))
        else:
            loop.remove_reader(handle)

    async def next_keys(seconds: float) -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await waiting.get()
        return ""

    tty.setcbreak(handle)
    loop.add_reader(handle, read)
    try:
        yield next_keys
    finally:
        loop.remove_reader(handle)
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


async def _nothing(seconds: float) -> str:
    import asyncio

    await asyncio.sleep(seconds)
    return ""
