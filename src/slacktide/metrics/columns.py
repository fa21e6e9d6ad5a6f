"""Columns of a run's tables (docs/results.md) as arrays, and the classes that a run's manifest names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.model import ServiceClass, arrow
from slacktide.qos.windows import judged
from slacktide.settings import class_of

PART = 1 << 20
"""Rows worked on at a time, so that 25 million need no copies of all columns."""


def classes_of(manifest: Mapping[str, Any]) -> tuple[ServiceClass, ...]:
    """The service classes of a run, from its manifest.json, with their penalty tiers."""
    return tuple(class_of(one) for one in manifest["configuration"]["classes"])


def accounting_of(manifest: Mapping[str, Any]) -> Accounting:
    """The accounting of start-up time that the run decided by."""
    found: Accounting = manifest["configuration"]["qos"]["startup"]
    return found


WORST = "worst_window"
"""The column of requests.parquet with the availability of the worst window, where any class has a window."""


def named(accounting: Accounting) -> str:
    """The column of requests.parquet with availabilities in this accounting."""
    return f"availability_{accounting}"


def achieved(table: pa.Table, accounting: Accounting) -> NDArray[np.float64]:
    """A_j, by what the promise of each request is judged, shape (rows,): its availability, of a promise over windows
    that of its worst window.

    Worst windows are in the accounting of decisions, whatever is asked for; tables without the column have none.
    """
    found = numbers(table, named(accounting))
    return judged(found, {name: numbers(table, name) for name in (WORST,) if name in table.column_names}, slice(None))


def parts(table: pa.Table) -> Iterator[pa.Table]:
    """The rows of ``table`` in order, at most :data:`PART` at a time; no copies."""
    for start in range(0, table.num_rows, PART):
        yield table.slice(start, PART)


def numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column as float64, shape (rows,); null is NaN."""
    column = table[name]
    if column.null_count:
        column = column.cast(pa.float64())
    return np.asarray(arrow.as_numpy(column, np.nan), dtype=np.float64)


def codes(table: pa.Table, names: Sequence[str], column: str = "class") -> NDArray[np.int16]:
    """The index of each row's word among ``names``, shape (rows,). Raises ValueError for a word that is not there."""
    place = {name: np.int16(code) for code, name in enumerate(names)}
    found = np.empty(table.num_rows, dtype=np.int16)
    at = 0
    for chunk in table[column].chunks:
        words = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        known = np.array([place.get(word, -1) for word in words.dictionary.to_pylist()], dtype=np.int16)
        mine = known[np.asarray(arrow.as_numpy(words.indices), dtype=np.int64)]
        if (mine < 0).any():
            word = words.dictionary[int(words.indices[int(np.argmin(mine))].as_py())].as_py()
            raise ValueError(f"{column}: found {word!r}, expected one of {', '.join(names)}")
        found[at : at + len(mine)] = mine
        at += len(mine)
    return found


def class_codes(table: pa.Table, classes: Sequence[ServiceClass]) -> NDArray[np.int16]:
    """The index of each row's class among ``classes``, shape (rows,)."""
    return codes(table, [one.name for one in classes])


def slos(classes: Sequence[ServiceClass]) -> NDArray[np.float64]:
    """Sigma of each class."""
    return np.array([one.slo for one in classes])


def ratio(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """``part / whole``, NaN where there is nothing to divide by; shapes broadcast."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    found = np.full(part.shape, np.nan)
    np.divide(part, whole, out=found, where=whole != 0.0)
    return found


def bins(width: float) -> int:
    """How many spans of ``width`` cover 0 to 1. Raises ValueError where they do not do so exactly."""
    count = round(1.0 / width) if width > 0.0 else 0
    if count < 1 or abs(count * width - 1.0) > 1e-9:
        raise ValueError(f"width: found {width:g}, expected a whole part of 1, such as 0.05")
    return count


def bin_of(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """In which of ``count`` equal spans of 0 to 1 each value lies: ``[k/count, (k+1)/count)``; 1 is in the last."""
    place = np.floor(values * count + 1e-9).astype(np.int64)  # 0.15 * 20 is a little less than 3
    return np.asarray(np.clip(place, 0, count - 1), dtype=np.int64)
