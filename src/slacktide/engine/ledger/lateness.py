"""Who of those that wait is late by now (docs/semantics.md, 'Triage'): lost, or starving; changes nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import snap
from slacktide.kernels.queue import lateness as rules

Late = tuple[int, int]
"""Of a controller's instances in the queue: how many are lost, and how many starve."""

NOBODY: Late = (0, 0)


def how_late(engine: Engine, rows: NDArray[np.int64], now: float) -> NDArray[np.int64]:
    """Of each instance one of the numbers of :mod:`slacktide.kernels.queue.lateness`; O(rows).

    A user's own policy gives nobody up.
    """
    found = np.zeros(len(rows), np.int64)
    if not engine.decides_by_own_policy:
        rules.tell_late(engine.tables.tb.state, rows, now, found)
    return found


def count_late(
    engine: Engine, rows: NDArray[np.int64], counts: NDArray[np.int64], now: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many are lost, and how many starve, of each of several groups, of which ``counts`` follow each other in
    ``rows``; O(rows).
    """
    found = how_late(engine, rows, now)
    if not found.any():
        return np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    group = np.repeat(np.arange(len(counts)), counts)
    lost, starving = (np.bincount(group[found == how], minlength=len(counts)) for how in (rules.LOST, rules.STARVING))
    return lost, starving


def late(engine: Engine, now: float) -> dict[str, Late]:
    """By the key of every controller of which somebody is late at ``now``; O(queue)."""
    tb = engine.tables.tb
    queue, incoming = tb["queue"]["row"], tb["incoming"]["row"]
    rows = np.concatenate([queue[: int(tb.control["queue"])], incoming[: int(tb.control["incoming"])]])
    found = how_late(engine, rows, max(snap(now), engine.latest))
    lost, starving = (_by_key(engine, rows[found == how]) for how in (rules.LOST, rules.STARVING))
    return {key: (lost[key], starving[key]) for key in (lost | starving)}


def _by_key(engine: Engine, rows: NDArray[np.int64]) -> Counter[str]:
    return Counter(engine.pods[engine.uid_of_row[row]].key for row in rows.tolist())
