"""Pairs of two runs against values computed by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.metrics.distributions import slo_fulfilment
from slacktide.metrics.paired import heat_map, quadrants
from support.run_tables import BRONZE, CLASSES, GOLD, requests

X = requests(("bronze", 0.6), ("bronze", 0.2), ("bronze", 0.9), ("bronze", 0.1), ("gold", 1.0))
Y = requests(("bronze", 0.7), ("bronze", 0.5), ("bronze", 0.3), ("bronze", 0.1), ("gold", 1.0))


def test_quadrants_by_hand() -> None:
    gold, silver, bronze = quadrants(X, Y, CLASSES, "restart").to_pylist()
    assert bronze == {
        "class": "bronze",
        "requests": 4,
        "both": 0.25,
        "only_y": 0.25,
        "only_x": 0.25,
        "neither": 0.25,
        "above": 0.5,
        "on": 0.25,
        "below": 0.25,
    }
    assert (gold["both"], gold["on"]) == (1.0, 1.0)
    assert (silver["requests"], silver["both"], silver["on"]) == (0, None, None)


def test_the_heat_map_by_hand() -> None:
    found = heat_map(X, Y, (GOLD, BRONZE), "restart", 0.5).to_pylist()
    # Squares of .5 by .5; bronze: (.6, .7), (.2, .5), (.9, .3), (.1, .1).
    squares = [(r["class"], r["x_low"], r["x_high"], r["y_low"], r["y_high"], r["requests"], r["share"]) for r in found]
    assert squares == [
        ("gold", 0.5, 1.0, 0.5, 1.0, 1, 1.0),
        ("bronze", 0.0, 0.5, 0.0, 0.5, 1, 0.25),
        ("bronze", 0.0, 0.5, 0.5, 1.0, 1, 0.25),
        ("bronze", 0.5, 1.0, 0.0, 0.5, 1, 0.25),
        ("bronze", 0.5, 1.0, 0.5, 1.0, 1, 0.25),
    ]


def test_requests_are_paired_by_id_and_those_without_a_partner_left_out() -> None:
    x = requests(("bronze", 0.9), ("bronze", 0.1), ("bronze", 0.8)).set_column(0, "id", pa.array([7, 5, 6]))
    y = requests(("bronze", 0.2), ("bronze", 0.9)).set_column(0, "id", pa.array([5, 7]))
    bronze = quadrants(x, y, (BRONZE,), "restart").to_pylist()[0]
    assert (bronze["requests"], bronze["both"], bronze["neither"], bronze["above"], bronze["on"]) == (
        2,
        0.5,
        0.5,
        0.5,
        0.5,
    )


def test_a_request_is_there_once() -> None:
    twice = requests(("bronze", 0.9), ("bronze", 0.1)).set_column(0, "id", pa.array([3, 3]))
    with pytest.raises(ValueError, match="twice"):
        quadrants(twice, requests(("bronze", 1.0)), (BRONZE,), "restart")


both = st.lists(
    st.tuples(st.sampled_from(["gold", "silver", "bronze"]), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40
)


@given(both)
def test_quadrants_add_up_to_each_run_s_fulfilment(rows: list[tuple[str, float, float]]) -> None:
    x, y = requests(*((n, a) for n, a, _ in rows)), requests(*((n, b) for n, _, b in rows))
    of_x, of_y = (slo_fulfilment(one, CLASSES, "restart").to_pylist() for one in (x, y))
    for found, mine, theirs in zip(quadrants(x, y, CLASSES, "restart").to_pylist(), of_x, of_y, strict=True):
        if not found["requests"]:
            continue
        assert found["both"] + found["only_x"] == pytest.approx(mine["fulfilment"])
        assert found["both"] + found["only_y"] == pytest.approx(theirs["fulfilment"])
        assert found["above"] + found["on"] + found["below"] == pytest.approx(1.0)
    assert sum(heat_map(x, y, CLASSES, "restart")["requests"].to_pylist()) == len(rows)
