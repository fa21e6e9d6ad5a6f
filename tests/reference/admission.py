"""Offline admission by adding up, at each admission, all that is still active."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def admitted(
    requests: Sequence[tuple[float, float, tuple[float, ...]]],
    first_limit: Sequence[float],
    limit: Sequence[float],
) -> list[int]:
    """Of each request (start, end, demand), in order of start: -1, or the first resource that has no room for it."""
    verdicts: list[int] = []
    for start, _, demand in requests:
        active = [
            other
            for (_, end, other), verdict in zip(requests[: len(verdicts)], verdicts, strict=True)
            if verdict < 0 and end > start
        ]
        most = first_limit if start == requests[0][0] else limit
        verdicts.append(-1)
        for index, wanted in enumerate(demand):
            held = sum((Fraction(other[index]) for other in active), Fraction(wanted))
            if wanted > 0 and held > Fraction(most[index]):
                verdicts[-1] = index
                break
    return verdicts
