"""What a run leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from slacktide.kernels.tables.log_records import EVENT_KINDS

__all__ = ["EVENT_KINDS", "Columns", "RunResult"]

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class RunResult:
    """Columns of a run; times in seconds.

    instances  one place per instance of the run: row (int64, into the workload), admission,
               completed and removed (NaN = not), running (useful), pending (in the queue),
               startup_first and startup_restarts (start-up spent), wasted_startup, discarded,
               preemptions, starts, hosts_used; None where every row is a request of its own
    requests   the same per request (``slacktide.qos.per_request``), where every row is one without
               admission and removed
    passes     per pass, where asked for: time, queue, placed, preempted, operations,
               decision_seconds
    events     per event, where asked for: time, kind (index into EVENT_KINDS), row and by
               (rows or -1), host (row of the host or -1), qos (NaN where none), received (of an outage: while it
               lasted; of a request measured together, whose first row is ``row``)
    decisions  per placement, where asked for: pass, time, row, host, metric, and victims
               as first (into ``victims``) and count
    """

    requests: Columns
    instances: Columns | None
    passes: Columns | None
    events: Columns | None
    decisions: Columns | None
    operations: int
    bound_checks: int
    """Looks at a bound that excluded hosts, beside the operations: checks of one host for one instance."""
    pass_count: int
    preemptions: int
    placements: int
    resizes: int
    """Changes of an instance's demand that held where it was, or while it waited."""
    moves: int
    """Changes for which an instance moved to another host."""
    deferrals: int
    """Changes that had to wait for room at first."""
    end: float
    compile_seconds: float
    """Seconds spent on compiling kernels in this run, 0 when they were cached."""
