"""Cells of other people's tables: instants and lengths of time, amounts as Kubernetes writes them, ids that are texts.

Arrow columns in, numbers out; what cannot be read is marked, and told by whoever knows the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.cells import Floats, parse_float
from slacktide.inputs.columns.column_batch import is_text
from slacktide.model import arrow

Mask = NDArray[np.bool_]
Scale = tuple[float, float]
"""What numbers are multiplied with, then divided by: one of both is 1, so that nothing is rounded twice."""
TIME_UNITS: dict[str, Scale] = {
    "ns": (1.0, 1e9), "us": (1.0, 1e6), "ms": (1.0, 1e3), "s": (1.0, 1.0), "m": (60.0, 1.0), "min": (60.0, 1.0),
    "h": (3600.0, 1.0), "d": (86_400.0, 1.0),
}  # fmt: skip
"""To seconds."""
AMOUNT_UNITS: dict[str, Scale] = {
    "n": (1.0, 1e9), "u": (1.0, 1e6), "m": (1.0, 1e3),
    **{one: (10.0 ** (3 * power), 1.0) for power, one in enumerate("kMGTPE", 1)},
    **{f"{one}i": (1024.0**power, 1.0) for power, one in enumerate("KMGTPE", 1)},
}  # fmt: skip
"""Suffixes of quantities in Kubernetes."""
PLAIN: Scale = (1.0, 1.0)
LONG_AGO = 3e8
"""Seconds: a number of them that is larger counts from 1970 (and lies behind 1979), a smaller one from a begin."""
TIMES = "seconds, an instant such as 2026-03-01T10:00:00Z, or a unit behind the column's name (created_at:ms)"
AMOUNTS = "a number, or a quantity such as 500m or 1Gi"
_QUANTITY = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(n|u|m|k|[KMGTPE]i?)?")


@dataclass(frozen=True, slots=True)
class Cells:
    """Numbers, NaN where a cell is empty or ``wrong``; ``instants`` whether any of them is a date and a time."""

    values: Floats
    wrong: Mask
    instants: bool = False


def times(column: Any, unit: str) -> Cells:
    """Seconds: instants count from 1970 in UTC, numbers are of ``unit`` (seconds where it is empty)."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_timestamp(column.type) or kinds.is_date(column.type):
        found = column.cast(pa.timestamp("us")) if kinds.is_date(column.type) else column
        return Cells(_scaled(found.cast("int64"), TIME_UNITS[found.type.unit]), _none(column), True)
    if kinds.is_duration(column.type):
        return Cells(_scaled(column.cast("int64"), TIME_UNITS[column.type.unit]), _none(column))
    scale = TIME_UNITS[unit or "s"]
    found = _numbers(column, scale)
    if found is not None:
        return found
    dated = False

    def read(text: str) -> float:
        nonlocal dated
        try:
            return _of(parse_float(text), scale)
        except ValueError:
            dated = True
            return instant(text)

    cells = _texts(column, read)
    return Cells(cells.values, cells.wrong, dated)


def instant(text: str) -> float:
    """Seconds from 1970 of a date and time (RFC 3339, also with a blank in it); without a zone it is UTC's.

    Raises :class:`ValueError`.
    """
    if len(text) < len("2026-03-01"):
        raise ValueError(text)
    found = datetime.fromisoformat(text.removesuffix(" UTC"))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def amounts(column: Any, unit: str) -> Cells:
    """Numbers of ``unit``, or quantities of Kubernetes."""
    scale = AMOUNT_UNITS.get(unit, PLAIN)
    return _numbers(column, scale) or _texts(column, lambda text: _of(quantity(text), scale))


def quantity(text: str) -> float:
    """``500m`` is 0.5, ``1Gi`` 1,073,741,824. Raises :class:`ValueError`."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return _of(float(found[1]), AMOUNT_UNITS.get(found[2], PLAIN))


def _of(value: float, scale: Scale) -> float:
    return value * scale[0] / scale[1]


def whole(column: Any) -> NDArray[np.int64] | None:
    """Whole numbers from 0 on; None where one of the cells is something else, or empty."""
    import pyarrow as pa
    import pyarrow.types as kinds

    try:
        found = column.cast(pa.int64()) if not kinds.is_floating(column.type) else None
    except pa.ArrowInvalid:
        return None
    if found is None or found.null_count:
        return None
    numbers = np.asarray(arrow.as_numpy(found, 0), np.int64)
    return numbers if not len(numbers) or numbers.min() >= 0 else None


def plain(column: Any) -> Any:
    """The column in a type that files have, where it is of one that only frames have."""
    import pyarrow as pa

    return column.cast(pa.large_string()) if str(column.type) == "string_view" else column


def words(column: Any) -> Any:
    """The column as texts, whatever it holds; null where it is empty."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column if is_text(column) else column.cast(pa.string())


def _numbers(column: Any, scale: Scale) -> Cells | None:
    """Of a column of numbers, or of texts that are all such; None of others."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column):
        try:
            column = column.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
        values = _scaled(column, scale)
        odd = np.isinf(values) | (np.isnan(values) & ~arrow.empty_cells(column))
        return None if odd.any() else Cells(values, _none(column))
    if kinds.is_boolean(column.type) or not (
        kinds.is_integer(column.type) or kinds.is_floating(column.type) or kinds.is_decimal(column.type)
    ):
        return None
    return Cells(_scaled(column, scale), _none(column))


def _scaled(column: Any, scale: Scale) -> Floats:
    import pyarrow as pa

    values = np.asarray(arrow.as_numpy(column.cast(pa.float64(), safe=False), math.nan), np.float64).copy()
    values[arrow.empty_cells(column)] = math.nan
    return values * scale[0] / scale[1]


def _none(column: Any) -> Mask:
    return np.zeros(len(column), np.bool_)


def _texts(column: Any, read: Callable[[str], float]) -> Cells:
    """Each text by itself; equal ones are read once."""
    values, wrong = np.full(len(column), math.nan), np.zeros(len(column), np.bool_)
    known: dict[str, float] = {}
    for row, text in enumerate(words(column).to_pylist()):
        if text is None:
            continue
        found = known.get(text)
        if found is None:
            try:
                found = known[text] = read(text)
            except (ValueError, OverflowError):
                wrong[row] = True
                continue
        values[row] = found
    return Cells(values, wrong)
