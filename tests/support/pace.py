"""How fast this machine is now: bounds on processor time are those of a quiet, ordinary one, times ``slowness()``."""

from __future__ import annotations

import statistics
import time

REFERENCE_SECONDS = 0.020
"""Processor time that the work below takes on a machine that is not quiet, of 2.6 GHz; 12 ms on a quiet one."""


def slowness() -> float:
    """How many times as long as there plain Python takes here and now, at least 1."""
    return max(1.0, statistics.median(_work() for _ in range(7)) / REFERENCE_SECONDS)


def _work() -> float:
    began = time.thread_time()
    found: dict[int, float] = {}
    for number in range(100_000):
        found[number * 7919 % 10_007] = found.get(number, 0.5) * 0.5 + number
    return time.thread_time() - began
