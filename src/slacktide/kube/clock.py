"""Clocks: one that nobody sets, and from it the scheduler's, which tells wall time."""

from __future__ import annotations

import time

LATER = 0.001
"""Seconds after the instant that a timer was set for: by then it has come by these clocks, too."""


def steady_seconds() -> float:
    """A clock that nobody sets and that, where the system has one, runs on while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Clock:
    """Seconds since 1970 that never go back and never jump. ``drift`` is how far the wall clock was moved since.

    It is wall time as it was at the start, carried on by :func:`steady_seconds`.
    """

    def __init__(self) -> None:
        self._wall = time.time()
        self._steady = steady_seconds()

    def __call__(self) -> float:
        return self._wall + (steady_seconds() - self._steady)

    @property
    def drift(self) -> float:
        """Seconds by which the wall clock is ahead of this one."""
        return time.time() - self()
