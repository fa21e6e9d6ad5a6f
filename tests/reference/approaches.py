"""The metric of a request of several instances: the equations of its three approaches, exact and unrounded.

Kernels follow the same equations on a grid of times (docs/semantics.md); this module is what they are held against.
Every function works on single numbers and, element by element, on arrays; on ``fractions.Fraction`` (alone or in arrays
of objects) it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slacktide.model.workload import AGGREGATED, CONCURRENT

Amount = Any
"""A number, or an array of them: seconds, counts, shares."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a request has had so far and what its instances do now.

    e  seconds that contributed to its availability
    d  seconds on hosts that did not contribute, or whose work was lost again
    p  seconds pending
    r  live instances that run (in the accounting used: a start-up that counts as pending is waiting)
    w  live instances that wait

    Seconds and counts are sums over all instances; of the independent approach an instance is a request with
    ``r + w = 1``.
    """

    e: Amount
    d: Amount
    p: Amount
    r: Amount
    w: Amount

    @property
    def lifetime(self) -> Amount:
        """T, the seconds all its instances have been in the system."""
        return self.e + self.d + self.p

    @property
    def live(self) -> Amount:
        """n, how many instances it has now."""
        return self.r + self.w


def service_standing(
    approach: Amount, running: Amount, pending: Amount, together: Amount, r: Amount, w: Amount
) -> Standing:
    """Of a service.

    ``running`` and ``pending`` are seconds summed over all incarnations, ``together`` the part of ``running`` in
    which all live instances ran. Only the concurrent approach asks for ``together``; the rest of running is then d.
    """
    e = np.where(np.equal(approach, CONCURRENT), together, running)
    return Standing(e, running - e, pending, r, w)


def batch_standing(running: Amount, failed: Amount, pending: Amount, r: Amount, w: Amount) -> Standing:
    """Of a batch request: of the ``running`` seconds those of ``failed`` incarnations are lost."""
    return Standing(running - failed, failed, pending, r, w)


def considering(at: Standing, lost: Amount) -> Standing:
    """The standing that decides about a running batch instance: its incarnation counts as lost.

    ``lost`` is what stopping it would discard, seconds; 0 for a waiting instance and for any service.
    """
    return replace(at, e=at.e - lost, d=at.d + lost)


def contributing(approach: Amount, at: Standing, counted: Amount) -> Amount:
    """c, how many instances go on contributing while the considered one waits.

    ``counted`` says whether the considered one is among the ``r`` that run. Aggregated: all that run but itself.
    Otherwise none: an independent one is alone, and of concurrent ones nothing counts while one waits.
    """
    return np.where(np.equal(approach, AGGREGATED), np.where(counted, at.r - 1, at.r), 0)


def availability(at: Standing) -> Amount:
    """A; 1 where nothing was owed yet."""
    owed = np.greater(at.lifetime, 0)
    return np.where(owed, at.e / np.where(owed, at.lifetime, 1), 1)


def balance(at: Standing, slo: Amount) -> Amount:
    """X, seconds of lifetime that ``e`` pays for, less those that there were; A >= slo exactly where X >= 0."""
    return at.e / slo - at.lifetime


def time_to_violate(at: Standing, slo: Amount, c: Amount, alpha: Amount) -> Amount:
    """V, seconds, where the standing meets the SLO.

    For so long, and ``alpha`` more, A stays at least ``slo`` while ``c`` of the live instances go on contributing;
    ``inf`` where they are enough for ever: ``(r + w) slo <= c``.
    """
    net = at.live * slo - c
    falls = np.greater(net, 0)
    return np.where(falls, balance(at, slo) * slo / np.where(falls, net, 1) - alpha, np.inf)


def recoverability(at: Standing, slo: Amount, alpha: Amount) -> Amount:
    """R, seconds (negative), where the standing misses the SLO."""
    return balance(at, slo) - alpha


def metric(approach: Amount, at: Standing, slo: Amount, alpha: Amount, counted: Amount, lost: Amount = 0) -> Amount:
    """Q of one instance of a request: V where the SLO is met, else R, all with this instance considered stopped.

    ``counted``: it is among those that run; ``lost``: what stopping it would discard (:func:`considering`).
    """
    then = considering(at, lost)
    to_violate = time_to_violate(then, slo, contributing(approach, at, counted), alpha)
    return np.where(np.greater_equal(balance(then, slo), 0), to_violate, recoverability(then, slo, alpha))


def gain(approach: Amount, at: Standing) -> Amount:
    """By how many seconds ``e`` grows in a second: r; where concurrent only while nobody waits."""
    return np.where(np.equal(approach, CONCURRENT) & np.greater(at.w, 0), 0, at.r)


def drift(approach: Amount, at: Standing, slo: Amount, losing: Amount = False) -> Amount:
    """Change of X in a second. ``losing``: the considered instance piles up work that stopping it would discard."""
    return np.where(losing, gain(approach, at) - 1, gain(approach, at)) / slo - at.live


def slope(
    approach: Amount,
    at: Standing,
    slo: Amount,
    counted: Amount,
    lost: Amount = 0,
    losing: Amount = False,
) -> Amount:
    """Change of Q in a second, from now to the next event or :func:`crossing`; 0 where Q is infinite.

    An event is whatever changes ``r`` or ``w``, or begins or ends ``losing``. At the crossing itself it is the slope
    behind it.
    """
    x, rate = balance(considering(at, lost), slo), drift(approach, at, slo, losing)
    net = at.live * slo - contributing(approach, at, counted)
    falls = np.greater(net, 0)
    above = np.where(falls, rate * slo / np.where(falls, net, 1), 0)
    met = np.greater(x, 0) | (np.equal(x, 0) & np.greater_equal(rate, 0))
    return np.where(met, above, rate)


def crossing(approach: Amount, at: Standing, slo: Amount, lost: Amount = 0, losing: Amount = False) -> Amount:
    """Seconds from now at which A crosses ``slo``, Q's only kink between events; ``inf``: not before the next one.

    Downwards A is still ``slo`` at that instant and less after it, upwards it is ``slo`` from that instant on.
    """
    x, rate = balance(considering(at, lost), slo), drift(approach, at, slo, losing)
    down = np.greater_equal(x, 0) & np.less(rate, 0)
    up = np.less(x, 0) & np.greater(rate, 0)
    return np.where(down | up, -x / np.where(np.equal(rate, 0), 1, rate), np.inf)
