"""What a controller was promised and has got, at any instant, without changing anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.errors import StateError
from slacktide.kernels import live
from slacktide.kernels.tables import LEAVING, PLACED, Tables
from slacktide.live.parts import Controller, snap
from slacktide.model import CONCURRENT, INDEPENDENT
from slacktide.qos.availability import ACCOUNTINGS, SLO_TOLERANCE, availability
from slacktide.state.layout import GRID

if TYPE_CHECKING:
    from slacktide.live.engine import Engine

Seconds = NDArray[np.float64]
State = Literal["Kept", "AtRisk", "Missed", "Unknown"]

SUMS = ("lifetime", "running", "startup_first", "startup_restarts", "discarded")
"""Seconds of an instance that :class:`Accrued` and :class:`slacktide.live.parts.Past` both have."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A controller at an instant. Availabilities are shares from 0 to 1, 1 where nothing was owed yet.

    service           name of its class
    promised          the class's SLO
    delivered         in the accounting that decisions use
    delivered_*       in each accounting
    slack             seconds: the metric of its waiting instances (independent: the least of any); None: infinite
    state             ``Kept``; ``AtRisk``: kept, with less slack than the class's margin; ``Missed``: less delivered
                      than promised; ``Unknown``: there was nothing yet to deliver to
    running, waiting  live instances that are ready, and those that are not
    """

    service: str
    promised: float
    delivered: float
    delivered_always: float
    delivered_restart: float
    delivered_never: float
    slack: float | None
    state: State
    running: int
    waiting: int
    preemptions: int
    starts: int


@dataclass(frozen=True, slots=True)
class Accrued:
    """The books of instances brought to an instant; arrays of shape (rows,), seconds and counts.

    ``age`` is how long the present state has lasted, ``spent`` what of that was start-up;
    ``on``: it is on a host (or is leaving it); ``up``: it is ready.
    """

    rows: NDArray[np.int64]
    lifetime: Seconds
    running: Seconds
    startup_first: Seconds
    startup_restarts: Seconds
    discarded: Seconds
    age: Seconds
    spent: Seconds
    on: NDArray[np.bool_]
    up: NDArray[np.bool_]
    records: Any

    def received(self, accounting: Accounting) -> Seconds:
        """E of each instance in an accounting."""
        e = self.running
        if accounting != "always":
            e = e + self.startup_first
        return e + self.startup_restarts if accounting == "never" else e

    def available(self, accounting: Accounting) -> Seconds:
        """Availability of each instance in an accounting."""
        pending = self.lifetime - self.running - self.startup_first - self.startup_restarts - self.discarded
        times = (self.running, pending, self.startup_first, self.startup_restarts, self.discarded)
        return np.asarray(availability(accounting, *times), np.float64)


def accrue(tables: Tables, live_rows: Iterable[int], count: int, now: float) -> Accrued:
    """The books of ``count`` instances at ``now``; O(count)."""
    rows = np.fromiter(live_rows, np.int64, count)
    records = tables["instances"][rows]
    on = (records["state"] == PLACED) | (records["state"] == LEAVING)
    age = now - records["since"]
    passed = np.where(on, age, 0.0)
    spent = np.where(on, np.minimum(passed, records["startup"]), 0.0)
    first = records["starts"] == 1
    return Accrued(
        rows=rows,
        lifetime=now - tables["admission"][rows],
        running=records["running"] + (passed - spent),
        startup_first=records["startup_first"] + np.where(first, spent, 0.0),
        startup_restarts=records["startup_restarts"] + np.where(first, 0.0, spent),
        discarded=records["discarded"],
        age=age,
        spent=spent,
        on=on,
        up=on & (passed >= records["startup"]),
        records=records,
    )


def known(engine: Engine, key: str) -> Controller:
    """The controller; raises :class:`StateError` where there is none."""
    if key not in engine.controllers:
        raise StateError(f"controller {key}: not known")
    return engine.controllers[key]


def not_before(engine: Engine, controller: Controller, now: float) -> float:
    """``now`` on the grid, and no earlier than what the controller's books know."""
    return max(snap(now), float(engine.tables.tb["requests"]["since"][controller.q]))


def totals(controller: Controller, had: Accrued) -> dict[str, float]:
    """:data:`SUMS` over all instances that the controller had, live or not."""
    return {name: getattr(controller.past, name) + float(getattr(had, name).sum()) for name in SUMS}


def together(record: Any, now: float) -> dict[Accounting, float]:
    """Seconds, times their number, in which all live instances of a request counted as running, to ``now``."""
    passed, live_now = now - float(record["since"]), int(record["live"])
    seconds: dict[Accounting, float] = {}
    for name in ACCOUNTINGS:
        all_up = live_now > 0 and int(record[f"up_{name}"]) + int(record[f"leaving_{name}"]) == live_now
        seconds[name] = float(record[f"together_{name}"]) + (live_now * passed if all_up else 0.0)
    return seconds


def standing(engine: Engine, key: str, now: float) -> Standing:
    """Where the controller stands at ``now``, exact; O(its live instances).

    Independent: the least availability and slack of its live instances, and where none is live, what all that it had
    received over their lifetimes; aggregated: always that; concurrent: the time in which all live ones ran over the
    lifetimes.
    Raises :class:`StateError` where the controller is not known.
    """
    controller = known(engine, key)
    now = not_before(engine, controller, now)
    tb = engine.tables.tb
    record = tb["requests"][controller.q]
    theirs = tb["classes"][int(record["cls"])]
    had = accrue(tb, controller.rows, len(controller.rows), now)
    delivered, owed = _delivered(controller, record, had, now)
    slack = _slack(engine, controller, had, float(theirs["slo"]), now)
    achieved = delivered[engine.config.qos.startup]
    state: State = "Kept"
    if not owed:
        state = "Unknown"
    elif achieved < theirs["slo"] - SLO_TOLERANCE:
        state = "Missed"
    elif slack < theirs["margin"]:
        state = "AtRisk"
    up = int(np.count_nonzero(had.up))
    return Standing(
        service=controller.service.name,
        promised=float(theirs["slo"]),
        delivered=achieved,
        delivered_always=delivered["always"],
        delivered_restart=delivered["restart"],
        delivered_never=delivered["never"],
        slack=None if slack == float("inf") else slack,
        state=state,
        running=up,
        waiting=len(had.rows) - up,
        preemptions=controller.past.preemptions + int(had.records["preemptions"].sum()),
        starts=controller.past.starts + int(had.records["starts"].sum()),
    )


def _delivered(controller: Controller, record: Any, had: Accrued, now: float) -> tuple[dict[Accounting, float], bool]:
    """Availability in each accounting, and whether there was anything to deliver to."""
    if controller.approach == INDEPENDENT and len(had.rows):
        least = {name: float(had.available(name).min(initial=1.0)) for name in ACCOUNTINGS}
        return least, bool((had.lifetime > 0.0).any())
    sums = totals(controller, had)
    lifetime = sums["lifetime"]
    if controller.approach == CONCURRENT:
        received = together(record, now)
    else:
        first, again = sums["startup_first"], sums["startup_restarts"]
        received = {
            "always": sums["running"],
            "restart": sums["running"] + first,
            "never": sums["running"] + first + again,
        }
    if lifetime <= 0.0:
        return dict.fromkeys(ACCOUNTINGS, 1.0), False
    return {name: e / lifetime for name, e in received.items()}, True


def _slack(engine: Engine, controller: Controller, had: Accrued, slo: float, now: float) -> float:
    """The metric, seconds (docs/semantics.md, 'Metric' and 'Requests of several instances')."""
    if controller.approach != INDEPENDENT:
        return float(live.weigh(engine.tables.tb.state, controller.q, now))
    entitled = np.rint(had.received(engine.config.qos.startup) / slo * GRID) / GRID
    metric = entitled - had.lifetime - float(engine.tables.tb.rules["alpha"])
    return float(metric.min(initial=np.inf))
