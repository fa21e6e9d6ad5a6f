"""What a provider owes for promises that were not kept (da Silva et al. 2020, equations 10 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.metrics.columns import achieved, class_codes, numbers, parts, slos
from slacktide.model import ServiceClass, arrow
from slacktide.qos.availability import fulfilled

Length = Literal["due", "asked", "run", "lifetime"]
COLUMNS = ("class", "instances", "admission", "completion", "running", "duration", "cpu_seconds", "demand_cpu")
"""What :func:`penalties` needs of requests.parquet beside the availability."""
ALL = "all"


def bonus(
    availability: NDArray[np.float64], code: NDArray[np.int16], classes: Sequence[ServiceClass]
) -> NDArray[np.float64]:
    """b_j, the credit for an availability that misses the SLO, shape (n,): that of the lowest tier it falls below.

    A tier holds below ``boundary * sigma``; ``code`` indexes ``classes``. With the default tiers 0.1, 0.3 and 1.0
    below 99.99, 99 and 95 % where sigma is 1, else in the same ratios from sigma on; 0 above them all. Only for
    violators does it mean anything.
    """
    owed = np.zeros(len(availability))
    for number, one in enumerate(classes):
        mine = code == number
        for tier in sorted(one.tiers, key=lambda tier: -tier.boundary):
            owed[mine & (availability < tier.boundary * one.slo)] = tier.bonus
    return owed


def lengths(requests: pa.Table, end: float, length: Length) -> NDArray[np.float64]:
    """d_j, seconds, shape (n,): for what time a request has a claim (see :func:`penalties`)."""
    admission, completion = numbers(requests, "admission"), numbers(requests, "completion")
    if length == "run":
        return numbers(requests, "running")
    if length == "lifetime":
        return np.asarray(np.where(np.isnan(completion), end, completion) - admission)
    duration = numbers(requests, "duration")
    if length == "asked":
        if np.isnan(duration).any():
            raise ValueError("length: found 'asked', expected another one, because some requests are endless")
        return duration
    left = end - admission
    return np.asarray(np.where(np.isnan(completion), np.fmin(duration, left), duration))


def cpu_of(requests: pa.Table) -> NDArray[np.float64]:
    """c_j, CPU in the hosts' unit, shape (n,): what its instances asked for, on average over d_j.

    ``cpu_seconds / duration`` of a request of several instances (for they may be of different lengths), where that is
    endless and of one instance ``demand_cpu``.
    """
    demand, work, duration = (numbers(requests, name) for name in ("demand_cpu", "cpu_seconds", "duration"))
    several = (numbers(requests, "instances") > 1) & ~np.isnan(duration)
    return np.divide(work, duration, out=demand.copy(), where=several)


def penalty_of_each(
    requests: pa.Table,
    classes: Sequence[ServiceClass],
    accounting: Accounting,
    end: float,
    length: Length = "due",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """CPU-second deficit ``C_j-`` and penalty ``P_j`` of each request, both (n,), 0 where the SLO was met."""
    code, got = class_codes(requests, classes), achieved(requests, accounting)
    promised = slos(classes)[code]
    missed = ~fulfilled(got, promised)
    deficit = np.where(missed, promised - got, 0.0)
    lost = deficit * lengths(requests, end, length) * cpu_of(requests)
    return lost, lost * (1.0 + bonus(got, code, classes))


def penalties(
    requests: pa.Table,
    classes: Sequence[ServiceClass],
    accounting: Accounting,
    end: float,
    length: Length = "due",
) -> pa.Table:
    """What each class's violators are owed, and all together (last row, class ``all``).

    For a request j that missed its SLO sigma::

        D_j = sigma - A_j          the QoS deficit
        C_j- = D_j d_j c_j         the deficit of CPU, cpu-seconds (equation 10)
        P_j = C_j- (1 + b_j)       the penalty (equation 11), with the bonus b_j of :func:`bonus`

    c_j is the CPU it asked for (:func:`cpu_of`). d_j, seconds, is 'the amount of time that j has run to be completed',
    which for one that completed is its duration. The papers' runs let all complete; where a run ends before, at ``end``
    seconds, ``length`` says what the others count with:

    due       what of its duration could have run by the end, ``min(duration, end - admission)`` (endless ones: to the
              end): an operator's bill at the end of the run
    asked     its whole duration, as if it went on like this; ValueError where some are endless
    run       the useful running time it had, also of completed ones; a request that never ran costs nothing then
    lifetime  from admission to completion or end, waiting included

    Columns ``class``, ``requests``, ``violators``, ``deficit_cpu_seconds`` (sum of C-), ``penalty`` (sum of P, in
    cpu-seconds of the hosts' unit). ``requests`` needs :data:`COLUMNS` and the availability.
    """
    size = len(classes)
    count, violators = np.zeros(size, np.int64), np.zeros(size, np.int64)
    lost, owed = np.zeros(size), np.zeros(size)
    promised = slos(classes)
    for part in parts(requests):
        code = class_codes(part, classes)
        missed = ~fulfilled(achieved(part, accounting), promised[code])
        deficit, penalty = penalty_of_each(part, classes, accounting, end, length)
        count += np.bincount(code, minlength=size)
        violators += np.bincount(code[missed], minlength=size)
        lost += np.bincount(code, deficit, size)
        owed += np.bincount(code, penalty, size)

    return arrow.table(
        {
            "class": [*(one.name for one in classes), ALL],
            "requests": np.append(count, count.sum()),
            "violators": np.append(violators, violators.sum()),
            "deficit_cpu_seconds": np.append(lost, lost.sum()),
            "penalty": np.append(owed, owed.sum()),
        }
    )


def penalty_increment(one: pa.Table, other: pa.Table) -> pa.Table:
    """By how much the penalties ``one`` exceed ``other``, each of :func:`penalties`: ``(P_one - P_other) / P_other``.

    1.937 reads 'one is 193.7 % higher' (Q figure 8 has priority as one, QoS-driven as other). Columns ``class``,
    ``one``, ``other`` (penalties), ``increment``: 0 where both are 0, infinite where only ``other`` is. Raises
    ValueError where the classes differ.
    """
    names = one["class"].to_pylist()
    if names != other["class"].to_pylist():
        raise ValueError(f"classes differ: {names} and {other['class'].to_pylist()}")
    mine, theirs = numbers(one, "penalty"), numbers(other, "penalty")
    none = np.where(mine == theirs, 0.0, np.inf)
    grown = np.divide(mine - theirs, theirs, out=none, where=theirs > 0.0)
    return arrow.table({"class": names, "one": mine, "other": theirs, "increment": grown})
