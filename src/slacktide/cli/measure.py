"""What this process has cost so far."""

from __future__ import annotations

import os
import resource
import sys
import time

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
