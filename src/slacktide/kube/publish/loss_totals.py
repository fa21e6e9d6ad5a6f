"""What instances had and lost by cause, summed up by class, as counters that never fall.

A controller that goes takes its ledger with it, and one of its name may bring it back: so what is added here is what
each ledger gained from one look to the next.
"""

from __future__ import annotations

from collections import Counter

from slacktide.engine.ledger.overview import Overview
from slacktide.engine.ledger.slo_status import Losses
from slacktide.model.causes import CAUSES

NOTHING = Losses(0.0, 0.0, 0.0, 0.0)


class LossTotals:
    """Seconds since this replica leads: ``good`` by class, ``lost`` by class and cause."""

    def __init__(self) -> None:
        self.good: Counter[str] = Counter()
        self.lost: Counter[tuple[str, str]] = Counter()
        self._last: dict[str, Losses] = {}

    def see(self, found: Overview) -> None:
        """How controllers stand now; what those had that are seen for the first time was before."""
        for one, now in zip(found.controllers, found.losses, strict=True):
            before = self._last.get(one.key, now)
            self._last[one.key] = now
            name = one.service.name.partition("@")[0]
            self.good[name] += max(0.0, now.good - before.good)  # type: ignore[assignment]  # a sum of seconds
            for cause in CAUSES:
                gained = getattr(now, cause) - getattr(before, cause)
                self.lost[name, cause] += max(0.0, gained)

    def forget(self, key: str) -> None:
        """A controller is no more."""
        self._last.pop(key, None)
