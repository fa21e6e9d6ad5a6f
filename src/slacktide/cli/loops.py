"""The event loop of the commands that do much."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


def run_fast(main: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run`` on uvloop where there is one (not on Windows); other loops of the process stay as they are."""
    import asyncio

    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


async def until_signal(main: Coroutine[Any, Any, object]) -> bool:
    """Runs ``main`` until it ends; whether SIGTERM or SIGINT cancelled it."""
    import asyncio

    task = asyncio.ensure_future(main)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False
