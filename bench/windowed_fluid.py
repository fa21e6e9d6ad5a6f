"""Bounds on what any policy can keep of promises over windows: bench/fluid.py's relaxation, for lives of weeks.

What is relaxed is as there: all hosts are one pool, of the resource that binds; all admissions and ends are known;
requests may take turns as often as they like, and a start-up takes no room. Hosts that are away are no part of the
pool meanwhile. Time is cut where something changes, and where windows begin and end.

Services of a class with the same demand are served as one *flow*: S(t) is what the kept ones among them get in an
interval. Let y be how many are kept of those admitted together, d their demand, p(t) how long they live in an interval.
In any run, the seconds that kept services count as running, times their demand, are such an S, because

- nobody runs longer than it lives: ``S(t) <= sum of y d p(t)``;
- in a rolling window of W that it lives in for L seconds it loses at most (1 - sigma) W: where it lived for less than
  the window, these are part of another full window. So over the window ``sum of S >= sum of y d (L - (1 - sigma) W)``,
  where that is positive. A life shorter than W is the only window, with its own length in place of W. Of a calendar
  window the budget is (1 - sigma) of the window (``whole``) or of L (``accrued``);
- a promise over a life needs what bench/fluid.py works out (``claims``), in one piece of time;
- all flows together have at most the pool's capacity in each interval.

These are sums of what holds for each, so a run is a feasible point, and the programme's best is no worse. For services
admitted together it loses nothing: a point of the sums, given to all in equal parts, is one for each of them. Those
admitted in one interval count as the first of them for what they can get, and as the last for what they need. Requests
that end are served together only where they are too many for one flow each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from fluid import ROUNDING, Claims, Codes, Demands, Floats, Programme, certified, claims, demands, overlaps, startups
from numpy.typing import NDArray
from scipy.sparse import block_diag, coo_array, csr_array, eye_array, hstack, vstack

from slacktide.config import Config
from slacktide.model import Hosts, ServiceClass, Workload
from slacktide.model.host_events import EVENT_KINDS, HostEvents
from slacktide.model.service_class import SLO_TOLERANCE
from slacktide.model.window import WHOLE, parse_epoch, turns
from slacktide.model.workload import INDEPENDENT
from slacktide.sim.failures import host_events

STEPS, STARTS = 720, 30
"""Steps of time in a window (of the whole run where none promises over one), and how many windows begin in one."""
MOST_SERVED = 20_000
"""Unknowns of requests that end, beyond which those admitted one after the other are served as one."""
SHORTEST = 1.0
"""Seconds of the shortest outage that is counted: a promise of 1 allows none, and no number may be too large."""
GRID = 2.0**-20
"""Seconds by which a budget may be larger, as times are counted."""


class Row(NamedTuple):
    """What a flow needs between two instants, seconds: of each of its groups of requests, seconds of running."""

    since: float
    until: float
    need: Floats


@dataclass(frozen=True)
class Flow:
    """Requests that are served as one; arrays have a place for each group of equal ones, times in seconds.

    ``demand`` is a share of all that the hosts have; ``most`` is how long one of them can be away in one piece, and
    ``free`` the instant by which who waits since its admission must run; infinite where that says nothing.
    """

    code: int
    count: Floats
    demand: Floats
    begin: Floats
    until: Floats
    rows: tuple[Row, ...]
    most: float = math.inf
    free: float = math.inf


@dataclass(frozen=True)
class Problem:
    """Flows, edges of the intervals, seconds, and the pool in each of them as a share of all hosts."""

    flows: list[Flow]
    edges: Floats
    pool: Floats
    countable: bool
    """Whether an outage begins with an admission or a preemption, and ends where the budget does."""


def kept(workload: Workload, hosts: Hosts, config: Config, end: float) -> tuple[list[int], int | None]:
    """The most promises kept of each class, by importance as :func:`fluid.kept`, and how many preemptions that takes.

    The second is a lower bound for keeping so many. Let a kept service be away for B seconds in one piece at most. The
    outages with which they began are over B seconds after the last admission; every later one begins with a
    preemption. So at least as many are needed as what is missing for them since then, divided by demand and B of those
    who can be away longest. None where hosts fail, as an outage may begin with that, and where requests have several
    instances, of which one may be away for longer.
    """
    one = problem(workload, hosts, config, end)
    classes = workload.classes
    best: dict[int, int] = {}
    for code in sorted(range(len(classes)), key=lambda code: (classes[code].rank, code)):
        members = int(sum(flow.count.sum() for flow in one.flows if flow.code == code))
        most = -certified(programme(one, code, best)) if members else 0.0
        best[code] = min(members, int(np.floor(most + ROUNDING)))
    fewest = max(0, math.ceil(certified(programme(one, None, best)) - 1e-3)) if one.countable and one.flows else None
    return [best[code] for code in range(len(classes))], fewest


def problem(workload: Workload, hosts: Hosts, config: Config, end: float) -> Problem:
    """What the programmes are about. Raises ValueError where requests of a class with windows end, as their lives are
    then not known, for batch requests, and as :func:`fluid.demands`."""
    several = workload.requests is not None and len(workload.requests) < len(workload)
    if workload.requests is not None:
        if workload.requests.batch.any():
            raise ValueError("requests: found batch ones, expected services")
        # The mean over instances, or all at once: of the sum of their demands both get what one request of it gets.
        approach = np.full_like(workload.requests.approach, INDEPENDENT)
        workload = replace(workload, requests=replace(workload.requests, approach=approach))
    asked, classes = demands(workload, hosts, end), workload.classes
    away = host_events(config, hosts)
    if len(away) and max(away.kinds) > EVENT_KINDS.index("repair"):
        raise ValueError("host events: found other amounts, expected failures, drains and repairs only")
    lengths = [one.window.about for one in classes if one.window is not None]
    window = min([*lengths, end])
    step, every = window / STEPS, window / STARTS
    binding = int(np.argmax((np.where(np.isinf(asked.demand), 0.0, asked.demand)).sum(axis=0)))
    asked = replace(asked, demand=asked.demand[:, binding : binding + 1])
    flows: list[Flow] = []
    for code, own in enumerate(classes):
        mine = asked.where(asked.service_class == code)
        if own.window is None:
            found = claims(mine, classes, end, *startups(config))
            flows += _of_lives(found, step, end)
        elif np.isfinite(mine.duration).any():
            raise ValueError(
                f"class {own.name}: found requests that end, expected none where it promises over a window"
            )
        else:
            flows += _of_services(code, own, mine, _windows(own, config, end, every), step, end)
    instants = [away.times, *(at for flow in flows for at in (flow.begin, flow.until))]
    instants += [np.array([flow.free for flow in flows if math.isfinite(flow.free)])]
    instants += [np.array([row.since, row.until]) for flow in flows for row in flow.rows]
    at = np.concatenate([np.array([0.0, end]), *instants]) / step
    edges = np.unique(np.clip(np.concatenate([np.floor(at), np.ceil(at)]) * step, 0.0, end))
    return Problem(flows, edges, _pool(hosts, away, edges, binding), not len(away) and not several)


def _windows(own: ServiceClass, config: Config, end: float, every: float) -> list[tuple[float, float, float | None]]:
    """Begin and end of windows of a class, seconds, and the budget of each; None where it is a share of the life."""
    assert own.window is not None  # noqa: S101  # for the type checker
    share = 1.0 - own.slo + SLO_TOLERANCE
    if own.window.rolling is None:
        begins = list(turns(own.window, parse_epoch(config.simulation.epoch), 0.0, end))
        whole = own.window.budget == WHOLE
        return [(max(a, 0.0), min(b, end), share * (b - a) if whole else None) for a, b in pairwise(begins) if a < end]
    length = own.window.rolling
    last = max(end - length, 0.0)
    starts = sorted({*np.arange(0.0, last, every).tolist(), last})
    return [(a, min(a + length, end), share * length) for a in starts]


def _of_services(
    code: int,
    own: ServiceClass,
    asked: Demands,
    windows: Sequence[tuple[float, float, float | None]],
    step: float,
    end: float,
) -> list[Flow]:
    """A flow for each demand, of services without an end; those admitted in the same step are one group."""
    flows, share = [], 1.0 - own.slo + SLO_TOLERANCE
    for size in np.unique(asked.demand[np.isfinite(asked.demand)]):
        admission = asked.admission[asked.demand[:, 0] == size]
        _, group, count = np.unique(np.ceil(admission / step), return_inverse=True, return_counts=True)
        first, last = np.full(len(count), np.inf), np.full(len(count), -np.inf)
        np.minimum.at(first, group, admission)
        np.maximum.at(last, group, admission)
        rows = []
        for since, until, budget in windows:
            lived = np.maximum(until - np.maximum(last, since), 0.0)
            allowed = share * lived if budget is None else np.full(len(lived), budget)
            if own.window is not None and own.window.rolling is not None:
                # Who lives for less than the window has a share of its life, the first of its group the largest.
                allowed = np.minimum(allowed, share * (end - first))
            rows.append(Row(since, until, np.maximum(lived - allowed - GRID, 0.0)))
        longest = max((share * (b - a) if budget is None else budget) for a, b, budget in windows)
        if own.window is not None and own.window.rolling is None:
            longest *= 2.0  # over a turn of the calendar
        else:
            longest = min(longest, share * (end - float(first.min())))
        demand = np.full(len(count), size)
        free = float(last.max()) + longest
        ends = np.full(len(count), end)
        flows.append(Flow(code, count.astype(np.float64), demand, first, ends, tuple(rows), longest, free))
    return flows


def _of_lives(found: Claims, step: float, end: float) -> list[Flow]:
    """Flows of requests that promise over their lives: those that live as long as the run by demand, of the others each
    its own, or those admitted one after the other."""
    flows, ends = [], found.close < end
    for some, width in ((~ends, None), (ends, _width(found, ends, step))):
        chosen = np.flatnonzero(some & np.isfinite(found.demand[:, 0]))
        if width is None:
            keys = found.demand[chosen, 0]
        else:
            keys = np.floor(found.start[chosen] / width) if width else np.arange(len(chosen), dtype=np.float64)
        for key in np.unique(keys):
            mine = chosen[keys == key]
            work, start, close = found.work[mine], found.start[mine], found.close[mine]
            row = Row(float(start.min()), float(close.max()), np.maximum(work - GRID, 0.0))
            demand, code = found.demand[mine, 0], int(found.service_class[mine[0]])
            spare = float((close - start - work).max()) if width is None else math.inf
            free = float(start.max()) + spare
            flows.append(Flow(code, found.count[mine], demand, start, close, (row,), spare, free))
    return flows


def _width(found: Claims, ends: NDArray[np.bool_], step: float) -> float:
    """Seconds within which requests that end must be admitted to be served as one; 0 where each can be alone."""
    lives = (found.close - found.start)[ends]
    if (lives / step + 2.0).sum() <= MOST_SERVED:
        return 0.0
    return float(np.median(lives))


def _pool(hosts: Hosts, away: HostEvents, edges: Floats, resource: int) -> Floats:
    """The share of all hosts' capacity that is there in each interval, in the mean."""
    amount = hosts.capacity[:, resource]
    lost = np.zeros(len(edges) - 1)
    down = np.full(len(hosts), np.nan)
    events = zip(away.times.tolist(), away.hosts.tolist(), away.kinds.tolist(), strict=True)
    for time, host, kind in events:
        if EVENT_KINDS[kind] != "repair":
            down[host] = np.fmin(down[host], time)
        elif not np.isnan(down[host]):
            lost += amount[host] * overlaps(down[host : host + 1], np.array([time]), edges)[0]
            down[host] = np.nan
    for host in np.flatnonzero(~np.isnan(down)):
        lost += amount[host] * overlaps(down[host : host + 1], edges[-1:], edges)[0]
    return np.asarray(1.0 - lost / (amount.sum() * np.diff(edges)))


class Part(NamedTuple):
    """Rows of a flow, with limits of 0: what its groups and what it gets have in each; the intervals in which it
    lives; outages that one of each group has where it gets nothing, and those that getting all of an interval saves."""

    groups: csr_array
    served: csr_array
    here: Codes
    away: Floats
    missing: Floats


def _part(flow: Flow, edges: Floats) -> Part:
    """The rows of a flow: nobody runs longer than it lives, and each kept one gets what it needs."""
    width = np.diff(edges)
    shared = overlaps(flow.begin, flow.until, edges) / width
    here = np.flatnonzero(shared.any(axis=0))
    shared, begin, end, width = shared[:, here], edges[here], edges[here + 1], width[here]
    spans = np.array([row.until - row.since for row in flow.rows])
    needs = flow.demand * np.array([row.need for row in flow.rows]) / spans[:, None]
    # An interval of which only a part is in a row counts whole there: that asks for less.
    within = np.array([(end > row.since + GRID) & (begin < row.until - GRID) for row in flow.rows])
    gets = within * width / spans[:, None]
    late = np.zeros(len(here))
    if math.isfinite(flow.most):
        late = np.where(begin >= flow.free, width / (max(flow.most, SHORTEST) * flow.demand.max()), 0.0)
    return Part(
        csr_array(np.vstack([-flow.demand * shared.T, needs])),
        csr_array(vstack([eye_array(len(here)), csr_array(-gets)])),
        here,
        flow.demand * (shared @ late),
        late,
    )


def programme(one: Problem, code: int | None, before: dict[int, int]) -> Programme:
    """As many promises of class ``code`` as possible with ``before`` of others kept; without a class the fewest
    preemptions with which ``before`` are kept.

    Unknowns are y of each group, from 0 to its count, and of each flow what it gets in each interval as a share of the
    interval and of the pool.
    """
    flows = [flow for flow in one.flows if flow.code == code or flow.code in before]
    parts = [_part(flow, one.edges) for flow in flows]
    of = np.concatenate([np.full(len(flow.count), flow.code) for flow in flows])
    here = np.concatenate([part.here for part in parts])
    own = hstack([block_diag([part.groups for part in parts]), block_diag([part.served for part in parts])])
    taken = coo_array((np.ones(len(here)), (here, np.arange(len(here)))), (len(one.pool), len(here)))
    pool = hstack([csr_array((len(one.pool), len(of))), taken])
    counted = np.array([(of == other) * -1.0 for other in before]).reshape(len(before), len(of))
    kept_before = hstack([csr_array(counted), csr_array((len(before), len(here)))])
    # A little less is asked for than whole numbers, so that rounding cannot make the programme infeasible.
    asked = np.array([10 * ROUNDING - number for number in before.values()])
    if code is None:
        cost = np.concatenate([*(part.away for part in parts), *(-part.missing for part in parts)])
    else:
        cost = np.append((of == code) * -1.0, np.zeros(len(here)))
    limit = np.concatenate([np.zeros(own.shape[0]), one.pool, asked])
    most = np.append(np.concatenate([flow.count for flow in flows]), one.pool[here])
    return Programme(cost, csr_array(vstack([own, pool, kept_before])), limit, most)
