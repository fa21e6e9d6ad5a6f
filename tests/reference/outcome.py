"""What a run of the twin leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from reference import metric
from reference.metric import Ledger
from reference.requests import Approach, Totals
from slacktide.config import Accounting

Decision = tuple[int, float, int, int, tuple[int, ...]]
"""Pass number from 0, time, row, host row, rows of the victims in order of eviction."""
PassRecord = tuple[float, int, int, int]
"""Time, queue length at the start, placed, preempted."""

Resized = tuple[float, int, str, int]
"""Time, row, ``resized``, ``moved`` or ``deferred``, host row or -1."""


@dataclass
class RequestOutcome:
    """One row. All times in seconds up to the end of the run; ``running`` is useful time that was kept."""

    admitted: bool = False
    admission: float | None = None
    """When it really was: a batch row may be released later than its file says."""
    completed: float | None = None
    removed: float | None = None
    running: float = 0.0
    pending: float = 0.0
    startup_first: float = 0.0
    startup_restarts: float = 0.0
    wasted_startup: float = 0.0
    discarded: float = 0.0
    preemptions: int = 0
    starts: int = 0
    short: float = 0.0
    """Of a promise over a window: the largest share of one that was lost."""
    ledgers: dict[Accounting, Ledger] = field(default_factory=dict)


@dataclass
class GroupOutcome:
    """One request of the workload: the rows it had, and its ledger in each accounting."""

    approach: Approach
    rows: list[int] = field(default_factory=list)
    totals: dict[Accounting, Totals] = field(default_factory=dict)
    short: float = 0.0
    """Of a promise over a window, where its ledger decides: the largest share of one that was lost."""
    outages: list[tuple[float, float, float]] | None = None
    """Of the same all stretches that lost something: end, seconds lost, and received meanwhile; else None."""


@dataclass
class Outcome:
    decisions: list[Decision] = field(default_factory=list)
    passes: list[PassRecord] = field(default_factory=list)
    resizes: list[Resized] = field(default_factory=list)
    requests: list[RequestOutcome] = field(default_factory=list)
    """By row of the workload."""
    groups: list[GroupOutcome] = field(default_factory=list)
    """By request of the workload; each row where it has none. A service of one row is independent."""
    holds: int = 0
    """How often a request was looked at and left waiting."""

    def availability(self, row: int, accounting: Accounting) -> float:
        """e / (e + p) at the end of the run; discarded time counts like p."""
        return metric.availability(self.requests[row].ledgers[accounting])

    def request_availability(self, request: int, accounting: Accounting) -> float:
        """Of a request at the end of the run: the least of its instances', or e / T; 1 where nothing was owed."""
        group = self.groups[request]
        if group.approach == "independent":
            return min((self.availability(row, accounting) for row in group.rows), default=1.0)
        totals = group.totals[accounting]
        return 1.0 if totals.lifetime == 0.0 else totals.running / totals.lifetime
