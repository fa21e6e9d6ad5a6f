"""Losses by cause, the slow way: each instance as a list of stretches, summed up whenever somebody asks.

Written from docs/causes.md; shares no code with the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

CLUSTER, WORKLOAD, OPERATOR = range(3)


@dataclass
class Stretch:
    """From ``begin`` on an instance is ready, or it is not and that is somebody's doing."""

    begin: float
    ready: bool
    cause: int


@dataclass
class Instance:
    """One instance, from its admission to its end (None: it lives)."""

    stretches: list[Stretch] = field(default_factory=list)
    ended: float | None = None

    def enter(self, at: float, ready: bool, cause: int) -> None:
        self.stretches.append(Stretch(at, ready, cause))

    def spans(self, until: float) -> list[tuple[float, float, bool, int]]:
        end = until if self.ended is None else min(self.ended, until)
        ends = [*(one.begin for one in self.stretches[1:]), end]
        return [
            (one.begin, min(stop, end), one.ready, one.cause) for one, stop in zip(self.stretches, ends, strict=True)
        ]


@dataclass
class Workload:
    """Instances that one promise is made to; ``everything``: it counts every loss."""

    everything: bool = False
    instances: list[Instance] = field(default_factory=list)

    def counts(self, ready: bool, cause: int) -> bool:
        """Whether a stretch counts as running for the promise."""
        return ready or (cause != CLUSTER and not self.everything)

    def good(self, until: float) -> float:
        return sum(b - a for one in self.instances for a, b, ready, _ in one.spans(until) if ready)

    def lost(self, until: float, cause: int) -> float:
        return sum(b - a for one in self.instances for a, b, ready, of in one.spans(until) if not ready and of == cause)

    def received(self, until: float) -> float:
        """Seconds that count as running."""
        return sum(b - a for one in self.instances for a, b, ready, of in one.spans(until) if self.counts(ready, of))

    def lifetime(self, until: float) -> float:
        return sum(b - a for one in self.instances for a, b, _, _ in one.spans(until))

    def together(self, until: float) -> float:
        """Seconds in which all live instances counted, times their number."""
        edges = sorted({edge for one in self.instances for a, b, _, _ in one.spans(until) for edge in (a, b)})
        total = 0.0
        for a, b in pairwise(edges):
            now = [
                self.counts(ready, of)
                for one in self.instances
                for begin, end, ready, of in one.spans(until)
                if begin <= a < end
            ]
            total += len(now) * (b - a) if now and all(now) else 0.0
        return total
