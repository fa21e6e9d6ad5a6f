"""Bounds on what any policy can reach, from a fluid relaxation that knows every duration.

What is relaxed. All hosts are one pool, by resource; a request only must fit some host. Time is cut into intervals.
A request is served for some of the seconds that an interval and its life share, whichever these are: requests may take
turns as often as they like. Start-ups take no room. Constraints, anti-affinity, budgets and host failures are left
out. The answer is a bound and not a schedule: it names no host, no instant and no order.

Why it is a bound. Take any run of the simulator, and of each request (in :func:`kept`: that kept its promise) the
seconds of each interval that count as running. They are at most what the interval and its life share. The request held
its demand on some host all that time, so in each interval, however long it is, the sum of demand times seconds is at
most the hosts' capacity times the interval's length. Together with what :func:`claims` and :func:`worth` derive from
the availability, these seconds are a feasible point of the linear programme, with the run's number of promises, or
with at most its penalty; the programme's best is no worse. Shorter intervals exclude more, so that the bound is nearer
to what can be reached; but with any length it holds.

A solver's answer has rounding in it. What is returned is therefore worked out from the prices (dual values) that it
found: by weak duality any prices give a bound (:func:`certified`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack

from slacktide.config import Config
from slacktide.model import Hosts, ServiceClass, Workload
from slacktide.model.service_class import SLO_TOLERANCE
from slacktide.model.workload import INDEPENDENT
from slacktide.sim.startup import delays
from slacktide.state.layout import amounts, on_grid, units

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

ROUNDING = 1e-6
"""Promises, and of a penalty the share, by which sums in floating point may be off."""


@dataclass(frozen=True)
class Demands:
    """Requests admitted before the end; arrays of shape (n,).

    ``admission`` and ``duration`` in seconds, ``demand`` (n, resources) as a share of what all hosts have together
    (infinite where no host is large enough), ``cpu`` in the hosts' unit.
    """

    service_class: Codes
    admission: Floats
    duration: Floats
    demand: Floats
    cpu: Floats

    def where(self, wanted: NDArray[np.bool_]) -> Demands:
        """Some of them."""
        return Demands(*(column[wanted] for column in vars(self).values()))


def demands(workload: Workload, hosts: Hosts, end: float) -> Demands:
    """What the programme is about, rounded as the simulator rounds it.

    A request of several equal, independent instances counts as one of their sum: its availability is their least, which
    is at most their mean. Raises ValueError for other requests of several instances and for demands that change.
    """
    if workload.resize is not None and workload.resize.any():
        raise ValueError("resizes: found some, expected demands that do not change")
    unit = units(hosts.capacity)
    capacity = amounts(hosts.capacity, unit)
    asked = amounts(workload.demand, unit)
    cpu = workload.demand[:, workload.resources.index("cpu")]
    admission, duration = on_grid(workload.admission), on_grid(workload.duration)
    first, size = _requests(workload)
    whole = capacity.sum(axis=0)
    share = np.divide(asked, whole, out=np.zeros(asked.shape), where=whole > 0)
    shapes = np.unique(capacity, axis=0)
    fits = np.asarray((asked[:, None, :] <= shapes).all(axis=2))
    share[~np.asarray(fits.any(axis=1))] = np.inf
    here = first[admission[first] <= end]
    size = size[admission[first] <= end]
    return Demands(
        workload.service_class[here].astype(np.int64),
        admission[here],
        duration[here],
        share[here] * size[:, None],
        cpu[here] * size,
    )


def _requests(workload: Workload) -> tuple[Codes, Floats]:
    """First row and number of rows of each request."""
    if workload.request is None or workload.requests is None:
        return np.arange(len(workload)), np.ones(len(workload))
    request, about = workload.request, workload.requests
    _, first, which, size = np.unique(request, return_index=True, return_inverse=True, return_counts=True)
    of = first[which]
    columns = [workload.admission, workload.duration, *workload.demand.T]
    alike = all((column == column[of]).all() for column in columns)
    if about.batch.any() or (about.approach != INDEPENDENT).any() or len(about.scale_time) or not alike:
        raise ValueError("requests: found some that are not services of equal independent instances, expected none")
    return first, size.astype(np.float64)


def members(workload: Workload, end: float, code: int) -> int:
    """How many requests of a class are admitted by the end."""
    first, _ = _requests(workload)
    return int(np.count_nonzero((on_grid(workload.admission)[first] <= end) & (workload.service_class[first] == code)))


def startups(config: Config) -> tuple[float, float]:
    """The longest start-up, seconds, that counts as running (infinite where all of a request's do), and how long after
    its admission a request cannot count as running yet, at least."""
    if config.qos.startup == "never":
        return np.inf, 0.0
    tables = [on_grid(delays(getattr(config.startup, name), name)) for name in ("hot", "cold")]
    if config.qos.startup == "always":
        return 0.0, float(min(table.min() for table in tables))
    return float(max(table.max() for table in tables)), 0.0


@dataclass(frozen=True)
class Claims:
    """Groups of equal requests and what each needs to keep its promise; arrays of shape (g,), times in seconds.

    One of them needs at least ``work`` seconds of running between ``start`` and ``close``.
    """

    service_class: Codes
    count: Floats
    start: Floats
    close: Floats
    work: Floats
    demand: Floats


def claims(asked: Demands, classes: tuple[ServiceClass, ...], end: float, startup: float, least: float = 0.0) -> Claims:
    """What it takes to keep a promise.

    Availability is u / L, of u seconds up in a life of L. Up are the useful seconds, in all D when the request
    completes, and a first start-up of at most S, where that counts. Kept means u >= sigma L. A request that completes
    has D <= u <= D + S, so it completes within (D + S) / sigma of its admission a and then has run D seconds. One that
    does not complete has L = end - a and u < D + S, so where D + S < sigma (end - a) a kept one completes; elsewhere
    it has run D seconds, or sigma (end - a), by the end. Start-ups in u also hold a place, so u is never more than
    the time on hosts; S makes the window longer and nothing else. Where no start-up counts as running, nobody is up
    in the ``least`` seconds after an admission.
    """
    sigma = np.array([one.slo - SLO_TOLERANCE for one in classes])[asked.service_class]
    left = end - asked.admission
    completes = asked.duration + startup < sigma * left
    work = np.where(completes, asked.duration, np.minimum(asked.duration, sigma * left))
    close = np.where(completes, asked.admission + (asked.duration + startup) / sigma, end)
    first, count = _alike(asked.service_class, asked.admission, close, work, asked.demand)
    return Claims(
        asked.service_class[first],
        count,
        asked.admission[first] + least,
        close[first],
        work[first],
        asked.demand[first],
    )


def _alike(*columns: NDArray[Any]) -> tuple[Codes, Floats]:
    """First row of each distinct combination, and how many rows it has."""
    table = np.column_stack([column.astype(np.float64) for column in columns])
    _, first, count = np.unique(table, axis=0, return_index=True, return_counts=True)
    return first, count.astype(np.float64)


def overlaps(begin: Floats, until: Floats, edges: Floats) -> Floats:
    """Seconds that each [begin, until] and each interval share, shape (g, intervals)."""
    shared = np.minimum(until[:, None], edges[1:]) - np.maximum(begin[:, None], edges[:-1])
    return np.asarray(np.maximum(shared, 0.0))


def intervals(end: float, length: float) -> Floats:
    """Edges of intervals of ``length`` seconds from 0 to the end; the last may be shorter."""
    return np.append(np.arange(0.0, end, length), end)


@dataclass(frozen=True)
class Programme:
    """``min cost x`` where ``matrix x <= limit`` and ``0 <= x <= most``; all of ``most`` finite."""

    cost: Floats
    matrix: csr_array
    limit: Floats
    most: Floats


def certified(one: Programme) -> float:
    """A lower bound of the programme's minimum.

    For any prices y >= 0 of the rows and every feasible x, ``cost x >= cost x + y (matrix x - limit)``, and the least
    of the right side over the box ``0 <= x <= most`` is ``sum(min(0, r) most) - y limit`` with ``r = cost + y matrix``.
    HiGHS finds good y.
    """
    solved = linprog(one.cost, one.matrix, one.limit, bounds=np.column_stack([0 * one.most, one.most]), method="highs")
    if solved.status != 0:
        raise RuntimeError(f"HiGHS: {solved.message}")
    prices = np.maximum(-solved.ineqlin.marginals, 0.0)
    reduced = one.cost + one.matrix.T @ prices
    return float(np.minimum(reduced, 0.0) @ one.most - prices @ one.limit)


def kept(workload: Workload, hosts: Hosts, config: Config, end: float, length: float) -> list[int]:
    """The most promises kept of each class, in order of ``workload.classes``.

    By importance (rank, then order): as many as possible of the first, of the next among all runs that keep as many of
    the first, and so on. A run that keeps fewer of an important class may keep more of the next. ``length`` of the
    intervals is in seconds. Raises ValueError as :func:`demands`.
    """
    classes = workload.classes
    found = claims(demands(workload, hosts, end), classes, end, *startups(config))
    edges = intervals(end, length)
    best: dict[int, int] = {}
    for code in sorted(range(len(classes)), key=lambda code: (classes[code].rank, code)):
        # Less important ones that nobody serves need nothing: they are left out.
        wanted = np.isin(found.service_class, [*best, code])
        group = Claims(*(column[wanted] for column in vars(found).values()))
        members = int(group.count[group.service_class == code].sum())
        most = -certified(kept_programme(group, edges, code, best)) if members else 0.0
        best[code] = min(members, int(np.floor(most + ROUNDING)))
    return [best[code] for code in range(len(classes))]


def kept_programme(group: Claims, edges: Floats, code: int, before: dict[int, int]) -> Programme:
    """As many promises of class ``code`` as possible, ``before`` of others being kept.

    Unknowns are y_g, how many of a group are kept (0 to ``count``), and z_gk, the time that these run in interval k as
    a share of its overlap with their lives. Rows: capacity; ``sum_k overlap_gk z_gk >= work_g y_g``; ``z_gk <= y_g``;
    the sum of y of each class of ``before``. Groups that must run all the time have no z.
    """
    shared, width = overlaps(group.start, group.close, edges), np.diff(edges)
    slack = shared.sum(axis=1) - group.work
    can = (slack >= -ROUNDING * group.work) & np.isfinite(group.demand).all(axis=1)
    demand = np.where(can[:, None], group.demand, 0.0)
    rigid = slack <= ROUNDING * group.work
    always = np.where((rigid & can)[:, None], np.maximum(shared - np.maximum(slack, 0.0)[:, None], 0.0), 0.0)
    loose = np.flatnonzero(~rigid & can & (group.work > 0.0))  # who needs nothing is kept for nothing
    which, where = np.nonzero(shared[loose] > 0.0)
    owner = loose[which]
    size, count, z = len(can), len(owner), np.arange(len(owner))
    time = shared[owner, where]
    rows = []
    for amount in demand.T:
        by_y = csr_array((always * amount[:, None] / width).T)
        by_z = coo_array((amount[owner] * time / width[where], (where, z)), (len(width), count))
        rows.append(hstack([by_y, by_z]))
    needs = coo_array((np.ones(len(loose)), (np.arange(len(loose)), loose)), (len(loose), size))
    gets = coo_array((-time / group.work[owner], (which, z)), (len(loose), count))
    links = coo_array((-np.ones(count), (z, owner)), (count, size))
    rows += [hstack([needs, gets]), hstack([links, coo_array((np.ones(count), (z, z)), (count, count))])]
    # A little less is asked for than whole numbers, so that rounding cannot make the programme infeasible.
    asked = np.array([10 * ROUNDING - number for number in before.values()])
    for other in before:
        members = np.append((group.service_class == other).astype(np.float64), np.zeros(count))
        rows.append(csr_array(-members[None, :]))
    limit = np.concatenate([np.ones(len(width) * demand.shape[1]), np.zeros(len(loose) + count), asked])
    most = np.concatenate([np.where(can, group.count, 0.0), group.count[owner]])
    cost = np.append(np.where(group.service_class == code, -1.0, 0.0), np.zeros(count))
    return Programme(cost, csr_array(vstack(rows)), limit, most)


def envelope(one: ServiceClass) -> tuple[Floats, Floats]:
    """The convex lower envelope of ``f(A) = (sigma - A) (1 + bonus(A))`` on 0 to sigma: its corners A, and f there.

    Between the tiers' boundaries f is straight, so the lower hull of both ends of every piece is the largest convex
    function that is nowhere above it. (Default tiers: the corners are 0, .95, .99 and 1 times sigma.)
    """
    sigma = one.slo - SLO_TOLERANCE
    cuts = sorted({0.0, sigma, *(min(tier.boundary * one.slo, sigma) for tier in one.tiers)})
    points = []
    for low, high in pairwise(cuts):
        below = [tier for tier in sorted(one.tiers, key=lambda tier: tier.boundary) if low < tier.boundary * one.slo]
        owed = 1.0 + (below[0].bonus if below else 0.0)
        points += [(low, (sigma - low) * owed), (high, (sigma - high) * owed)]
    hull: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if hull and x == hull[-1][0]:
            continue  # sorted: the lower of two comes first
        while len(hull) > 1 and _turn(hull[-2], hull[-1], (x, y)) <= 0.0:
            hull.pop()
        hull.append((x, y))
    return np.array([x for x, _ in hull]), np.array([y for _, y in hull])


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def worth(admission: Floats, duration: Floats, shared: Floats, edges: Floats, end: float) -> Floats:
    """What a second of running in each interval adds to availability at most, shape (g, intervals), 1/s.

    A request that cannot complete by the end has A = u / (end - a): each second adds ``1 / (end - a)``. One of D
    seconds that can: let phi(t) = ``max(1 / (t + D/2), 1 / (end - a))``, t seconds after its admission. If it completes
    after C seconds, it was up for u >= D of them. phi falls, so the integral of phi over the time up is least where
    these are the last u of C, and then at least ``ln((C + D/2) / (C - u + D/2)) >= u / (C - u/2 + D/2) >= u / C = A``
    (for ``ln((m + h) / (m - h)) >= 2h / m``). If it does not complete, the integral is at least u / (end - a) = A. In
    an interval phi is at most what it is where interval and life begin to overlap.
    """
    left = (end - admission)[:, None]
    since = np.maximum(edges[:-1] - admission[:, None], 0.0)
    whole = 1.0 / left
    early = np.maximum(1.0 / (since + duration[:, None] / 2.0), whole)
    return np.where(shared > 0.0, np.where(duration[:, None] < left, early, whole), 0.0)


def penalty(workload: Workload, hosts: Hosts, end: float, length: float) -> float:
    """The least penalty of all classes together, cpu-seconds, as ``slacktide.metrics.penalties`` defines it (``due``).

    Unknowns are, of each group of equal requests, x_gk, the time they run in interval k as a share of their overlap,
    and the parts of their availability between the corners of :func:`envelope`. Rows: capacity; availability is at most
    the sum of time times :func:`worth`, and at most the time over what is due, ``min(D, end - a)``. Raises ValueError
    as :func:`demands`.
    """
    asked = demands(workload, hosts, end)
    due = np.minimum(asked.duration, end - asked.admission)
    owing = (due > 0.0) & (asked.cpu > 0.0)
    asked, due = asked.where(owing), due[owing]
    if not len(due):
        return 0.0
    # Who cannot complete is as one that lasts to the end.
    first, count = _alike(asked.service_class, asked.admission, due, asked.demand, asked.cpu)
    programme, unserved = penalty_programme(
        Demands(asked.service_class[first], asked.admission[first], due[first], asked.demand[first], asked.cpu[first]),
        count,
        [envelope(one) for one in workload.classes],
        intervals(end, length),
    )
    return max(0.0, unserved * (1.0 + certified(programme) - ROUNDING))


def penalty_programme(
    group: Demands, count: Floats, corners: list[tuple[Floats, Floats]], edges: Floats
) -> tuple[Programme, float]:
    """The programme of :func:`penalty`, and the penalty where nobody is served; the programme's cost is what service
    changes, as a share of that. ``duration`` is here what is due."""
    code, due, end = group.service_class, group.duration, float(edges[-1])
    shared, width = overlaps(group.admission, np.full(len(due), end), edges), np.diff(edges)
    can = np.asarray(np.isfinite(group.demand).all(axis=1))
    demand = np.where(can[:, None], group.demand, 0.0)
    gain = worth(group.admission, due, shared, edges, end)
    owner, where = np.nonzero(shared * can[:, None])
    size, spans, x = len(due), len(width), np.arange(len(owner))
    time = shared[owner, where]
    pieces = np.array([len(at) - 1 for at, _ in corners])[code]
    part_of, i = np.nonzero(np.arange(pieces.max()) < pieces[:, None])
    spread = np.array([np.diff(corners[code[g]][0])[n] for g, n in zip(part_of, i, strict=True)])
    falls = np.array([np.diff(corners[code[g]][1])[n] for g, n in zip(part_of, i, strict=True)])
    price = group.cpu * due
    unserved = float(sum(n * p * corners[c][1][0] for n, p, c in zip(count, price, code, strict=True)))

    rows = []
    for amount in demand.T:
        used = coo_array((amount[owner] * time / width[where], (where, x)), (spans, len(x)))
        rows.append(hstack([used, coo_array((spans, len(part_of)))]))
    available = coo_array((spread, (part_of, np.arange(len(part_of)))), (size, len(part_of)))
    late = coo_array((-time * gain[owner, where], (owner, x)), (size, len(x)))
    whole = coo_array((-time / due[owner], (owner, x)), (size, len(x)))
    rows += [hstack([late, available]), hstack([whole, available])]
    limit = np.append(np.ones(spans * demand.shape[1]), np.zeros(2 * size))
    cost = np.append(np.zeros(len(x)), price[part_of] * falls / unserved)
    return Programme(cost, csr_array(vstack(rows)), limit, np.append(count[owner], count[part_of])), unserved
