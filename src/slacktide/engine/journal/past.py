"""What ledgers say when a record begins, as a workload file says it: what was lost, and when (docs/record.md)."""

from __future__ import annotations

import numpy as np

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Controller
from slacktide.engine.ledger import accounts
from slacktide.engine.ledger.slo_status import accrue, stand
from slacktide.kernels.qos.metric import GRID
from slacktide.kernels.tables.window_records import LIFETIME
from slacktide.model import CONCURRENT, Past
from slacktide.qos.availability import ACCOUNTINGS, TIMES, availability

SHORTEST = 1.0 / GRID
"""Seconds: what is less is no outage, but the grid of times."""


def past_of(engine: Engine, row: int, now: float) -> Past:
    """The outages of a live instance up to ``now``, in the accounting of decisions; seconds after ``now``, so below 0.

    A promise over a window asks when they were; one over a life only how much, which is one outage that ends now.
    """
    tb = engine.tables.tb
    had = accrue(engine.tables.tb, [row], 1, now)
    lived = float(had["lifetime"][0])
    lost = round((1.0 - _share(engine, had, lived)) * lived / SHORTEST) * SHORTEST
    cls = int(tb["requests"]["cls"][int(tb["owner"][row])])
    found: list[tuple[float, float]] = []
    if tb["classes"]["windowed"][cls] != LIFETIME and len(tb["accounts"]):
        kept = accounts.of_rows(tb, np.array([row], np.int64), now)
        before = float(tb["accounts"]["dropped"][row])
        found += [(before - lived, before)] if before >= SHORTEST else []
        for one in kept.outages:
            before += float(one["length"])
            found.append((float(one["at"]) + before - lived, float(one["length"])))
    rest = lost - sum(seconds for _, seconds in found)
    return _in_order([*found, (0.0, rest)], lived)


def _share(engine: Engine, had: object, lived: float) -> float:
    """Availability of one instance so far, in the accounting of decisions."""
    named = {name: np.asarray(had[name]) for name in TIMES if name != "pending"}  # type: ignore[index]
    pending = np.array([lived]) - sum(named.values())
    accounting = engine.config.qos.startup
    return float(availability(accounting, **named, pending=np.maximum(pending, 0.0))[0])


def _in_order(found: list[tuple[float, float]], lived: float) -> Past:
    """Outages that do not overlap and lie within the life; what does not fit is cut, which the grid of times may do."""
    kept: list[tuple[float, float]] = []
    before = -lived
    for end, seconds in found:
        until = min(end, 0.0)
        fits = min(seconds, until - before)
        if fits >= SHORTEST:
            kept.append((until, fits))
            before = until
    return tuple(kept)


def totals_of(engine: Engine, controller: Controller, now: float) -> tuple[float, float]:
    """Seconds that all instances of a controller have lived by ``now``, and those that count by its approach."""
    stood = stand(engine.tables.tb, (controller,), now)
    received = float(stood.records["received"][0])
    if controller.approach == CONCURRENT:
        received = float(stood.together[0, ACCOUNTINGS.index(engine.config.qos.startup)])
    return float(stood.records["lifetime"][0]), received
