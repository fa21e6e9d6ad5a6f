"""Delay-aware placement and its comparators: the compiled core and the twin decide alike, to the bit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from slacktide.kernels import builtin
from support.edges import edge
from support.runs import compare, core, twin

CLUSTERS = 70


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "requests", "neighbours"])
def test_core_and_twin_agree_on_clusters_at_the_edge(kind: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(CLUSTERS):
        one = edge(seed, several=kind == "requests", neighbours=kind == "neighbours")
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"edge({seed}, {kind}): {difference}"
        seen["preempts"] += result.preemptions > 0
        seen[f"{one.config.policy.name} {one.config.policy.score}"] += result.placements > 5
    assert seen["preempts"] >= 10, "clusters without contention prove little"
    assert len(seen) > 12, seen


@pytest.mark.uncompiled
def test_core_and_twin_agree_on_a_few_small_clusters_at_the_edge(tmp_path: Path) -> None:
    for seed in range(40):
        one = edge(seed, largest=3, requests=10)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"edge({seed}, 3, 10): {difference}"


@pytest.mark.parametrize("name", builtin.AT_USERS)
def test_core_and_twin_agree_under_every_score_that_asks_where_users_are(name: str, tmp_path: Path) -> None:
    preempting = 0
    for seed in range(7000, 7040):
        chosen = {"name": name} if seed % 3 == 0 else {"name": "qos-driven", "score": name}
        one = edge(seed, largest=4, requests=15, neighbours=seed % 2 == 0).with_(policy=chosen)
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"edge({seed}, 4, 15), {chosen}: {difference}"
        preempting += result.preemptions > 0
    assert preempting >= 5, "clusters without contention prove little"


@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_under_triage_at_the_edge(several: bool, tmp_path: Path) -> None:
    """Instances that are granted more than they ask for give more to those who preempt them."""
    preempting = 0
    for seed in range(9000, 9040):
        score = builtin.AT_USERS[seed % len(builtin.AT_USERS)]
        one = edge(seed, largest=3, requests=15, several=several, neighbours=seed % 2 == 0).triaged()
        one = one.with_(policy={"name": "qos-driven", "score": score})
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"edge({seed}, 3, 15, {several}).triaged(), {score}: {difference}"
        preempting += result.preemptions > 0
    assert preempting >= 5, "clusters without contention prove little"


@pytest.mark.slow
def test_looking_at_near_places_only_changes_no_decision(tmp_path: Path) -> None:
    for seed in range(40):
        one = edge(seed, largest=20, requests=60).with_(policy={"score": "delay-aware"})
        difference = compare(core(one, tmp_path), twin(one.naively()))
        assert difference is None, f"edge({seed}, 20, 60): {difference}"
