"""How far something is: a line of rich's on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TextIO

import click

from slacktide.for_people import count, duration

if TYPE_CHECKING:
    from rich.progress import Progress as Rich

PATIENCE = 1.0
"""Runs that are over sooner show nothing."""
INTERVAL = 0.2


class Bar:
    """A line with a bar and a text on ``stream``, only where that is a terminal; ``clock`` gives seconds.

    keep     it stays at the end; otherwise it goes away
    ticking  it is drawn by a thread of rich's, with the time taken, so that single calls of long steps show it;
             otherwise when it is told something
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        keep: bool = False,
        ticking: bool = False,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock, self._keep, self._ticking = clock, keep, ticking
        self._rich: Rich | None = None
        self._what = ""

    @property
    def wanted(self) -> bool:
        return self._stream.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._rich is not None:
            self._rich.stop()

    def show(self, text: str, part: float | None, *, anew: bool = False) -> None:
        """The text, and a part (0 to 1) of the bar, None: nobody knows; ``anew``: time counts from here."""
        if self._rich is None:
            self._rich = self._begun()
        (task,) = self._rich.task_ids
        if anew:
            self._rich.reset(task)
        self._rich.tasks[0].total = None if part is None else 1.0  # update() takes None for "as it was"
        self._rich.update(task, description=text, completed=part or 0.0, refresh=not self._ticking)

    def tell(self, what: str, part: float = 0.0) -> None:
        """Shows what is being done and which part (0 to 1) of it is; 0: nobody knows."""
        if self.wanted:
            self.show(what, min(part, 1.0) or None, anew=what != self._what)
            self._what = what

    def announce(self, text: str) -> None:
        """A line for itself, above the bar."""
        if self._rich is None:
            click.echo(f"slacktide: {text}", file=self._stream)
        else:
            self._rich.console.print(f"slacktide: {text}", markup=False, highlight=False, soft_wrap=True)

    def _begun(self) -> Rich:
        from rich.console import Console  # here, because it takes a tenth of a second
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        columns = [BarColumn(20), TaskProgressColumn(), text, *([TimeElapsedColumn()] if self._ticking else [])]
        found = Progress(
            *columns,
            console=Console(file=self._stream),
            auto_refresh=self._ticking,
            refresh_per_second=1 / INTERVAL,
            transient=not self._keep,
            redirect_stdout=False,
            redirect_stderr=False,
            get_time=self._clock,
        )
        found.add_task("", total=1.0)
        found.start()
        return found


class Progress(Bar):
    """Of a run in the simulator: share done, rate and simulated time."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream, clock)
        self._began = clock()
        self._next = self._began + PATIENCE

    def __call__(self, simulated: float, admitted: int, total: int) -> None:
        now = self._clock()
        if now < self._next or not self.wanted:
            return
        self._next = now + INTERVAL
        rate = admitted / max(now - self._began, 1e-9)
        left = f"about {duration((total - admitted) / rate)} left" if rate else "time left not known yet"
        told = f"{left}, {count(admitted)} of {count(total)} requests, {count(rate)}/s, simulated {duration(simulated)}"
        self.show(told, admitted / total if total else 1.0)
