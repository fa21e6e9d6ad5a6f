"""Windows of availability: how often a promise over windows held, and the worst window of every length
(docs/metrics.md); windows.parquet of a run (docs/results.md).

From the outages of requests, which events.parquet has where a class promises over a window. The curve over all lengths
is that of Hauer et al., "Meaningful Availability", NSDI 2020 (their windowed user-uptime), of each request; of a class
the least of its requests'.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.model import ServiceClass, Workload
from slacktide.model.window import WHOLE, parse_epoch, turns
from slacktide.qos.per_request import measured_together
from slacktide.sim import EVENT_KINDS, RunResult

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


LENGTHS = (
    *(1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0),
    *(3_600.0 * hours for hours in (1, 2, 4, 8, 12, 24, 48, 96, 168, 336, 720, 1_440, 2_160, 4_380, 8_760)),
)
"""Seconds of the windows of the curve, up to the longest life of a class."""

Rows = list[dict[str, Any]]


def window_summary(workload: Workload, result: RunResult, config: Config) -> Rows:
    """Rows for the classes with a window, in their order; of a class first that of its own promise, then the curve.

    ``class``; ``window``, the promise as people say it, null in the curve; ``length`` of windows, seconds, null of
    calendar ones; ``worst``, the least availability of any such window of any request; and of the promise's own windows
    ``requests`` (instances of independent ones), ``kept``, the share of windows that had what was promised, and
    ``longest``, the longest time in one piece without anything, s. Null where the class has no request.

    ``result`` is of a run that recorded its outages. O(k log k) for each length, of k outages.
    """
    assert result.events is not None  # noqa: S101  # for the programmer
    found: Rows = []
    events, requests, code_of = result.events, result.requests, workload.service_class
    requests_code = code_of[requests["row" if workload.requests is None else "first"]]
    begin, end, life_of = _lives(workload, result)
    code = np.full(len(begin), -1, np.int64)
    known = life_of >= 0
    code[life_of[known]] = code_of[known]
    lost = events["kind"] == EVENT_KINDS.index("outage")
    whose = life_of[events["row"][lost]]
    told = {name: events[name][lost] for name in ("time", "qos", "received")}
    for number, one in enumerate(workload.classes):
        if one.window is None:
            continue
        mine = np.flatnonzero(code == number)
        place = np.full(len(begin) + 1, -1, np.int64)  # the last place is for who has no life, -1
        place[mine] = np.arange(len(mine))
        ours = place[whose] >= 0
        until, seconds, received = (told[name][ours] for name in ("time", "qos", "received"))
        outages = Outages.of_lives(begin[mine], end[mine], place[whose[ours]], until, seconds, received)
        worst = requests["worst_window"][requests_code == number]
        worst = worst[~np.isnan(worst)]
        found.append(_own(one, outages, worst, config))
        longest = float((outages.end - outages.begin).max(initial=0.0))
        lengths = sorted({*(length for length in LENGTHS if length < longest), longest} - {0.0})
        found += [
            {"class": one.name, "window": None, "length": length, "worst": value, **_nothing()}
            for length, value in zip(lengths, worst_windows(outages, lengths).tolist(), strict=True)
        ]
    return found


def _nothing() -> dict[str, None]:
    return {"requests": None, "kept": None, "longest": None}


def _own(one: ServiceClass, outages: Outages, worst: Seconds, config: Config) -> dict[str, Any]:
    """The row of a promise itself."""
    assert one.window is not None  # noqa: S101  # for the type checker
    if one.window.rolling is not None:
        kept = kept_share(outages, one.window.rolling, one.slo)
    else:
        last = float((outages.end - outages.shift).max(initial=0.0))
        begins = list(turns(one.window, parse_epoch(config.simulation.epoch), 0.0, last))
        kept = kept_turns(outages, begins, one.slo, whole=one.window.budget == WHOLE)
    some = len(outages.begin) > 0
    return {
        "class": one.name,
        "window": one.window.name,
        "length": one.window.rolling,
        "worst": float(worst.min()) if len(worst) else None,
        "requests": len(outages.begin),
        "kept": kept if some else None,
        "longest": outages.longest if some else None,
    }


def _lives(workload: Workload, result: RunResult) -> tuple[Seconds, Seconds, Lives]:
    """Begin and end of each life, and the life of each row of the workload, -1: none; batch requests have none.

    A request that is measured as a whole has one life, from the first admission to the last end.
    """
    lived = result.requests if result.instances is None else result.instances
    rows, ended = lived["row"], lived["completed"]
    begin = workload.admission[rows] if result.instances is None else lived["admission"]
    if result.instances is not None:
        ended = np.where(np.isnan(ended), lived["removed"], ended)
    end = np.where(np.isnan(ended), result.end, ended)
    life_of = np.full(len(workload), -1, np.int64)
    if workload.requests is None or workload.request is None:
        life_of[rows] = np.arange(len(rows))
        return begin, end, life_of
    whole, owner = measured_together(workload), workload.request
    count = len(workload.requests)
    key = np.where(whole, owner, count + np.arange(len(workload)))
    some = ~workload.requests.batch[owner[rows]]
    lives, place = np.unique(key[rows[some]], return_inverse=True)
    first, last = np.full(len(lives), np.inf), np.full(len(lives), -np.inf)
    np.minimum.at(first, place, begin[some])
    np.maximum.at(last, place, end[some])
    at = np.minimum(np.searchsorted(lives, key), max(len(lives) - 1, 0))
    if len(lives):
        life_of = np.where(lives[at] == key, at, -1)
    return first, last, life_of
