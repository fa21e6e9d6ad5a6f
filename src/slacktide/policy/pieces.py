"""A policy from pieces: four functions of named numbers, compiled; all else is as for the built-in policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

PIECES = ("queue", "gives_way", "leaves", "cost")


@dataclass(frozen=True, slots=True)
class Pieces:
    """The rules of a policy. Each is a function whose parameters ask by their names for numbers.

    queue      where a waiting instance stands: a number, or two; the least has its turn first
    gives_way  whether an instance may be preempted: always or never (a bool), or the metric below which one that waits
               must be
    leaves     which of those leaves first: a number, or two; the least
    cost       what it costs that one leaves: adds it to ``out``; the largest wins

    docs/own-policies.md has the numbers, and what is asked of the functions.
    """

    queue: Callable[..., Any]
    gives_way: Callable[..., Any]
    leaves: Callable[..., Any]
    cost: Callable[..., Any]
    name: str = "pieces"
    """What tables and errors call it, where it is not given by name."""

    def functions(self) -> dict[str, Any]:
        """The pieces by name, whatever they are."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name in PIECES}
