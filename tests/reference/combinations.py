"""Rows of whole numbers told apart, one by one."""

from __future__ import annotations

from collections.abc import Sequence


def numbered(rows: Sequence[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """The first row of each distinct one, and which of these each row is; in the order of what they say."""
    first: dict[tuple[int, ...], int] = {}
    for i, row in enumerate(rows):
        first.setdefault(row, i)
    order = sorted(first)
    return [first[row] for row in order], [order.index(row) for row in rows]
