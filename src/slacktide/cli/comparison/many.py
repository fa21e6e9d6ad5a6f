"""How far many runs are, on stderr: a line of rich's on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TextIO

from slacktide.cli.progress import INTERVAL, Bar
from slacktide.experiment.grid import Point
from slacktide.experiment.run import Outcome
from slacktide.experiment.store import Estimates, Store
from slacktide.for_people import duration

QUIET = 15.0
"""Seconds between two lines where there is no terminal."""


class Telling(Bar):
    """Shows runs done, failed and the time that remains; a context manager that leaves its last line.

    ``guess`` says how many seconds a run takes while none has ended.
    """

    def __init__(
        self,
        store: Store,
        jobs: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        guess: Callable[[Point], float | None] = lambda _: None,
    ) -> None:
        super().__init__(stream, clock, keep=True)
        self._jobs = jobs
        self._guess, self._guesses = guess, dict[tuple[str, str, str], float | None]()
        self._times = Estimates(store.times())
        self._todo: Counter[tuple[str, str, str]] = Counter()
        self._later: Counter[tuple[str, str, str]] = Counter()
        self._done = self._total = self._failed = self._earlier = 0
        self._reckoned = False
        self._over = True
        self._began = self._shown = self._ended = clock()

    def __exit__(self, *error: object) -> None:
        if not self._over and error == (None, None, None):  # fewer were needed than were likely
            self._later.clear()
            self._say(last=True)
        super().__exit__(*error)

    def expect(self, later: Sequence[Point]) -> None:
        self._earlier, self._later = self._done, Counter(map(_kind, later))

    def begin(self, todo: Sequence[Point], done: int) -> None:
        from slacktide.kernels.runtime.compiling import compiled_before

        self._todo = Counter(map(_kind, todo))
        self._guesses |= {_kind(one): self._guess(one) for one in {_kind(one): one for one in todo}.values()}
        if not self._earlier:
            self._began = self._clock()
        self._done = self._earlier + done
        self._total = self._done + len(todo)
        self._ended, self._over = self._clock(), False
        if not compiled_before():
            self.announce("compiling the kernels, once after an installation or upgrade (up to a minute)")
        self._say()

    def told(self, point: Point, outcome: Outcome) -> None:
        kind = _kind(point)
        self._todo.subtract([kind])
        self._done, self._ended = self._done + 1, self._clock()
        if outcome.error is not None:
            self._failed += 1
        else:
            self._times.add(*kind, seconds=outcome.seconds)
        if self._done == self._total or not self.wanted or self._clock() >= self._shown + INTERVAL:
            self._say(last=self._done == self._total and not self._later)

    def tick(self) -> None:
        if self._clock() >= self._shown + INTERVAL and self.wanted:
            self._say()

    def remaining(self) -> float | None:
        """Seconds until the end, if runs go on as they did, or as guessed before one has ended; None where none is."""
        left = 0.0
        todo = self._todo + self._later
        for kind, count in todo.items():
            takes = self._times.of(*kind)
            takes = self._guesses.get(kind) if takes is None else takes
            if takes is None:
                return None
            left += count * takes
        at_once = min(self._jobs, max(todo.total(), 1))
        return max(left / at_once - (self._clock() - self._ended), 0.0)

    def _say(self, *, last: bool = False) -> None:
        now, left = self._clock(), self.remaining()
        soon = left is None or self._reckoned or left <= QUIET
        if not self.wanted and not last and self._done and now < self._shown + QUIET and soon:
            return
        self._shown, self._reckoned, self._over = now, left is not None, last
        failed = f", {self._failed} failed" if self._failed else ""
        rest = f"took {duration(now - self._began)}" if last else "" if left is None else f"about {duration(left)} left"
        total = self._total + self._later.total()
        text = f"{self._done} of {'about ' if self._later else ''}{total} runs{failed}" + (f", {rest}" if rest else "")
        if self.wanted:
            self.show(text, self._done / max(total, 1))
        else:
            self.announce(text)


def _kind(point: Point) -> tuple[str, str, str]:
    return point.workload, point.hosts, point.policy
