"""Which peers are measured where there are too many for all: some near ones, the others drawn and slowly exchanged.

Near ones make a coordinate right locally, random ones globally (Dabek and others 2004).
Measured pairs beside are exact.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection


class Sample:
    """The peers that one node measures. ``full`` is the number up to which that is all of them, at least ``size``.

    ``near`` of the ``size`` are those nearest by ``distance`` (seconds; infinite where it is not known). Chance comes
    from ``seed`` alone.
    """

    def __init__(self, full: int, size: int, near: int, seed: int | str) -> None:
        self.full, self.size, self.near = max(full, size), size, min(near, size)
        self._chance = random.Random(f"slacktide netprobe {seed}")
        self._drawn: list[str] = []
        self._near: list[str] = []
        self._known: set[str] = set()

    @property
    def chosen(self) -> frozenset[str]:
        """The names that are measured."""
        return frozenset((*self._near, *self._drawn))

    def update(self, names: Collection[str]) -> frozenset[str]:
        """After peers came or went. Missing ones are drawn, and those that stay are kept, but for a fair share of those
        that came: else all would measure whoever was there first. Order of ``names`` is no matter.
        """
        present = set(names)
        came, self._known = sorted(present - self._known), present
        if len(present) <= self.full:
            self._near, self._drawn = [], sorted(present)
            return self.chosen
        self._near = [one for one in self._near if one in present]
        self._drawn = [one for one in self._drawn if one in present]
        room = self.size - len(self._near)
        if len(self._drawn) > room:  # they were all measured until now
            self._drawn = self._chance.sample(sorted(present - set(self._near)), room)
        elif len(self._drawn) == room:
            self._replace(came, len(present))
        self._draw(present)
        return self.chosen

    def _replace(self, came: list[str], count: int) -> None:
        """Each of those who came takes the place of a drawn one by a chance that makes it as likely as all others."""
        for one in came:
            if self._chance.random() < len(self._drawn) / count:
                self._drawn[self._chance.randrange(len(self._drawn))] = one

    def rotate(self, names: Collection[str], distance: Callable[[str], float]) -> frozenset[str]:
        """One drawn peer, that which was measured longest, is exchanged for another; the near ones are found anew."""
        present = set(names)
        if len(present) <= self.full:
            return self.update(names)
        known = sorted((distance(one), one) for one in present)
        self._near = [one for far, one in known[: self.near] if far < float("inf")]
        left = self._drawn[1:]
        gone = set(self._drawn[:1])
        self._drawn = [one for one in left if one in present and one not in self._near]
        self._draw(present - gone)
        del self._drawn[: len(self._drawn) + len(self._near) - self.size]
        return self.chosen

    def _draw(self, present: set[str]) -> None:
        missing = self.size - len(self._near) - len(self._drawn)
        others = sorted(present - self.chosen)
        if missing > 0:
            self._drawn += self._chance.sample(others, min(missing, len(others)))
