"""Contention among the instances of large requests: the same decisions, and no more work than for single instances."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from support.clusters import Cluster, cluster
from support.crowds import crowd
from support.runs import compare, core, everything, twin
from support.small import BRONZE, GOLD, Request, Several, machines, small

ALWAYS, WHERE_IT_MATTERS = 10**6, 1  # instances from which on a request is large
CROWDS = 600
PER_HOST = 4


@pytest.mark.parametrize("first", range(0, CROWDS, 300))
def test_what_hosts_are_told_of_large_requests_changes_no_decision(first: int, tmp_path: Path) -> None:
    saved = 0
    for seed in range(first, first + 100):
        one = crowd(seed)
        told, leeway = core(one.telling(ALWAYS), tmp_path), core(one.telling(WHERE_IT_MATTERS), tmp_path)
        assert everything(leeway) == everything(told), f"crowd({seed})"
        saved += leeway.operations < told.operations
    assert saved >= 25, "a leeway that saves nothing is not being tested"


@pytest.mark.parametrize("triaged", [False, True], ids=["as drawn", "triaged"])
def test_nor_on_clusters_of_every_kind(triaged: bool, tmp_path: Path) -> None:
    for seed in range(2800, 2860):
        one = cluster(seed, several=True, neighbours=seed % 5 == 4)
        one = (one.triaged() if triaged else one).with_(policy={"cost": "fewest-victims"})
        told, leeway = core(one.telling(ALWAYS), tmp_path), core(one.telling(WHERE_IT_MATTERS), tmp_path)
        assert everything(leeway) == everything(told), f"cluster({seed}, several=True), triaged: {triaged}"


def test_nor_on_middle_clusters(tmp_path: Path) -> None:
    for seed in range(2950, 2980):
        one = cluster(seed, largest=40, requests=300, several=True).with_(policy={"cost": "fewest-victims"})
        told, leeway = core(one.telling(ALWAYS), tmp_path), core(one.telling(WHERE_IT_MATTERS), tmp_path)
        assert everything(leeway) == everything(told), f"cluster({seed}, 40, 300, several=True)"


@pytest.mark.uncompiled
def test_core_and_twin_agree_on_crowds(tmp_path: Path) -> None:
    preempting = 0
    for seed in range(30):
        one = crowd(seed, hosts=4, size=10).telling(WHERE_IT_MATTERS)
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"crowd({seed}, 4, 10): {difference}"
        preempting += result.preemptions > 0
    assert preempting >= 10, "crowds without contention prove little"


@pytest.mark.slow
def test_core_and_twin_agree_on_many_crowds(tmp_path: Path) -> None:
    for seed in range(1000, 1070):
        one = crowd(seed).telling(WHERE_IT_MATTERS)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"crowd({seed}): {difference}"


@pytest.mark.parametrize("cost", ["fewest-victims", "slack"])
def test_a_heap_of_hosts_finds_what_a_search_of_all_finds(cost: str, tmp_path: Path) -> None:
    for seed in range(CROWDS, CROWDS + 70):
        one = crowd(seed, hosts=30, size=60).with_(policy={"cost": cost})
        plain = everything(core(one.naively(), tmp_path))
        assert everything(core(one, tmp_path)) == plain, f"crowd({seed}, 30, 60), {cost}"


Case = Literal["preempts", "preempted"]


def meeting(case: Case, approach: str, size: int) -> Cluster:
    """A gold request of ``size`` instances of which half preempt bronze ones, or a bronze one whose half is preempted.

    The others are requests of their own.
    """
    bronze, gold = (size // 2, size) if case == "preempts" else (size, size // 2)
    rows = [Request(BRONZE, of=0 if case == "preempted" else -1) for _ in range(bronze)]
    rows += [Request(GOLD, 10.0, of=0 if case == "preempts" else -1) for _ in range(gold)]
    return small(rows, machines(*[float(PER_HOST)] * (size // PER_HOST)), end=12.0, several=[Several(approach)])


@pytest.mark.parametrize("approach", ["concurrent", "aggregated"])
@pytest.mark.parametrize("case", ["preempts", "preempted"])
def test_a_large_request_takes_the_work_of_as_many_single_instances(case: Case, approach: str, tmp_path: Path) -> None:
    size = 1200
    alone = core(meeting(case, "independent", size), tmp_path)
    found = core(meeting(case, approach, size), tmp_path)
    assert found.preemptions == alone.preemptions == size // 2
    # One look at all hosts more, as its metrics are no longer what they were before the pass.
    assert found.operations <= alone.operations + 2 * (size // PER_HOST)


def test_the_work_would_grow_with_the_square_of_its_size_otherwise(tmp_path: Path) -> None:
    once, twice = (
        core(meeting("preempted", "aggregated", size).telling(ALWAYS), tmp_path).operations for size in (400, 800)
    )
    assert twice > 3 * once
