"""A policy from pieces, and its metric: functions of named numbers, compiled; all else is as for built-in policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PIECES = ("queue", "gives_way", "leaves", "cost")


STATE = ("slack", "falls")


@dataclass(frozen=True, slots=True)
class Metric:
    """What a policy goes by in place of the availability so far. Both functions are given the same numbers.

    slack   the metric: seconds that are left until a promise breaks, below 0 once it is broken
    falls   by how many of them a second it falls at most while one waits, and nothing else happens
    """

    slack: Callable[..., Any]
    falls: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Pieces:
    """The rules of a policy. Each is a function whose parameters ask by their names for numbers.

    queue      where a waiting instance stands: a number, or two; the least has its turn first
    gives_way  whether an instance may be preempted: always or never (a bool), or the metric below which one that waits
               must be
    leaves     which of those leaves first: a number, or two; the least
    cost       what it costs that one leaves: adds it to ``out``; the largest wins
    metric     what ``metric`` and ``slack`` are; None: as for the built-in policies, by availability

    docs/own-policies.md has the numbers, and what is asked of the functions.
    """

    queue: Callable[..., Any]
    gives_way: Callable[..., Any]
    leaves: Callable[..., Any]
    cost: Callable[..., Any]
    metric: Metric | None = None
    name: str = "pieces"
    """What tables and errors call it, where it is not given by name."""

    def functions(self) -> dict[str, Any]:
        """The pieces by name, whatever they are."""
        return {name: getattr(self, name) for name in PIECES}
