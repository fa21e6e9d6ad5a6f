"""Windows of availability against every second of random lives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from slacktide.metrics.windows import Outages, kept_share, kept_turns, worst_of_each, worst_windows


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


def lives(seed: int) -> tuple[list[np.ndarray[tuple[int], np.dtype[np.float64]]], Outages]:
    """What each of some random lives lost in every second, and the same as outages: of some seconds only a part."""
    random = np.random.default_rng(seed)
    every, told = [], []
    for number in range(5):
        share = np.repeat(random.choice([0.0, 0.0, 0.25, 0.5, 1.0], 12), random.integers(1, 7, 12))
        begin = float(random.integers(0, 90))
        edges = [0, *(np.flatnonzero(np.diff(share)) + 1), len(share)]
        for a, b in itertools.pairwise(edges):
            if share[a] > 0.0:
                told.append((number, begin + b, (b - a) * share[a], (b - a) * (1.0 - share[a])))
        every.append((begin, share))
    order = random.permutation(len(told))
    number, until, lost, received = np.array([told[i] for i in order]).T
    begins = np.array([begin for begin, _ in every])
    ends = begins + [len(share) for _, share in every]
    return [share for _, share in every], Outages.of_lives(begins, ends, number.astype(np.int64), until, lost, received)


@pytest.mark.parametrize("seed", range(30))
def test_windows_of_several_lives_that_lose_a_part_are_those_of_every_second(seed: int) -> None:
    every, outages = lives(seed)
    for length in (1, 4, 17, 40, 500):
        expected = []
        for share in every:
            within = min(length, len(share))
            expected.append(1.0 - np.convolve(share, np.ones(within), "valid").max() / within)
        assert worst_of_each(outages, length) == pytest.approx(expected)
        assert worst_windows(outages, [length])[0] == pytest.approx(min(expected))
        fine = [np.repeat(share, 100) / 100.0 for share in every]
        kept = []
        for share in fine:
            within = min(100 * length, len(share))
            allowed = 0.2 * within / 100.0 + 1e-6
            kept.append((np.convolve(share, np.ones(within), "valid") <= allowed).mean())
        assert kept_share(outages, length, 0.8) == pytest.approx(float(np.mean(kept)), abs=6e-3)
    whole = [max((len(run) for run in "".join("x" if s == 1.0 else " " for s in share).split()), default=0)
             for share in every]  # fmt: skip
    assert outages.longest == max(whole)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("whole", [False, True])
def test_calendar_windows_kept_are_those_of_every_second(seed: int, whole: bool) -> None:
    every, outages = lives(seed)
    begins = [0.0, 40.0, 75.0, 100.0, 160.0, 400.0]
    met = []
    for share, begin in zip(every, (outages.begin - outages.shift).tolist(), strict=True):
        lost = np.zeros(400)
        lived = np.zeros(400, np.bool_)
        at = int(begin)
        lost[at : at + len(share)], lived[at : at + len(share)] = share, True
        for a, b in itertools.pairwise(map(int, begins)):
            if lived[a:b].any():
                met.append(lost[a:b].sum() <= 0.3 * (b - a if whole else lived[a:b].sum()) + 1e-6)
    assert kept_turns(outages, begins, 0.7, whole=whole) == pytest.approx(np.mean(met))


def test_nobody_has_no_share() -> None:
    nobody = np.zeros(0)
    outages = Outages.of_lives(nobody, nobody, nobody.astype(np.int64), nobody, nobody, nobody)
    assert np.isnan(kept_share(outages, 10.0, 0.5))
    assert np.isnan(kept_turns(outages, [0.0, 10.0], 0.5, whole=True))
    assert worst_windows(outages, [5.0]).tolist() == [1.0]
