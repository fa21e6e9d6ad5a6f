"""Promises over a window, of requests of several instances (docs/semantics.md, Windows).

What is kept are the stretches in which the same number of instances counted, of the same number of live ones. The
history of a request is put together from them whenever it is asked for, and gone through from its beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import NamedTuple

from reference import metric
from reference.times import on_grid
from reference.windows import MOST, Promise

TIE = 2.0**-17
"""Seconds that a window may lack, as rounding may have taken them, where some instances go on."""


@dataclass
class Stretch:
    """``up`` of ``live`` counted from ``begin`` to ``end``; ``e`` had been received at its begin."""

    begin: float
    end: float
    up: int
    live: int
    e: float

    def received(self, t: float) -> float:
        return self.e + on_grid(self.up * (t - self.begin) / self.live)


@dataclass
class Outage:
    """``length`` seconds lost while ``width`` were received, the last of these when ``at`` had been."""

    at: float
    length: float
    width: float
    counts: bool = True


class Piece(NamedTuple):
    """The history is straight from second ``s0`` to ``s1``: then ``e0`` and ``e1`` had been received."""

    s0: float
    s1: float
    e0: float
    e1: float
    share: float


@dataclass
class Account:
    """The promise of one request, and what it got: shares of the time since its first admission ``begun``."""

    promise: Promise
    begun: float
    stretches: list[Stretch] = field(default_factory=list)
    base: float = 0.0
    """What it had received as the calendar window began."""
    short: float = 0.0
    """The largest share of a calendar window that was lost."""

    def __post_init__(self) -> None:
        self.stretches = self.stretches or [Stretch(self.begun, self.begun, 1, 1, 0.0)]

    @property
    def noted_to(self) -> float:
        return self.stretches[-1].end

    @property
    def received(self) -> float:
        """E, as of ``noted_to``."""
        return self.stretches[-1].received(self.noted_to)

    def note(self, until: float, up: int, live: int) -> None:
        """From ``noted_to`` to ``until`` ``up`` of ``live`` counted."""
        last = self.stretches[-1]
        if until <= last.end:
            return
        if (last.up, last.live) == (up, live):
            last.end = until
            return
        following = Stretch(last.end, until, up, live, self.received)
        if last.begin == last.end:
            self.stretches.pop()
        self.stretches.append(following)

    # The history

    def outages(self) -> tuple[list[Outage], float]:
        """Those of all stretches but the present one, and the seconds of others that are forgotten."""
        return self.outages_of(self.stretches[:-1])[:2]

    def outages_of(self, stretches: list[Stretch]) -> tuple[list[Outage], float, float]:
        """As :meth:`outages`, and the most that any rolling window lost which ends with one of these."""
        kept: list[Outage] = []
        dropped = most = 0.0
        for one in stretches:
            e = one.received(one.end)
            width = e - one.e
            length = (one.end - one.begin) - width
            if length <= 0.0:
                continue
            for other in kept:
                other.counts = other.at > e - self.promise.good
            since = one.end - self.promise.rolling
            while kept and not kept[0].counts and self.begun + kept[0].at + dropped + kept[0].length <= since:
                dropped += kept.pop(0).length
            if kept and kept[-1].at == e and kept[-1].width == 0.0:
                kept[-1].length += length
            else:
                kept.append(Outage(e, length, width))
            if len(kept) > MOST:
                unite_nearest(kept)
            most = max(most, self.lost_since(since, kept, dropped))
        return kept, dropped, most

    def lost(self) -> list[tuple[float, float, float]]:
        """Of each stretch that lost something, whatever its window keeps of it: end, seconds lost, and received."""
        found = [(one.end, one.received(one.end) - one.e, one.end - one.begin) for one in self.stretches]
        return [(end, lasted - received, received) for end, received, lasted in found if lasted > received]

    def lost_since(self, instant: float, kept: list[Outage], before: float) -> float:
        """Seconds lost from ``instant`` on."""
        lost = 0.0
        for one in kept:
            begin = self.begun + one.at - one.width + before
            before += one.length
            end = self.begun + one.at + before
            if end > instant:
                lost += one.length * ((end - max(begin, instant)) / (end - begin))
        return lost

    def history(self) -> list[Piece]:
        """All of it, up to ``noted_to``; the first piece is the time before its admission, which has no beginning."""
        kept, before = self.outages()
        pieces = [Piece(-inf, self.begun, -inf, 0.0, 1.0 if self.promise.whole else self.promise.slo)]
        for one in kept:
            begin = one.at - one.width
            fell = self.begun + begin + before
            pieces.append(Piece(pieces[-1].s1, fell, pieces[-1].e1, begin, 1.0))
            before += one.length
            share = one.width / (one.width + one.length)
            pieces.append(Piece(fell, self.begun + one.at + before, begin, one.at, share))
        last = self.stretches[-1]
        pieces.append(Piece(pieces[-1].s1, last.begin, pieces[-1].e1, last.e, 1.0))
        pieces.append(Piece(last.begin, last.end, last.e, self.received, last.up / last.live))
        return pieces

    # The slack, at ``noted_to``

    def slack(self, going_on: int, live: int) -> float:
        """Seconds until the promise breaks, or by which it is broken, where ``going_on`` of ``live`` go on."""
        found = self.rolling(going_on, live) if self.promise.rolling else self.calendar(going_on, live)
        return inf if found > metric.LARGEST else found

    def rolling(self, c: int, live: int) -> float:
        t, e, promise = self.noted_to, self.received, self.promise
        y = e - promise.good
        start = t - promise.rolling
        pieces = self.history()
        where = next(i for i, one in enumerate(pieces) if y < one.e1)
        one = pieces[where]
        if where > 0:
            x = on_grid(one.s0 + (y - one.e0) / one.share) if one.share < 1.0 else one.s1 - (one.e1 - y)
            v = x - start
        elif promise.whole:
            v = (promise.rolling - (t - self.begun)) + y
        else:
            v = metric.earned(e, promise.slo) - (t - self.begun)
        if c == 0 or v * one.share < -TIE:
            return v
        v = max(v, 0.0)
        left, rho = c * v / live, c / live
        for one in pieces[where:]:
            end = one.s1 - start
            then = (y - one.e1) + c * end / live
            if then < -TIE and one.share > rho:
                return min(max(on_grid(v + left / (one.share - rho)), v), end)
            v, left = end, then
        return inf

    def calendar(self, c: int, live: int) -> float:
        t, promise = self.noted_to, self.promise
        lived = t - max(promise.turns[promise.at], self.begun)
        e, to_go = self.received - self.base, promise.ends - t
        if not promise.whole:
            x = metric.earned(e, promise.slo) - lived
            d = promise.slo * live - c
            never = c / live >= promise.slo or d <= 0.0
            if x < 0.0 and not (never and x * promise.slo >= -TIE):
                return x
            if never:
                return inf
            return min(on_grid(x * (promise.slo * live / d)), to_go)
        left = promise.budget(promise.at) - (lived - e)
        if left < 0.0:
            return left
        if c < live and on_grid(left * (live / (live - c))) < to_go:
            return on_grid(left * (live / (live - c)))
        if c / live >= promise.slo:
            return inf
        return to_go + on_grid(promise.budget(promise.at + 1) * (live / (live - c)))

    def owed_lifetime(self) -> float:
        """As much of the window as it has lived."""
        lived = self.noted_to - self.begun
        return min(lived, self.promise.rolling or self.noted_to - self.promise.turns[self.promise.at])

    def turn(self) -> None:
        """A calendar window begins, which the promise does not know yet: what was before counts no more."""
        self.note_calendar()
        self.base = self.received

    def note_calendar(self) -> None:
        """Remember the share of the present calendar window that was lost."""
        begun, ends, t = self.promise.turns[self.promise.at], self.promise.ends, self.noted_to
        lived = t - max(begun, self.begun)
        owed = ends - begun if self.promise.whole else lived
        if owed > 0.0:
            self.short = max(self.short, (lived - (self.received - self.base)) / owed)

    def worst(self, ended: float) -> float:
        """The run is over, and its life was at ``ended``: the largest share of any window that was lost.

        A life shorter than its rolling window is its only window.
        """
        lived = ended - self.begun
        if lived < self.promise.rolling:
            return ((self.noted_to - self.begun) - self.received) / lived if lived > 0.0 else 0.0
        if self.promise.rolling:
            return self.outages_of(self.stretches)[2] / self.promise.rolling
        self.note_calendar()
        return self.short


def unite_nearest(kept: list[Outage]) -> None:
    """Two neighbours become one: those that then lie nearest together, both of which count, or neither."""
    pairs = [(b.at - a.at + a.width, i) for i, (a, b) in enumerate(pairwise(kept)) if a.counts == b.counts]
    width, i = min(pairs)
    a, b = kept[i], kept[i + 1]
    kept[i : i + 2] = [Outage(b.at, a.length + b.length, width, a.counts)]
