"""Ledgers are written in the order of their need, and at 5,000 workloads within the rate of the settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

import numpy as np
import pytest

from slacktide.config import KubeSettings
from slacktide.kube.publish.write_plan import LEAST_SECONDS, NEW_SECONDS, REFRESH_SECONDS, WritePlan


def written(*keys: str, at: float = 0.0) -> WritePlan:
    """A plan in which these were written at that time, one after the other."""
    plan = WritePlan()
    for key in keys:
        plan.begins(key, at)
    return plan


def take(plan: WritePlan, now: float, patience: float, under_way: Container[str] = ()) -> str | None:
    """Whose turn it is, whatever the reason."""
    new = plan.take_urgent(now, under_way) or plan.take_new(now, patience, under_way)
    return new or plan.take_oldest(now, under_way)


def order(plan: WritePlan, now: float) -> list[str]:
    """Whose turn it is, until it is nobody's."""
    found = []
    while (key := take(plan, now, NEW_SECONDS, ())) is not None:
        found.append(key)
    return found


def test_states_come_before_news_these_before_first_ledgers_and_old_numbers_last() -> None:
    plan = written("old", "older", "happened", "turned")
    plan.begins("old", 1.0)
    plan.changed("first", REFRESH_SECONDS)
    plan.changed("happened", REFRESH_SECONDS)
    plan.turn("turned")
    assert len(plan) == 3
    assert order(plan, REFRESH_SECONDS + 1.0) == ["turned", "happened", "first", "older", "old"]
    assert len(plan) == 0
    assert order(plan, REFRESH_SECONDS + 1.0) == []


def test_a_ledger_is_written_once_a_second_at_most_and_each_need_of_it_once() -> None:
    plan = written("a", at=10.0)
    plan.changed("a", 10.1)
    plan.turn("a")
    assert len(plan) == 1, "one write serves both"
    assert take(plan, 10.0 + LEAST_SECONDS - 0.01, 0.0) is None
    assert order(plan, 10.0 + LEAST_SECONDS) == ["a"]


def test_one_that_is_under_way_waits_and_lets_others_pass() -> None:
    plan = written("a", "b")
    plan.turn("a")
    plan.turn("b")
    assert take(plan, 5.0, 0.0, {"a"}) == "b"
    assert take(plan, 5.0, 0.0, {"a"}) is None
    assert take(plan, 5.0, 0.0) == "a"


def test_a_first_ledger_waits_as_long_as_it_is_told_and_a_state_needs_one_that_was_written() -> None:
    plan = WritePlan()
    plan.changed("a", 0.0)
    plan.changed("a", 3.0)
    plan.turn("a")
    assert take(plan, 9.9, 10.0) is None
    assert take(plan, 10.0, 10.0) == "a"
    assert len(plan) == 0


def test_who_is_no_more_is_not_written_again() -> None:
    plan = written("a", "b")
    plan.turn("a")
    plan.forget("a")
    plan.forget("never")
    assert order(plan, 2 * REFRESH_SECONDS) == ["b"]


def test_all_that_is_noted_down_is_taken_at_once_for_a_clean_stop() -> None:
    plan = written("a", "b", "c")
    plan.turn("b")
    plan.changed("a", 1.0)
    plan.changed("new", 1.0)
    assert plan.take_all() == ["b", "a", "new"]
    assert len(plan) == 0


def test_numbers_are_old_when_the_oldest_are() -> None:
    assert not WritePlan().refresh_due(1e9)
    plan = written("a")
    plan.begins("b", 30.0)
    assert not plan.refresh_due(REFRESH_SECONDS - 0.1)
    assert plan.refresh_due(REFRESH_SECONDS)


@pytest.mark.parametrize("all_at_once", [True, False])
def test_five_thousand_workloads_within_the_rate(all_at_once: bool) -> None:
    """Ten minutes of a cluster in which nothing happens but time: each of 5,000 states changes every 20 minutes."""
    workloads, rate = 5_000, KubeSettings().ledger_qps
    chance, plan, step = np.random.default_rng(17), WritePlan(), 1.0 / rate
    for i in range(workloads):
        plan.begins(f"w{i}", 0.0 if all_at_once else i * 60.0 / workloads)
    began, asked = 60.0, dict[str, float]()
    writes, waited, oldest = Counter[int](), 0.0, 0.0
    for tick in range(int(600 * rate)):
        now = began + tick * step
        if tick % rate == 0:  # the look of a second
            for i in chance.integers(workloads, size=chance.poisson(workloads / 1200)).tolist():
                plan.turn(f"w{i}")
                asked.setdefault(f"w{i}", now)
        oldest_now = next(iter(plan.written_at.items()))
        key = take(plan, now, NEW_SECONDS)
        if key is None:
            continue
        writes[int(now)] += 1
        waited = max(waited, now - asked.pop(key, now))
        if now > began + 60.0:  # what had piled up at the start is gone
            oldest = max(oldest, now - oldest_now[1])
    assert max(writes.values()) <= rate
    mean = sum(writes.values()) / 600
    assert workloads / 60 <= mean <= 0.95 * rate, f"{mean:.1f} writes a second"
    assert waited <= 1.0, "with the second until it is looked at this is less than two"
    assert oldest <= 60.0


def test_ledgers_of_a_former_leader_come_as_they_are_told_and_do_not_wait() -> None:
    plan = WritePlan()
    for key in ("a", "b", "c"):
        plan.changed(key, 1000.0)
    for key in ("c", "a"):
        plan.knows(key)
    assert len(plan) == 3
    assert [take(plan, 1000.0, 10.0) for _ in range(3)] == ["c", "a", None]
    assert take(plan, 1010.0, 10.0) == "b"
