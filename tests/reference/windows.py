"""Promises over a window, of instances that decide by their own ledger (docs/semantics.md, Windows).

Nothing is kept up to date but what happened: pieces of lost time, and the ledger as the calendar window began. Which
outages count is worked out from the beginning whenever it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

from reference import metric
from reference.times import on_grid
from slacktide.config import Config
from slacktide.model import ServiceClass
from slacktide.model.window import parse_epoch, turns

if TYPE_CHECKING:
    from reference.state import Instance

MOST = 36
"""Outages that are kept apart."""
STEP = 2.0**-20


@dataclass
class Promise:
    """The window of a class: seconds of a rolling one, or the instants at which calendar windows begin."""

    slo: float
    whole: bool
    rolling: float = 0.0
    turns: list[float] = field(default_factory=list)
    at: int = 0
    """Place in ``turns`` of the present calendar window's beginning."""

    @property
    def good(self) -> float:
        """What a rolling window must have received."""
        return on_grid(self.rolling * self.slo)

    def budget(self, window: int) -> float:
        """What a calendar window may lose."""
        length = self.turns[window + 1] - self.turns[window]
        return length - on_grid(length * self.slo)

    @property
    def ends(self) -> float:
        return self.turns[self.at + 1] if self.turns else inf


def promise_of(service: ServiceClass, config: Config) -> Promise | None:
    """What a class says of its window; ``None``: its promise is over the whole life."""
    window = service.window
    if window is None:
        return None
    if window.rolling is not None:
        return Promise(service.slo, window.budget == "whole", on_grid(window.rolling))
    end = config.simulation.end
    assert end is not None
    begins = turns(window, parse_epoch(config.simulation.epoch), 0.0, end)
    return Promise(service.slo, window.budget == "whole", turns=[on_grid(one) for one in begins])


@dataclass
class Outage:
    """``length`` seconds lost when ``at`` had been received; of several the last, the first ``width`` before it."""

    at: float
    length: float
    begin: float
    width: float = 0.0
    counts: bool = True

    @property
    def end(self) -> float:
        return self.begin + self.length


def forget(kept: list[Outage], good: float, e: float) -> None:
    """Those count no more since whose end ``good`` seconds were received."""
    for one in kept:
        one.counts = one.counts and not (e >= good and one.at + good <= e)


def unite_nearest(kept: list[Outage]) -> None:
    """Two neighbours become one: those that then lie nearest together, both of which count, or neither."""
    pairs = [(b.at - a.at + a.width, i) for i, (a, b) in enumerate(pairwise(kept)) if a.counts == b.counts]
    width, i = min(pairs)
    a, b = kept[i], kept[i + 1]
    kept[i : i + 2] = [Outage(b.at, a.length + b.length, a.begin, width, a.counts)]


def outages_of(pieces: list[tuple[float, float, float]], promise: Promise) -> tuple[list[Outage], float]:
    """Outages of pieces (e, seconds, end), in order, and the most that any rolling window which ends with one lost."""
    kept: list[Outage] = []
    most = 0.0
    for at, length, until in pieces:
        forget(kept, promise.good, at)
        if kept and kept[-1].at == at:
            kept[-1].length += length
        else:
            kept.append(Outage(at, length, until - length))
        if len(kept) > MOST:
            unite_nearest(kept)
        place(kept, until)
        begin = until - promise.rolling
        while kept and not kept[0].counts and kept[0].end <= begin:
            kept.pop(0)
        most = max(most, sum(max(0.0, one.end - max(one.begin, begin)) for one in kept))
    return kept, most


def place(kept: list[Outage], until: float) -> None:
    """Lay outages out in time, the last one ending at ``until``, as much apart as was received between them."""
    end = until
    for later, one in zip([None, *reversed(kept)], reversed(kept), strict=False):
        if later is not None:
            end = later.begin - (later.at - one.at)
        one.begin = end - one.length


def lost_now(one: Instance, t: float, config: Config) -> list[tuple[float, float, float]]:
    """The pieces up to ``t``, with that of the present start-up where it is over."""
    found = list(one.pieces)
    accounting = config.qos.startup
    if one.host is not None and metric.startup_is_pending(accounting, one.starts) and one.startup > 0.0:
        ready = one.since + one.startup
        if t >= ready:
            found.append((one.ledgers[accounting].e, one.startup, ready))
    return found


def slack(one: Instance, t: float, config: Config) -> float:
    """Seconds until the promise breaks were it stopped from ``t`` on; negative where it is broken."""
    assert one.promise is not None
    ledger = one.ledger_at(t, config.qos.startup)
    if one.promise.rolling:
        return rolling_slack(one, t, config)
    e, lost = ledger.e - one.base[0], ledger.p - one.base[1]
    left = one.promise.budget(one.promise.at) - lost if one.promise.whole else metric.earned(e, one.sigma) - (e + lost)
    if t + left >= one.promise.ends:
        following = one.promise.budget(one.promise.at + 1) if one.promise.whole else 0.0
        return one.promise.ends + following - t
    return left


def rolling_slack(one: Instance, t: float, config: Config) -> float:
    promise = one.promise
    assert promise is not None
    ledger = one.ledger_at(t, config.qos.startup)
    if not promise.whole and ledger.e < promise.good:
        return metric.earned(ledger.e, one.sigma) - (ledger.e + ledger.p)
    kept, _ = outages_of(lost_now(one, t, config), promise)
    total = sum(length for _, length, _ in lost_now(one, t, config))
    forget(kept, promise.good, ledger.e)
    counted = sum(kept_one.length for kept_one in kept if kept_one.counts)
    return (promise.rolling - promise.good) - (counted + (ledger.p - total))


def owed_lifetime(one: Instance, t: float, lived: float) -> float:
    """As much of the window as it has lived."""
    if one.promise is None:
        return lived
    return min(lived, one.promise.rolling or t - one.promise.turns[one.promise.at])


def overhead_e(one: Instance, t: float, config: Config) -> float:
    """Running seconds that count in the overhead C."""
    assert one.promise is not None
    e = one.ledger_at(t, config.qos.startup).e - one.base[0]
    if one.promise.rolling or one.host is None or t + slack(one, t, config) < one.promise.ends:
        return e
    low, high = round(one.since / STEP) - 1, round(t / STEP)  # of a budget that lasts: as of when it began to
    while high - low > 1:
        middle = (low + high) // 2
        if middle * STEP + slack(one, middle * STEP, config) < one.promise.ends:
            low = middle
        else:
            high = middle
    return one.ledger_at(high * STEP, config.qos.startup).e - one.base[0]


def turn(one: Instance, t: float, config: Config) -> None:
    """A calendar window begins at ``t``, which the promise does not know yet: what was before counts no more."""
    note_calendar(one, t, config)
    ledger = one.ledger_at(t, config.qos.startup)
    one.base = (ledger.e, ledger.p, one.spent)


def note_calendar(one: Instance, t: float, config: Config) -> None:
    """Remember the share of the present calendar window that was lost."""
    promise = one.promise
    assert promise is not None
    begun, ends = promise.turns[promise.at], promise.ends
    lived = t - max(begun, one.admission)
    owed = ends - begun if promise.whole else lived
    if owed > 0.0:
        one.short = max(one.short, (lived - (one.ledger_at(t, config.qos.startup).e - one.base[0])) / owed)


def close(one: Instance, t: float, config: Config) -> None:
    """Its life is over, or the run is: the present calendar window counts as far as it went."""
    if one.promise is not None and not one.promise.rolling:
        note_calendar(one, t, config)


def worst(one: Instance, t: float, config: Config) -> float:
    """The largest share of any window that was lost by ``t``, when its life is over."""
    assert one.promise is not None
    if one.promise.rolling:
        pieces = lost_now(one, t, config)
        total = sum(length for _, length, _ in pieces)
        ledger = one.ledger_at(t, config.qos.startup)
        if ledger.p > total:
            pieces.append((ledger.e, ledger.p - total, t))
        return outages_of(pieces, one.promise)[1] / one.promise.rolling
    return one.short
