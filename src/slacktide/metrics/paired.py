"""The same requests under two policies, pair by pair (da Silva et al. 2020, section 5.1, figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.metrics.columns import achieved, bin_of, bins, class_codes, ratio, slos
from slacktide.model import ServiceClass, arrow
from slacktide.qos.availability import fulfilled

COLUMNS = ("id", "class")
"""What is needed of requests.parquet beside the availability."""
SAME = 1e-9
"""Availabilities that differ by no more lie on the identity line."""


def pairs(x: pa.Table, y: pa.Table) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """Rows of ``x`` and rows of ``y`` that are the same request, by id; ``None, None`` where row k is row k.

    A request that only one run admitted has no partner and is left out. Raises ValueError where an id occurs twice.
    """
    mine, theirs = _ids(x), _ids(y)
    if len(mine) == len(theirs) and np.array_equal(mine, theirs):
        return None, None
    for ids in (mine, theirs):
        if len(np.unique(ids)) < len(ids):
            raise ValueError("id: found some twice, expected each request once")
    _, left, right = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    order = np.argsort(left)
    return left[order].astype(np.int64), right[order].astype(np.int64)


def _ids(table: pa.Table) -> NDArray[Any]:
    """Numbers, or texts where the user's workload has texts."""
    column = table["id"]
    return arrow.as_numpy(column) if pa.types.is_integer(column.type) else np.array(column.to_pylist(), np.str_)


def _paired(
    x: pa.Table, y: pa.Table, classes: Sequence[ServiceClass], accounting: Accounting
) -> tuple[NDArray[np.int16], NDArray[np.float64], NDArray[np.float64]]:
    """Class and both availabilities of each pair."""
    left, right = pairs(x, y)
    code, a, b = class_codes(x, classes), achieved(x, accounting), achieved(y, accounting)
    if left is not None and right is not None:
        code, a, b = code[left], a[left], b[right]
    return code, a, b


def quadrants(x: pa.Table, y: pa.Table, classes: Sequence[ServiceClass], accounting: Accounting) -> pa.Table:
    """Which of two runs ``x`` and ``y`` (requests.parquet of each) met the SLOs, as shares of a class's requests.

    Columns ``class``, ``requests`` (pairs), the four quadrants ``both`` (top right), ``only_x`` (bottom right),
    ``only_y`` (top left), ``neither`` (bottom left), which sum to 1; and against the identity line ``above`` (``A_y >
    A_x``: y served it better), ``on`` (equal to 1e-9) and ``below``. Fulfilment of x is both + only_x, of y both +
    only_y. Null where a class is empty.
    """
    code, a, b = _paired(x, y, classes, accounting)
    size, promised = len(classes), slos(classes)[code]
    met_x, met_y = fulfilled(a, promised), fulfilled(b, promised)
    above, below = b > a + SAME, a > b + SAME
    which = {
        "both": met_x & met_y,
        "only_x": met_x & ~met_y,
        "only_y": ~met_x & met_y,
        "neither": ~(met_x | met_y),
        "above": above,
        "on": ~(above | below),
        "below": below,
    }
    count = np.bincount(code, minlength=size)
    shares = {
        name: arrow.nullable(ratio(np.bincount(code[rows], minlength=size), count)) for name, rows in which.items()
    }
    return arrow.table({"class": [one.name for one in classes], "requests": count, **shares})


def heat_map(
    x: pa.Table, y: pa.Table, classes: Sequence[ServiceClass], accounting: Accounting, width: float = 0.05
) -> pa.Table:
    """How many requests of a class had availability ``[x_low, x_high)`` in run x and ``[y_low, y_high)`` in run y.

    Squares of ``width`` (a whole part of 1); the last in each direction contains 1. Columns ``class``, ``x_low``,
    ``x_high``, ``y_low``, ``y_high``, ``requests``, ``share`` (of the class), only squares that hold a request.
    """
    code, a, b = _paired(x, y, classes, accounting)
    count = bins(width)
    place = (code.astype(np.int64) * count + bin_of(a, count)) * count + bin_of(b, count)
    filled, requests = np.unique(place, return_counts=True)
    rest, row = np.divmod(filled, count)
    which, column = np.divmod(rest, count)
    sizes = np.bincount(code, minlength=len(classes))
    names = np.array([one.name for one in classes], dtype=np.str_)
    return arrow.table(
        {
            "class": arrow.texts(names[which].tolist()),
            "x_low": column / count,
            "x_high": (column + 1) / count,
            "y_low": row / count,
            "y_high": (row + 1) / count,
            "requests": requests.astype(np.int64),
            "share": requests / sizes[which],
        }
    )
