"""The QoS metric of one instance (docs/semantics.md, Metric).

Times and ledger entries are seconds on the grid of ``reference.times``, so that sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from reference.times import on_grid
from slacktide.config import Accounting

ACCOUNTINGS: tuple[Accounting, ...] = ("restart", "always", "never")


@dataclass
class Ledger:
    """Running (``e``) and pending (``p``) seconds as of the last change of state."""

    e: float = 0.0
    p: float = 0.0


def startup_is_pending(accounting: Accounting, starts: int) -> bool:
    """Whether the start-up of the current start counts as pending; ``starts`` includes it."""
    return accounting == "always" or (accounting == "restart" and starts >= 2)


def running_ledger(ledger: Ledger, since: float, startup: float, pending_startup: bool, t: float) -> Ledger:
    """``(e', p')`` at ``t`` of an instance on a host since ``since``."""
    on = since + startup if pending_startup else since
    if t >= on:
        return Ledger(ledger.e + (t - on), ledger.p + (on - since))
    return Ledger(ledger.e, ledger.p + (t - since))


def earned(e: float, sigma: float) -> float:
    """E(e, sigma): seconds in which ``e`` running seconds would just keep the promise, on the grid."""
    return on_grid(e / sigma)


def running_metric(now: Ledger, sigma: float, alpha: float) -> float:
    """Q from the ledger at this very instant."""
    return earned(now.e, sigma) - (now.e + now.p) - alpha


def waiting_key(ledger: Ledger, since: float, sigma: float, alpha: float) -> float:
    """The static order of a waiting instance; its metric is ``waiting_key - t``."""
    return earned(ledger.e, sigma) - (ledger.e + ledger.p) - alpha + since


LARGEST = 2.0**32
"""Seconds of slack beyond which there is no end to it."""


def request_metric(x: float, live: int, contributing: int, sigma: float, alpha: float) -> float:
    """Q of a request ``x`` seconds above its promise, some of whose ``live`` instances go on contributing."""
    if x < 0.0:
        return x - alpha
    d = live * sigma - contributing
    if d <= 0.0:
        return inf
    v = x * (sigma / d)
    if v > LARGEST:
        return inf
    return on_grid(v) - alpha


def promise_state(
    received: float, lifetime: float, slack: float, sigma: float, alpha: float, margin: float
) -> tuple[bool, bool, bool]:
    """Whether anything was owed, whether the promise is broken, and whether it is at risk (docs/semantics.md)."""
    lost, budget = lifetime - received, (1.0 - sigma) * lifetime
    broken = received < (sigma - 1e-9) * lifetime
    return lifetime > 0.0, broken, slack + alpha < margin and lost > budget / 2.0


def overhead(c: float, e: float) -> float:
    """Preemption overhead: start-up seconds spent on preempted incarnations, of all seconds used (Q 8)."""
    return 0.0 if c == 0.0 else c / (e + c)


def availability(ledger: Ledger) -> float:
    """e / (e + p); 1 where nothing was owed yet."""
    owed = ledger.e + ledger.p
    return 1.0 if owed == 0.0 else ledger.e / owed
