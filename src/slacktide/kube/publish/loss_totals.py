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
        self._places: dict[str, int] = {}
        """Of each controller its row of ``_last``: what it had at the latest look."""
        self._last = np.zeros((0, len(LOSSES)))
        self._free: list[int] = []

    def see(self, found: Overview) -> None:
        """How controllers stand now; what those had that are seen for the first time was before. O(controllers)."""
        if not found.controllers:
            return
        at = np.array([self._places.get(one.key, -1) for one in found.controllers])
        for i in np.flatnonzero(at < 0).tolist():
            at[i] = self._begin(found.controllers[i].key)
            self._last[at[i]] = found.losses[i]
        gained = np.maximum(0.0, found.losses - self._last[at])
        self._last[at] = found.losses
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

    def _begin(self, key: str) -> int:
        """A row for a controller that is seen for the first time."""
        if not self._free:
            rows = len(self._last)
            self._last = np.concatenate([self._last, np.zeros((max(64, rows), len(LOSSES)))])
            self._free = list(range(len(self._last) - 1, rows - 1, -1))
        self._places[key] = row = self._free.pop()
        return row

    def forget(self, key: str) -> None:
        """A controller is no more."""
        if (row := self._places.pop(key, None)) is not None:
            self._free.append(row)
