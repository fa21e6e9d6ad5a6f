"""The three accountings of start-up time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.config import Accounting
from slacktide.qos.availability import ACCOUNTINGS, availability, fulfilled


def of(accounting: Accounting, *seconds: float) -> float:
    return float(availability(accounting, *(np.array([value]) for value in seconds))[0])


@pytest.mark.parametrize(("accounting", "expected"), [("always", 0.5), ("restart", 0.6), ("never", 0.7)])
def test_start_up_counts_as_the_accounting_says(accounting: Accounting, expected: float) -> None:
    # 50 s useful, 20 s queued, first start-up 10 s, later ones 10 s, 10 s of work lost: 100 s in all
    assert of(accounting, 50.0, 20.0, 10.0, 10.0, 10.0) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_before_anything_is_owed_the_promise_holds(accounting: Accounting) -> None:
    assert of(accounting, 0.0, 0.0, 0.0, 0.0, 0.0) == 1.0


def test_a_request_started_at_once_and_never_preempted_is_perfect_unless_every_start_counts() -> None:
    seconds = (100.0, 0.0, 3.0, 0.0, 0.0)
    assert of("restart", *seconds) == of("never", *seconds) == 1.0
    assert of("always", *seconds) == 100.0 / 103.0


def test_an_slo_is_met_within_rounding() -> None:
    assert fulfilled(np.array([0.9, 0.9 - 5e-10, 0.9 - 2e-9]), 0.9).tolist() == [True, True, False]


@given(st.lists(st.floats(0.0, 1e9), min_size=5, max_size=5))
def test_the_kinder_the_accounting_the_higher_the_availability(seconds: list[float]) -> None:
    always, restart, never = (of(one, *seconds) for one in ("always", "restart", "never"))
    assert 0.0 <= always <= restart <= never <= 1.0 + 1e-12 or sum(seconds) == 0.0
