"""How demands change while requests wait and run (Lai, Wang and Wei: delay-aware container scheduling)."""

from __future__ import annotations

Resizing = tuple[tuple[float, tuple[tuple[str, float], ...]], ...]
"""Seconds, increasing, and how much of which resources is demanded from then on, in the hosts' units; of a resource
that is not named as much as before."""

NEVER_RESIZED: Resizing = ()
