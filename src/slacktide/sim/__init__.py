"""The simulator: a workload on hosts under a policy, exact in time and repeatable to the bit."""

from slacktide.sim.engine import run
from slacktide.sim.observing import Observer, Snapshot
from slacktide.sim.result import EVENT_KINDS, RunResult

__all__ = ["EVENT_KINDS", "Observer", "RunResult", "Snapshot", "run"]
