"""Processor sharing on a node, by hand computations."""

from __future__ import annotations

import pytest

from slacktide.edge.sharing import Contention, Load, Machine, Placed, node_run, remote_delay, run, shares
from slacktide.errors import ConfigError

FREE = Contention()


def test_shares_are_equal_and_what_one_cannot_use_goes_to_the_others() -> None:
    assert shares([1.0, 1.0, 1.0], 2.0) == pytest.approx([2 / 3] * 3)
    assert shares([0.2, 1.0, 1.0], 2.0) == pytest.approx([0.2, 0.9, 0.9])
    assert shares([1.0], 2.0) == [1.0]


def test_pods_up_to_the_vcpus_do_not_slow_each_other_down() -> None:
    assert node_run([0.0, 0.0], [6.0, 6.0], [1.0, 1.0], Machine(2.0), FREE) == [6.0, 6.0]


def test_a_pod_that_ends_leaves_its_share_to_the_others() -> None:
    # Two on one vCPU at half speed: the first is done at 4, the other has 4 of 6 left and runs alone.
    assert node_run([0.0, 0.0], [2.0, 6.0], [1.0, 1.0], Machine(1.0), FREE) == pytest.approx([4.0, 8.0])


def test_a_pod_that_starts_later_takes_its_share_from_then_on() -> None:
    # Alone until 2 (2 of 4 done), then both at half speed: 2 left end at 6; the other has 1 of 3 left.
    assert node_run([0.0, 2.0], [4.0, 3.0], [1.0, 1.0], Machine(1.0), FREE) == pytest.approx([6.0, 7.0])


def test_what_a_node_needs_itself_is_not_shared() -> None:
    assert node_run([0.0, 0.0], [3.0, 3.0], [1.0, 1.0], Machine(2.0, taken=0.5), FREE) == pytest.approx([4.0, 4.0])
    with pytest.raises(ConfigError, match="nothing is left"):
        node_run([0.0], [1.0], [1.0], Machine(1.0, taken=1.0), FREE)


def test_competition_slows_down_at_once_and_more_from_its_onset_on() -> None:
    once = Contention(competition=0.25)
    assert node_run([0.0, 0.0], [2.0, 2.0], [1.0, 1.0], Machine(1.0), once) == pytest.approx([6.0, 6.0])
    # Half speed until 3 (1.5 of 2 done each); 2 pods a vCPU, sustained .5 * 2: twice as slow, .5 take 2 s.
    later = Contention(sustained=0.5, growth=2.0, onset=3.0)
    assert node_run([0.0, 0.0], [2.0, 2.0], [1.0, 1.0], Machine(1.0), later) == pytest.approx([5.0, 5.0])
    assert node_run([0.0], [2.0], [1.0], Machine(1.0), once) == [2.0]


def test_a_run_adds_start_image_and_the_users_requests() -> None:
    load = Load(iterations=100, work=0.01, first_work=1.0, requests=2.0, requests_per_iteration=0.08, startup=0.5)
    pods = [Placed("a", "n1", network=0.1, image=0.25), Placed("b", "n2")]
    done = run(pods, {"n1": Machine(1.0), "n2": Machine(1.0)}, load)
    assert [pod.finished for pod in done.pods] == pytest.approx([0.75 + 2.0 + 1.0, 2.5])
    assert done.completion == pytest.approx(3.75)
    assert done.processing == pytest.approx(2.0)
    assert done.network == pytest.approx(0.5)


def test_a_request_takes_half_of_round_trip_and_deviation_or_nothing() -> None:
    assert remote_delay(0.05, 0.02) == pytest.approx(0.035)
    assert remote_delay(None, 0.02) == 0.0


def test_a_pod_on_an_unknown_node_and_negative_loads_are_refused() -> None:
    with pytest.raises(ConfigError, match="found node 'n9', expected one of n1"):
        run([Placed("a", "n9")], {"n1": Machine(1.0)}, Load(1, 1.0))
    with pytest.raises(ConfigError, match=r"load\.work: found -1"):
        Load(1, -1.0)
