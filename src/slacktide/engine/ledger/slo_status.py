"""What a controller was promised and has got, at any instant, without changing anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.plans import GivenUp
from slacktide.engine.core.types import LEAVING, PLACED, Controller, snap
from slacktide.engine.ledger.lateness import count_late
from slacktide.errors import StateError
from slacktide.kernels.qos import slo_status as rules
from slacktide.kernels.tables.arrays import Tables
from slacktide.qos.availability import ACCOUNTINGS

State = Literal["Kept", "AtRisk", "Missed", "Unknown"]

STATES: tuple[State, ...] = get_args(State)
"""By the numbers of :mod:`slacktide.kernels.qos.slo_status`."""

SUMS = ("lifetime", "running", "startup_first", "startup_restarts", "discarded")
"""Seconds of an instance that :class:`Accrued` and :class:`slacktide.engine.core.types.Past` both have."""
OF_PAST = (*SUMS, "preemptions", "starts")
"""What is added up of instances that are no more."""
GIVEN = [*OF_PAST, "q", "count"]
"""What :func:`stand` gives the rules of each controller."""
read_past = attrgetter(*OF_PAST)


@dataclass(frozen=True, slots=True)
class Losses:
    """Instance seconds, in the accounting of decisions (docs/causes.md).

    good       ready; of a batch also what was discarded later, so that it never falls
    cluster, workload, operator  not ready, by whose doing; ``cluster`` has what was discarded, ``operator`` also what
               a controller was suspended, which is nobody's lifetime
    """

    good: float
    cluster: float
    workload: float
    operator: float


LOSSES = tuple(one.name for one in fields(Losses))


@dataclass(frozen=True, slots=True)
class SloStatus:
    """A controller at an instant. Availabilities are shares from 0 to 1, 1 where nothing was owed yet.

    service           name of its class
    promised          the class's SLO
    delivered         in the accounting that decisions use
    delivered_*       in each accounting
    slack             seconds: the metric of its waiting instances (independent: the least of any); None: infinite
    alpha             seconds that the slack holds back for a start-up: the class's, or the settings'
    state             ``Kept``; ``AtRisk``: kept, but less than the class's margin is left and more than half of what
                      may be lost is (docs/semantics.md); ``Missed``: less delivered than promised; ``Unknown``: there
                      was nothing yet to deliver to
    running, waiting  live instances that are ready, and those that are not
    losses            seconds of all instances ever, by cause
    lost, starving    of those that wait in the queue, how many are late (docs/semantics.md, 'Triage'), and how
    given_up          what the present plan has to say of it, where it gives it up
    """

    service: str
    promised: float
    delivered: float
    delivered_always: float
    delivered_restart: float
    delivered_never: float
    slack: float | None
    alpha: float
    state: State
    running: int
    waiting: int
    preemptions: int
    starts: int
    lost: int
    starving: int
    losses: Losses
    given_up: GivenUp | None = None


@dataclass(frozen=True, slots=True)
class Accrued:
    """The ledgers of instances at an instant: their ``rows``, ``records``, and ACCRUED ``columns``, shape (rows,)."""

    rows: NDArray[np.int64]
    records: Any
    columns: Any

    def __getitem__(self, name: str) -> Any:
        """A column: seconds, or whether an instance is on a host or ready."""
        return self.columns[name]


def accrue(tables: Tables, live_rows: Iterable[int], count: int, now: float) -> Accrued:
    """The ledgers of ``count`` instances brought to ``now``; O(count)."""
    rows = np.fromiter(live_rows, np.int64, count)
    columns = np.zeros(count, rules.ACCRUED)
    rules.accrue(tables.state, rows, now, columns)
    return Accrued(rows, tables["instances"][rows], columns)


def known(engine: Engine, key: str) -> Controller:
    """The controller; raises :class:`StateError` where there is none."""
    if key not in engine.controllers:
        raise StateError(f"controller {key}: not known")
    return engine.controllers[key]


def not_before(engine: Engine, controller: Controller, now: float) -> float:
    """``now`` on the grid, and no earlier than what the controller's ledger knows."""
    at = max(snap(now), float(engine.tables.tb["requests"]["since"][controller.q]))
    engine.pass_time(at)
    return at


def totals(controller: Controller, had: Accrued) -> dict[str, float]:
    """:data:`SUMS` over all instances that the controller had, live or not."""
    return {name: getattr(controller.past, name) + float(had[name].sum()) for name in SUMS}


@dataclass(frozen=True, slots=True)
class Stood:
    """STATUS ``records``, shape (controllers,), and availabilities and seconds in which all instances ran, shape
    (controllers, accountings). ``had`` are the live instances.
    """

    records: Any
    delivered: NDArray[np.float64]
    together: NDArray[np.float64]
    had: Accrued


def stand(tables: Tables, controllers: Sequence[Controller], now: float) -> Stood:
    """Where controllers stand at ``now``; O(their live instances)."""
    records = np.zeros(len(controllers), rules.STATUS)
    records[GIVEN] = [(*read_past(one.past), one.q, len(one.rows)) for one in controllers]
    live = chain.from_iterable(one.rows for one in controllers)
    had = accrue(tables, live, int(records["count"].sum()), now)
    delivered, together = np.zeros((2, len(controllers), len(ACCOUNTINGS)))
    rules.stand(tables.state, had.rows, had.columns, now, records, delivered, together)
    return Stood(records, delivered, together, had)


def losses(engine: Engine, controllers: Sequence[Controller], records: Any, at: float) -> NDArray[np.float64]:
    """What controllers' instances had and lost up to ``at``, where their STATUS ``records`` have that shape: columns
    :data:`LOSSES`, shape (controllers, 4)."""
    blame = engine.instances.blame
    lifetime, received, discarded = (records[name] for name in ("lifetime", "received", "discarded"))
    found = np.zeros((len(controllers), len(LOSSES)))
    found[:, 0], found[:, 1] = received + discarded, lifetime - received
    for i, one in enumerate(controllers):  # most lose by nobody else's doing than the cluster's
        if blame.concerns(one):
            (_, workload, operator), excused = blame.sums(one, at)
            good, cluster = (
                received[i] - excused + discarded[i],
                lifetime[i] - received[i] - (workload + operator - excused),
            )
            found[i] = good, cluster, workload, operator + blame.suspended(one, at)
    return found


def count_ready(engine: Engine, controller: Controller, counted: int) -> int:
    """Live instances that are ready, of those that the tables count as ready."""
    uids, pods = engine.uid_of_row, engine.pods
    excused = sum(
        engine.instances.blame.is_excused(row) and row in uids and pods[uids[row]].state in (PLACED, LEAVING)
        for row in controller.rows
    ) if engine.instances.blame.spans else 0  # fmt: skip
    return counted - excused


def held_back(engine: Engine, controllers: Sequence[Controller]) -> NDArray[np.float64]:
    """Seconds that the slack of each controller holds back for a start-up, shape (controllers,)."""
    tb = engine.tables.tb
    of_class: NDArray[np.float64] = tb["classes"]["alpha"][tb["requests"]["cls"][[one.q for one in controllers]]]
    return of_class


def slo_status(engine: Engine, key: str, now: float) -> SloStatus:
    """Where the controller stands at ``now``, exact; O(its live instances).

    Independent: the least availability and slack of its live instances, and where none is live, what all that it had
    received over their lifetimes; aggregated: always that; concurrent: the time in which all live ones ran over the
    lifetimes. Of a promise over a window what was delivered in that, in every accounting that of decisions.
    Raises :class:`StateError` where the controller is not known.
    """
    controller = known(engine, key)
    at = not_before(engine, controller, now)
    stood = stand(engine.tables.tb, (controller,), at)
    one = stood.records[0]
    lost, starving = count_late(engine, stood.had.rows, stood.records["count"], at)
    delivered = dict(zip(ACCOUNTINGS, stood.delivered[0].tolist(), strict=True))
    running = count_ready(engine, controller, int(one["running_now"]))
    slack = float(one["slack"])
    return SloStatus(
        service=controller.service.name,
        promised=float(one["promised"]),
        delivered=delivered[engine.config.qos.startup],
        delivered_always=delivered["always"],
        delivered_restart=delivered["restart"],
        delivered_never=delivered["never"],
        slack=None if slack == float("inf") else slack,
        alpha=float(held_back(engine, (controller,))[0]),
        state=STATES[one["state"]],
        running=running,
        waiting=int(one["count"]) - running,
        preemptions=int(one["preemptions"]),
        starts=int(one["starts"]),
        lost=int(lost[0]),
        starving=int(starving[0]),
        losses=Losses(*losses(engine, (controller,), stood.records, at)[0].tolist()),
        given_up=engine.plans.of(engine.tables, controller, at),
    )
