"""A controller's ledger at an instant, made into the plain JSON that is kept outside (:mod:`.checkpoint`)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core import disruptions, types
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger import accounts
from slacktide.engine.ledger.checkpoint import (
    INSTANCES_VERSION,
    LEAVING,
    LIFETIME_VERSION,
    MOST_RISKS,
    PLACED,
    RECORD,
    VACANT,
    VERSION,
    WAITING,
    hashed,
    pack,
    squeeze,
    suffered_said,
)
from slacktide.engine.ledger.promise import promise_said
from slacktide.engine.ledger.slo_status import SUMS, Accrued, accrue, known, not_before, stand, totals
from slacktide.kernels.tables import schema
from slacktide.model import APPROACHES, INDEPENDENT
from slacktide.model.causes import CAUSES, CLUSTER, OPERATOR, WORKLOAD
from slacktide.qos.availability import ACCOUNTINGS


def causes_said(engine: Engine, controller: types.Controller, at: float) -> dict[str, Any]:
    """What was not the cluster's doing; nothing where all was."""
    blame = engine.instances.blame
    lost, excused = blame.sums(controller, at)
    suspended, count = blame.suspended(controller, at), controller.suspended[0]
    held = {"drained": controller.drained} if controller.drained else {}
    blamed = any(row in blame.spans for row in controller.rows)
    if not (any(lost) or suspended or count or held or blamed):
        return {}
    pods = {row: engine.uid_of_row[row] for row in controller.rows if row in blame.spans and row in engine.uid_of_row}
    vacant = [blame.spans[row].cause if row in blame.spans else CLUSTER for row in controller.vacant]
    return {
        "lost": {CAUSES[cause]: lost[cause] for cause in (WORKLOAD, OPERATOR)},
        "excused": excused,
        "excuses": not controller.everything,
        "suspended": {"seconds": suspended, "count": count},
        "blamed": {f"{hashed(uid):x}": CAUSES[blame.spans[row].cause] for row, uid in pods.items()},
        "vacantCauses": [CAUSES[cause] for cause in vacant] if any(vacant) else [],
        **held,
    }


def work_at_risk(engine: Engine, had: Accrued) -> NDArray[np.float64]:
    """Of each row, running seconds on hosts that a stop would discard."""
    blame, at = engine.instances.blame, had["age"] + had.records["since"]
    work = np.where(had["on"], had["running"], 0.0)
    for i, row in enumerate(had.rows.tolist()):
        if work[i] > 0.0:
            span = blame.spans.get(row)
            lasting = float(at[i]) - span.since if span is not None and span.counted else 0.0
            work[i] = max(0.0, work[i] - blame.forgiven.get(row, 0.0) - lasting)
    return work


def excused_on_hosts(engine: Engine, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows are counted as ready on a host that are not."""
    spans = engine.instances.blame.spans
    if not spans:
        return np.zeros(len(rows), np.bool_)
    return np.array([row in spans and spans[row].counted for row in rows.tolist()], np.bool_)


def export(engine: Engine, key: str, now: float) -> dict[str, Any]:
    """The controller's ledger at ``now``, for :func:`read`; plain JSON. O(its live instances).

    ``at`` says for which instant it holds: ``now``, but no earlier than what the ledger knows.
    Raises :class:`StateError` where the controller is not known.
    """
    controller = known(engine, key)
    at = not_before(engine, controller, now)
    vacant = set(controller.vacant)
    order = [row for row in controller.rows if row not in vacant] + list(controller.vacant)
    had = accrue(engine.tables.tb, order, len(order), at)
    said: dict[str, Any] = {"version": LIFETIME_VERSION, "approach": APPROACHES[controller.approach], "at": at}
    said["promise"] = promise_said(controller)
    had_to = disruptions.suffered(engine.instances, controller)
    if had_to is not None:
        said["disruptions"] = suffered_said(had_to)
    said |= causes_said(engine, controller, at)
    if controller.approach != INDEPENDENT:
        said |= _in_sums(engine, controller, had, at)
        return said | _of_window(engine, controller, at)
    past, window = controller.past, controller.service.window
    if window is not None:
        kept = accounts.of_rows(engine.tables.tb, had.rows, at)
        said |= {
            "version": INSTANCES_VERSION,
            "window": accounts.window_said(window),
            "outages": squeeze(kept.packed()),
        }
    return {
        **said,
        "sums": {name: getattr(past, name) for name in SUMS} | {"overhead": 0.0},
        "counts": {"live": len(order), "preemptions": past.preemptions, "starts": past.starts},
        "records": pack(_records(engine, had)),
        "names": squeeze(json.dumps([controller.rows[row] for row in order]).encode()),
    }


def _states(engine: Engine, had: Accrued) -> NDArray[np.int64]:
    """Of each row what its pod does."""
    states = np.full(len(had.rows), VACANT, np.int64)
    of = {types.ASLEEP: WAITING, types.WAITING: WAITING, types.PLACED: PLACED, types.LEAVING: LEAVING}
    for i, row in enumerate(had.rows.tolist()):
        uid = engine.uid_of_row.get(row)
        if uid is not None:
            one = engine.pods[uid]
            states[i] = LEAVING if one.preempted else of[one.state]  # also one that was leaving when it was restored
    return states


def _records(engine: Engine, had: Accrued) -> Any:
    records = np.zeros(len(had.rows), RECORD)
    for name in ("running", "startup_first", "startup_restarts", "discarded", "overhead", "starts", "preemptions"):
        records[name] = had.records[name]
    records["lifetime"], records["age"] = had["lifetime"], had["age"]
    excused = had.records["state"] == schema.EXCUSED
    records["running"][excused] = had["running"][excused]
    records["startup"] = np.where(had["on"], had.records["startup"], 0.0)
    records["state"] = _states(engine, had)
    uids = (engine.uid_of_row.get(row, "") for row in had.rows.tolist())
    records["uid"] = [hashed(uid) if uid else 0 for uid in uids]
    return records


def _in_sums(engine: Engine, controller: types.Controller, had: Accrued, at: float) -> dict[str, Any]:
    """The ledger of all instances together."""
    stood = stand(engine.tables.tb, (controller,), at)
    states, starts = _states(engine, had), had.records["starts"].copy()
    bound = np.array([_is_bound(engine, row) for row in had.rows.tolist()], np.bool_)
    assumed = had["on"] & ~bound  # may never be bound: as if it waited
    states[assumed] = WAITING
    starts -= assumed
    first = had.records["starts"] == 1
    sums = totals(controller, had)
    sums["startup_first"] -= float(had["spent"][assumed & first].sum())
    sums["startup_restarts"] -= float(had["spent"][assumed & ~first].sum())
    ready = had["up"] & ~excused_on_hosts(engine, had.rows)
    starting = had["on"] & bound & ~ready
    leaving = states == LEAVING
    counts = {
        "live": len(states),
        "vacant": int(np.count_nonzero(states == VACANT)),
        "waiting": int(np.count_nonzero(states == WAITING)),
        "starting": int(np.count_nonzero(starting)),
        "restarting": int(np.count_nonzero(starting & ~first)),
        "up": int(np.count_nonzero(ready & bound)),
        "leaving": int(np.count_nonzero(leaving)),
        "fresh": int(np.count_nonzero((states <= WAITING) & (starts == 0))),
        "preemptions": controller.past.preemptions + int(had.records["preemptions"].sum()),
        "starts": controller.past.starts + int(starts.sum()),
    }
    return {
        "sums": {**sums, "overhead": float(engine.tables.tb["requests"]["overhead"][controller.q])},
        "counts": counts,
        "together": dict(zip(ACCOUNTINGS, stood.together[0].tolist(), strict=True)),
        "atRisk": float(work_at_risk(engine, had).sum()) if controller.batch else 0.0,
        "risks": _risks(engine, had) if controller.batch else {},
        "leavingStartup": float(had["spent"][leaving].sum()),
    }


def _of_window(engine: Engine, controller: types.Controller, at: float) -> dict[str, Any]:
    """What a promise over a window asks of a request of several instances, where it is over one."""
    window = controller.service.window
    if window is None or controller.batch:
        return {}
    kept, stretch = accounts.of_request(engine.tables.tb, controller.q, at)
    said = {"version": VERSION, "window": accounts.window_said(window), "outages": squeeze(kept.packed())}
    return said if stretch is None else said | {"stretch": asdict(stretch)}


def _risks(engine: Engine, had: Accrued) -> dict[str, float]:
    """What a pod's own timestamps tell only if it has been ready ever since it first was."""
    risked = work_at_risk(engine, had)
    some = np.argsort(-risked, kind="stable")[:MOST_RISKS]
    return {f"{hashed(engine.uid_of_row[int(had.rows[i])]):x}": float(risked[i]) for i in some if risked[i] > 0.0}


def _is_bound(engine: Engine, row: int) -> bool:
    uid = engine.uid_of_row.get(row)
    return uid is not None and engine.pods[uid].bound
