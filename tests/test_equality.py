"""The compiled core and the twin decide alike, to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusters import cluster
from reference.simulator import simulate
from runs import compare, core, twin
from slacktide.sim import run
from slacktide.sim.startup import delays

CLUSTERS = 1000

MIDDLE = 60


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, 100))
def test_core_and_twin_agree_on_a_thousand_clusters(first: int, tmp_path: Path) -> None:
    preempting = 0
    for seed in range(first, first + 100):
        one = cluster(seed)
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"cluster({seed}): {difference}"
        preempting += result.preemptions > 0
    assert preempting >= 25, "clusters without contention prove little"


@pytest.mark.slow
def test_core_and_twin_agree_on_middle_clusters(tmp_path: Path) -> None:
    for seed in range(MIDDLE):
        one = cluster(seed, largest=40, requests=150)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"cluster({seed}, 40, 150): {difference}"


@pytest.mark.uncompiled
def test_core_and_twin_agree_on_a_few_small_clusters(tmp_path: Path) -> None:
    for seed in range(40):
        one = cluster(seed, largest=3, requests=12)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"cluster({seed}, 3, 12): {difference}"


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("hot", "cold"),
    [("constant:2.5", "uniform:1,9"), ("normal:2,1", "lognormal:5,0.5"), ("exponential:1.5", "constant:0")],
)
def test_core_and_twin_agree_on_delays_from_a_distribution(hot: str, cold: str) -> None:
    for seed in range(5000, 5006):
        one = cluster(seed, largest=3, requests=15).with_(simulation={"end": 130.0}, startup={"hot": hot, "cold": cold})
        result = run(one.workload, one.hosts, one.config, decisions=True, passes=True)
        hot_table, cold_table = (delays(text, "startup").tolist() for text in (hot, cold))
        outcome = simulate(one.workload, one.hosts, one.config, hot_table, cold_table)
        assert compare(result, outcome) is None, f"cluster({seed}, 3, 15)"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(10_000, 2**40),
    largest=st.integers(1, 8),
    requests=st.integers(1, 25),
    name=st.sampled_from(["qos-driven", "priority", "hybrid"]),
    work=st.sampled_from(["kept", "lost"]),
)
def test_core_and_twin_agree_wherever_one_looks(
    seed: int, largest: int, requests: int, name: str, work: str, tmp_path: Path
) -> None:
    one = cluster(seed, largest, requests)
    one = one.with_(policy={"name": name}, simulation={"end": 140.0, "preempted_work": work})
    assert compare(core(one, tmp_path), twin(one)) is None
