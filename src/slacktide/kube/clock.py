"""The scheduler's clock: wall time as it was at the start, carried on by a clock that nobody sets."""

from __future__ import annotations

import time

from slacktide.kube.leases import steady_seconds


class Clock:
    """Seconds since 1970 that never go back and never jump. ``drift`` is how far the wall clock was moved since."""

    def __init__(self) -> None:
        self._wall = time.time()
        self._steady = steady_seconds()

    def __call__(self) -> float:
        return self._wall + (steady_seconds() - self._steady)

    @property
    def drift(self) -> float:
        """Seconds by which the wall clock is ahead of this one."""
        return time.time() - self()
