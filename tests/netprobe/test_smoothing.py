"""Means, deviations and losses of probes."""

from __future__ import annotations

import math
import random

import pytest

from slacktide.netprobe.smoothing import CHANGE, SIZE, Smoother


def fed(*values: float | None) -> Smoother:
    """A smoother after these answers; None is a lost probe."""
    smoother = Smoother()
    for one in values:
        if one is None:
            smoother.lost()
        else:
            smoother.answered(one)
    return smoother


def test_mean_and_deviation_of_few_samples_are_theirs() -> None:
    found = fed(0.010, 0.012, 0.014).smoothed()
    assert found.mean == pytest.approx(0.012)
    assert found.deviation == pytest.approx(math.sqrt(2.0 / 3.0) * 0.002)
    assert (found.lost, found.samples, found.outliers) == (0.0, 3, 0)


def test_nothing_is_said_of_what_was_never_answered() -> None:
    assert math.isnan(Smoother().smoothed().mean)
    found = fed(None, None).smoothed()
    assert math.isnan(found.mean)
    assert found.lost == 1.0


def test_losses_are_the_share_of_the_latest_probes() -> None:
    assert fed(*[0.01, None, 0.01, 0.01]).smoothed().lost == 0.25
    assert fed(*[None] * 10, *[0.01] * SIZE).smoothed().lost == 0.0


def test_an_outlier_moves_nothing_and_is_told() -> None:
    chance = random.Random(3)
    usual = [0.050 + chance.gauss(0.0, 0.0005) for _ in range(50)]
    smoother = fed(*usual)
    before = smoother.smoothed().mean
    assert not smoother.answered(0.9)
    after = smoother.smoothed()
    assert after.mean == pytest.approx(before, abs=1e-4)
    assert after.outliers >= 1
    assert after.deviation < 0.001


def test_one_value_over_and_over_has_a_small_floor_for_outliers() -> None:
    smoother = fed(*[0.020] * 30)
    assert smoother.answered(0.0201)
    assert not smoother.answered(0.0210)


@pytest.mark.parametrize("there", [0.020, 0.120])
def test_a_changed_path_counts_after_a_few_answers(there: float) -> None:
    chance = random.Random(4)
    smoother = fed(*[0.060 + chance.gauss(0.0, 0.001) for _ in range(SIZE)])
    for _ in range(CHANGE):
        assert smoother.smoothed().mean == pytest.approx(0.060, rel=0.05)
        smoother.answered(there + chance.gauss(0.0, 0.001))
    assert smoother.smoothed().mean == pytest.approx(there, rel=0.05)
    found = smoother.smoothed()
    assert found.samples + found.outliers == CHANGE


def test_outliers_to_both_sides_are_no_change() -> None:
    smoother = fed(*[0.060] * 40)
    for one in [0.2, 0.001] * 8:
        assert not smoother.answered(one)
    assert smoother.smoothed().mean == pytest.approx(0.060)


def test_queueing_now_and_then_does_not_move_the_mean() -> None:
    # Every tenth answer waits for up to 100 ms somewhere.
    chance = random.Random(5)
    smoother = Smoother()
    for number in range(200):
        late = chance.uniform(0.02, 0.1) if number % 10 == 0 else 0.0
        smoother.answered(0.040 + abs(chance.gauss(0.0, 0.0004)) + late)
    assert smoother.smoothed().mean == pytest.approx(0.040, abs=0.001)
