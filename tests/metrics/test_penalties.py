"""Penalties against values computed by hand (Q eq. 10 and 11, table 2)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from slacktide.metrics.distributions import slo_fulfilment
from slacktide.metrics.paired import quadrants
from slacktide.metrics.penalties import Length, bonus, penalties, penalty_increment
from slacktide.model import PenaltyTier
from support.run_tables import BRONZE, CLASSES, GOLD, SILVER, asked


def owed(table: pa.Table, name: str = "all") -> float:
    return float(next(row["penalty"] for row in table.to_pylist() if row["class"] == name))


@pytest.mark.parametrize(
    ("availability", "expected"),
    [(0.99995, 0.0), (0.9998, 0.1), (0.99, 0.1), (0.9899, 0.3), (0.95, 0.3), (0.9499, 1.0), (0.0, 1.0)],
)
def test_the_bonus_of_gold_is_that_of_the_table(availability: float, expected: float) -> None:
    assert bonus(np.array([availability]), np.array([0], np.int16), CLASSES).tolist() == [expected]


@pytest.mark.parametrize(
    ("code", "availability", "expected"),
    [
        *((1, 0.9, 0.0), (1, 0.89999, 0.1), (1, 0.8912, 0.1), (1, 0.8910, 0.3), (1, 0.8556, 0.3), (1, 0.855, 1.0)),
        *((2, 0.5, 0.0), (2, 0.49999, 0.1), (2, 0.4951, 0.1), (2, 0.4950, 0.3), (2, 0.4751, 0.3), (2, 0.475, 1.0)),
    ],
)
def test_tiers_of_other_classes_are_in_the_same_ratios(code: int, availability: float, expected: float) -> None:
    assert bonus(np.array([availability]), np.array([code], np.int16), CLASSES).tolist() == [expected]


def test_a_penalty_by_hand() -> None:
    run = asked(
        ("gold", 0.98, 0.0, 120.0, 100.0, 100.0, 2.0),  # misses by .02: .02 * 100 s * 2 CPU = 4, and 30 % more: 5.2
        ("silver", 0.45, 0.0, 400.0, 180.0, 180.0, 0.5),  # .45 * 180 * .5 = 40.5, doubled: 81
        ("silver", 0.95, 0.0, 400.0, 380.0, 380.0, 9.0),  # met
        ("bronze", 0.498, 0.0, 20.0, 10.0, 10.0, 1.0),  # .002 * 10 = .02, and 10 %: .022
    )
    found = penalties(run, CLASSES, "restart", end=1000.0).to_pylist()
    assert [row["class"] for row in found] == ["gold", "silver", "bronze", "all"]
    assert [row["violators"] for row in found] == [1, 1, 1, 3]
    assert [row["requests"] for row in found] == [1, 2, 1, 4]
    assert [row["deficit_cpu_seconds"] for row in found] == pytest.approx([4.0, 40.5, 0.02, 44.52])
    assert [row["penalty"] for row in found] == pytest.approx([5.2, 81.0, 0.022, 86.222])


def test_what_an_unfinished_request_counts_with_is_a_choice() -> None:
    # Bronze with .25 of its .5: admitted at 200 of 1,000 s, ran 200 s of the 5,000 asked for; b = 1, c = 3.
    run = asked(("bronze", 0.25, 200.0, None, 200.0, 5000.0, 3.0))
    expected: dict[Length, float] = {"due": 800.0, "asked": 5000.0, "run": 200.0, "lifetime": 800.0}
    for length, seconds in expected.items():
        assert owed(penalties(run, CLASSES, "restart", 1000.0, length)) == pytest.approx(0.25 * seconds * 3.0 * 2.0)


def test_one_that_could_have_completed_counts_with_its_duration() -> None:
    run = asked(("bronze", 0.25, 200.0, None, 200.0, 300.0, 3.0))
    assert owed(penalties(run, CLASSES, "restart", 1000.0)) == pytest.approx(0.25 * 300.0 * 3.0 * 2.0)
    assert owed(penalties(run, CLASSES, "restart", 1000.0, "lifetime")) == pytest.approx(0.25 * 800.0 * 3.0 * 2.0)


def test_an_endless_request_counts_to_the_end_of_the_run() -> None:
    run = asked(("bronze", 0.25, 200.0, None, 200.0, None, 3.0))
    assert owed(penalties(run, CLASSES, "restart", 1000.0)) == pytest.approx(0.25 * 800.0 * 3.0 * 2.0)
    with pytest.raises(ValueError, match="endless"):
        penalties(run, CLASSES, "restart", 1000.0, "asked")


def test_instances_of_unequal_length_count_with_the_cpu_seconds_they_asked_for() -> None:
    # Two instances, 1 CPU for 100 s and 3 CPU for 10 s: 130 CPU s. D = .25, b = 1.
    run = asked(("bronze", 0.25, 0.0, 500.0, 110.0, 100.0, 4.0))
    several = run.set_column(run.column_names.index("instances"), "instances", pa.array([2]))
    several = several.set_column(several.column_names.index("cpu_seconds"), "cpu_seconds", pa.array([130.0]))
    assert owed(penalties(several, CLASSES, "restart", 1000.0)) == pytest.approx(0.25 * 130.0 * 2.0)


def test_tiers_can_be_chosen() -> None:
    strict = (replace(BRONZE, tiers=(PenaltyTier(1.0, 0.5), PenaltyTier(0.5, 4.0))),)
    run = asked(("bronze", 0.4, 0.0, 10.0, 5.0, 10.0, 1.0), ("bronze", 0.2, 0.0, 10.0, 5.0, 10.0, 1.0))
    assert owed(penalties(run, strict, "restart", 10.0)) == pytest.approx(0.1 * 10 * 1.5 + 0.3 * 10 * 5.0)


def test_nobody_owes_nothing() -> None:
    found = penalties(asked(), (GOLD, SILVER), "restart", 10.0)
    assert found["penalty"].to_pylist() == [0.0, 0.0, 0.0]


def test_the_increment_is_relative_to_the_other() -> None:
    one = pa.table({"class": ["a", "b", "c", "all"], "penalty": [0.0, 30.0, 5.0, 35.0]})
    other = pa.table({"class": ["a", "b", "c", "all"], "penalty": [0.0, 10.0, 0.0, 10.0]})
    assert penalty_increment(one, other)["increment"].to_pylist() == [0.0, 2.0, float("inf"), 2.5]
    assert penalty_increment(other, one)["increment"].to_pylist()[1] == pytest.approx(-2 / 3)
    with pytest.raises(ValueError, match="classes differ"):
        penalty_increment(one, other.slice(1))


def test_a_promise_over_windows_is_judged_by_its_worst_one() -> None:
    run = asked(
        ("silver", 0.95, 0.0, 400.0, 180.0, 180.0, 0.5),  # its worst window had .45
        ("silver", 0.45, 0.0, 400.0, 180.0, 180.0, 0.5),  # promised over its life
    )
    run = run.append_column("worst_window", pa.array([0.45, None], pa.float64())).append_column("id", [[1, 2]])
    assert owed(penalties(run, CLASSES, "restart", end=1000.0)) == pytest.approx(2 * 81.0)
    silver = slo_fulfilment(run, CLASSES, "restart").to_pylist()[1]
    assert (silver["fulfilled"], silver["min"], silver["deficit_mean"]) == (0, 0.45, pytest.approx(0.45))
    assert quadrants(run, run, CLASSES, "restart").to_pylist()[1]["neither"] == 1.0
