"""Where all controllers stand at one instant, as columns; without changing anything.

What :func:`slacktide.live.standing.standing` says of one controller, worked out for all of them together:
ten thousand take some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.request_records import CONCURRENT, INDEPENDENT
from slacktide.kernels.requests import LONGEST
from slacktide.kernels.tables import Tables
from slacktide.live.parts import Controller, snap
from slacktide.live.standing import SUMS, Accrued, State, accrue
from slacktide.qos.availability import ACCOUNTINGS, SLO_TOLERANCE
from slacktide.state.layout import GRID

if TYPE_CHECKING:
    from slacktide.live.engine import Engine

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STATES: tuple[State, ...] = ("Kept", "AtRisk", "Missed", "Unknown")


@dataclass(frozen=True, slots=True)
class Overview:
    """Columns of shape (controllers,), in the order of ``controllers``.

    promised, delivered    shares from 0 to 1, in the accounting of decisions
    slack                  seconds, infinite where the promise cannot break
    state                  index into :data:`STATES`
    running, waiting       live instances that are ready, and those that are not
    lifetime, received     seconds, over all instances ever; ``received`` as of an aggregated request
    """

    at: float
    controllers: tuple[Controller, ...]
    promised: Floats
    delivered: Floats
    slack: Floats
    state: Ints
    running: Ints
    waiting: Ints
    preemptions: Ints
    starts: Ints
    lifetime: Floats
    received: Floats


def overview(engine: Engine, now: float, keys: Iterable[str] | None = None) -> Overview:
    """Where the controllers (all, unless ``keys`` are given) stand at ``now``, or at the latest instant known.

    O(their live instances), vectorised.
    """
    chosen = engine.controllers if keys is None else keys
    controllers = tuple(engine.controllers[key] for key in chosen)
    tables, accounting = engine.tables.tb, engine.config.qos.startup
    now = max(snap(now), engine.latest)
    k = len(controllers)
    of = np.repeat(np.arange(k), [len(one.rows) for one in controllers])
    had = accrue(tables, chain.from_iterable(one.rows for one in controllers), len(of), now)
    past = {name: np.array([getattr(one.past, name) for one in controllers], np.float64) for name in SUMS}
    sums = {name: past[name] + np.bincount(of, getattr(had, name), k) for name in SUMS}
    received = sums["running"].copy()
    if accounting != "always":
        received += sums["startup_first"]
    if accounting == "never":
        received += sums["startup_restarts"]
    q = np.array([one.q for one in controllers], np.int64)
    promised = np.asarray(tables["classes"]["slo"][tables["requests"]["cls"][q]], np.float64)
    independent = np.array([one.approach == INDEPENDENT for one in controllers], np.bool_)
    alone = independent & (np.bincount(of, minlength=k) > 0)
    delivered = np.divide(received, sums["lifetime"], out=np.ones(k), where=sums["lifetime"] > 0.0)
    _of_concurrent(engine, q, now, sums["lifetime"], delivered)
    slack = np.where(independent, np.inf, weigh(tables, q, now))
    _of_independent(engine, had, of, alone, promised, (delivered, slack))
    owed = np.where(alone, np.bincount(of, had.lifetime > 0.0, k) > 0, sums["lifetime"] > 0.0)
    up = np.bincount(of, had.up, k).astype(np.int64)
    return Overview(
        at=now,
        controllers=controllers,
        promised=promised,
        delivered=delivered,
        slack=slack,
        state=_states(tables, q, owed, delivered, promised, slack),
        running=up,
        waiting=np.bincount(of, minlength=k) - up,
        preemptions=_count(controllers, "preemptions", had, of),
        starts=_count(controllers, "starts", had, of),
        lifetime=sums["lifetime"],
        received=received,
    )


def _count(controllers: tuple[Controller, ...], name: str, had: Accrued, of: Ints) -> Ints:
    past = np.array([getattr(one.past, name) for one in controllers], np.int64)
    return past + np.bincount(of, had.records[name], len(controllers)).astype(np.int64)


def _of_concurrent(engine: Engine, q: Ints, now: float, lifetime: Floats, delivered: Floats) -> None:
    """Overwrite what concurrent controllers got."""
    records, accounting = engine.tables.tb["requests"][q], engine.config.qos.startup
    mine = (records["approach"] == CONCURRENT) & (lifetime > 0.0)
    live = records["live"]
    all_up = (live > 0) & (records[f"up_{accounting}"] + records[f"leaving_{accounting}"] == live)
    seconds = records[f"together_{accounting}"] + np.where(all_up, live * (now - records["since"]), 0.0)
    delivered[mine] = seconds[mine] / lifetime[mine]


def _of_independent(
    engine: Engine, had: Accrued, of: Ints, alone: NDArray[np.bool_], promised: Floats, out: tuple[Floats, Floats]
) -> None:
    """Overwrite availability and slack of controllers whose instances stand for themselves: the least of any."""
    delivered, slack = out
    accounting = engine.config.qos.startup
    delivered[alone] = 1.0
    mine = alone[of]
    np.minimum.at(delivered, of[mine], had.available(accounting)[mine])
    metric = entitled(had.received(accounting), promised[of]) - had.lifetime - float(engine.tables.tb.rules["alpha"])
    np.minimum.at(slack, of[mine], metric[mine])


def _states(tables: Tables, q: Ints, owed: Any, delivered: Floats, promised: Floats, slack: Floats) -> Ints:
    margin = tables["classes"]["margin"][tables["requests"]["cls"][q]]
    missed = delivered < promised - SLO_TOLERANCE
    kept = np.where(slack < margin, STATES.index("AtRisk"), STATES.index("Kept"))
    found = np.where(missed, STATES.index("Missed"), kept)
    return np.asarray(np.where(owed, found, STATES.index("Unknown")), np.int64)


def entitled(e: Floats, slo: Floats) -> Floats:
    """Lifetime for which ``e`` running seconds keep the promise, on the grid of times, seconds."""
    return np.asarray(np.rint(e / slo * GRID) / GRID, np.float64)


def weigh(tables: Tables, q: Ints, now: float, one_up: Any = 0, unearned: Any = 0.0) -> Floats:
    """Q at ``now`` of an instance of each request in ``q``, seconds (:func:`slacktide.kernels.requests.weigh`).

    ``one_up`` is 1 for a running instance that counts as running, ``unearned`` the seconds that stopping it discards;
    both numbers or arrays of the shape of ``q``.
    """
    records = tables["requests"][q]
    live, up = records["live"], records[f"up_{ACCOUNTINGS[int(tables.rules['accounting'])]}"]
    slo = tables["classes"]["slo"][records["cls"]]
    lifetime = records["total"] + live * (now - records["since"])
    short = entitled(earned(tables, q, now) - unearned, slo) - lifetime
    falls = live * slo - np.where(records["approach"] == CONCURRENT, 0.0, up - one_up)
    with np.errstate(divide="ignore", invalid="ignore"):
        v = short * (slo / falls)
    endless = (falls <= 0.0) | (v > LONGEST)
    kept = np.where(endless, np.inf, entitled(v, np.ones_like(v)))
    return np.asarray(np.where(short < 0.0, short, kept) - float(tables.rules["alpha"]), np.float64)


def earned(tables: Tables, q: Ints, now: float) -> Floats:
    """E of each request's ledger at ``now``, seconds (:func:`slacktide.kernels.requests.earned`)."""
    records = tables["requests"][q]
    accounting = ACCOUNTINGS[int(tables.rules["accounting"])]
    live, up = records["live"], records[f"up_{accounting}"]
    together = records["approach"] == CONCURRENT
    so_far = np.where(together, records[f"together_{accounting}"], records["received"])
    gain = np.where(together & (up < live), 0, up)
    return np.asarray(so_far + gain * (now - records["since"]), np.float64)
