"""Instances of a simulated cluster that run and are not ready for a while (docs/semantics.md, 'Unreadiness')."""

from __future__ import annotations

import numpy as np

from slacktide.kernels.drive import event_heap, instance_ledger, live_events
from slacktide.kernels.feasible import disruption_budgets
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.buffer_capacity import FINISHED, lacking
from slacktide.kernels.tables.log_records import RUN_ENDS, STARTUP_ENDS
from slacktide.kernels.tables.schema import PLACED, State


@kernel
def spells_due(tb: State, now: float) -> None:
    """Let instances be unready whose spells begin now, where they are ready; O(instances on the host + log) each.

    Spells that came while nobody was on a host are void: time did not stop for them.
    """
    control = views.control(tb)
    while control["spelled"] < len(views.spells(tb)) and views.spells(tb)[control["spelled"]]["time"] <= now:
        spell = views.spells(tb)[control["spelled"]]
        control["spelled"] += 1
        row = whole(spell["row"])
        instance = views.instances(tb)[row]
        ready = instance["state"] == PLACED and now >= instance["since"] + instance["startup"]
        if ready and spell["time"] == now:
            begin(tb, row, now, spell["seconds"])
        if lacking(tb) != FINISHED:
            break


@kernel
def begin(tb: State, row: int, now: float, seconds: float) -> None:
    """A ready instance is not, for so many seconds: they count as the start-up of a restart on its host."""
    instance, rules = views.instances(tb)[row], views.rules(tb)
    disruption_budgets.change(tb, row, whole(0), whole(-1))
    views.startups_before(tb)[row] += instance["startup"]  # over, and of use until the instance is stopped
    live_events.begin_unready(tb, row, now, seconds)
    views.control(tb)["crossing_moved"] = 1
    if instance_ledger.asks_for_readiness(tb, row):
        event_heap.push(tb, STARTUP_ENDS, now + seconds, row, whole(instance["starts"]))
    finish = now + seconds + (views.duration(tb)[row] - instance["running"])
    if finish <= rules["end"] and finish < np.inf:
        event_heap.push(tb, RUN_ENDS, finish, row, whole(instance["starts"]))
