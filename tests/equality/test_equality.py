"""The compiled core and the twin decide alike, to the bit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference.simulator import simulate
from slacktide.model import APPROACHES
from slacktide.sim import run
from slacktide.sim.startup import delays
from support.clusters import POLICIES_WITH_RULES, cluster
from support.runs import compare, core, everything, twin

CLUSTERS = 200

MIDDLE = 18

TOLD_APART = (2893, 3035, 3866, 4366, 5486, 6139)
"""Seeds of clusters of requests beyond the thousand that showed a fault of the core."""

WANTED = ("preempts", "removes", "releases", "discards", "gangs", "batch", *APPROACHES)
"""What some of a hundred clusters have to do."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, 100))
def test_core_and_twin_agree_on_hundreds_of_clusters(first: int, tmp_path: Path) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, 100))
def test_core_and_twin_agree_on_hundreds_of_clusters_of_requests(first: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + 100):
        one = cluster(seed, several=True)
        result, outcome = core(one, tmp_path), twin(one)
        difference = compare(result, outcome)
        assert difference is None, f"cluster({seed}, several=True): {difference}"
        kinds, instances = one.workload.requests, result.instances
        assert kinds is not None
        assert instances is not None
        seen["preempts"] += result.preemptions > 0
        seen["removes"] += bool((~np.isnan(instances["removed"])).any())
        seen["releases"] += bool((instances["admission"] != one.workload.admission[instances["row"]]).any())
        seen["discards"] += bool((instances["discarded"] > 0.0).any())
        seen["gangs"] += one.config.policy.gang and any(group.approach == "concurrent" for group in outcome.groups)
        seen.update({APPROACHES[code] for code in kinds.approach} | ({"batch"} if kinds.batch.any() else set()))
    assert min(seen[name] for name in WANTED) >= 10, f"clusters without contention prove little: {seen}"


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_on_clusters_with_neighbours(several: bool, tmp_path: Path) -> None:
    preempting = 0
    for seed in range(70):
        one = cluster(seed, several=several, neighbours=True)
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"cluster({seed}, several={several}, neighbours=True): {difference}"
        preempting += result.preemptions > 0
    assert preempting >= 17, "clusters without contention prove little"


@pytest.mark.slow
def test_core_and_twin_agree_on_middle_clusters_of_requests(tmp_path: Path) -> None:
    for seed in range(MIDDLE // 6):
        one = cluster(seed, largest=40, requests=150, several=True)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"cluster({seed}, 40, 150, several=True): {difference}"


@pytest.mark.parametrize("seed", TOLD_APART)
def test_core_and_twin_agree_where_they_once_did_not(seed: int, tmp_path: Path) -> None:
    one = cluster(seed, several=True)
    assert compare(core(one, tmp_path), twin(one)) is None


@pytest.mark.uncompiled
@pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_on_a_few_small_clusters(several: bool, neighbours: bool, tmp_path: Path) -> None:
    for seed in range(40):
        one = cluster(seed, largest=3, requests=12, several=several, neighbours=neighbours)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"cluster({seed}, 3, 12, {several}, {neighbours}): {difference}"


@pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
@pytest.mark.parametrize("name", POLICIES_WITH_RULES)
def test_core_and_twin_agree_under_every_policy(name: str, several: bool, neighbours: bool, tmp_path: Path) -> None:
    preempting = 0
    for seed in range(7000, 7040):
        one = cluster(seed, largest=4, requests=20, several=several, neighbours=neighbours)
        one = one.with_(policy={"name": name})
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"cluster({seed}, 4, 20, {several}, {neighbours}), {name}: {difference}"
        preempting += result.preemptions > 0
    assert preempting >= 2, "clusters without contention prove little"


@pytest.mark.uncompiled
@pytest.mark.parametrize("triage", [False, True], ids=["share", "triage"])
def test_core_and_twin_agree_on_promises_over_windows(triage: bool, tmp_path: Path) -> None:
    differs = preempting = 0
    for seed in range(8100, 8120):
        one = cluster(seed, largest=4, requests=20)
        one = one.triaged() if triage else one
        windowed = one.windowed()
        result, outcome = core(windowed, tmp_path), twin(windowed)
        difference = compare(result, outcome)
        assert difference is None, f"cluster({seed}, 4, 20).windowed(), triage {triage}: {difference}"
        preempting += result.preemptions > 0
        differs += outcome.decisions != twin(one).decisions
    assert preempting >= 4, "clusters without contention prove little"
    assert differs >= 2, "windows in which nothing ages prove little"


@pytest.mark.slow
def test_core_and_twin_agree_on_hundreds_of_clusters_with_windows(tmp_path: Path) -> None:
    for seed in range(8200, 8300):
        one = cluster(seed, neighbours=seed % 3 == 0, resizes=seed % 5 == 0).windowed()
        one = one.triaged() if seed % 2 else one
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"seed {seed}: {difference}"


@pytest.mark.uncompiled
@pytest.mark.parametrize("triage", [False, True], ids=["share", "triage"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_on_priorities_within_ranks(several: bool, triage: bool, tmp_path: Path) -> None:
    differs = preempting = 0
    for seed in range(8600, 8620):
        one = cluster(seed, largest=4, requests=20, several=several, neighbours=seed % 4 == 0).prioritised()
        one = one.triaged() if triage else one
        result, outcome = core(one, tmp_path), twin(one)
        difference = compare(result, outcome)
        assert difference is None, f"cluster({seed}, 4, 20, {several}).prioritised(), triage {triage}: {difference}"
        preempting += result.preemptions > 0
        equal = tuple(replace(promised, priority=0) for promised in one.workload.classes)
        differs += outcome.decisions != twin(replace(one, workload=replace(one.workload, classes=equal))).decisions
    assert preempting >= 4, "clusters without contention prove little"
    assert differs >= 2, "priorities that change nothing prove little"


@pytest.mark.parametrize("triage", [False, True], ids=["share", "triage"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_where_classes_start_apart(several: bool, triage: bool, tmp_path: Path) -> None:
    differs = preempting = 0
    for seed in range(8700, 8718):
        one = cluster(seed, several=several, neighbours=seed % 4 == 0).starting_apart()
        one = one.windowed() if seed % 3 == 0 else one
        one = one.triaged() if triage else one
        result, outcome = core(one, tmp_path), twin(one)
        difference = compare(result, outcome)
        made = f"cluster({seed}, {several}).starting_apart()"
        assert difference is None, f"{made}, triage {triage}: {difference}"
        preempting += result.preemptions > 0
        alike = tuple(replace(promised, alpha=None) for promised in one.workload.classes)
        differs += outcome.decisions != twin(replace(one, workload=replace(one.workload, classes=alike))).decisions
    assert preempting >= 4, "clusters without contention prove little"
    assert differs >= 1, "start-up times that change nothing prove little"


@pytest.mark.uncompiled
@pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_under_triage(several: bool, neighbours: bool, tmp_path: Path) -> None:
    differs = 0
    for seed in range(8000, 8030):
        one = cluster(seed, largest=3, requests=16, several=several, neighbours=neighbours).triaged()
        outcome = twin(one)
        difference = compare(core(one, tmp_path), outcome)
        assert difference is None, f"cluster({seed}, 3, 16, {several}, {neighbours}).triaged(): {difference}"
        differs += outcome.decisions != twin(one.with_(policy={"overload": "share"})).decisions
    assert differs >= 2, "clusters without overload prove little"


@pytest.mark.slow
@pytest.mark.parametrize("resizes", [False, True], ids=["fixed", "resizes"])
@pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_under_triage_on_larger_clusters(
    several: bool, neighbours: bool, resizes: bool, tmp_path: Path
) -> None:
    preempting = 0
    for seed in range(30):
        one = cluster(seed, 6, 30, several=several, neighbours=neighbours, resizes=resizes).triaged()
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"cluster({seed}, 6, 30, {several}, {neighbours}, {resizes}).triaged(): {difference}"
        if seed < 10:
            assert everything(core(one.naively(), tmp_path)) == everything(result), f"cluster({seed}, 6, 30, ...)"
        preempting += result.preemptions > 0
    assert preempting >= 4, "clusters without contention prove little"


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


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(10_000, 2**40),
    largest=st.integers(1, 8),
    requests=st.integers(1, 25),
    name=st.sampled_from(POLICIES_WITH_RULES),
    work=st.sampled_from(["kept", "lost"]),
)
def test_core_and_twin_agree_wherever_one_looks(
    seed: int, largest: int, requests: int, name: str, work: str, tmp_path: Path
) -> None:
    one = cluster(seed, largest, requests)
    one = one.with_(policy={"name": name}, simulation={"end": 140.0, "preempted_work": work})
    assert compare(core(one, tmp_path), twin(one)) is None


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(10_000, 2**40),
    largest=st.integers(1, 8),
    requests=st.integers(1, 25),
    name=st.sampled_from(["qos-driven", *POLICIES_WITH_RULES]),
    gang=st.booleans(),
    victims=st.sampled_from(["same-pass", "next-pass"]),
    startup=st.sampled_from(["restart", "always", "never"]),
    work=st.sampled_from(["by-kind", "kept", "lost"]),
    apart=st.booleans(),
)
def test_core_and_twin_agree_on_requests_wherever_one_looks(
    seed: int,
    largest: int,
    requests: int,
    name: str,
    gang: bool,
    victims: str,
    startup: str,
    work: str,
    apart: bool,
    tmp_path: Path,
) -> None:
    one = cluster(seed, largest, requests, several=True)
    if apart:  # only some of a job keep apart from the others
        some = np.random.default_rng(seed).random(len(one.workload)) < 0.3
        one = replace(one, workload=replace(one.workload, anti_affinity=some))
    one = one.with_(policy={"name": name, "gang": gang, "victims": victims}, qos={"startup": startup})
    one = one.with_(simulation={"end": 140.0, "preempted_work": work})
    assert compare(core(one, tmp_path), twin(one)) is None
