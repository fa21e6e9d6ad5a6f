"""Garbage collection at moments when nobody waits for it: a full one keeps the event loop for long.

Python collects everything once enough new objects have survived, which is in the midst
of a burst. Here only young objects are collected then. All others are when nothing was
decided for a while, or when that has not been the case for long; what survives is left
out the next times, so that such a collection costs what is new.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

YOUNG, MIDDLE, NEVER = 5_000, 80, 1_000_000
"""New objects until a collection of these, such collections until one of the last ones' survivors, and so on."""
TICK_SECONDS = 5.0
OVERDUE_TICKS = 120
ALL_AFTER = 80
"""So many collections after one of all objects comes the next one of all."""


async def collect_when_idle(work_done: Callable[[], int]) -> None:
    """Takes garbage collection over until cancelled; ``work_done`` counts up with all that must not be held up."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG, MIDDLE, NEVER)
    try:
        _collect(everything=True)
        done, ticks, count = work_done(), 0, 0
        while True:
            await asyncio.sleep(TICK_SECONDS)
            ticks += 1
            last, done = done, work_done()
            due = gc.get_count()[2] > 0 or gc.get_count()[1] > 0
            if ticks >= OVERDUE_TICKS or (due and done == last):
                ticks, count = 0, count + 1
                _collect(everything=count % ALL_AFTER == 0)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def _collect(everything: bool) -> None:
    if everything:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
