"""Network coordinates of nodes whose distances are known, each measuring a sample of the others."""

from __future__ import annotations

import math
import random
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from slacktide.model.latency import Coordinate
from slacktide.netprobe.packets import DIMENSIONS
from slacktide.netprobe.sampling import Sample
from slacktide.netprobe.vivaldi import Position
from support.repository import REPOSITORY

NODES, SITES, ROUNDS, ROTATE_EVERY = 300, 20, 40, 5


def distances(chance: random.Random) -> NDArray[np.float64]:
    """Round-trip times in seconds of nodes at sites in a plane of 200 ms, each with a last mile of 1 to 10 ms."""
    sites = [(chance.uniform(0.0, 0.2), chance.uniform(0.0, 0.2)) for _ in range(SITES)]
    places = [sites[node % SITES] for node in range(NODES)]
    miles = [chance.uniform(0.0005, 0.005) for _ in range(NODES)]
    return np.array(
        [[math.dist(places[a], places[b]) + miles[a] + miles[b] for b in range(NODES)] for a in range(NODES)]
    )


def far(positions: list[Position], mine: Position, name: str) -> float:
    return mine.coordinate.distance(positions[int(name[1:])].coordinate)


def settled(rtt: NDArray[np.float64], noise: float, seed: int, sample: int = 32) -> list[Position]:
    """Coordinates after rounds in which every node measures its whole sample, with multiplicative noise."""
    names = [f"n{number}" for number in range(len(rtt))]
    positions = [Position.unknown(DIMENSIONS) for _ in names]
    chance = random.Random(seed)
    samples = [Sample(100, sample, sample // 4, f"{seed} {name}") for name in names]
    chosen = [one.update([*names[:i], *names[i + 1 :]]) for i, one in enumerate(samples)]
    for turn in range(ROUNDS):
        for i, mine in enumerate(positions):
            for name in sorted(chosen[i]):
                j = int(name[1:])
                seen = rtt[i, j] * max(0.2, chance.gauss(1.0, noise))
                mine.learn(seen, positions[j].coordinate, positions[j].error, chance)
            if turn % ROTATE_EVERY == ROTATE_EVERY - 1:
                others = [*names[:i], *names[i + 1 :]]
                chosen[i] = samples[i].rotate(others, partial(far, positions, mine))
    return positions


def relative_errors(rtt: NDArray[np.float64], positions: list[Position]) -> NDArray[np.float64]:
    """|estimate - truth| / truth of every pair."""
    pairs = [(a, b) for a in range(len(rtt)) for b in range(a)]
    return np.array(
        [abs(positions[a].coordinate.distance(positions[b].coordinate) - rtt[a, b]) / rtt[a, b] for a, b in pairs]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "row", "median_at_most", "p90_at_most"), [(0.0, "none", 0.02, 0.10), (0.1, "10 %", 0.06, 0.25)]
)
def test_a_sample_is_enough_for_a_plane(noise: float, row: str, median_at_most: float, p90_at_most: float) -> None:
    rtt = distances(random.Random(6))
    positions = settled(rtt, noise, seed=7)
    found = relative_errors(rtt, positions)
    median, p90 = float(np.median(found)), float(np.quantile(found, 0.9))
    assert median <= median_at_most, (median, p90)
    assert p90 <= p90_at_most, (median, p90)
    # What the nodes say of themselves is no better than it is.
    said = float(np.median([one.error for one in positions]))
    assert 0.3 * median <= said <= 0.5, (said, median)
    page = (REPOSITORY / "docs" / "netprobe.md").read_text(encoding="utf-8")
    assert f"| {row} | {100 * median:.1f} % | {100 * p90:.1f} % | {100 * said:.1f} % |" in page


def test_two_nodes_find_their_distance() -> None:
    one, other, chance = Position.unknown(3), Position.unknown(3), random.Random(8)
    for _ in range(200):
        one.learn(0.050, other.coordinate, other.error, chance)
        other.learn(0.050, one.coordinate, one.error, chance)
    assert one.coordinate.distance(other.coordinate) == pytest.approx(0.050, rel=0.02)
    assert max(one.error, other.error) < 0.1


def test_a_step_is_that_of_the_published_algorithm() -> None:
    # x = (3, 0), height 1; y = (0, 0), height 1; e = e_y = .5; rtt 9; so w = .5, |x - y| = 5, force .25 * .5 * 4 = .5.
    one = Position(Coordinate((3.0, 0.0), 1.0), 0.5)
    one.learn(9.0, Coordinate((0.0, 0.0), 1.0), 0.5, random.Random(0))
    assert one.coordinate.point == pytest.approx((3.0 + 0.5 * 3.0 / 5.0, 0.0))
    assert one.coordinate.height == pytest.approx(1.0 + 0.5 * 2.0 / 5.0)
    assert one.error == pytest.approx((4.0 / 9.0) * 0.25 * 0.5 + 0.5 * (1.0 - 0.25 * 0.5))


def test_a_node_that_knows_its_place_hardly_follows_one_that_does_not() -> None:
    sure, unsure = Position(Coordinate((1.0, 0.0), 0.1), 0.01), Coordinate((0.0, 0.0), 0.1)
    sure.learn(5.0, unsure, 1.0, random.Random(0))
    assert math.dist(sure.coordinate.point, (1.0, 0.0)) < 0.02
    newcomer = Position(Coordinate((1.0, 0.0), 0.1), 1.0)
    newcomer.learn(5.0, unsure, 0.01, random.Random(0))
    assert math.dist(newcomer.coordinate.point, (1.0, 0.0)) > 0.5


def test_a_height_never_becomes_negative_and_an_error_never_leaves_its_range() -> None:
    chance = random.Random(9)
    one = Position.unknown(3)
    for _ in range(2000):
        peer = Coordinate(tuple(chance.uniform(-1.0, 1.0) for _ in range(3)), chance.uniform(0.0, 0.1))
        one.learn(chance.choice([1e-9, 0.001, 0.1, 10.0]), peer, chance.uniform(0.0, 1.0), chance)
        assert one.coordinate.height > 0.0
        assert 0.0 <= one.error <= 1.0
        assert all(map(math.isfinite, one.coordinate.point))
