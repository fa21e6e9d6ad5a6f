"""What happens to a request in time: before a run, its demands, and when it is not ready."""

from __future__ import annotations

Resizing = tuple[tuple[float, tuple[tuple[str, float], ...]], ...]
"""Seconds, increasing, and how much of which resources is demanded from then on, in the hosts' units; of a resource
that is not named as much as before."""

NEVER_RESIZED: Resizing = ()


Past = tuple[tuple[float, float], ...]
"""Outages before the run: when each ended, seconds, 0 or less and increasing, and how many seconds were lost in it.
They do not overlap."""

NOTHING_LOST: Past = ()


def lost_in(past: Past) -> float:
    """Seconds that were lost in all."""
    return sum(seconds for _, seconds in past)


Unreadiness = tuple[tuple[float, float], ...]
"""Spells, in order: from which second on, and for how many seconds."""
ALWAYS_READY: Unreadiness = ()
