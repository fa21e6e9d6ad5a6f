"""Windows of availability: how often a promise over windows held, and the worst window of every length
(docs/metrics.md).

From the outages of requests, which events.parquet has where a class promises over a window. The curve over all lengths
is that of Hauer et al., "Meaningful Availability", NSDI 2020 (their windowed user-uptime), of each request; of a class
the least of its requests'.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]
Lives = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Outages:
    """Lives, one behind the other on one axis of time with a gap between them, and the stretches that lost anything.

    ``begin`` and ``end`` of each of n lives, seconds on that axis, (n,); of each of k stretches, in order and apart,
    ``since`` and ``until`` there, ``lost``, the seconds that it lost, evenly, and ``life``, whose it is, (k,) each;
    ``shift``, where on the axis the second 0 of each life is, (n,).
    """

    begin: Seconds
    end: Seconds
    since: Seconds
    until: Seconds
    lost: Seconds
    life: Lives
    shift: Seconds

    @classmethod
    def of(cls, until: Sequence[float], length: Sequence[float], begin: float, end: float) -> Outages:
        """One life from ``begin`` to ``end``, seconds, in which nothing was received for ``length`` seconds up to
        ``until``."""
        ends, lengths = np.asarray(until, np.float64), np.asarray(length, np.float64)
        life, nothing = np.zeros(len(ends), np.int64), np.zeros(len(ends))
        return cls.of_lives(np.array([begin]), np.array([end]), life, ends, lengths, nothing)

    @classmethod
    def of_lives(
        cls, begin: Seconds, end: Seconds, life: Lives, until: Seconds, lost: Seconds, received: Seconds
    ) -> Outages:
        """Several lives, (n,) each; (k,) each: in ``life`` up to ``until`` ``lost`` seconds were lost while
        ``received`` were received.

        Those of one life that lost all and touch are one. All times in seconds. O(k log k).
        """
        since = until - (lost + received)
        order = np.lexsort((since, life))
        life, since, until, full = life[order], since[order], until[order], received[order] <= 0.0
        lost = lost[order]
        first = np.ones(len(life), np.bool_)
        first[1:] = (life[1:] != life[:-1]) | (since[1:] > until[:-1]) | ~full[1:] | ~full[:-1]
        starts = np.flatnonzero(first)
        if len(starts):
            life, since, full = life[starts], since[starts], full[starts]
            until = np.maximum.reduceat(until, starts)
            lost = np.where(full, until - since, np.add.reduceat(lost, starts))
        longest = float((end - begin).max(initial=0.0))
        shift = np.arange(len(begin)) * (2.0 * longest + 1.0) - begin
        return cls(begin + shift, end + shift, since + shift[life], until + shift[life], lost, life, shift)

    @property
    def longest(self) -> float:
        """The longest time in one piece in which nothing was received, seconds; 0 without any."""
        whole = self.until - self.since
        return float(whole[self.lost >= whole * (1.0 - 1e-12)].max(initial=0.0))

    def lost_before(self, instants: Seconds) -> Seconds:
        """Seconds lost up to each instant of the axis, by its life and all before."""
        sums = np.concatenate([[0.0], np.cumsum(self.lost)])
        place = np.searchsorted(self.since, instants, "right")
        over = np.zeros(len(instants))
        some = np.flatnonzero(place)
        last = place[some] - 1
        part = (self.until[last] - instants[some]) / np.maximum(self.until[last] - self.since[last], 1e-300)
        over[some] = np.clip(part, 0.0, 1.0) * self.lost[last]
        return np.asarray(sums[place] - over)

    def lost_within(self, ends: Seconds, length: Seconds | float) -> Seconds:
        """Seconds lost in the windows of this length that end at these instants of the axis."""
        return self.lost_before(ends) - self.lost_before(ends - length)

    def bends(self, length: Seconds) -> tuple[Seconds, Lives]:
        """Where what a window of ``length``, (n,), loses bends as its end moves through a life, and whose life it is;
        its ends, too. A window that is worst ends at one of them."""
        longer = length[self.life]
        everyone = np.arange(len(self.begin))
        life = np.concatenate([*[self.life] * 4, everyone, everyone])
        first = self.begin + length
        ends = [self.since, self.until, self.since + longer, self.until + longer, first, self.end]
        return np.clip(np.concatenate(ends), first[life], np.maximum(first, self.end)[life]), life


def worst_of_each(outages: Outages, length: float) -> Seconds:
    """The least availability, 0 to 1, of any window of ``length`` seconds within each life, (n,).

    A window longer than the life is the whole life; 1 where that is none. O(k log k).
    """
    within = np.minimum(length, outages.end - outages.begin)
    ends, life = outages.bends(within)
    lost = outages.lost_within(ends, within[life])
    most = np.zeros(len(within))
    np.maximum.at(most, life, lost)
    return np.asarray(1.0 - np.divide(most, within, out=np.zeros(len(within)), where=within > 0.0))


def worst_windows(outages: Outages, lengths: Sequence[float]) -> Seconds:
    """The least availability, 0 to 1, of any window of each length (seconds) within any life; shape (len(lengths),)."""
    return np.array([worst_of_each(outages, length).min(initial=1.0) for length in lengths])


def kept_share(outages: Outages, length: float, slo: float) -> float:
    """The share of all instants at which a full window of ``length`` seconds ends that has at least ``slo`` of it, mean
    over the lives.

    1 or 0 for a life that is no longer than the window: it is its only window. NaN without a life. O(k log k).
    """
    long = outages.end - outages.begin > length
    kept = np.where(long, 0.0, worst_of_each(outages, length) >= slo - 1e-9)
    ends, life = outages.bends(np.full(len(long), length))
    ends, life = ends[long[life]], life[long[life]]
    order = np.lexsort((ends, life))
    ends, life = ends[order], life[order]
    spare = (1.0 - slo) * length + 1e-9 * length - outages.lost_within(ends, length)  # straight between the bends
    here, there, wide = spare[:-1], spare[1:], np.diff(ends)
    above = np.where(here >= 0.0, here, 0.0) + np.where(there >= 0.0, there, 0.0)
    share = np.where((here >= 0.0) == (there >= 0.0), here >= 0.0, above / np.maximum(abs(here - there), 1e-300))
    same = life[1:] == life[:-1]
    sums = np.bincount(life[1:][same], (share * wide)[same], minlength=len(long))
    kept[long] += (sums / np.maximum(outages.end - outages.begin - length, 1e-300))[long]
    return float(kept.mean()) if len(kept) else float("nan")


def kept_turns(outages: Outages, begins: Sequence[float], slo: float, *, whole: bool) -> float:
    """Of calendar windows that begin at these seconds the share that had at least ``slo`` of its time, over all windows
    of all lives; NaN where there are none.

    The first and the last of a life count as far as they were lived; with ``whole`` budget of the whole window.
    """
    met = count = 0
    begin, end = outages.begin - outages.shift, outages.end - outages.shift
    for since, until in itertools.pairwise(begins):
        a, b = np.maximum(begin, since), np.minimum(end, until)
        lived = b > a
        lost = outages.lost_before(b + outages.shift) - outages.lost_before(a + outages.shift)
        owed = np.full(len(a), until - since) if whole else b - a
        met += int((lived & (lost <= (1.0 - slo + 1e-9) * owed)).sum())
        count += int(lived.sum())
    return met / count if count else float("nan")
