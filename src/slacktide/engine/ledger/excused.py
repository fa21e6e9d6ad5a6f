"""What of a controller was not the cluster's doing, for its checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.pod_observation import hashed
from slacktide.engine.ledger.slo_status import Accrued
from slacktide.model.causes import CAUSES, CLUSTER, OPERATOR, WORKLOAD


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
