"""How far many runs are, on stderr: one line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TextIO

import click

from slacktide.cli.text import seconds
from slacktide.experiment.grid import Point
from slacktide.experiment.run import Outcome
from slacktide.experiment.store import Estimates, Store

INTERVAL = 0.2
QUIET = 15.0
"""Seconds between two lines where there is no terminal."""


class Telling:
    """Shows runs done, failed and the time that remains; a context manager that leaves its last line."""

    def __init__(
        self,
        store: Store,
        jobs: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._jobs = jobs
        self._times = Estimates(store.times())
        self._todo: Counter[tuple[str, str, str]] = Counter()
        self._done = self._total = self._failed = self._width = 0
        self._began = self._shown = self._ended = clock()

    def __enter__(self) -> Telling:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._stream.write("\n")
            self._stream.flush()

    def announce(self, text: str) -> None:
        click.echo(f"slacktide: {text}", file=self._stream)

    def begin(self, todo: Sequence[Point], done: int) -> None:
        from slacktide.kernels import compiled_before

        self._todo = Counter((one.workload, one.hosts, one.policy) for one in todo)
        self._done, self._total = done, done + len(todo)
        self._began = self._ended = self._clock()
        if not compiled_before():
            self.announce("compiling the kernels, once after an installation or upgrade (up to a minute)")
        self._show()

    def told(self, point: Point, outcome: Outcome) -> None:
        kind = (point.workload, point.hosts, point.policy)
        self._todo.subtract([kind])
        self._done, self._ended = self._done + 1, self._clock()
        if outcome.error is not None:
            self._failed += 1
        else:
            self._times.add(*kind, seconds=outcome.seconds)
        if self._done == self._total or not self._stream.isatty() or self._clock() >= self._shown + INTERVAL:
            self._show(last=self._done == self._total)

    def tick(self) -> None:
        if self._clock() >= self._shown + INTERVAL and self._stream.isatty():
            self._show()

    def remaining(self) -> float | None:
        """Seconds until the end, if runs go on as they did; None where no run has ended yet."""
        left = 0.0
        for kind, count in self._todo.items():
            takes = self._times.of(*kind) if count else 0.0
            if takes is None:
                return None
            left += count * takes
        at_once = min(self._jobs, max(self._todo.total(), 1))
        return max(left / at_once - (self._clock() - self._ended), 0.0)

    def _show(self, *, last: bool = False) -> None:
        now, terminal = self._clock(), self._stream.isatty()
        if not terminal and not last and self._done and now < self._shown + QUIET:
            return
        self._shown = now
        left = self.remaining()
        failed = f", {self._failed} failed" if self._failed else ""
        rest = f"took {seconds(now - self._began)}" if last else "" if left is None else f"about {seconds(left)} left"
        text = f"{self._done} of {self._total} runs{failed}" + (f", {rest}" if rest else "")
        if not terminal:
            click.echo(f"slacktide: {text}", file=self._stream)
            return
        filled = int(20 * self._done / max(self._total, 1))
        line = f"[{'#' * filled}{'.' * (20 - filled)}] {text}"
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = max(self._width, len(line))
