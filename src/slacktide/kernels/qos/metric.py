"""The QoS metric of one instance.

From da Silva et al., "QoS-driven scheduling in the cloud", Journal of Internet Services and
Applications 11:9 (2020), with their letters and the numbers of their equations. At time t:

    e       running time so far, seconds       p       pending time so far, seconds
    sigma   SLO of its class                   alpha   its expected allocation time, seconds

    A = e / (e + p)                                         (1)     availability
    V = e / sigma - (e + p) - alpha   where A >= sigma      (3, 4)  time to violate
    R = e / sigma - (e + p) - alpha   where A < sigma       (6, 7)  recoverability, negative
    Q = V or R                                                      the metric
    C = c / (e + c)                                         (8)     preemption overhead,

where c is the sum of the start-up times that past preemptions cost. Which start-ups count as
running and which as pending is a setting: docs/semantics.md, 'Metric'.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.runtime.compiling import leaf
from slacktide.kernels.tables.schema import ALWAYS, FLAT, NEVER, Records

GRID = 2.0**20  # all times are multiples of 2^-20 s, so that their sums are exact
NEAR = 4e-6  # seconds; more than two metrics rounded to the grid of times can be off by, so that rounding cannot matter
LONGEST = 2.0**32  # seconds; a longer time to violate counts as infinite


@leaf
def entitled(e: float, sigma: float) -> float:
    """Lifetime for which ``e`` running seconds keep the promise, e / sigma on the grid of times; O(1)."""
    return np.rint(e / sigma * GRID) / GRID


@leaf
def running(slot: Records, now: float) -> float:
    """E' of an instance on a host at ``now``, seconds; O(1)."""
    if now >= slot["on"]:
        return slot["e"] + (now - slot["on"])
    return slot["e"]


@leaf
def metric(slot: Records, sigma: float, alpha: float, now: float) -> float:
    """Q of an instance on a host at ``now``: time to violate or recoverability, seconds (equations 4, 7), moved by the
    plan where it is given up; O(1)."""
    if now >= slot["on"]:
        e = slot["e"] + (now - slot["on"])
        p = slot["p"] + (slot["on"] - slot["since"])
    else:
        e = slot["e"]
        p = slot["p"] + (now - slot["since"])
    return entitled(e, sigma) - (e + p) - alpha + slot["shift"]


@leaf
def promise_of(slot: Records, classes: Records) -> float:
    """The promise by which the metric of an instance on a host moves, that its own ledger decides for; O(1)."""
    return 1.0 if slot["request"] == FLAT else classes[slot["cls"]]["slo"]


@leaf
def waiting_key(e: float, p: float, sigma: float, alpha: float, since: float) -> float:
    """The static key of an instance that waits since ``since``; its metric is ``key - t``; O(1)."""
    return entitled(e, sigma) - (e + p) - alpha + since


@leaf
def overhead(slot: Records, now: float) -> float:
    """Preemption overhead C of an instance on a host (equation 8), in [0, 1]; O(1)."""
    c = slot["overhead"]
    if c == 0.0:
        return 0.0
    return c / (running(slot, now) + c)


@leaf
def slope(slot: Records, classes: Records, now: float) -> float:
    """Change of Q a second: -1 in a start-up that counts as pending, else 1/sigma - 1, or 0 (windows); O(1)."""
    if now < slot["on"]:
        return -1.0
    if slot["request"] == FLAT:
        return 0.0
    return classes[slot["cls"]]["slope"]


@leaf
def received(instance: Records, accounting: int) -> float:
    """E as of the last change of state, seconds, in an accounting (docs/semantics.md, 'Metric'); O(1)."""
    e = instance["running"]
    if accounting != ALWAYS:
        e += instance["startup_first"]
    if accounting == NEVER:
        e += instance["startup_restarts"]
    return e


@leaf
def withheld(lifetime: float, e: float) -> float:
    """P of a request that has lived ``lifetime`` seconds and received ``e``: all the rest, discarded time too; O(1)."""
    return lifetime - e
