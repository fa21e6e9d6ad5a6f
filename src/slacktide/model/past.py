"""What a request lost before a run began, of which it was part already (docs/semantics.md, 'A past')."""

from __future__ import annotations

Past = tuple[tuple[float, float], ...]
"""Outages before the run: when each ended, seconds, 0 or less and increasing, and how many seconds were lost in it.
They do not overlap."""

NOTHING_LOST: Past = ()


def lost_in(past: Past) -> float:
    """Seconds that were lost in all."""
    return sum(seconds for _, seconds in past)
