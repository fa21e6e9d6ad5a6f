"""A ledger laid to rest: its workload is no more, and another of the same name may go on from it one day.

Time stands still in between: nobody lives, receives or loses anything. What lived is then vacant, by the workload's own
doing, until its next pods come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slacktide.engine.ledger.checkpoint import COUNTS, LEAVING, PLACED, VACANT, pack, read
from slacktide.model import INDEPENDENT
from slacktide.model.causes import CAUSES, WORKLOAD

GOES_ON = ("live", "fresh", "preemptions", "starts")


def at_rest(said: Mapping[str, Any]) -> dict[str, Any]:
    """What :func:`.checkpoint_export.export` said at the instant at which a workload was deleted, without its pods.

    Raises :class:`StateError` as :func:`.checkpoint.read` does.
    """
    checkpoint, rest = read(said), {name: value for name, value in said.items() if name != "drained"}
    live = checkpoint.counts["live"]
    if checkpoint.approach == INDEPENDENT:
        rest["records"] = pack(_settled(checkpoint.records))
    else:
        counts = {name: checkpoint.counts[name] if name in GOES_ON else 0 for name in COUNTS}
        rest["counts"] = {**counts, "vacant": live, "fresh": min(counts["fresh"], live)}
        rest |= {"atRisk": 0.0, "risks": {}, "leavingStartup": 0.0}
    return rest | {
        "lost": {name: checkpoint.lost.get(name, 0.0) for name in CAUSES[WORKLOAD:]},
        "excused": checkpoint.excused,
        "suspended": {"seconds": checkpoint.suspended[0], "count": 0},
        "blamed": {},
        "vacantCauses": [CAUSES[WORKLOAD]] * live,
    }


def _settled(records: Any) -> Any:
    """Records whose pods are gone, with what these had up to then."""
    records = records.copy()
    on = np.isin(records["state"], (PLACED, LEAVING))
    spent = np.where(on, np.minimum(records["age"], records["startup"]), 0.0)
    records["running"] += np.where(on, records["age"] - spent, 0.0)
    first = records["starts"] == 1
    records["startup_first"] += np.where(first, spent, 0.0)
    records["startup_restarts"] += np.where(first, 0.0, spent)
    records["age"] = records["startup"] = 0.0
    records["state"], records["uid"] = VACANT, 0
    return records
