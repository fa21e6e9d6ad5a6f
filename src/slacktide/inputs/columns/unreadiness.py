"""The column ``unready``: when requests that run are not ready for a while."""

from __future__ import annotations

from itertools import pairwise

from slacktide.inputs.columns.cells import format_pairs, parse_pairs
from slacktide.inputs.columns.instances import INSTANT, LATEST
from slacktide.model import Unreadiness

COLUMN = "unready"
EXPECTED = "begin=seconds such as '600=30; 1200=5': begins 0 or more and increasing, and seconds above 0 for each"


def parse(text: str) -> Unreadiness:
    """Spells written as ``600=30; 1200=5``; nothing is none. Raises :class:`ValueError`."""
    found = parse_pairs(text)
    if not all(0.0 <= begin <= LATEST and 0.0 < seconds <= LATEST for begin, seconds in found):
        raise ValueError(text)
    if any(round(later / INSTANT) <= round(earlier / INSTANT) for (earlier, _), (later, _) in pairwise(found)):
        raise ValueError(text)
    return found


def format_unreadiness(spells: Unreadiness) -> str:
    """Text from which :func:`parse` makes equal ones."""
    return format_pairs(spells)
