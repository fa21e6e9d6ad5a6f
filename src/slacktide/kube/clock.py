"""The one place where the live scheduler reads a clock, so that tests can put another one in its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


def _boot_seconds() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True)
class Sources:
    """Where times come from. ``steady`` runs on while the machine sleeps, where the system has such a clock; ``work``
    is for how long something took."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = _boot_seconds if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
    monotonic: Callable[[], float] = time.monotonic
    work: Callable[[], float] = time.perf_counter


_sources = ContextVar("clocks", default=Sources())  # noqa: B039 (it is frozen)


@contextmanager
def read_from(sources: Sources) -> Iterator[None]:
    """Clocks are read from there for a while, also by tasks that begin meanwhile."""
    token = _sources.set(sources)
    try:
        yield
    finally:
        _sources.reset(token)


def wall_seconds() -> float:
    """Seconds since 1970, as the machine has them: somebody may set that clock."""
    return _sources.get().wall()


LATER = 0.001
"""Seconds after the instant that a timer was set for: by then it has come by these clocks, too."""


def steady_seconds() -> float:
    """A clock that nobody sets and that, where the system has one, runs on while the machine sleeps."""
    return _sources.get().steady()


def monotonic_seconds() -> float:
    """A clock that nobody sets, and that may stand still while the machine sleeps."""
    return _sources.get().monotonic()


def work_seconds() -> float:
    """A clock for how long something took."""
    return _sources.get().work()


class Clock:
    """Seconds since 1970 that never go back and never jump. ``drift`` is how far the wall clock was moved since.

    It is wall time as it was at the start, carried on by :func:`steady_seconds`.
    """

    def __init__(self) -> None:
        self._wall = wall_seconds()
        self._steady = steady_seconds()

    def __call__(self) -> float:
        return self._wall + (steady_seconds() - self._steady)

    @property
    def drift(self) -> float:
        """Seconds by which the wall clock is ahead of this one."""
        return wall_seconds() - self()
