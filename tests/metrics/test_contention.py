"""Contention classes of intervals, by hand, and bootstrap over runs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from slacktide.metrics.confidence import bootstrap
from slacktide.metrics.contention import by_level, contention_levels, shares_of_levels
from slacktide.model import ServiceClass
from support.run_tables import CLASSES, intervals

Pair = tuple[float | None, float | None]
FULL: Pair = (1.0, 1.0)


def level(gold: Pair, silver: Pair, bronze: Pair) -> str:
    table = intervals((600.0, "gold", *gold), (600.0, "silver", *silver), (600.0, "bronze", *bronze))
    return str(contention_levels(table, CLASSES)["level"][0].as_py())


@pytest.mark.parametrize(
    ("gold", "silver", "bronze", "expected"),
    [
        (FULL, FULL, FULL, "none"),
        (FULL, (None, None), FULL, "none"),
        (FULL, FULL, (0.7, 1.0), "low"),
        (FULL, FULL, (0.4, 0.99), "medium"),
        (FULL, (0.95, 1.0), FULL, "high"),
        (FULL, (0.95, 1.0), (0.3, 0.5), "high"),
        ((0.99, 0.9), FULL, FULL, "high"),
    ],
)
def test_the_level_of_an_interval(gold: Pair, silver: Pair, bronze: Pair, expected: str) -> None:
    assert level(gold, silver, bronze) == expected


def test_classes_of_the_largest_rank_are_the_least_important() -> None:
    classes = (ServiceClass("a", 0.9, 1), ServiceClass("b", 0.5, 4), ServiceClass("c", 0.5, 4))
    table = intervals((1.0, "a", 1.0, 1.0), (1.0, "b", 0.8, 1.0), (1.0, "c", 0.4, 0.5), (2.0, "b", 0.8, 1.0))
    assert contention_levels(table, classes)["level"].to_pylist() == ["medium", "low"]


def test_rows_get_the_level_of_their_interval() -> None:
    of_priority = intervals((600.0, "bronze", 0.4, 0.5), (1200.0, "bronze", 1.0, 1.0))
    levels = contention_levels(of_priority, CLASSES)
    mine = intervals((1200.0, "gold", 1.0, 1.0), (600.0, "gold", 0.9, 0.9), (1800.0, "gold", 0.8, 0.8))
    found = by_level(mine, levels)
    assert [(row["time"], row["level"]) for row in found.to_pylist()] == [(1200.0, "none"), (600.0, "medium")]
    assert shares_of_levels(levels).to_pylist() == [
        {"level": "none", "intervals": 1, "share": 0.5},
        {"level": "low", "intervals": 0, "share": 0.0},
        {"level": "medium", "intervals": 1, "share": 0.5},
        {"level": "high", "intervals": 0, "share": 0.0},
    ]


def observations(rows: list[tuple[str, int, str, float | None]]) -> pa.Table:
    """Of workload, seed, class and a fulfilment."""
    names = ("workload", "seed", "class", "fulfilment")
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})


def once(table: pa.Table, **how: float) -> list[dict[str, object]]:
    return list(bootstrap(table, ["class"], ["fulfilment"], **how).to_pylist())  # type: ignore[arg-type]


def test_equal_runs_leave_no_doubt() -> None:
    table = observations([("w", seed, "gold", value) for seed in range(4) for value in (0.5, 1.0)])
    assert once(table) == [
        {"class": "gold", "metric": "fulfilment", "mean": 0.75, "low": 0.75, "high": 0.75, "rows": 8, "runs": 4}
    ]


def test_two_seeds_by_hand() -> None:
    # Drawing two of {0, 1} gives the means 0, .5, 1 with chances 1/4, 1/2, 1/4: of 95 % nothing can be left out,
    # of 40 % the quarters at both ends can.
    table = observations([("w", 0, "gold", 0.0), ("w", 1, "gold", 1.0)])
    (wide,), (narrow,) = once(table), once(table, share=0.4)
    assert (wide["mean"], wide["low"], wide["high"]) == (0.5, 0.0, 1.0)
    assert (narrow["low"], narrow["high"]) == (0.5, 0.5)


def test_a_single_run_has_no_interval() -> None:
    (found,) = once(observations([("w", 0, "gold", 0.25), ("w", 0, "gold", 0.75)]))
    assert (found["mean"], found["low"], found["high"], found["runs"]) == (0.5, None, None, 1)


def test_what_is_not_there_does_not_count() -> None:
    table = observations([("w", 0, "gold", None), ("w", 0, "gold", 0.5), ("w", 1, "gold", 0.5), ("w", 1, "tin", None)])
    assert [(row["class"], row["rows"], row["mean"]) for row in once(table)] == [("gold", 2, 0.5)]


def test_workloads_are_drawn_as_well_as_seeds() -> None:
    # Seeds agree, workloads differ: drawing seeds alone would leave no doubt.
    table = observations([(w, seed, "gold", value) for w, value in (("a", 0.0), ("b", 1.0)) for seed in range(9)])
    (found,) = once(table)
    assert (found["low"], found["high"]) == (0.0, 1.0)


def test_equal_seeds_draw_alike() -> None:
    random = np.random.default_rng(3)
    table = observations([("w", seed, "gold", float(random.random())) for seed in range(20)])
    assert once(table, seed=5) == once(table, seed=5)
    assert once(table, seed=5)[0]["low"] != once(table, seed=6)[0]["low"]


def test_the_interval_holds_the_true_mean_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(11)
    hits = 0
    for _ in range(200):
        table = observations(
            [("w", seed, "gold", float(value)) for seed, value in enumerate(random.normal(0.5, 0.1, 30))]
        )
        (found,) = bootstrap(table, ["class"], ["fulfilment"], repetitions=300).to_pylist()
        hits += found["low"] <= 0.5 <= found["high"]
    assert 0.88 <= hits / 200 <= 0.99


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="share"):
        once(observations([("w", 0, "gold", 0.5)]), share=1.0)
