"""The column ``unready``: when requests that run are not ready for a while."""

from __future__ import annotations

from itertools import pairwise

from slacktide.inputs.columns.cells import format_pairs, parse_pairs
from slacktide.inputs.columns.instances import INSTANT, LATEST
from slacktide.model import Unreadiness

COLUMN = "unready"
EXPECTED = "begin=seconds such as '600=30; 1200=5': begins 0 or more and increasing, and seconds above 0 for each"
"""Both on the grid of times, on which less than half a microsecond is nothing."""


def parse(text: str) -> Unreadiness:
    """Spells written as ``600=30; 1200=5``; nothing is none. Raises :class:`ValueError`."""
    found = parse_pairs(text)
    if not all(0.0 <= begin <= LATEST and 0.0 < seconds <= LATEST for begin, seconds in found):
        raise ValueError(text)
    if any(later < earlier for (earlier, _), (later, _) in pairwise(found)) or distinct(found) != found:
        raise ValueError(text)
    return found


def distinct(spells: Unreadiness) -> Unreadiness:
    """Without spells that take no time, as a run rounds times, or begin when the one before them does: of several the
    first one counts, as whoever is not ready cannot become so."""
    kept: list[tuple[float, float]] = []
    for begin, seconds in spells:
        later = not kept or round(begin / INSTANT) > round(kept[-1][0] / INSTANT)
        if later and round(seconds / INSTANT) > 0:
            kept.append((begin, seconds))
    return tuple(kept)


def format_unreadiness(spells: Unreadiness) -> str:
    """Text from which :func:`parse` makes equal ones."""
    return format_pairs(spells)
