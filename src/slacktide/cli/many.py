"""How far many runs are, on stderr: a line of rich's on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TextIO

from slacktide.cli.progress import INTERVAL, Bar
from slacktide.cli.text import seconds
from slacktide.experiment.grid import Point
from slacktide.experiment.run import Outcome
from slacktide.experiment.store import Estimates, Store

QUIET = 15.0
"""Seconds between two lines where there is no terminal."""


class Telling(Bar):
    """Shows runs done, failed and the time that remains; a context manager that leaves its last line."""

    def __init__(
        self,
        store: Store,
        jobs: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(stream, clock, keep=True)
        self._jobs = jobs
        self._times = Estimates(store.times())
        self._todo: Counter[tuple[str, str, str]] = Counter()
        self._done = self._total = self._failed = 0
        self._began = self._shown = self._ended = clock()

    def begin(self, todo: Sequence[Point], done: int) -> None:
        from slacktide.kernels import compiled_before

        self._todo = Counter((one.workload, one.hosts, one.policy) for one in todo)
        self._done, self._total = done, done + len(todo)
        self._began = self._ended = self._clock()
        if not compiled_before():
            self.announce("compiling the kernels, once after an installation or upgrade (up to a minute)")
        self._say()

    def told(self, point: Point, outcome: Outcome) -> None:
        kind = (point.workload, point.hosts, point.policy)
        self._todo.subtract([kind])
        self._done, self._ended = self._done + 1, self._clock()
        if outcome.error is not None:
            self._failed += 1
        else:
            self._times.add(*kind, seconds=outcome.seconds)
        if self._done == self._total or not self.wanted or self._clock() >= self._shown + INTERVAL:
            self._say(last=self._done == self._total)

    def tick(self) -> None:
        if self._clock() >= self._shown + INTERVAL and self.wanted:
            self._say()

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

    def _say(self, *, last: bool = False) -> None:
        now = self._clock()
        if not self.wanted and not last and self._done and now < self._shown + QUIET:
            return
        self._shown = now
        left = self.remaining()
        failed = f", {self._failed} failed" if self._failed else ""
        rest = f"took {seconds(now - self._began)}" if last else "" if left is None else f"about {seconds(left)} left"
        text = f"{self._done} of {self._total} runs{failed}" + (f", {rest}" if rest else "")
        if self.wanted:
            self.show(text, self._done / max(self._total, 1))
        else:
            self.announce(text)
