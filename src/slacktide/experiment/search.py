"""Looking for the smallest size that will do, several sizes at a time, where larger ones need not do as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bracket:
    """What tested sizes say. The answer is ``meets``: from it on every tested size does.

    fails  the largest tested size that does not do; 0: none
    meets  the smallest tested size above it; None: none
    """

    fails: int
    meets: int | None


def bracket(tested: Mapping[int, bool]) -> Bracket:
    """The bracket of ``tested``: whether each size does."""
    fails = max((size for size, does in tested.items() if not does), default=0)
    return Bracket(fails, min((size for size, does in tested.items() if does and size > fails), default=None))


def next_sizes(
    tested: Mapping[int, bool], *, start: int, most: int, at_once: int = 1, within: int = 1, beside: int = 2
) -> list[int]:
    """Up to ``at_once`` sizes to be tested next; none when the search is over.

    It begins at ``start`` and its half, doubles up to ``most`` until a size does, and then cuts what lies between the
    largest size that does not do and the smallest above it that does into ``at_once + 1`` parts (bisection, where it
    is one), until they are ``within`` of one another. As doing is not certain to be monotone, ``beside`` sizes above
    the answer and the one below the bracket are tested then; one above that does not do begins the cutting anew.
    """
    if not tested:
        return sorted({start, *([max(start // 2, 1)] if at_once > 1 else [])})
    found = bracket(tested)
    if found.meets is None:
        larger = (min(found.fails << step, most) for step in range(1, at_once + 1))
        return sorted({size for size in larger if size > found.fails})
    gap = found.meets - found.fails
    if gap > within:
        parts = min(at_once, gap - 1) + 1
        return sorted({found.fails + gap * part // parts for part in range(1, parts)})
    around = [found.fails - 1, *range(found.meets + 1, min(found.meets + beside, most) + 1)]
    return sorted(size for size in around if size > 0 and size not in tested)[:at_once]
