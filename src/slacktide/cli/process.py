"""This process: its event loop, its memory, and what it has cost so far."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

_IMPORTED = time.perf_counter()


def wall_seconds() -> float:
    """Seconds since the process began, the start of Python and all imports included.

    To 1/100 s where the system tells when that was (Linux); elsewhere, counted from the import of
    this module plus the processor time used before.
    """
    try:
        with open("/proc/self/stat", encoding="ascii") as file:
            began = int(file.read().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.perf_counter() - _IMPORTED + _USED_BEFORE


def cpu_seconds() -> float:
    """Processor time of this process, user and system."""
    return time.process_time()


def peak_rss_mb() -> float:
    """The most memory resident at once, in MB of 2^20 bytes."""
    try:
        # Not getrusage where avoidable: its maximum includes the parent's memory from before the exec.
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 2**20 if sys.platform == "darwin" else peak / 1024


_USED_BEFORE = cpu_seconds()


MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h
LARGE = 1 << 18


def give_back() -> None:
    """Let the C library map arrays of 256 kB and more by themselves, and unmap them when they are freed.

    By default glibc raises that limit to 32 MB as it goes and keeps what lies below: 70 MB more at a million
    requests. Such is a column of a batch that is read or written. Does nothing with another C library. Arrow takes
    its memory from there, too, if it is not imported yet: its own allocator keeps as much as the file had bytes.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE)
    except (OSError, AttributeError):
        return


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
