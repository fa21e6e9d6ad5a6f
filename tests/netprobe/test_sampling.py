"""Which peers are measured."""

from __future__ import annotations

import math

import pytest

from slacktide.netprobe.sampling import Sample

NAMES = [f"n{number}" for number in range(500)]


def far(name: str) -> float:
    return float(name[1:])


def test_few_peers_are_all_measured() -> None:
    sample = Sample(100, 32, 8, 1)
    assert sample.update(NAMES[:100]) == set(NAMES[:100])
    assert sample.rotate(NAMES[:100], far) == set(NAMES[:100])


def test_of_many_a_sample_is_measured_that_stays_while_peers_come_and_go() -> None:
    sample = Sample(100, 32, 8, 1)
    first = sample.update(NAMES)
    assert len(first) == 32
    gone = sorted(first)[0]
    second = sample.update([one for one in NAMES if one != gone])
    assert len(second) == 32
    assert len(first - second) == 1


def test_the_sample_hangs_on_the_seed_alone() -> None:
    assert Sample(100, 32, 8, 1).update(NAMES) == Sample(100, 32, 8, 1).update(NAMES[::-1])
    assert Sample(100, 32, 8, 1).update(NAMES) != Sample(100, 32, 8, 2).update(NAMES)


def test_rotating_keeps_the_near_ones_and_exchanges_one_of_the_others() -> None:
    sample = Sample(100, 32, 8, 1)
    before = sample.update(NAMES)
    met = set(before)
    for turn in range(400):
        after = sample.rotate(NAMES, far)
        assert len(after) == 32
        assert after >= set(NAMES[:8])
        # At first the near ones displace drawn ones, then exactly one is exchanged.
        if turn:
            assert len(before - after) == 1
        before = after
        met |= after
    assert len(met) > 250


def test_near_ones_of_which_nothing_is_known_are_drawn() -> None:
    sample = Sample(100, 32, 8, 1)
    sample.update(NAMES)
    assert len(sample.rotate(NAMES, lambda _name: math.inf)) == 32


def test_a_cluster_that_shrinks_is_measured_in_full() -> None:
    sample = Sample(100, 32, 8, 1)
    sample.update(NAMES)
    assert sample.update(NAMES[:50]) == set(NAMES[:50])
    assert len(sample.update(NAMES)) == 32


def test_who_was_there_first_is_not_measured_by_everybody_for_that() -> None:
    # A cluster begins: peers are seen one after the other, beyond the hundred that are all measured.
    samples = [Sample(100, 32, 8, seed) for seed in range(60)]
    for count in range(1, 301):
        for sample in samples:
            chosen = sample.update(NAMES[:count])
            assert len(chosen) == (count if count <= 100 else 32)
    times = [sum(name in sample.chosen for sample in samples) for name in NAMES[:300]]
    # 32 of 300 are 6.4 of 60; the deviation of such a mean over 100 names is about a quarter.
    for hundred in (times[:100], times[100:200], times[200:]):
        assert 5.0 < sum(hundred) / 100 < 8.0


def test_who_stays_is_kept_but_for_the_few_whom_newcomers_replace() -> None:
    sample = Sample(100, 32, 8, 1)
    before, exchanged = sample.update(NAMES[:200]), 0
    for count in range(201, 301):
        after = sample.update(NAMES[:count])
        assert len(after) == 32
        assert after - before <= {NAMES[count - 1]}
        exchanged += len(after - before)
        before = after
    assert 2 <= exchanged <= 30  # 32 * ln(300 / 200) = 13 are expected


@pytest.mark.parametrize("near", [0, 8])
def test_a_sample_larger_than_the_full_mesh_has_all_peers_and_loses_none(near: int) -> None:
    sample = Sample(10, 32, near, 1)
    for _ in range(5):
        assert sample.rotate(NAMES[:20], lambda _name: math.inf) == set(NAMES[:20])
