"""What instances had and lost by cause, summed up by class, as counters that never fall.

A controller that goes takes its ledger with it, and one of its name may bring it back: so what is added here is what
each ledger gained from one look to the next.
"""

from __future__ import annotations

from collections import Counter

from slacktide.engine.ledger.overview import LOSSES, Overview
from slacktide.model.service_class import class_name


class LossTotals:
    """Seconds since this replica leads: ``good`` by class, ``lost`` by class and cause."""

    def __init__(self) -> None:
        self.good: Counter[str] = Counter()
        self.lost: Counter[tuple[str, str]] = Counter()
        self._last: dict[str, list[float]] = {}
        """What each controller had at the latest look."""

    def see(self, found: Overview) -> None:
        """How controllers stand now; what those had that are seen for the first time was before. O(controllers)."""
        for one, losses in zip(found.controllers, found.losses.tolist(), strict=True):
            name, last = class_name(one.service.name), self._last.get(one.key, losses)
            self._last[one.key] = losses
            for what, now, before in zip(LOSSES, losses, last, strict=True):
                gained = max(0.0, now - before)
                if what == "good":
                    self.good[name] += gained
                else:
                    self.lost[name, what] += gained

    def forget(self, key: str) -> None:
        """A controller is no more."""
        self._last.pop(key, None)
