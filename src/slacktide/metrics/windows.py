"""Windows of availability: how often a rolling promise held, and the worst window of every length (docs/metrics.md).

From the outages of one request, which events.parquet has where a class promises over a window. The curve over all
lengths is that of Hauer et al., "Meaningful Availability", NSDI 2020 (their windowed user-uptime), of one workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outages:
    """Intervals in which nothing was delivered, seconds, in order and apart; shape (k,) each. Within a life from
    ``begin`` to ``end``."""

    since: Seconds
    until: Seconds
    begin: float
    end: float

    @classmethod
    def of(cls, until: Sequence[float], length: Sequence[float], begin: float, end: float) -> Outages:
        """From the instants at which outages ended and their lengths; what touches is one."""
        stops = np.asarray(until, np.float64)
        starts = stops - np.asarray(length, np.float64)
        order = np.argsort(starts, kind="stable")
        starts, stops = starts[order], stops[order]
        first = np.ones(len(starts), np.bool_)
        first[1:] = starts[1:] > np.maximum.accumulate(stops)[:-1]
        last = np.append(np.flatnonzero(first)[1:] - 1, len(starts) - 1)[: int(first.sum())]
        return cls(starts[first], np.maximum.accumulate(stops)[last], begin, end)

    @property
    def longest(self) -> float:
        """The longest outage in one piece, seconds; 0 without any."""
        return float((self.until - self.since).max(initial=0.0))

    def lost_before(self, instants: Seconds) -> Seconds:
        """Seconds lost from the beginning up to each instant."""
        lengths = np.concatenate([[0.0], np.cumsum(self.until - self.since)])
        place = np.searchsorted(self.since, instants, "right")
        over = np.zeros(len(instants))
        some = place > 0
        over[some] = np.maximum(0.0, self.until[place[some] - 1] - instants[some])
        return np.asarray(lengths[place] - over)

    def lost_within(self, ends: Seconds, length: float) -> Seconds:
        """Seconds lost in the windows of this length that end at these instants."""
        return self.lost_before(ends) - self.lost_before(ends - length)


def worst_windows(outages: Outages, lengths: Sequence[float]) -> Seconds:
    """The least availability, 0 to 1, of any window of each length (seconds) within the life; shape (len(lengths),).

    A window longer than the life is the whole life; 1 where that is none. A window that is worst ends with an outage,
    or begins with one, or ends or begins with the life. O(len(lengths) k log k).
    """
    found = np.ones(len(lengths))
    life = outages.end - outages.begin
    for i, length in enumerate(lengths):
        within = min(length, life)
        if within <= 0.0:
            continue
        ends = np.concatenate([outages.until, outages.since + within, [outages.begin + within, outages.end]])
        ends = np.clip(ends, outages.begin + within, outages.end)
        found[i] = 1.0 - float(outages.lost_within(ends, within).max()) / within
    return found


def kept_share(outages: Outages, length: float, slo: float) -> float:
    """The share of all instants at which a full window of ``length`` seconds ends that has at least ``slo`` of it.

    1 or 0 for a life that is no longer than the window: it is its only window. O(k log k).
    """
    begin, end = outages.begin + length, outages.end
    if begin >= end:
        return float(worst_windows(outages, [length])[0] >= slo - 1e-9)
    bends = np.concatenate([outages.since, outages.until, outages.since + length, outages.until + length, [begin, end]])
    bends = np.unique(np.clip(bends, begin, end))
    spare = (1.0 - slo) * length + 1e-9 * length - outages.lost_within(bends, length)  # straight between the bends
    here, there, wide = spare[:-1], spare[1:], np.diff(bends)
    above = np.where(here >= 0.0, here, 0.0) + np.where(there >= 0.0, there, 0.0)
    share = np.where((here >= 0.0) == (there >= 0.0), here >= 0.0, above / np.maximum(abs(here - there), 1e-300))
    return float((share * wide).sum() / (end - begin))
