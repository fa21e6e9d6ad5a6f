"""How far places are from each other, as the rows that nodes publish say (no clock, no client).

Rules, in this order, for the value between two places:

1. fresh measurements: the mean of all of them, so that both directions count where both are fresh, else the fresh one;
2. fresh measurements of which none was ever answered: the pessimistic value, the places do not reach each other;
3. no measurement: the distance of the two network coordinates;
4. a place without a fresh row: the pessimistic value. It is never nearer than what is known, and never at distance 0.

The pessimistic value is the largest round-trip time of rules 1 and 3 times ``pessimism``; ``unknown`` where none is
known at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

UNKNOWN, DISTANT, MEASURED = 0, 1, 2
"""Where a value comes from: the pessimistic rule, coordinates, measurements."""
LEAST_SECONDS = 1e-6
"""No two different places are nearer than this."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a node knows of a peer: mean and standard deviation of the round-trip time in seconds, share lost.

    ``mean`` is NaN where nothing was answered lately; ``lost`` is of the latest probes, ``samples`` how many of them
    the mean is made of.
    """

    mean: float
    deviation: float = 0.0
    lost: float = 0.0
    samples: int = 1


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A network coordinate: a point and a height above it, in seconds of round-trip time.

    The round-trip time between two nodes is the distance of their points plus both heights: the way to the core of the
    network and back (Dabek, Cox, Kaashoek, Morris: Vivaldi, SIGCOMM 2004, section 5.4).
    """

    point: tuple[float, ...]
    height: float

    def distance(self, other: Coordinate) -> float:
        """Estimated round-trip time in seconds."""
        return math.dist(self.point, other.point) + self.height + other.height


@dataclass(frozen=True, slots=True)
class Row:
    """What one node has published. ``at``: UNIX seconds of its latest measurement; ``error`` is the relative error
    (0 to 1) that it expects of its coordinate.
    """

    node: str
    at: float
    peers: Mapping[str, Measured] = field(default_factory=dict)
    coordinate: Coordinate | None = None
    error: float = 1.0


@dataclass(frozen=True, slots=True)
class Latencies:
    """Round-trip times between ``names``: ``rtt`` (p, p) in seconds, symmetric, 0 on the diagonal where every node is
    a place of its own, else the value between two nodes of one place. ``source`` (p, p) says where each value comes
    from. ``stale`` names the nodes without a fresh row.
    """

    names: tuple[str, ...]
    rtt: NDArray[np.float64]
    source: NDArray[np.int8]
    stale: tuple[str, ...]
    pessimistic: float


def fresh(row: Row, now: float, stale_after: float) -> bool:
    """Whether a row's latest measurement is at most ``stale_after`` seconds old, or by a clock that is ahead, away.

    Else a node whose clock is a day ahead would seem to live for a day after its end.
    """
    return abs(now - row.at) <= stale_after


def latencies(
    rows: Iterable[Row],
    now: float,
    stale_after: float,
    *,
    names: Sequence[str] = (),
    place_of: Mapping[str, str] | None = None,
    pessimism: float = 2.0,
    unknown: float = 1.0,
) -> Latencies:
    """The round-trip times that rows of nodes give at the instant ``now`` (UNIX seconds); the module has the rules.

    ``names`` are nodes that must be there though they may have no row. ``place_of`` maps nodes to places (sites), of
    which a node without an entry is one of its own; memory grows with the square of places, not of nodes. ``pessimism``
    is a factor of at least 1, ``unknown`` seconds. Raises ``ValueError`` for a node with two rows.
    """
    if not pessimism >= 1.0 or not unknown > 0.0:
        raise ValueError(f"found pessimism {pessimism} and unknown {unknown}, expected at least 1 and more than 0")
    known: dict[str, Row] = {}
    for row in rows:
        if row.node in known:
            raise ValueError(f"found two rows of node {row.node!r}, expected one")
        known[row.node] = row
    nodes = sorted({*names, *known})
    place = {node: node if place_of is None else place_of.get(node, node) for node in nodes}
    places = tuple(sorted(set(place.values())))
    index = {name: number for number, name in enumerate(places)}
    usable = {node: row for node, row in known.items() if fresh(row, now, stale_after)}
    stale = tuple(node for node in nodes if node not in usable)

    total, count, silent = _measured(usable, place, index)
    distance = _distances(usable, place, index)
    return _filled(places, place_of is not None, (total, count, silent), distance, stale, pessimism, unknown)


def _measured(
    usable: Mapping[str, Row], place: Mapping[str, str], index: Mapping[str, int]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """Sum and number of fresh measurements by place, and where only unanswered ones are, all symmetric."""
    size = len(index)
    total, count = np.zeros((size, size)), np.zeros((size, size), np.int64)
    silent = np.zeros((size, size), bool)
    for node, row in usable.items():
        a = index[place[node]]
        for peer, found in row.peers.items():
            # A peer without a fresh row of its own may be gone; what others remember of it is not trusted.
            if peer == node or peer not in usable:
                continue
            b = index[place[peer]]
            if math.isfinite(found.mean) and found.mean > 0.0:
                total[a, b] += found.mean
                count[a, b] += 1
            elif found.lost >= 1.0:
                silent[a, b] = True
    total, count = total + total.T, count + count.T
    return total, count, (silent | silent.T) & (count == 0)


def _distances(usable: Mapping[str, Row], place: Mapping[str, str], index: Mapping[str, int]) -> NDArray[np.float64]:
    """Estimates by coordinates, the mean coordinate of a place standing for its nodes; NaN where one has none.

    Between two nodes of one place: twice their mean height, and twice their mean distance from the middle.
    """
    dimensions = max((len(row.coordinate.point) for row in usable.values() if row.coordinate is not None), default=1)
    points = np.zeros((len(index), dimensions))
    heights, number = np.zeros(len(index)), np.zeros(len(index))
    located = [
        (index[place[node]], row.coordinate)
        for node, row in usable.items()
        if row.coordinate is not None and len(row.coordinate.point) == dimensions
    ]
    for i, coordinate in located:
        points[i] += coordinate.point
        heights[i] += coordinate.height
        number[i] += 1
    with np.errstate(invalid="ignore"):
        points /= number[:, None]
        heights /= number
    spread = np.zeros(len(index))
    for i, coordinate in located:
        spread[i] += math.dist(coordinate.point, points[i].tolist()) / number[i]
    squares = np.zeros((len(index), len(index)))
    for axis in range(dimensions):
        squares += (points[:, axis, None] - points[None, :, axis]) ** 2
    found = np.sqrt(squares) + heights[:, None] + heights[None, :]
    np.fill_diagonal(found, 2.0 * (heights + spread))
    return found


def _filled(
    places: tuple[str, ...],
    sites: bool,
    measured: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]],
    distance: NDArray[np.float64],
    stale: tuple[str, ...],
    pessimism: float,
    unknown: float,
) -> Latencies:
    total, count, silent = measured
    size = len(places)
    rtt, source = np.full((size, size), np.nan), np.full((size, size), UNKNOWN, np.int8)
    direct = count > 0
    rtt[direct] = total[direct] / count[direct]
    source[direct] = MEASURED
    by_distance = ~direct & ~silent & np.isfinite(distance)
    rtt[by_distance] = distance[by_distance]
    source[by_distance] = DISTANT
    if not sites:
        np.fill_diagonal(rtt, np.nan)
    largest = float(np.nanmax(rtt)) if np.isfinite(rtt).any() else 0.0
    pessimistic = largest * pessimism if largest > 0.0 else unknown
    rtt[np.isnan(rtt)] = pessimistic
    np.maximum(rtt, LEAST_SECONDS, out=rtt)
    if not sites:
        np.fill_diagonal(rtt, 0.0)
        np.fill_diagonal(source, MEASURED)
    return Latencies(places, rtt, source, stale, pessimistic)
