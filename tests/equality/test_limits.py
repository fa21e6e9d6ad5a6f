"""Core and twin agree on what workloads may suffer, and nothing that the core remembers outlives a limit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from support.clusters import POLICIES_WITH_RULES, Cluster, cluster
from support.runs import compare, core, everything, twin


def readily(one: Cluster) -> Cluster:
    """The same cluster, in which preemption is frequent."""
    return one.with_(policy={"preempt_when": "better", "patience": 0.0, "overhead_scope": "none"})


@pytest.mark.uncompiled
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_on_limits_in_a_few_small_clusters(several: bool, tmp_path: Path) -> None:
    for seed in range(12_500, 12_530):
        one = readily(cluster(seed, 3, 14, several=several, neighbours=seed % 3 == 0, resizes=seed % 3 == 1)).limited()
        one = one.triaged() if seed % 4 == 0 else one
        one = one.windowed() if seed % 5 == 0 and not several else one
        difference = compare(core(one, tmp_path, events=True), twin(one))
        assert difference is None, f"cluster({seed}, 3, 14, {several}): {difference}"


@pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
@pytest.mark.parametrize("name", POLICIES_WITH_RULES)
def test_core_and_twin_agree_on_limits(name: str, several: bool, neighbours: bool, tmp_path: Path) -> None:
    differs = preempting = 0
    for seed in range(12_000, 12_030):
        plain = readily(cluster(seed, 4, 20, several=several, neighbours=neighbours, resizes=seed % 3 == 0))
        plain = plain.with_(policy={"name": name})
        one = plain.limited()
        outcome = twin(one)
        difference = compare(core(one, tmp_path, events=True), outcome)
        assert difference is None, f"cluster({seed}, 4, 20, {several}, {neighbours}), {name}: {difference}"
        differs += outcome.decisions != twin(plain).decisions
        preempting += any(victims for *_, victims in outcome.decisions)
    assert differs >= 1, "limits that change nothing prove little"
    assert preempting >= 2, "clusters without contention prove little"


@pytest.mark.slow
@pytest.mark.parametrize("triage", [False, True], ids=["share", "triage"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_on_limits_in_many_clusters(several: bool, triage: bool, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(12_100, 12_170):
        one = cluster(seed, 6, 40, several=several, neighbours=seed % 4 == 0, resizes=seed % 3 == 0)
        one = (one.triaged() if triage else one).limited()
        one = readily(one) if seed % 2 else one
        result = core(one, tmp_path, events=True)
        difference = compare(result, twin(one))
        assert difference is None, f"cluster({seed}, 6, 40, {several}), {triage}: {difference}"
        seen["preempts"] += result.preemptions > 0
        seen["moves"] += result.moves > 0
        seen["gangs"] += one.config.policy.gang and several
    assert min(seen["preempts"] / 10, seen["moves"]) >= 2, seen
    assert seen["gangs"] >= 4 or not several, seen


@pytest.mark.parametrize("name", POLICIES_WITH_RULES)
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_what_is_remembered_of_failures_does_not_outlive_a_limit(several: bool, name: str, tmp_path: Path) -> None:
    compared = 0
    for seed in range(12_400, 12_406):
        one = readily(cluster(seed, 5, 30, several=several, neighbours=seed % 5 == 0)).limited()
        one = one.with_(policy={"name": name}, scheduler={"watchdog": 1.0})
        if seed % 2 and name != "priority":
            one = one.triaged().with_(policy={"name": name})
        expected = core(one, tmp_path)
        found = core(one.naively(), tmp_path)
        assert everything(found) == everything(expected), f"cluster({seed}, 5, 30, {several})"
        assert compare(expected, twin(one)) is None
        compared += expected.preemptions > 0
    assert compared >= 2
