"""The Gini coefficient against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.metrics.intervals import gini

shares = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]) | st.floats(0, 1), min_size=1, max_size=30)


def pairwise(values: list[float]) -> float:
    """Half the mean difference of all pairs, over the mean."""
    total = sum(values)
    return sum(abs(a - b) for a in values for b in values) / (2 * len(values) * total) if total else 0.0


def test_three_requests_by_hand() -> None:
    # Pairs differ by .2, .4 and .6, each counted twice: 2.4 / (2 * 9 * mean .6) = 2.4 / 10.8.
    assert gini(np.array([0.4, 1.0, 0.4 + 0.2 - 0.2 + 0.0])) == pytest.approx(2 * 2 * 0.6 / (2 * 9 * 0.6))
    assert gini(np.array([0.2, 0.8, 0.6])) == pytest.approx(2 * (0.6 + 0.4 + 0.2) / (2 * 9 * (1.6 / 3)))


def test_all_alike_is_perfect_equality() -> None:
    assert gini(np.full(7, 0.3)) == 0.0
    assert gini(np.zeros(4)) == 0.0
    assert gini(np.array([0.9])) == 0.0


def test_one_has_everything() -> None:
    assert gini(np.array([0.0, 0.0, 0.0, 1.0])) == pytest.approx(1 - 1 / 4)


def test_nobody_has_no_coefficient() -> None:
    assert np.isnan(gini(np.zeros(0)))


@given(shares)
def test_it_is_half_the_mean_difference_over_the_mean(values: list[float]) -> None:
    found = gini(np.array(values))
    assert 0.0 <= found <= 1.0
    assert found == pytest.approx(pairwise(values), abs=1e-9)
