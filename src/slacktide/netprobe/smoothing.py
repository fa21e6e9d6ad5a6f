"""From single round-trip times to a mean, a deviation and a share of lost probes.

The latest ``size`` probes of a peer count. Of those answered a sample is an outlier where it is more than three times
the scaled median absolute deviation (1.4826 MAD, which is the standard deviation of a normal distribution) away from
the median, and more than ``FLOOR`` (Hampel's identifier). Mean and standard deviation are over the others. When
``CHANGE`` answers in a row were outliers to one side the path has changed: the window begins anew with them.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import fmean, median, pstdev

SIZE = 64
SCALE = 3.0 * 1.4826
FLOOR_SECONDS = 2e-4
CHANGE = 8


@dataclass(frozen=True, slots=True)
class Smoothed:
    """Mean and standard deviation in seconds (NaN where nothing was answered), share lost, samples, outliers."""

    mean: float
    deviation: float
    lost: float
    samples: int
    outliers: int


class Smoother:
    """The latest probes of one peer."""

    def __init__(self, size: int = SIZE) -> None:
        self._kept: deque[float] = deque(maxlen=size)  # NaN: lost
        self._beyond: list[float] = []
        self._side = 0
        self.outliers = 0

    def __len__(self) -> int:
        return len(self._kept)

    def answered(self, seconds: float) -> bool:
        """Take a sample in; whether it counted (an outlier does not)."""
        inside = self._inside(seconds)
        self._kept.append(seconds)
        if inside == 0:
            self._beyond.clear()
            return True
        self.outliers += 1
        if inside != self._side:
            self._beyond.clear()
        self._side = inside
        self._beyond.append(seconds)
        if len(self._beyond) >= CHANGE:
            self._kept = deque(self._beyond, maxlen=self._kept.maxlen)
            self._beyond.clear()
            return True
        return False

    def lost(self) -> None:
        """Note a probe that was not answered in time."""
        self._kept.append(math.nan)

    def forget(self) -> None:
        """Begin anew."""
        self._kept.clear()
        self._beyond.clear()

    def smoothed(self) -> Smoothed:
        """What the window says now."""
        samples = self._samples()
        if not samples:
            return Smoothed(math.nan, math.nan, 1.0 if self._kept else 0.0, 0, 0)
        middle, reach = self._reach(samples)
        inner = [one for one in samples if abs(one - middle) <= reach]
        share = 1.0 - len(samples) / len(self._kept)
        return Smoothed(fmean(inner), pstdev(inner), share, len(inner), len(samples) - len(inner))

    def _samples(self) -> list[float]:
        return [one for one in self._kept if not math.isnan(one)]

    @staticmethod
    def _reach(samples: list[float]) -> tuple[float, float]:
        middle = median(samples)
        return middle, max(FLOOR_SECONDS, SCALE * median(abs(one - middle) for one in samples))

    def _inside(self, seconds: float) -> int:
        """0 for a sample like the others, 1 above and -1 below."""
        samples = self._samples()
        if len(samples) < CHANGE:
            return 0
        middle, reach = self._reach(samples)
        return 0 if abs(seconds - middle) <= reach else (1 if seconds > middle else -1)
