"""Where a workload's users log in: places and their shares."""

from __future__ import annotations

import math
from collections.abc import Mapping

from slacktide.model.written_numbers import shown

Logins = tuple[tuple[str, float], ...]
"""Places (or hosts) and shares; the shares sum to 1."""
TOLERANCE = 1e-6
LONGEST_SHARE = 64
"""Characters."""
ROUNDING = 1e-12
"""Shares that sum to 1 up to this are taken as they stand, so that what is written reads back as the same."""
EXPECTED = "PLACE, or PLACE:SHARE PLACE:SHARE ... with shares that sum to 1, such as n3:0.5 n2:0.5"


def parse_logins(text: str) -> Logins:
    """``n3`` (all users there) or ``n3:0.5 n2:0.5``; shares sum to 1, no place stands twice, no share is 0.

    Raises ``ValueError`` that says what was found and what would be right.
    """
    words = text.split()
    if len(words) == 1 and ":" not in words[0]:
        return ((words[0], 1.0),)
    found: dict[str, float] = {}
    for word in words:
        place, colon, share = word.rpartition(":")
        try:
            value = float(share) if len(share) <= LONGEST_SHARE else math.nan
        except ValueError:
            value = math.nan
        if not colon or not place or not 0.0 < value <= 1.0 or place in found:
            raise ValueError(f"found {shown(word)} in {shown(text)}, expected {EXPECTED}")
        found[place] = value
    total = sum(found.values())
    if not found or abs(total - 1.0) > TOLERANCE:
        raise ValueError(f"found {shown(text)}, shares that sum to {total:g}, expected {EXPECTED}")
    whole = 1.0 if abs(total - 1.0) < ROUNDING else total
    return tuple((place, share / whole) for place, share in found.items())


def shares_of(counts: Mapping[str, float]) -> Logins:
    """Shares in proportion to counts; places without accesses are left out, ``()`` where nobody came."""
    counted = {place: count for place, count in counts.items() if count > 0.0 and math.isfinite(count)}
    total = sum(counted.values())
    return tuple((place, count / total) for place, count in sorted(counted.items()))
