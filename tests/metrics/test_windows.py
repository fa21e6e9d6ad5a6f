"""Windows of availability against every second of random lives."""

from __future__ import annotations

import numpy as np
import pytest

from slacktide.metrics.windows import Outages, kept_share, worst_windows


def life(seed: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Outages]:
    """Every second of a random life, and its outages; some are told in two parts."""
    random = np.random.default_rng(seed)
    down = np.repeat(random.random(40) < 0.3, random.integers(1, 9, 40))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], down, [False]]).astype(int)))
    until, length = [], []
    for since, stop in edges.reshape(-1, 2).tolist():
        middle = int(random.integers(since, stop + 1))
        for a, b in ((since, middle), (middle, stop)):
            if b > a:
                until.append(100.0 + b)
                length.append(float(b - a))
    order = random.permutation(len(until))
    return down, Outages.of([until[i] for i in order], [length[i] for i in order], 100.0, 100.0 + len(down))


@pytest.mark.parametrize("seed", range(30))
def test_the_worst_window_of_each_length_is_that_of_all_windows_of_whole_seconds(seed: int) -> None:
    down, outages = life(seed)
    lengths = [1, 3, 10, 25, len(down), len(down) + 50]
    expected = []
    for length in lengths:
        within = min(length, len(down))
        lost = np.convolve(down.astype(float), np.ones(within), "valid")
        expected.append(1.0 - lost.max() / within)
    assert worst_windows(outages, lengths) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("slo", [1.0, 0.9, 0.5])
def test_the_share_of_windows_kept_is_that_of_all_instants(seed: int, slo: float) -> None:
    down, outages = life(seed)
    fine = np.repeat(down, 100) / 100.0  # hundredths of a second
    lost = np.convolve(fine, np.ones(2_000), "valid")
    expected = float((lost <= (1.0 - slo) * 20.0 + 1e-6).mean())
    assert kept_share(outages, 20.0, slo) == pytest.approx(expected, abs=2e-3)


def test_a_life_without_outages_or_shorter_than_its_window() -> None:
    nothing = Outages.of([], [], 5.0, 100.0)
    assert nothing.longest == 0.0
    assert worst_windows(nothing, [10.0, 1000.0]).tolist() == [1.0, 1.0]
    assert kept_share(nothing, 10.0, 1.0) == 1.0
    short = Outages.of([20.0], [5.0], 0.0, 50.0)
    assert (kept_share(short, 100.0, 0.9), kept_share(short, 100.0, 0.91)) == (1.0, 0.0)
    assert Outages.of([], [], 7.0, 7.0).longest == 0.0
    assert worst_windows(Outages.of([], [], 7.0, 7.0), [3.0]).tolist() == [1.0]
