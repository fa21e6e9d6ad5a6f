"""Distributions of availability and deficit against values computed by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.metrics import columns
from slacktide.metrics.distributions import (
    availability_ecdf,
    availability_histogram,
    availability_quantiles,
    deficit_ecdf,
    slo_fulfilment,
)
from support.run_tables import BRONZE, CLASSES, GOLD, requests

RUN = requests(("gold", 1.0), ("bronze", 0.2), ("bronze", 0.5), ("gold", 0.9), ("bronze", 0.45), ("bronze", 0.8))
TWO = (GOLD, BRONZE)


def rows(table: pa.Table, name: str) -> list[dict[str, object]]:
    return [row for row in table.to_pylist() if row["class"] == name]


def test_the_share_of_requests_at_or_below_each_level() -> None:
    found = availability_ecdf(RUN, TWO, "restart", [0.9, 0.45, 0.5, 1.0])
    # Gold: .9, 1. Bronze: .2, .45, .5, .8.
    assert [(row["availability"], row["share"]) for row in rows(found, "gold")] == [
        *((0.45, 0.0), (0.5, 0.0), (0.9, 0.5), (1.0, 1.0))
    ]
    assert [row["share"] for row in rows(found, "bronze")] == [0.5, 0.75, 1.0, 1.0]


def test_the_deficit_is_that_of_the_violators_alone() -> None:
    found = deficit_ecdf(RUN, TWO, "restart", [0.02, 0.06, 0.1 + 1e-12, 0.3])
    # Bronze misses by .3 and .05, gold by .1 once; .5 meets .5.
    assert [row["share"] for row in rows(found, "bronze")] == [0.0, 0.5, 0.5, 1.0]
    assert [row["share"] for row in rows(found, "gold")] == [0.0, 0.0, 1.0, 1.0]


def test_a_class_without_requests_or_violators_has_no_distribution() -> None:
    found = availability_ecdf(requests(("gold", 1.0)), CLASSES, "restart", [0.5])
    assert [row["share"] for row in found.to_pylist()] == [0.0, None, None]
    found = deficit_ecdf(requests(("gold", 1.0)), CLASSES, "restart", [0.5])
    assert found["share"].to_pylist() == [None, None, None]


def test_spans_of_availability_hold_their_lower_end_and_the_last_one_both() -> None:
    run = requests(("bronze", 0.0), ("bronze", 0.15), ("bronze", 0.2), ("bronze", 0.95), ("bronze", 1.0))
    found = availability_histogram(run, (BRONZE,), "restart", 0.05)
    filled = [(row["low"], row["requests"], row["share"]) for row in found.to_pylist() if row["requests"]]
    assert filled == [(0.0, 1, 0.2), (0.15, 1, 0.2), (0.2, 1, 0.2), (0.95, 2, 0.4)]
    assert found.num_rows == 20


def test_spans_must_cover_0_to_1() -> None:
    with pytest.raises(ValueError, match=r"width: found 0\.3"):
        availability_histogram(RUN, TWO, "restart", 0.3)


def test_quantiles_interpolate() -> None:
    found = availability_quantiles(RUN, TWO, "restart", [0.0, 0.5, 1.0])
    assert [row["availability"] for row in rows(found, "bronze")] == pytest.approx([0.2, 0.475, 0.8])


def test_fulfilment_by_hand() -> None:
    gold, silver, bronze = slo_fulfilment(RUN, CLASSES, "restart").to_pylist()
    assert (gold["requests"], gold["fulfilled"], gold["fulfilment"]) == (2, 1, 0.5)
    assert (silver["requests"], silver["fulfilment"], silver["mean"], silver["min"]) == (0, None, None, None)
    assert (bronze["fulfilled"], bronze["fulfilment"], bronze["min"]) == (2, 0.5, 0.2)
    assert bronze["mean"] == pytest.approx((0.2 + 0.5 + 0.45 + 0.8) / 4)
    assert bronze["deficit_mean"] == pytest.approx((0.3 + 0.05) / 2)
    assert bronze["deficit_max"] == pytest.approx(0.3)


def test_rounding_breaks_no_promise() -> None:
    found = slo_fulfilment(requests(("bronze", 0.5 - 1e-12)), (BRONZE,), "restart").to_pylist()[0]
    assert (found["fulfilment"], found["deficit_mean"]) == (1.0, None)


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(ValueError, match="found 'platinum', expected one of gold, bronze"):
        slo_fulfilment(requests(("gold", 1.0), ("platinum", 1.0)), TWO, "restart")


run = st.lists(st.tuples(st.sampled_from(["gold", "silver", "bronze"]), st.floats(0, 1)), max_size=40)


@given(run, st.integers(1, 7))
def test_parts_change_nothing(found: list[tuple[str, float]], size: int) -> None:
    table = requests(*found)

    def all_of() -> list[dict[str, object]]:
        tables = [one(table, CLASSES, "restart") for one in (availability_ecdf, deficit_ecdf, availability_histogram)]
        fulfilment = slo_fulfilment(table, CLASSES, "restart").drop_columns(["mean", "deficit_mean"])  # sums, rounded
        return [row for one in (*tables, fulfilment) for row in one.to_pylist()]

    whole = all_of()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "PART", size)
        assert all_of() == whole


@given(run.filter(bool))
def test_the_distribution_is_what_counting_says(found: list[tuple[str, float]]) -> None:
    table = availability_ecdf(requests(*found), CLASSES, "restart", [0.0, 0.25, 0.5, 0.9, 1.0])
    for row in table.to_pylist():
        mine = [a for name, a in found if name == row["class"]]
        expected = sum(a <= row["availability"] for a in mine) / len(mine) if mine else None
        assert row["share"] == expected
