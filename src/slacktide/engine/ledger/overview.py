"""Where all controllers stand at one instant, as columns; without changing anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Controller, snap
from slacktide.engine.ledger.lateness import count_late
from slacktide.engine.ledger.slo_status import LOSSES as LOSSES
from slacktide.engine.ledger.slo_status import STATES as STATES
from slacktide.engine.ledger.slo_status import count_ready, held_back, losses, stand
from slacktide.qos.availability import ACCOUNTINGS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Overview:
    """Columns of shape (controllers,), in the order of ``controllers``.

    promised, delivered    shares from 0 to 1, in the accounting of decisions
    slack                  seconds, infinite where the promise cannot break
    alpha                  seconds of it that are held back for a start-up
    state                  index into :data:`STATES`
    running, waiting       live instances that are ready, and those that are not
    lost, starving         of those that wait in the queue, how many are late, and how
    given_up               since when the plan has given them up, seconds since 1970; infinite where it does not
    lifetime, received     seconds, over all instances ever; ``received`` as of an aggregated request
    losses                 seconds of all instances ever, shape (controllers, 4): :data:`LOSSES`
    """

    at: float
    controllers: tuple[Controller, ...]
    promised: Floats
    delivered: Floats
    slack: Floats
    alpha: Floats
    state: Ints
    running: Ints
    waiting: Ints
    lost: Ints
    starving: Ints
    given_up: Floats
    preemptions: Ints
    starts: Ints
    lifetime: Floats
    received: Floats
    losses: Floats


def overview(engine: Engine, now: float, keys: Iterable[str] | None = None) -> Overview:
    """Where the controllers (all, unless ``keys`` are given) stand at ``now``, or at the latest instant known.

    O(their live instances): some 10 µs each.
    """
    chosen = engine.controllers if keys is None else keys
    controllers = tuple(engine.controllers[key] for key in chosen)
    now = max(snap(now), engine.latest)
    engine.pass_time(now)
    stood = stand(engine.tables.tb, controllers, now)
    records = stood.records
    lost, starving = count_late(engine, stood.had.rows, records["count"], now)
    counted = zip(controllers, records["running_now"].tolist(), strict=True)
    ready = np.array([count_ready(engine, one, count) for one, count in counted], np.int64)
    return Overview(
        at=now,
        controllers=controllers,
        promised=records["promised"],
        delivered=stood.delivered[:, ACCOUNTINGS.index(engine.config.qos.startup)],
        slack=records["slack"],
        alpha=held_back(engine, controllers),
        state=records["state"],
        running=ready,
        waiting=records["count"] - ready,
        lost=lost,
        starving=starving,
        given_up=np.array([engine.plans.since.get(one.key, np.inf) for one in controllers], np.float64),
        preemptions=records["preemptions"],
        starts=records["starts"],
        lifetime=records["lifetime"],
        received=records["received"],
        losses=losses(engine, controllers, records, now),
    )


def joined(parts: Sequence[Overview]) -> Overview:
    """Overviews of different controllers, one after the other, at least one; ``at`` is the last one's."""
    columns = {
        one.name: np.concatenate([getattr(part, one.name) for part in parts])
        for one in fields(Overview)
        if one.name not in ("at", "controllers")
    }
    controllers = tuple(one for part in parts for one in part.controllers)
    return Overview(at=parts[-1].at, controllers=controllers, **columns)
