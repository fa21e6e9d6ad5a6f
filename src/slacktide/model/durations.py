"""Durations and shares as people write them: ``90``, ``90s``, ``10m``, ``1h30m``, ``30d``, ``2w``; ``0.9``, ``90%``."""

from __future__ import annotations

import re
from decimal import Decimal

from slacktide.model.written_numbers import shown

SECONDS_OF = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
"""Every unit has a fixed length, longest first; months and years have none (see calendar windows)."""
EXPECTED = "seconds, or numbers with units w, d, h, m or s, such as 30d, 10m or 1h30m"
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([wdhms])")
LONGEST_TEXT = 1100
"""Characters: the smallest number has so many behind its point."""


def parse_duration(text: str | float) -> float:
    """Seconds from a number of seconds, or from numbers with units, each unit once, the longest first.

    Raises ``ValueError`` that says what was found and what would be right.
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        seconds = float(text)
    else:
        seconds = _of_text(text) if isinstance(text, str) else float("nan")
    if not 0.0 <= seconds < float("inf"):
        raise ValueError(f"found {shown(text)}, expected {EXPECTED}")
    return seconds


def _of_text(text: str) -> float:
    stripped = text.strip()
    if len(stripped) > LONGEST_TEXT:
        return float("nan")
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", stripped):
        return float(stripped)
    parts = _PART.findall(stripped)
    units = [unit for _, unit in parts]
    in_order = [unit for unit in SECONDS_OF if unit in units]
    if not parts or "".join(number + unit for number, unit in parts) != stripped or units != in_order:
        return float("nan")
    return sum(float(number) * SECONDS_OF[unit] for number, unit in parts)


def write_duration(seconds: float) -> str:
    """A short text that :func:`parse_duration` reads back to the same number."""
    if seconds == 0.0 or seconds != int(seconds):
        return f"{Decimal(repr(seconds)):f}s"
    parts: list[str] = []
    left = int(seconds)
    for unit, length in SECONDS_OF.items():
        number, left = (0, left) if unit == "w" else divmod(left, int(length))  # people say 30d, not 4w2d
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts)


EXPECTED_SHARE = "a share, such as 0.9 or 90%"


def parse_share(text: str | float) -> float:
    """A share from a number, or from per cent with their sign. Raises ``ValueError``; ranges are others' to check."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return float(text)
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%?)\s*", text) if isinstance(text, str) else None
    if found is None or len(found[0]) > LONGEST_TEXT:
        raise ValueError(f"found {shown(text)}, expected {EXPECTED_SHARE}")
    # As a decimal: 99.9 % is the float nearest to 0.999, and not that of 99.9 divided by 100.
    return float(Decimal(found[1]) / (100 if found[2] else 1))
