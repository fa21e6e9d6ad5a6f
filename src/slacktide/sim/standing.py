"""How a paused run stands: a row for each instance, and for each host."""

from __future__ import annotations

from typing import Any

import numpy as np

from slacktide.kernels.tables import schema
from slacktide.qos.availability import TIMES, availability
from slacktide.qos.per_request import instance_numbers
from slacktide.sim.observing import times_at
from slacktide.sim.pausable import Run

STATES = ("to come", "waiting", "running", "completed", "removed", "leaving", "between two incarnations")
"""By the number that kernels have; who is on a host and not ready yet is "starting"."""


def instances_of(run: Run) -> dict[str, Any]:
    """Columns of all instances that were admitted, shape (n,) each.

    row, and of requests of several instances ``instance``, its number; state; host (its row, -1: none); since (s, when
    that state began); delivered (of its own time so far, in the accounting of decisions); metric (Q, s; NaN where it
    neither waits nor runs); preemptions.
    """
    tb, view, workload = run.tb, run.view(), run.workload
    records = tb["instances"][: int(tb.control["arrived"])]
    row = np.flatnonzero(records["state"] != schema.FUTURE)
    records = records[row]
    states = np.array(STATES, np.object_)[records["state"]]
    placed = records["state"] == schema.PLACED
    states[placed & (records["since"] + records["startup"] > run.at)] = "starting"
    times = times_at(records, tb["admission"][row], run.at)
    weighed = placed | (records["state"] == schema.WAITING)
    metric = [view.metric(one) if has else np.nan for one, has in zip(row.tolist(), weighed.tolist(), strict=True)]
    several = {} if workload.requests is None else {"instance": instance_numbers(workload)[row]}
    return {
        "row": row,
        **several,
        "state": states,
        "host": np.where(placed, records["host"], -1),
        "since": records["since"],
        "delivered": availability(run.config.qos.startup, *(times[name] for name in TIMES)),
        "metric": np.array(metric, np.float64),
        "preemptions": records["preemptions"],
    }


def hosts_of(run: Run) -> dict[str, Any]:
    """Columns of all hosts, shape (h,): up, instances, and by resource what a host has and what is free of it."""
    tb, free = run.tb, run.view().free
    has = tb["capacity"] * tb["unit"]
    found: dict[str, Any] = {"up": tb["hosts"]["down"] == 0, "instances": tb["hosts"]["count"].astype(np.int64)}
    for index, name in enumerate(run.hosts.resources):
        found |= {name: has[:, index], f"free_{name}": free[:, index]}
    return found
