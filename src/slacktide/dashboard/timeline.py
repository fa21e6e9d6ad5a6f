"""What can be looked at at any instant: the results of a simulation, or a recorded session."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slacktide.dashboard.view import Head, View

MARKS = 240
"""Into so many equal parts of its span a timeline's preemptions are counted."""
MOST_WORKLOADS = 60_000
"""So many workloads have rows of their own: those whose promises stand worst. All are counted."""
MOST_DECISIONS = 200
"""The last so many decisions are listed."""

Points = list[tuple[float, float | None]]


class Timeline(Protocol):
    """A source with a beginning and an end. Instants are seconds, as its head says since when."""

    head: Head

    def at(self, instant: float) -> View:
        """The whole state at an instant."""

    def history(self, workload: int, until: float, samples: int) -> tuple[Points, list[tuple[float, str]]]:
        """Slack over time up to an instant (None: infinite), and what happened to its pods, in words."""

    def story(self, namespace: str, name: str, until: float) -> list[str] | None:
        """What happened to a pod up to an instant, a line each; None where it is not known."""


def marks_of(times: NDArray[np.float64], span: tuple[float, float]) -> list[int]:
    """How many of ``times`` are in each of :data:`MARKS` equal parts of the span."""
    counts, _ = np.histogram(times, MARKS, (span[0], max(span[1], span[0] + 1e-9)))
    found: list[int] = counts.tolist()
    return found


def clock_text(at: float, epoch: bool) -> str:
    """An instant for people: the time of day (UTC), or hours, minutes and seconds of a simulation."""
    whole = int(at % 86400 if epoch else at)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def finite(value: float) -> float | None:
    """A number to a millionth, or None where it is infinite or none at all, as JSON has neither."""
    return round(value, 6) if isfinite(value) else None


def slack_text(slack: float | None) -> str:
    """Slack for people; None is infinite."""
    return "unlimited slack" if slack is None else f"{slack:.1f} s of slack"


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
