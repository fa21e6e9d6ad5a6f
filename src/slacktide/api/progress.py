"""How far it is, by tqdm: in a notebook where tqdm is installed, elsewhere only when asked for."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from slacktide.errors import ConfigError
from slacktide.experiment.grid import Point
from slacktide.experiment.run import Outcome

PATIENCE = 1.0
"""Seconds; what is over sooner shows nothing."""
INTERVAL = 0.5
"""Seconds between two looks."""


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this program."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def bar_of(wanted: bool | None) -> Callable[..., Any] | None:
    """What makes a bar, or None: none is shown. Raises :class:`ConfigError` where one is wanted and tqdm is missing."""
    if wanted not in (None, True, False):
        raise ConfigError(f"progress: found {wanted!r}, expected True, False or None")
    if wanted is False or (wanted is None and not in_notebook()):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets it is text, which is good enough
            from tqdm.auto import tqdm
    except ImportError as error:
        if wanted is None:
            return None
        raise ConfigError("progress=True needs tqdm: pip install 'slacktide[notebooks]'") from error
    return lambda **about: tqdm(leave=False, delay=PATIENCE, mininterval=INTERVAL, **about)


@contextmanager
def of_run(wanted: bool | None) -> Iterator[Callable[[float, int, int], None] | None]:
    """What a simulation tells how many requests were admitted."""
    make = bar_of(wanted)
    if make is None:
        yield None
        return
    shown = make(unit=" requests", desc="simulating")

    def tell(_simulated: float, admitted: int, total: int) -> None:
        shown.total = total
        shown.update(admitted - shown.n)

    try:
        yield tell
    finally:
        shown.close()


class Watching:
    """What many runs tell (``experiment.conduct.Watcher``)."""

    def __init__(self, wanted: bool | None) -> None:
        self._make = bar_of(wanted)
        self._bar: Any = None
        self._later = 0

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def announce(self, text: str) -> None:
        """It is shown beside the bar, where there is one."""
        if self._bar is not None:
            self._bar.set_postfix_str(text)

    def expect(self, later: Sequence[Point]) -> None:
        self._later = len(later)

    def begin(self, todo: Sequence[Point], done: int) -> None:
        if self._make is None:
            return
        if self._bar is None:
            self._bar = self._make(unit=" runs", desc="runs", initial=done)
        self._bar.total = self._bar.n + len(todo) + self._later

    def told(self, point: Point, outcome: Outcome) -> None:
        """A run has ended, whatever came of it."""
        del point, outcome
        if self._bar is not None:
            self._bar.update()

    def tick(self) -> None:
        """Nothing: the bar is drawn when runs end."""
