"""Turns among equals as kube-scheduler gives them (``policy.equals``; docs/semantics.md, 'Equals on kube-scheduler').

Its queue sorts pods of one priority by when each was last tried. One that found no node backs off for 1 s, 2 s, 4 s,
8 s and from then on 10 s. Meanwhile it is tried, too, whenever a pod leaves a node (SchedulerPopFromBackoffQ), but
after all that do not back off, and whoever is done the soonest comes first. So the longer a pod has waited on a cluster
where much happens, the later is its turn; where little happens, all are done backing off: first come, first served.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import GONE, Records, State

MOST_TRIES = 5
"""From so many on it is no longer."""
LONGEST = 10.0
"""Seconds; kube-scheduler's podMaxBackoffSeconds where nobody sets it. Its podInitialBackoffSeconds is 1."""


@leaf
def left_so_far(tb: State) -> int:
    """How often somebody has left a host; O(1)."""
    return views.control(tb)["placements"] - views.control(tb)["placed_now"]


@leaf
def take_number(tb: State, entry: Records) -> None:
    """Whoever has no turn before it comes after all that have a number by now; O(1)."""
    views.control(tb)["numbers"] += 1
    entry["second"] = float(views.control(tb)["numbers"])


@leaf
def seconds(tries: int) -> float:
    """For how long one backs off that was tried so often in vain; O(1)."""
    return LONGEST if tries >= MOST_TRIES else float(1 << (tries - 1))


@kernel
def number_new(tb: State, entries: Records, count: int) -> None:
    """Those that came since the last pass, in their order, come after all that were tried in it; O(n)."""
    for i in range(count):
        entries[i]["tries"], entries[i]["again"], entries[i]["first"] = 0, 0.0, 0.0
        take_number(tb, entries[i])


@kernel
def weigh(tb: State, entries: Records, count: int) -> None:
    """Note of each that waits whether it backs off, and until when: to the second; O(n)."""
    this_second = np.floor(views.control(tb)["now"])
    for i in range(count):
        entries[i]["first"] = entries[i]["again"] if entries[i]["again"] >= this_second else 0.0


@kernel
def begin(tb: State) -> None:
    """A pass begins. All are tried in it if somebody has left a host since the last one, else only who is new; O(1)."""
    control = views.control(tb)
    control["all_tried"] = left_so_far(tb) != control["left_before"]
    control["left_before"] = left_so_far(tb)


@kernel
def end(tb: State, entries: Records, count: int) -> None:
    """The turns of a pass are over: who was tried in vain backs off; O(n)."""
    control = views.control(tb)
    for i in range(count):
        entry = entries[i]
        if entry["done"] == GONE or (entry["tries"] > 0 and not control["all_tried"]):
            continue
        entry["tries"] = min(entry["tries"] + 1, MOST_TRIES)
        entry["again"] = np.floor(control["now"] + seconds(whole(entry["tries"])))
        take_number(tb, entry)
