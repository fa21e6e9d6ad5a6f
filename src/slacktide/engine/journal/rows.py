"""Rows of a workload from the lives of a recorded session's instances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slacktide.engine.journal.retrace import SHORTEST, InstanceHistory, SessionHistory
from slacktide.inputs.columns.instances import BATCH, SERVICE, Scale
from slacktide.model import Past, Unreadiness
from slacktide.model.past import lost_in
from slacktide.model.workload import AGGREGATED, INDEPENDENT
from slacktide.state.spec import Spec

TOGETHER = 1.0
"""Seconds within which changes of a request's number of instances count as one."""
LONGEST = 1e10
"""Seconds since 1970; who goes on lives until then."""


@dataclass(slots=True)
class Row:
    """A row of the workload, times from the beginning of the record."""

    life: InstanceHistory
    admission: float
    duration: float
    kind: int
    approach: int
    instances: int = 1
    scale: Scale = ()
    lost: Past = ()
    spells: Unreadiness = ()


def rows_of(history: SessionHistory) -> list[Row]:
    """What to simulate, in order of admission."""
    rows: list[Row] = []
    together: dict[str, list[InstanceHistory]] = {}
    for life in history.instances:
        controller = life.controller
        if life.end <= history.begin + SHORTEST or life.end <= life.admission + SHORTEST or life.spec is None:
            continue
        if controller.batch or controller.approach == INDEPENDENT:
            rows.append(_row_of_one(life, history.begin))
        else:
            together.setdefault(f"{controller.key}/{controller.q}/{id(controller)}", []).append(life)
    rows += [_row_of_many(lives, history) for lives in together.values()]
    return sorted(rows, key=lambda row: row.admission)


def _row_of_one(life: InstanceHistory, begin: float) -> Row:
    """An instance alone: it completes when it has run as long again, or goes when it went."""
    row = _life_of_one(life, begin)
    spells = ((max(0.0, since - begin), until - max(since, begin)) for since, until in life.spells)
    row.spells = tuple((round(at, 6), seconds) for at, seconds in spells if seconds > SHORTEST)
    return row


def _life_of_one(life: InstanceHistory, begin: float) -> Row:
    """As :func:`_row_of_one`, but for when it is not ready."""
    admission = life.admission - begin
    ran = max(0.0, -admission) - lost_in(life.lost)
    if life.completed:
        kind, approach = (BATCH, AGGREGATED) if life.controller.batch else (SERVICE, INDEPENDENT)
        duration = ran + life.received if life.running >= life.before else life.running  # else work was lost
        return Row(life, admission, max(ran + SHORTEST, duration), kind, approach, lost=life.lost)
    if life.controller.batch and not np.isfinite(life.end):
        return Row(life, admission, np.inf, BATCH, AGGREGATED, lost=life.lost)
    scale = () if not np.isfinite(life.end) else ((life.end - begin, 0),)
    return Row(life, admission, np.inf, SERVICE, INDEPENDENT, scale=scale, lost=life.lost)


def _row_of_many(lives: list[InstanceHistory], history: SessionHistory) -> Row:
    """Instances measured together: their number at first, and when it changed. All are like most of them were.

    What they have lived and got before the record began is that of all of them, in equal parts.
    """
    begin = history.begin
    seconds: dict[Spec | None, float] = {}
    for life in lives:
        seconds[life.spec] = seconds.get(life.spec, 0.0) + life.lived(-np.inf, LONGEST)
    most = max(seconds.values())
    alike = (life for life in lives if seconds[life.spec] == most)
    typical = max(alike, key=lambda life: life.lived(-np.inf, LONGEST))  # it shows most of their resizes
    changes = [(max(0.0, life.admission - begin), 1) for life in lives]
    changes += [(life.end - begin, -1) for life in lives if np.isfinite(life.end)]
    scale: list[tuple[float, int]] = []
    count = 0
    for at, by in sorted(changes):
        count += by
        if scale and at <= scale[-1][0] + TOGETHER:
            scale[-1] = scale[-1][0], count
        elif not scale or count != scale[-1][1]:
            scale.append((at, count))
    (admission, instances), *later = scale
    kept = [one for before, one in zip(scale, later, strict=False) if one[1] != before[1]]
    approach = lives[0].controller.approach
    lived, counted = history.totals.get(id(lives[0].controller), (0.0, 0.0))
    lost: Past = ()
    if admission == 0.0 and instances and lived > 0.0:
        admission, missing = -lived / instances, (lived - counted) / instances
        lost = ((0.0, missing),) if missing >= SHORTEST else ()
    return Row(typical, admission, np.inf, SERVICE, approach, max(1, instances), tuple(kept), lost)
