"""The simulator: a workload on hosts under a policy, exact in time and repeatable to the bit."""

from slacktide.sim.observing import Observer, Snapshot
from slacktide.sim.pausable import Run, run
from slacktide.sim.result import EVENT_KINDS, RunResult

__all__ = ["EVENT_KINDS", "Observer", "Run", "RunResult", "Snapshot", "run"]
