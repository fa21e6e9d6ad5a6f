"""How availabilities and deficits are spread over a run's requests (da Silva et al. 2020, sections 4.3.1 and 5.1).

``requests`` is requests.parquet (docs/results.md), as a table with at least the columns named by each function;
``classes`` are the run's, and tables have a row, or rows, for each of them in their order. Availabilities are the
final ones (da Silva et al. 2020, equation 1), in the ``accounting`` asked for; of promises over windows those of the
worst window (:func:`.columns.achieved`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.metrics.columns import achieved, bin_of, bins, class_codes, parts, ratio, slos
from slacktide.model import ServiceClass, arrow
from slacktide.qos.availability import SLO_TOLERANCE, fulfilled

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
LEVELS = tuple(k / 100 for k in range(101))


def availability_ecdf(
    requests: pa.Table, classes: Sequence[ServiceClass], accounting: Accounting, levels: Sequence[float] = LEVELS
) -> pa.Table:
    """The empirical distribution function of availability at ``levels``: ``F(x) = |{j: A_j <= x}| / n`` per class.

    Columns ``class``, ``availability`` (the level x), ``share`` (F(x); null where the class is empty). Of ``requests``
    it needs class and the availability. O(n log levels).
    """
    found = _up_to(requests, classes, accounting, np.sort(np.asarray(levels, np.float64)), deficit=False)
    return _curves("availability", classes, levels, *found)


def deficit_ecdf(
    requests: pa.Table, classes: Sequence[ServiceClass], accounting: Accounting, levels: Sequence[float] = LEVELS
) -> pa.Table:
    """The same of the QoS deficit ``D_j = sigma - A_j`` of the violators, ``A_j < sigma - 1e-9``, alone.

    Columns ``class``, ``deficit`` (the level), ``share`` of violators with at most this deficit; null without any.
    """
    found = _up_to(requests, classes, accounting, np.sort(np.asarray(levels, np.float64)), deficit=True)
    return _curves("deficit", classes, levels, *found)


def _up_to(
    requests: pa.Table,
    classes: Sequence[ServiceClass],
    accounting: Accounting,
    levels: NDArray[np.float64],
    *,
    deficit: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many of each class are at or below each level, (classes, levels), and how many there are, (classes,)."""
    counts = np.zeros((len(classes), len(levels) + 1), dtype=np.int64)
    promised = slos(classes)
    for part in parts(requests):
        code, values = class_codes(part, classes).astype(np.int64), achieved(part, accounting)
        if deficit:
            values = promised[code] - values
            violates = values > SLO_TOLERANCE
            code, values = code[violates], values[violates]
        place = np.searchsorted(levels, values, side="left")  # the first level that is not below the value
        counts += np.bincount(code * counts.shape[1] + place, minlength=counts.size).reshape(counts.shape)
    return np.cumsum(counts, axis=1)[:, :-1], counts.sum(axis=1)


def _curves(
    name: str,
    classes: Sequence[ServiceClass],
    levels: Sequence[float],
    counts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> pa.Table:
    return arrow.table(
        {
            "class": np.repeat([one.name for one in classes], len(levels)),
            name: np.tile(np.sort(np.asarray(levels, np.float64)), len(classes)),
            "share": arrow.nullable(ratio(counts, sizes[:, None]).ravel()),
        }
    )


def availability_histogram(
    requests: pa.Table, classes: Sequence[ServiceClass], accounting: Accounting, width: float = 0.05
) -> pa.Table:
    """How many requests lie in each span of availability ``[low, high)``, the last with its end 1.

    Columns ``class``, ``low``, ``high``, ``requests``, ``share`` (of the class; null where it is empty).
    ``width``: a whole part of 1, else ValueError.
    """
    count = bins(width)
    counts = np.zeros((len(classes), count), dtype=np.int64)
    for part in parts(requests):
        place = class_codes(part, classes).astype(np.int64) * count + bin_of(achieved(part, accounting), count)
        counts += np.bincount(place, minlength=counts.size).reshape(counts.shape)
    edges = np.arange(count + 1) / count
    return arrow.table(
        {
            "class": np.repeat([one.name for one in classes], count),
            "low": np.tile(edges[:-1], len(classes)),
            "high": np.tile(edges[1:], len(classes)),
            "requests": counts.ravel(),
            "share": arrow.nullable(ratio(counts, counts.sum(axis=1, keepdims=True)).ravel()),
        }
    )


def availability_quantiles(
    requests: pa.Table, classes: Sequence[ServiceClass], accounting: Accounting, shares: Sequence[float] = QUANTILES
) -> pa.Table:
    """The availability that a share q of a class's requests does not exceed, interpolated between neighbours.

    Columns ``class``, ``quantile`` (q), ``availability`` (null where the class is empty).
    """
    code, values = class_codes(requests, classes), achieved(requests, accounting)
    found = []
    for number in range(len(classes)):
        mine = values[code == number]
        found.append(np.quantile(mine, shares, overwrite_input=True) if len(mine) else np.full(len(shares), np.nan))
    return arrow.table(
        {
            "class": np.repeat([one.name for one in classes], len(shares)),
            "quantile": np.tile(np.asarray(shares, np.float64), len(classes)),
            "availability": arrow.nullable(np.concatenate(found)),
        }
    )


def slo_fulfilment(requests: pa.Table, classes: Sequence[ServiceClass], accounting: Accounting) -> pa.Table:
    """The share of a class's requests at or above their SLO: ``|{j: A_j >= sigma - 1e-9}| / n``.

    Columns ``class``, ``slo``, ``requests``, ``fulfilled`` (how many), ``fulfilment``, and of availability ``mean`` and
    ``min``; and of the violators ``deficit_mean`` and ``deficit_max`` (of ``D = sigma - A``; null without any).
    """
    size = len(classes)
    count, met, total, missing = (np.zeros(size) for _ in range(4))
    lowest, highest = np.full(size, np.inf), np.full(size, -np.inf)
    promised = slos(classes)
    for part in parts(requests):
        code, values = class_codes(part, classes), achieved(part, accounting)
        kept, deficit = fulfilled(values, promised[code]), promised[code] - values
        count += np.bincount(code, minlength=size)
        met += np.bincount(code, kept, size)
        total += np.bincount(code, values, size)
        missing += np.bincount(code, np.where(kept, 0.0, deficit), size)
        for number in range(size):
            mine = code == number
            lowest[number] = values[mine].min(initial=lowest[number])
            highest[number] = deficit[mine & ~kept].max(initial=highest[number])
    return arrow.table(
        {
            "class": [one.name for one in classes],
            "slo": promised,
            "requests": count.astype(np.int64),
            "fulfilled": met.astype(np.int64),
            "fulfilment": arrow.nullable(ratio(met, count)),
            "mean": arrow.nullable(ratio(total, count)),
            "min": arrow.nullable(np.where(count > 0, lowest, np.nan)),
            "deficit_mean": arrow.nullable(ratio(missing, count - met)),
            "deficit_max": arrow.nullable(np.where(count > met, highest, np.nan)),
        }
    )
