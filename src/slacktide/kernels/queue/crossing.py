"""When time alone brings somebody who waits to its margin, from where on it may preempt (docs/semantics.md, 'A pass').

Whoever waits has a metric that falls by a second a second, so that this instant is known: of those that their own
ledgers decide for exactly, of others up to rounding. Events that make it earlier lead to another look, and one that
makes it later to a pass which decides nothing.

Under a plan there is no margin (it is FAR). There an equal gives its place for less once slack is below what
``urgent`` says.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.policies import in_force
from slacktide.kernels.qos.metric import GRID
from slacktide.kernels.queue import request_heap, waiting_queue
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State

BLUR = 2.0**-10
"""Seconds; so much later a metric of a request's ledger is surely below its margin, however it was rounded."""


@leaf
def line_of(theirs: Records) -> float:
    """Below this metric one of a class that waits may preempt whom it may not above it; -inf where there is none."""
    return theirs["urgent"] if theirs["planned"] != 0 or theirs["behind"] != 0 else theirs["margin"]


@leaf
def first_below(at: float) -> float:
    """The first instant of the grid after ``at``."""
    return np.floor(at * GRID) / GRID + 1.0 / GRID


@kernel
def of_entry(tb: State, entry: Records) -> float:
    """When a waiting instance meets its line, inf where it has, or never does; O(1)."""
    now = views.control(tb)["now"]
    line = line_of(views.classes(tb)[views.kinds(tb)[entry["kind"]]["cls"]])
    q_j = request_heap.metric_of_entry(tb, entry, now)
    if q_j < line or line == -np.inf or q_j == np.inf:
        return np.inf
    return first_below(now + q_j - line) + (0.0 if entry["request"] < 0 else BLUR)


@kernel
def of_those_alone(tb: State, entries: Records, count: int) -> float:
    """The earliest of such instants, of entries by key; O(log n), and O(those between the lines) where classes have
    several."""
    least, most, classes = np.inf, -np.inf, views.classes(tb)
    for c in range(len(classes)):
        line = line_of(classes[c])
        if line > -np.inf:
            least, most = min(least, line), max(most, line)
    at, i = np.inf, whole(waiting_queue.reached(tb, entries, count, least))
    while i < count and entries[i]["key"] - most < at:
        at = min(at, of_entry(tb, entries[i]))
        i += 1
    return at


@kernel
def look(tb: State) -> None:
    """Note when the next one meets its margin, as things stand; one that has and was not served yet stays noted.

    O(log queue + requests that wait + incoming).
    """
    control = views.control(tb)
    control["crossing_moved"] = 0
    if control["crossing_at"] <= control["now"]:
        return
    control["crossing_at"] = np.inf
    if not views.rules(tb)["crossings"] or not in_force.by_metric(tb):
        return
    queue, count = views.queue(tb), whole(control["queue"])
    alone = whole(waiting_queue.with_own_ledger(tb, queue, count))
    at = of_those_alone(tb, queue, alone)
    for i in range(alone, count):
        if i == alone or queue[i]["request"] != queue[i - 1]["request"]:
            at = min(at, of_entry(tb, queue[i]))
    for i in range(control["incoming"]):
        at = min(at, of_entry(tb, views.incoming(tb)[i]))
    control["crossing_at"] = at


@leaf
def pass_at(tb: State) -> float:
    """When a pass is due for it, some time after the last one before which somebody had met its margin; O(1)."""
    return max(views.control(tb)["crossing_at"], views.control(tb)["crossed_at"] + views.rules(tb)["crossing_pause"])


@leaf
def pass_begins(tb: State) -> None:
    """Whoever has met its margin has its turn, whatever called for this pass."""
    control = views.control(tb)
    if control["crossing_at"] <= control["now"]:
        control["crossed_at"] = control["now"]
    control["crossing_at"] = np.inf
