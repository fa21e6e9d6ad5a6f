"""When a request that runs is not ready for a while."""

from __future__ import annotations

Unreadiness = tuple[tuple[float, float], ...]
"""Spells, in order: from which second on, and for how many seconds."""
ALWAYS_READY: Unreadiness = ()
