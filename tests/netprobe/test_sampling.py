"""Which peers are measured."""

from __future__ import annotations

import math

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
    assert sample.update([*NAMES, "new"]) == first
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
