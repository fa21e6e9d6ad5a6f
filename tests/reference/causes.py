"""Losses by cause, the slow way: each instance as a list of stretches, summed up whenever somebody asks.

Written from docs/causes.md; shares no code with the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

CLUSTER, WORKLOAD, OPERATOR = range(3)


@dataclass
class Stretch:
    """From ``begin`` on an instance is ready, or it is not and that is somebody's doing."""

    begin: float
    ready: bool
    cause: int
    lost: bool = False
    """A batch instance's work, which was discarded when its pod was stopped."""


@dataclass
class Instance:
    """One instance, from its admission to its end (None: it lives)."""

    stretches: list[Stretch] = field(default_factory=list)
    ended: float | None = None

    def enter(self, at: float, ready: bool, cause: int) -> None:
        self.stretches.append(Stretch(at, ready, cause))

    def stop(self) -> None:
        """What it did is discarded; what it was forgiven was no work."""
        for one in self.stretches:
            one.lost = one.lost or one.ready

    def spans(self, until: float) -> list[tuple[float, float, Stretch]]:
        end = until if self.ended is None else min(self.ended, until)
        ends = [*(one.begin for one in self.stretches[1:]), end]
        return [(one.begin, min(stop, end), one) for one, stop in zip(self.stretches, ends, strict=True)]


@dataclass
class Workload:
    """Instances that one promise is made to; ``everything``: it counts every loss."""

    everything: bool = False
    instances: list[Instance] = field(default_factory=list)

    def counts(self, one: Stretch) -> bool:
        """Whether a stretch counts as running for the promise."""
        return one.ready or (one.cause != CLUSTER and not self.everything)

    def _sum(self, until: float, chosen: Callable[[Stretch], bool]) -> float:
        return sum(b - a for one in self.instances for a, b, stretch in one.spans(until) if chosen(stretch))

    def good(self, until: float) -> float:
        return self._sum(until, lambda one: one.ready)

    def lost(self, until: float, cause: int) -> float:
        """What was discarded the cluster has lost, though it was good at the time."""
        return self._sum(until, lambda one: cause == CLUSTER if one.lost else not one.ready and one.cause == cause)

    def received(self, until: float) -> float:
        """Seconds that count as running."""
        return self._sum(until, lambda one: self.counts(one) and not one.lost)

    def lifetime(self, until: float) -> float:
        return self._sum(until, lambda _: True)

    def together(self, until: float) -> float:
        """Seconds in which all live instances counted, times their number."""
        edges = sorted({edge for one in self.instances for a, b, _ in one.spans(until) for edge in (a, b)})
        total = 0.0
        for a, b in pairwise(edges):
            spans = (span for one in self.instances for span in one.spans(until))
            now = [self.counts(stretch) for begin, end, stretch in spans if begin <= a < end]
            total += len(now) * (b - a) if now and all(now) else 0.0
        return total
