"""An event loop whose clock stands still while there is something to do, and else jumps to the next appointment.

What waits for minutes takes no time, however busy the machine is, and always in the same order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its ``time()`` is seconds since its beginning; only appointments move it, by so much as they are ahead."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__()
        selector: Any = self._selector  # type: ignore[attr-defined]
        select: Callable[[float | None], list[Any]] = selector.select

        def jump(timeout: float | None = None) -> list[Any]:
            if timeout is None:  # nobody has an appointment: what comes, comes from outside
                return select(None)
            found = select(0)
            if not found:
                self._now += timeout
            return found

        selector.select = jump

    def time(self) -> float:
        return self._now


def run(play: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, float]:
    """What the coroutine gives, and the seconds that it took by the loop's clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(play()), runner.get_loop().time()
