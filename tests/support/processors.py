"""Who took the machine's processors while something ran: tests that compare numbers ask whether others were at work."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Self

STAT = Path("/proc/stat")
IDLE, WAITING, COUNTED = 3, 4, 8
"""Columns of the first line of the file: two of idle time; what guests took stands behind those that count."""


def _machine() -> tuple[float, float]:
    """Seconds of all processors together since the machine began: in all, and of these idle."""
    if not STAT.exists():
        return 0.0, 0.0
    fields = [int(one) for one in STAT.read_text().splitlines()[0].split()[1 : COUNTED + 1]]
    ticks = os.sysconf("SC_CLK_TCK")
    return sum(fields) / ticks, (fields[IDLE] + fields[WAITING]) / ticks


def _ours() -> float:
    """Seconds of processors that this process took, and those that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Processors:
    """Shares of all processors' time while it was entered: ``others``' and ``idle``. Where it is not known, all idle.

    What others take counts: programs that this process neither is nor has waited for, and what a host machine takes
    away.
    """

    others, idle, seconds = 0.0, 1.0, 0.0

    def __enter__(self) -> Self:
        self._began, self._machine, self._ours = time.monotonic(), _machine(), _ours()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._began
        whole, idle = (b - a for a, b in zip(self._machine, _machine(), strict=True))
        if whole > 0.0:
            self.idle = idle / whole
            self.others = max(0.0, (whole - idle - (_ours() - self._ours)) / whole)

    def __str__(self) -> str:
        return f"in {self.seconds:.0f} s others took {self.others:.0%}, {self.idle:.0%} were idle"
