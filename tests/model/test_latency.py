"""Round-trip times from rows: the rules that docs/netprobe.md states."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slacktide.model.latency import DISTANT, MEASURED, UNKNOWN, Coordinate, Latencies, Measured, Row, latencies

NOW, STALE = 10_000.0, 900.0
NAN = math.nan


def row(node: str, age: float = 0.0, place: tuple[float, float] | None = None, **peers: float) -> Row:
    """A row of so many seconds ago; peers with their mean in ms, NaN for one that never answers."""
    measured = {
        name: Measured(NAN, NAN, 1.0, 0) if math.isnan(mean) else Measured(mean / 1e3) for name, mean in peers.items()
    }
    coordinate = None if place is None else Coordinate((place[0] / 1e3,), place[1] / 1e3)
    return Row(node, NOW - age, measured, coordinate, 0.1)


def value(found: Latencies, a: str, b: str) -> tuple[float, int]:
    """Milliseconds between two places and where that comes from."""
    i, j = found.names.index(a), found.names.index(b)
    assert found.rtt[i, j] == found.rtt[j, i]
    assert found.source[i, j] == found.source[j, i]
    return float(np.round(1e3 * found.rtt[i, j], 9)), int(found.source[i, j])


def of(*rows: Row, **settings: object) -> Latencies:
    return latencies(rows, NOW, STALE, **settings)  # type: ignore[arg-type]


def test_both_directions_count_alike() -> None:
    found = of(row("a", b=10.0), row("b", a=20.0))
    assert value(found, "a", "b") == (15.0, MEASURED)
    assert found.names == ("a", "b")
    assert found.stale == ()


def test_one_direction_is_enough() -> None:
    assert value(of(row("a", b=10.0), row("b")), "a", "b") == (10.0, MEASURED)


def test_a_pair_that_is_not_measured_is_as_far_as_its_coordinates() -> None:
    found = of(row("a", place=(10.0, 1.0)), row("b", place=(50.0, 2.0)))
    assert value(found, "a", "b") == (43.0, DISTANT)


def test_a_measurement_goes_before_coordinates() -> None:
    found = of(row("a", place=(10.0, 1.0), b=30.0), row("b", place=(50.0, 2.0)))
    assert value(found, "a", "b") == (30.0, MEASURED)


def test_a_node_without_a_fresh_row_is_twice_as_far_as_anything_known() -> None:
    rows = row("a", b=10.0, c=40.0, old=1.0), row("b", c=12.0), row("c"), row("old", age=STALE + 1.0, a=1.0, b=2.0)
    found = of(*rows, names=["never"])
    assert found.stale == ("never", "old")
    for name in ("a", "b", "c"):
        for other in found.stale:
            assert value(found, name, other) == (80.0, UNKNOWN)
    assert value(found, "never", "old") == (80.0, UNKNOWN)
    assert found.pessimistic == pytest.approx(0.080)
    assert value(of(*rows, pessimism=3.0), "a", "old") == (120.0, UNKNOWN)


def test_a_row_is_fresh_up_to_the_limit() -> None:
    assert of(row("a", age=STALE, b=10.0), row("b")).stale == ()
    assert of(row("a", age=STALE + 0.001, b=10.0), row("b")).stale == ("a",)
    assert latencies([Row("a", -math.inf)], NOW, STALE).stale == ("a",)


def test_a_row_from_a_clock_that_is_far_ahead_does_not_stay_fresh_until_then() -> None:
    assert of(row("a", age=-STALE, b=10.0), row("b")).stale == ()
    assert of(row("a", age=-STALE - 0.001, b=10.0), row("b")).stale == ("a",)


def test_what_others_remember_of_a_silent_node_does_not_count() -> None:
    found = of(row("a", old=1.0, b=30.0), row("b", old=1.0), row("old", age=2 * STALE))
    assert value(found, "a", "old") == (60.0, UNKNOWN)


def test_nodes_that_do_not_reach_each_other_are_far_whatever_their_coordinates() -> None:
    rows = row("a", place=(0.0, 1.0), b=NAN, c=10.0), row("b", place=(1.0, 1.0), a=NAN, c=20.0), row("c")
    assert value(of(*rows), "a", "b") == (40.0, UNKNOWN)


def test_one_direction_that_answers_goes_before_one_that_does_not() -> None:
    assert value(of(row("a", b=NAN), row("b", a=25.0)), "a", "b") == (25.0, MEASURED)


def test_where_nothing_is_known_it_is_a_second_or_what_was_said() -> None:
    assert value(of(row("a"), row("b")), "a", "b") == (1000.0, UNKNOWN)
    assert value(of(row("a"), row("b"), unknown=0.25), "a", "b") == (250.0, UNKNOWN)


def test_no_two_nodes_are_at_distance_zero_and_every_node_is_with_itself() -> None:
    same = Coordinate((0.0,), 0.0)
    rows = [Row(name, NOW, {"x": Measured(0.0)}, same) for name in "abc"] + [Row("x", NOW)]
    found = of(*rows, names=["none"])
    apart = found.rtt[~np.eye(len(found.names), dtype=bool)]
    assert (apart > 0.0).all()
    assert (np.diag(found.rtt) == 0.0).all()


def test_sites_are_as_far_as_their_nodes_on_average() -> None:
    sites = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    rows = row("a1", a2=2.0, b1=40.0), row("a2", a1=4.0, b2=50.0), row("b1", a1=42.0), row("b2")
    found = of(*rows, place_of=sites)
    assert found.names == ("a", "b")
    assert value(found, "a", "b") == (44.0, MEASURED)
    assert value(found, "a", "a") == (3.0, MEASURED)
    # Nothing is known of b's inside: as far as it gets.
    assert value(found, "b", "b") == (88.0, UNKNOWN)


def test_sites_without_measurements_go_by_the_middle_of_their_coordinates() -> None:
    sites = {"a1": "a", "a2": "a", "b1": "b"}
    rows = row("a1", place=(0.0, 1.0)), row("a2", place=(4.0, 3.0)), row("b1", place=(52.0, 5.0))
    found = of(*rows, place_of=sites)
    assert value(found, "a", "b") == (50.0 + 2.0 + 5.0, DISTANT)
    assert value(found, "a", "a") == (2.0 * (2.0 + 2.0), DISTANT)


def test_a_site_is_known_while_one_of_its_nodes_is() -> None:
    sites = {"a1": "a", "a2": "a", "b1": "b"}
    found = of(row("a1", b1=30.0), row("a2", age=2 * STALE), row("b1"), place_of=sites)
    assert value(found, "a", "b") == (30.0, MEASURED)
    assert found.stale == ("a2",)


def test_twelve_thousand_nodes_at_fifty_sites_make_a_small_matrix() -> None:
    nodes = [f"n{number}" for number in range(12_500)]
    sites = {name: f"s{number % 50}" for number, name in enumerate(nodes)}
    rows = [Row(name, NOW, {nodes[(i + 7) % 12_500]: Measured(0.02)}) for i, name in enumerate(nodes)]
    found = of(*rows, place_of=sites)
    assert found.rtt.shape == (50, 50)


def test_two_rows_of_a_node_and_impossible_factors_are_refused() -> None:
    with pytest.raises(ValueError, match="two rows of node 'a'"):
        of(row("a"), row("a"))
    with pytest.raises(ValueError, match="pessimism"):
        of(row("a"), pessimism=0.5)
    with pytest.raises(ValueError, match="unknown"):
        of(row("a"), unknown=0.0)
