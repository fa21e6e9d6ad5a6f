"""A ledger read some time after it was written: what it says by now, if nothing has happened since.

Ledgers are written when something happens, so that this holds but for the last second or so. Between events every sum
grows at a rate that the books give away: lifetimes by one second a second for each live instance, received time by
one for each instance that counts as running. The metric follows from these sums (docs/metric.md); its constant alpha,
which ledgers do not carry, follows from the slack at the instant of the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slacktide.config import Accounting
from slacktide.live.books import COUNTS, LEAVING, PLACED, Books
from slacktide.live.overview import entitled
from slacktide.model import CONCURRENT, INDEPENDENT
from slacktide.state.layout import GRID

LONGEST = 2.0**32
"""A longer time to violate counts as infinite (:mod:`slacktide.kernels.requests`)."""
ORDER: tuple[Accounting, ...] = ("always", "restart", "never")
"""The likeliest first."""
WRITTEN_DIGITS = 1e-6


@dataclass(frozen=True, slots=True)
class Carried:
    """``delivered`` from 0 to 1; ``slack`` in seconds, None where it is infinite or not known."""

    delivered: float
    slack: float | None


def carry_on(books: Books, accounting: Accounting, promised: float, slack: float | None, now: float) -> Carried:
    """From a ledger's books and its slack at their instant, what it says at ``now`` (seconds since 1970).

    Exact unless instances are leaving or just being bound.
    """
    passed = max(0.0, now - books.at)
    delivered, metric = _at(books, accounting, promised, passed)
    _, base = _at(books, accounting, promised, 0.0)
    known = slack is not None and base is not None and metric is not None
    return Carried(delivered, metric - (base - slack) if known else None)  # type: ignore[operator]  # asked before


def accountings(books: Books, delivered: float) -> tuple[Accounting, ...]:
    """In which accountings the books yield what the ledger says was delivered: the scheduler uses one of these."""
    return tuple(one for one in ORDER if abs(_at(books, one, 1.0, 0.0)[0] - delivered) <= WRITTEN_DIGITS)


def _at(books: Books, accounting: Accounting, slo: float, passed: float) -> tuple[float, float | None]:
    """Delivered, and the metric but for alpha (None: infinite), ``passed`` seconds after the books' instant."""
    if books.approach == INDEPENDENT:
        return _of_instances(books, accounting, slo, passed)
    counts = {name: books.counts[name] for name in COUNTS}
    live = counts["live"]
    up = {"always": counts["up"], "restart": counts["up"] + counts["starting"] - counts["restarting"]}
    rate = up.get(accounting, counts["up"] + counts["starting"])
    lifetime = books.sums["lifetime"] + live * passed
    if books.approach == CONCURRENT:
        received = books.together[accounting] + (live * passed if 0 < live == rate else 0.0)
    else:
        received = _received(books.sums, accounting) + rate * passed
    return (received / lifetime if lifetime > 0.0 else 1.0), _metric(books, received, lifetime, rate, slo)


def _received(sums: Mapping[str, Any], accounting: Accounting) -> Any:
    e = sums["running"]
    if accounting != "always":
        e = e + sums["startup_first"]
    return e + sums["startup_restarts"] if accounting == "never" else e


def _metric(books: Books, received: float, lifetime: float, rate: int, slo: float) -> float | None:
    """Of a request's waiting instances (:func:`slacktide.kernels.requests.weigh`)."""
    short = round(received / slo * GRID) / GRID - lifetime
    if short < 0.0:
        return short
    falls = books.counts["live"] * slo - (0 if books.approach == CONCURRENT else rate)
    if falls <= 0.0:
        return None
    v = short * (slo / falls)
    return None if v > LONGEST else round(v * GRID) / GRID


def _of_instances(books: Books, accounting: Accounting, slo: float, passed: float) -> tuple[float, float | None]:
    """The least of any instance."""
    records = books.records
    if not len(records):
        return 1.0, None
    on = (records["state"] == PLACED) | (records["state"] == LEAVING)
    age = np.where(on, records["age"] + passed, 0.0)
    spent = np.where(on, np.minimum(age, records["startup"]), 0.0)
    first = records["starts"] == 1
    sums = {
        "running": records["running"] + age - spent,
        "startup_first": records["startup_first"] + np.where(first, spent, 0.0),
        "startup_restarts": records["startup_restarts"] + np.where(first, 0.0, spent),
    }
    received, lifetime = _received(sums, accounting), records["lifetime"] + passed
    shares = np.divide(received, lifetime, out=np.ones(len(records)), where=lifetime > 0.0)
    metric = entitled(received, np.full(len(records), slo)) - lifetime
    return float(shares.min()), float(metric.min())
