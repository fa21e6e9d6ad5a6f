"""The mathematics of the plan: each part against what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import planning
from reference.window_definition import rolling_slack
from slacktide.kernels.plan import giving_up, members, record, sorting
from slacktide.kernels.runtime.compiling import callable_from_python
from slacktide.kernels.tables.schema import PLACED
from slacktide.model import ServiceClass, Window
from support.small import Request, machines, small
from support.standstill import halted

order_by, pays = callable_from_python(sorting.order_by), callable_from_python(giving_up.pays)
may_be_away, keep_every_other = callable_from_python(members.may_be_away), callable_from_python(record.keep_every_other)
slack_alone, budget_of = callable_from_python(members.slack_alone), callable_from_python(members.budget_of)
turn_of = callable_from_python(members.turn_of)

pytestmark = pytest.mark.uncompiled


@given(st.lists(st.sampled_from([-2.5, -0.0, 0.0, 1.0, 7.0, 2.0**40]) | st.floats(allow_nan=False), max_size=40))
def test_keys_are_sorted_and_equal_ones_stay_as_they_stand(keys: list[float]) -> None:
    order, scratch = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    order_by(np.array(keys, np.float64), len(keys), order, scratch)
    assert order.tolist() == sorted(range(len(keys)), key=lambda i: keys[i])


@given(st.integers(0, record.SAMPLES - 1))
def test_a_full_record_keeps_every_other_sample_and_the_newest(oldest: int) -> None:
    plain = [float(i) for i in range(record.SAMPLES)]
    ring = np.array(plain[record.SAMPLES - oldest :] + plain[: record.SAMPLES - oldest])
    keep_every_other(ring, oldest)
    assert ring[: record.SAMPLES // 2].tolist() == plain[1::2]


# The condition of Gale and Ryser


def turns_exist(missing: Sequence[int], away: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether in each slot so much can be away as is missing, and each member for no more slots than it may."""

    @cache
    def rest(slot: int, left: tuple[int, ...]) -> bool:
        if slot == len(missing):
            return True
        for chosen in range(2 ** len(sizes)):
            who = [i for i in range(len(sizes)) if chosen >> i & 1]
            if sum(sizes[i] for i in who) < missing[slot] or any(left[i] == 0 for i in who):
                continue
            if rest(slot + 1, tuple(m - (i in who) for i, m in enumerate(left))):
                return True
        return False

    return rest(0, tuple(away))


def as_kernels_say(missing: Sequence[int], away: Sequence[int], sizes: Sequence[int], first: int = 0) -> bool:
    """Of members of whom those before ``first`` are given up; slots are samples of a second."""
    own = float(sum(sizes[first:]))
    base = np.array(sorted((one - sum(sizes) for one in missing), reverse=True), np.float64)
    m, order = np.array(away, np.float64), np.empty(len(away), np.int64)
    order_by(m, len(m), order, np.empty(len(m), np.int64))
    place, horizon = np.arange(len(m)), float(len(missing))
    found = pays(base, len(base), 1.0, horizon, 0.0, own, np.array(sizes, np.float64), m, order, place, first)
    kept = sorted((float(away[i]), float(sizes[i])) for i in range(first, len(sizes)))
    assert found == planning.pays(base.tolist(), 1.0, horizon, 0.0, kept)
    return bool(found)


SLOTS = st.lists(st.integers(0, 4), min_size=1, max_size=4)


@given(SLOTS, st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_turns_of_equals_exist_where_the_condition_holds(missing: list[int], away: list[int]) -> None:
    missing, away = [min(one, len(away)) for one in missing], [min(m, len(missing)) for m in away]
    assert as_kernels_say(missing, away, [1] * len(away)) == turns_exist(missing, away, [1] * len(away))


@given(SLOTS, st.lists(st.tuples(st.integers(0, 4), st.sampled_from([1, 2])), min_size=1, max_size=3))
def test_where_it_does_not_hold_there_are_no_turns_of_any_sizes(
    missing: list[int], several: list[tuple[int, int]]
) -> None:
    away, sizes = [min(m, len(missing)) for m, _ in several], [size for _, size in several]
    missing = [min(one, sum(sizes)) for one in missing]
    assert as_kernels_say(missing, away, sizes) or not turns_exist(missing, away, sizes)


@given(SLOTS, st.lists(st.integers(0, 4), min_size=2, max_size=4))
def test_whoever_is_given_up_carries_the_base_and_it_holds_from_then_on(missing: list[int], away: list[int]) -> None:
    missing = [min(one, len(away)) for one in missing]
    found = [as_kernels_say(missing, away, [1] * len(away), first) for first in range(len(away) + 1)]
    assert found == sorted(found)
    assert found[-1]
    for first in range(len(away)):
        left, theirs = [max(0, one - first) for one in missing], [min(m, len(missing)) for m in away[first:]]
        assert found[first] == turns_exist(left, theirs, [1] * len(theirs))


def whether(seen: Sequence[float], horizon: float, now_missing: float, away: float, several: int = 10) -> bool:
    """Whether so many members of size 1, who may be away for ``away`` each, pay; ``seen`` was missing each second."""
    base = np.array(sorted((one - several for one in seen), reverse=True), np.float64)
    m, place = np.full(several, away), np.arange(several)
    own, now = float(several), now_missing - several
    return bool(pays(base, len(base), 1.0, horizon, now, own, np.ones(several), m, place, place, 0))


def test_a_record_of_a_tenth_of_the_horizon_stands_for_all_of_it() -> None:
    """One of ten is missing: each is away for a tenth of the horizon."""
    assert whether([1.0] * 10, 100.0, 5.0, away=10.1)
    assert not whether([1.0] * 10, 100.0, 5.0, away=9.9)
    assert whether([1.0] * 100, 100.0, 5.0, away=10.1)
    assert not whether([1.0] * 100, 100.0, 5.0, away=9.9)


def test_what_is_not_recorded_of_that_tenth_counts_as_what_is_missing_now() -> None:
    """Of ten seconds five are seen, in which two are missing, and four are now: three in the mean."""
    assert whether([2.0] * 5, 100.0, 4.0, away=30.1)
    assert not whether([2.0] * 5, 100.0, 4.0, away=29.9)
    assert whether([], 100.0, 2.0, away=20.1)
    assert not whether([], 100.0, 2.0, away=19.9)


def test_nobody_can_be_away_twice_at_a_time() -> None:
    """All ten are missing for one second: who may be away for long must be so together with all others."""
    base = np.array([0.0] + [-10.0] * 9)
    place = np.arange(10)
    for shortest, expected in ((1.0, True), (0.9, False)):
        m = np.array([shortest] + [1000.0] * 9)
        assert bool(pays(base, 10, 1.0, 10.0, -10.0, 10.0, np.ones(10), m, place, place, 0)) == expected


# For how long one may be away


def ups(length: int, random: np.random.Generator, slo: float) -> list[tuple[int, int]]:
    """Outages, from when to when, of one that is there at the beginning and at the end."""
    found: list[tuple[int, int]] = []
    at = int(random.integers(5, 40))
    while at < length - 8:
        end = min(at + int(random.integers(1, max(2, round(60 * (1.0 - slo))))), length - 4)
        found.append((at, end))
        at = end + int(random.integers(4, 60))
    return found


@pytest.mark.parametrize("budget", ["whole", "accrued"])
@pytest.mark.parametrize("slo", [0.9, 0.75])
def test_one_may_be_away_for_as_long_as_it_can(slo: float, budget: str, tmp_path: Path) -> None:
    """Whoever is away as soon as the slack allows it is so for as long as ``m`` says, and never breaks its promise."""
    seen = 0
    for seed in range(12):
        random = np.random.default_rng([seed, 41])
        length = int(random.integers(60, 400))
        window = Window(rolling=float(random.choice([100.0, 160.0])), budget=budget)
        gone = ups(length, random, slo)
        events = [(float(at), 0, kind) for pair in gone for at, kind in zip(pair, ("fail", "repair"), strict=True)]
        one = small(
            [Request(0)], machines(1.0), end=float(length), events=events, qos={"alpha": 0.0, "startup": "never"}
        )
        classes = (ServiceClass("only", slo, 1, window=window),)
        (folder := tmp_path / f"{seed}").mkdir()
        at = halted(replace(one, workload=replace(one.workload, classes=classes)), float(length), folder)
        assert at.tables["instances"][0]["state"] == PLACED
        up = [not any(begin <= second < end for begin, end in gone) for second in range(length)]
        slack = float(slack_alone(at.tables.state, 0, 0, at.t))
        assert slack == pytest.approx(rolling_slack(up, window, slo), abs=1e-5)
        if slack < 0.0:
            continue
        assert window.rolling is not None
        longest = max(end - begin for begin, end in gone)  # it comes back once all of it is over
        ladder = np.array([window.rolling - 1.0, window.rolling / 2.0, window.rolling / 4.0])
        out, b = np.empty(3), float(budget_of(at.tables.state, 0, float(length), at.t))
        may_be_away(at.tables.state, 0, -1, 0, slack, b, 0.0, at.t, ladder, out)
        for horizon, m in zip(ladder.tolist(), out.tolist(), strict=True):
            expected = away_at_most(list(up), window, slo, round(horizon))
            assert -longest - 2.0 <= min(m, horizon) - expected <= 2.0, f"seed {seed}, {horizon} s"
            seen += expected > slack + 3.0
    assert seen >= 5, "members to whom nothing comes back prove little"


def away_at_most(up: list[bool], window: Window, slo: float, horizon: int) -> int:
    """Seconds that one is away within the horizon that is so whenever a second can be lost."""
    total = 0
    for _ in range(horizon):
        here = rolling_slack(up, window, slo) < 1.0
        up.append(here)
        total += not here
    return total


@pytest.mark.parametrize(("budget", "startup"), [(100.0, 0.0), (100.0, 1.0), (100.0, 3.0), (100.0, 30.0), (0.0, 5.0)])
def test_start_ups_cost_a_tenth_of_a_budget_at_most(budget: float, startup: float) -> None:
    turn = turn_of(budget, startup)
    assert turn <= 0.8 * budget
    assert turn >= 0.15 * budget
    if startup <= 8.0:
        assert startup <= turn * 0.1 + 1e-9 or turn == 0.0
    assert turn == planning.turn_of(budget, startup)


def test_turns_of_one_budget_grow_with_the_start_up() -> None:
    found = [turn_of(100.0, startup) for startup in np.linspace(0.0, 20.0, 41).tolist()]
    assert all(a <= b for a, b in pairwise(found))
    assert found[0] < found[-1]
