"""What instances had and lost by cause, summed up by class, as counters that never fall.

A controller that goes takes its ledger with it, and one of its name may bring it back: so what is added here is what
each ledger gained from one look to the next.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from slacktide.engine.ledger.overview import LOSSES, Overview
from slacktide.model.service_class import class_name


class LossTotals:
    """Seconds since this replica leads: ``good`` by class, ``lost`` by class and cause."""

    def __init__(self) -> None:
        self.good: Counter[str] = Counter()
        self.lost: Counter[tuple[str, str]] = Counter()
        self._last: dict[str, list[float]] = {}

    def see(self, found: Overview) -> None:
        """How controllers stand now; what those had that are seen for the first time was before. O(controllers)."""
        if not found.controllers:
            return
        said = found.losses.tolist()
        before = [self._last.get(one.key, now) for one, now in zip(found.controllers, said, strict=True)]
        gained = np.maximum(0.0, found.losses - np.array(before))
        numbers: dict[str, int] = {}
        of = [numbers.setdefault(one.service.name, len(numbers)) for one in found.controllers]
        for column, what in enumerate(LOSSES):
            sums = np.bincount(of, gained[:, column], len(numbers)).tolist()
            for service, seconds in zip(numbers, sums, strict=True):
                name = class_name(service)
                if what == "good":
                    self.good[name] += seconds
                else:
                    self.lost[name, what] += seconds
        self._last.update((one.key, now) for one, now in zip(found.controllers, said, strict=True))

    def forget(self, key: str) -> None:
        """A controller is no more."""
        self._last.pop(key, None)
