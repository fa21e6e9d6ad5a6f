"""Rows of whole numbers told apart: which of the combinations seen so far each one is."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.runtime import chance
from slacktide.kernels.runtime.compiling import entry, kernel, whole


@kernel
def place_of(rows: NDArray[np.int64], i: int, seen: NDArray[np.int64], places: NDArray[np.int32]) -> int:
    """Where row ``i`` stands in the hash set ``places``, or would stand; O(columns) while that is half full at most."""
    code = np.uint64(0)
    for column in range(rows.shape[1]):
        code = chance.mix(code ^ np.uint64(rows[i, column]))
    mask = len(places) - 1
    at = whole(code & np.uint64(mask))
    while places[at] != 0:
        same = True
        for column in range(rows.shape[1]):
            same = same and seen[places[at] - 1, column] == rows[i, column]
        if same:
            break
        at = (at + 1) & mask
    return at


@entry
def number(
    rows: Annotated[NDArray[np.int64], 2],
    begin: int,
    count: int,
    seen: Annotated[NDArray[np.int64], 2],
    places: NDArray[np.int32],
    code: NDArray[np.int32],
    first: NDArray[np.int64],
) -> tuple[int, int]:
    """Number the rows from ``begin`` on by what they say, in order of appearance; O(rows * columns).

    rows    int64 (n, c)  what is to be told apart
    count   int           how many combinations were seen before
    seen    int64 (m, c)  these; in it, behind them, come new ones
    places  int32 (2^k,)  hash set of these: one more than their number, or 0
    code    int32 (n,)    out: the number of each row's combination
    first   int64 (m,)    out: of each new combination, its first row in ``rows``

    Returns the row at which it stopped, as there is room for no further combination, or n; and how many were seen.
    """
    for i in range(begin, len(rows)):
        at = place_of(rows, i, seen, places)
        if places[at] == 0:
            if 2 * count >= len(places) or count >= len(seen):
                return i, count
            for column in range(rows.shape[1]):
                seen[count, column] = rows[i, column]
            first[count] = i
            count += 1
            places[at] = count
        code[i] = places[at] - 1
    return len(rows), count


@entry
def enter(seen: Annotated[NDArray[np.int64], 2], count: int, places: NDArray[np.int32]) -> None:
    """Bring the first ``count`` of ``seen``, which all differ, into an empty hash set; O(count * columns)."""
    for i in range(count):
        places[place_of(seen, i, seen, places)] = i + 1
