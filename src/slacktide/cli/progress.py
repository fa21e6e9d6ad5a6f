"""One line on the terminal that tells how far a long run is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

from slacktide.cli.text import count, seconds

PATIENCE = 1.0
"""Runs that are over sooner show nothing."""
INTERVAL = 0.2


class Progress:
    """Shows share done, rate and simulated time on ``stream``, only where that is a terminal.

    As a context manager it removes its line at the end. ``clock`` gives seconds.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._began = self._next = clock()
        self._next += PATIENCE
        self._width = 0

    @property
    def wanted(self) -> bool:
        return self._stream.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._show("")
            self._stream.write("\r")
            self._stream.flush()

    def __call__(self, simulated: float, admitted: int, total: int) -> None:
        now = self._clock()
        if now < self._next or not self.wanted:
            return
        self._next = now + INTERVAL
        rate = admitted / max(now - self._began, 1e-9)
        part = admitted / total if total else 1.0
        filled = int(20 * part)
        self._show(
            f"[{'#' * filled}{'.' * (20 - filled)}] {part:4.0%}  {count(admitted)} of {count(total)} requests, "
            f"{count(rate)}/s, simulated {seconds(simulated)}"
        )

    def _show(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = max(self._width, len(line))
