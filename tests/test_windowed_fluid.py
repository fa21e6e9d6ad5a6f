"""The bound of promises over windows (bench/windowed_fluid.py): exact where it can be worked out, never beaten."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.model import ServiceClass, Window
from slacktide.settings import load
from support.repository import REPOSITORY

FOREVER = float("inf")
DAY = 86_400.0


@pytest.fixture(scope="module")
def bench() -> Iterator[dict[str, Any]]:
    """Modules of the folder bench, by name."""
    before = list(sys.path)
    sys.path.insert(0, str(REPOSITORY / "bench"))
    names = ("windowed_fluid", "promises_parts.inputs", "promises_parts.outcome")
    yield {name.split(".")[-1]: importlib.import_module(name) for name in names}
    sys.path[:] = before


def most(bench: dict[str, Any], one: Any, folder: Path) -> tuple[list[int], int | None]:
    words = bench["outcome"].words_of(one, one.end, folder)
    found: tuple[list[int], int | None] = bench["windowed_fluid"].kept(
        one.workload, one.hosts, load(None, None, words), one.end
    )
    return found


@pytest.mark.parametrize("window", ["30d", "1M", "lifetime"])
@pytest.mark.parametrize(
    ("n", "slo", "kept"), [(21, 0.99, 20), (24, 0.99, 20), (21, 0.95, 21), (24, 0.9, 22), (30, 0.9, 22), (20, 1.0, 20)]
)
def test_equal_services_take_turns_at_best(
    bench: dict[str, Any], n: int, slo: float, kept: int, window: str, tmp_path: Path
) -> None:
    found, _ = most(bench, bench["inputs"].equal(n, slo, window), tmp_path)
    assert found == [kept]


@pytest.mark.parametrize(("approach", "slo", "kept"), [("aggregated", 0.99, 5), ("concurrent", 0.8, 6)])
def test_requests_of_several_instances_take_turns_as_a_whole(
    bench: dict[str, Any], approach: str, slo: float, kept: int, tmp_path: Path
) -> None:
    assert most(bench, bench["inputs"].grouped(approach, slo), tmp_path)[0] == [kept]


def test_an_outage_is_as_long_as_the_budget_at_most(bench: dict[str, Any], tmp_path: Path) -> None:
    # Two of 22 are away at any time, three days each at most, and begin so: 57 days after the first three, twice.
    assert most(bench, bench["inputs"].equal(24, 0.9), tmp_path) == ([22], 38)
    assert most(bench, bench["inputs"].equal(21, 0.99), tmp_path) == ([20], 0)


def test_large_ones_are_given_up_for_several_small_ones(bench: dict[str, Any], tmp_path: Path) -> None:
    # 524 CPU are asked for, and there are 480: turns of gold, silver and bronze save some 29, and five of bronze that
    # ask for 4 each are given up for the rest.
    assert most(bench, bench["inputs"].mix(), tmp_path)[0] == [56, 74, 126]


def test_what_a_zone_takes_away_is_missing(bench: dict[str, Any], tmp_path: Path) -> None:
    inputs = bench["inputs"]
    gold = ServiceClass("gold", 0.9, 1, window=Window(rolling=10 * DAY))
    workload = inputs.alone([(0.0, FOREVER, 1.0, "gold")] * 4, (gold,))
    for hours, kept in ((24.0, 4), (47.0, 4), (49.0, 3), (97.0, 2)):
        # A day may be lost by each; two places of four are away for so long.
        away = tuple((host, 5 * DAY, 5 * DAY + hours * 3600.0) for host in (0, 1))
        one = inputs.Input("zone", workload, inputs.machines(4, 1.0), 20 * DAY, (), away)
        assert most(bench, one, tmp_path) == ([kept], None)


def test_who_fits_no_host_or_comes_too_late_is_not_served(bench: dict[str, Any], tmp_path: Path) -> None:
    inputs = bench["inputs"]
    gold = ServiceClass("gold", 0.9, 1, window=Window(rolling=DAY))
    rows = [(0.0, FOREVER, 1.5, "gold"), (0.0, FOREVER, 1.0, "gold"), (3 * DAY, FOREVER, 1.0, "gold")]
    one = inputs.Input("large", inputs.alone(rows, (gold,)), inputs.machines(2, 1.0), 2 * DAY)
    assert most(bench, one, tmp_path) == ([1], 0)


State = tuple[int, ...]
"""Of each service in which of the last slots it had no place, a bit for each, the last one lowest."""


def schedules(states: set[State], sizes: State, places: int, window: int, lost: int) -> set[State]:
    """The states of one slot later, of those that may have no place in ``lost`` of any ``window`` slots."""
    found = set()
    for away in itertools.product((0, 1), repeat=len(sizes)):
        if sum(size for size, out in zip(sizes, away, strict=True) if not out) > places:
            continue
        for state in states:
            after = tuple((past << 1 | out) % (1 << window) for past, out in zip(state, away, strict=True))
            if all(past.bit_count() <= lost for past in after):
                found.add(after)
    return found


def brute(sizes: State, places: int, slots: int, window: int, lost: int) -> int:
    """How many services a schedule in whole slots can keep: all are walked through."""
    for count in range(len(sizes), 0, -1):
        for kept in set(itertools.combinations(sorted(sizes), count)):
            states: set[State] = {(0,) * count}
            for _ in range(slots):
                states = schedules(states, kept, places, window, lost)
            if states:
                return count
    return 0


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 2, 1, 1)])
@pytest.mark.parametrize(("places", "window", "lost"), [(2, 4, 1), (2, 4, 2), (3, 4, 1), (2, 3, 1), (3, 5, 2)])
def test_no_schedule_keeps_more_and_one_nearly_as_many(
    bench: dict[str, Any], sizes: tuple[int, ...], places: int, window: int, lost: int, tmp_path: Path
) -> None:
    inputs, slot, slots = bench["inputs"], 600.0, 3 * window
    gold = ServiceClass("gold", 1.0 - lost / window, 1, window=Window(rolling=window * slot, budget="whole"))
    workload = inputs.alone([(0.0, FOREVER, float(size), "gold") for size in sizes], (gold,))
    one = inputs.Input("tiny", workload, inputs.machines(1, float(places)), slots * slot)
    (bound,), _ = most(bench, one, tmp_path)
    reached = brute(sizes, places, slots, window, lost)
    assert reached <= bound <= reached + 1


def tried(inputs: Any, seed: int) -> Any:
    """A small input: a few hosts, of which some are away for a while, services over windows, and jobs."""
    draw = np.random.default_rng(seed)
    count, length, end = int(draw.integers(1, 5)), float(draw.choice([120.0, 300.0, 900.0])), 1800.0
    budgets = [Window(rolling=length, budget=str(draw.choice(["accrued", "whole"]))) for _ in range(2)]
    classes = (
        ServiceClass("gold", float(draw.choice([1.0, 0.95])), 1, window=budgets[0]),
        ServiceClass("silver", float(draw.choice([0.9, 0.7])), 2, window=budgets[1]),
        ServiceClass("late", float(draw.choice([0.9, 0.5])), int(draw.integers(1, 4))),
    )
    rows = [
        (float(draw.uniform(0, 60)), FOREVER, float(draw.choice([1, 1, 2])), str(draw.choice(["gold", "silver"])))
        for _ in range(draw.integers(2, 3 * count + 4))
    ]
    rows += [
        (float(draw.uniform(0, end)), float(draw.choice([60.0, 400.0, FOREVER])), 1.0, "late")
        for _ in range(draw.integers(0, 12))
    ]
    away = ((0, 400.0, float(draw.uniform(420.0, 1000.0))),) if draw.random() < 0.4 else ()
    return inputs.Input(f"seed {seed}", inputs.alone(rows, classes), inputs.machines(count, 2.0), end, (), away)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_no_policy_exceeds_the_bound_or_needs_fewer_turns(bench: dict[str, Any], seed: int, tmp_path: Path) -> None:
    one, outcome = tried(bench["inputs"], seed), bench["outcome"]
    limit, turns = most(bench, one, tmp_path)
    classes = one.workload.classes
    order = sorted(range(len(classes)), key=lambda code: (classes[code].rank, code))
    for policy in (
        outcome.Policy("priority", words=("policy.name=priority",)),
        outcome.Policy("published", "published"),
        outcome.Policy("recommended"),
        outcome.Policy("share", words=("policy.overload=share",)),
    ):
        found = outcome.measured(one, policy)
        kept = [found.kept[code] for code in order]
        assert kept <= [limit[code] for code in order], policy.name
        if turns is not None and found.kept == limit:
            assert found.preemptions >= turns, policy.name


def test_services_that_end_are_refused(bench: dict[str, Any], tmp_path: Path) -> None:
    inputs = bench["inputs"]
    gold = ServiceClass("gold", 0.9, 1, window=Window(rolling=DAY))
    one = inputs.Input("ends", inputs.alone([(0.0, DAY, 1.0, "gold")], (gold,)), inputs.machines(1, 1.0), 2 * DAY)
    with pytest.raises(ValueError, match="class gold: found requests that end"):
        most(bench, one, tmp_path)
