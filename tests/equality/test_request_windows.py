"""Promises over windows of requests of several instances: core and twin decide alike, and the metric moves as told."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.kernels.qos import metric_dynamics, request_ledger, request_windows
from slacktide.kernels.runtime.compiling import callable_from_python
from slacktide.kernels.tables.log_records import OUTAGE
from slacktide.kernels.tables.window_records import CALENDAR, MOST_OUTAGES
from support.clusters import Cluster, cluster
from support.crowds import crowd
from support.runs import compare, core, everything, twin
from support.standstill import halted

is_windowed = callable_from_python(request_windows.is_windowed)
pace_of_request = callable_from_python(metric_dynamics.pace_of_request)
weigh = callable_from_python(request_ledger.weigh)

both = pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])


def without_windows(one: Cluster) -> Cluster:
    """The same cluster with promises over whole lives."""
    lifetime = tuple(replace(service, window=None) for service in one.workload.classes)
    return replace(one, workload=replace(one.workload, classes=lifetime))


@pytest.mark.uncompiled
@both
@pytest.mark.parametrize("triage", [False, True], ids=["share", "triage"])
def test_core_and_twin_agree_on_requests_with_windows(neighbours: bool, triage: bool, tmp_path: Path) -> None:
    differs = 0
    for seed in range(9000, 9015):
        one = cluster(seed, largest=3, requests=14, several=True, neighbours=neighbours).windowed()
        one = one.triaged() if triage else one
        outcome = twin(one)
        difference = compare(core(one, tmp_path), outcome)
        assert difference is None, f"cluster({seed}, 3, 14, several=True, neighbours={neighbours}): {difference}"
        differs += outcome.decisions != twin(without_windows(one)).decisions
    assert differs >= 1, "windows that change nothing prove little"


@pytest.mark.slow
@both
@pytest.mark.parametrize("triage", [False, True], ids=["share", "triage"])
@pytest.mark.parametrize("gang", [False, True], ids=["singly", "gang"])
def test_core_and_twin_agree_on_larger_clusters_with_windows(
    gang: bool, triage: bool, neighbours: bool, tmp_path: Path
) -> None:
    preempting = 0
    for seed in range(14):
        one = cluster(seed, several=True, neighbours=neighbours).windowed().with_(policy={"gang": gang})
        one = one.triaged() if triage else one
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, (
            f"cluster({seed}, several=True, neighbours={neighbours}), {gang}, {triage}: {difference}"
        )
        preempting += result.preemptions > 0
    assert preempting >= 2, "clusters without contention prove little"


def test_what_saves_work_changes_no_decision_of_requests_with_windows(tmp_path: Path) -> None:
    for seed in range(2000, 2060):
        one = cluster(seed, several=True, neighbours=seed % 2 == 1).windowed()
        one = one.triaged() if seed % 3 == 0 else one
        plain = everything(core(one.naively(), tmp_path))
        assert everything(core(one, tmp_path)) == plain, f"cluster({seed}, several=True).windowed()"


def test_what_saves_work_changes_nothing_on_middle_clusters_with_windows(tmp_path: Path) -> None:
    for seed in range(2100, 2112):
        one = cluster(seed, largest=40, requests=300, several=True).windowed()
        plain = everything(core(one.naively(), tmp_path))
        assert everything(core(one, tmp_path)) == plain, f"cluster({seed}, 40, 300, several=True).windowed()"


def test_stepwise_and_compiled_runs_of_requests_with_windows_are_the_same(tmp_path: Path) -> None:
    for seed in range(2200, 2240):
        one = cluster(seed, requests=25, several=True).windowed()
        stepwise = core(one.on("stepwise"), tmp_path)
        assert everything(core(one, tmp_path)) == everything(stepwise), f"cluster({seed}, 25, several=True).windowed()"


def test_the_metric_moves_as_told_while_nothing_happens(tmp_path: Path) -> None:
    """Slope, end and blur of the metric of every request with a window, at arbitrary instants of random clusters."""
    seen: Counter[str] = Counter()
    for seed in range(6000, 6150):
        one = cluster(seed, requests=25, several=True).windowed()
        random = np.random.default_rng(seed)
        at = halted(one, float(random.uniform(10.0, 190.0)), tmp_path)
        tb, t = at.tables.state, at.t
        for q in range(len(at.tables["request_accounts"])):
            request = at.tables["requests"][q]
            if not is_windowed(tb, q) or request["live"] == 0:
                continue
            theirs = at.tables["classes"][request["cls"]]
            for one_up in range(2):
                rise, until, blur = pace_of_request(tb, q, t, one_up)
                value = weigh(tb, q, t, one_up, 0.0)
                instants = min(until, t + 150.0) - t
                for share in (0.0, 1e-6, 0.3, 0.7, 1.0 - 1e-9):
                    then = t + np.floor(share * instants * 2.0**20) / 2.0**20
                    if not t <= then < until:
                        continue
                    told, found = value + rise * (then - t), weigh(tb, q, then, one_up, 0.0)
                    name = f"seed {seed}, request {q}, {one_up}, from {t} to {then}"
                    assert found == told or abs(found - told) <= blur, name
                    kind = "calendar" if theirs["windowed"] == CALENDAR else "rolling"
                    seen[f"{kind}, {'never' if value == np.inf else 'broken' if value < 0.0 else 'kept'}"] += 1
    assert min(seen[f"{kind}, {how}"] for kind in ("rolling", "calendar") for how in ("broken", "kept")) >= 100, seen


@pytest.mark.uncompiled
def test_a_request_is_judged_by_its_worst_window(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(9100, 9130):
        one = cluster(seed, largest=3, requests=14, several=True).windowed()
        outcome, found = twin(one), core(one, tmp_path).requests
        assert one.workload.requests is not None
        if "worst_window" not in found:
            continue
        for request, worst in zip(found["row"].tolist(), found["worst_window"].tolist(), strict=True):
            group, rows = outcome.groups[request], np.flatnonzero(one.workload.request == request)
            service = one.workload.classes[int(one.workload.service_class[rows[0]])]
            if group.approach == "independent" or one.workload.requests.batch[request] or service.window is None:
                seen["others"] += 1
                continue
            assert worst == 1.0 - group.short, f"seed {seed}, request {request}"
            seen["kept whole" if worst == 1.0 else "lost some"] += 1
    assert min(seen[what] for what in ("others", "lost some")) >= 20, seen


@pytest.mark.parametrize("seed", [33, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (139,))])
def test_core_and_twin_agree_where_outages_become_one(seed: int, tmp_path: Path) -> None:
    restless = {"patience": 0.0, "preempt_when": "better", "name": "qos-driven", "overhead_scope": "none"}
    one = cluster(seed, 3, 24, several=True).windowed()
    one = one.with_(simulation={"end": 400.0}, scheduler={"watchdog": 1.7}, policy=restless)
    assert halted(one, 400.0, tmp_path).tables["request_accounts"]["count"].max() == MOST_OUTAGES
    assert compare(core(one, tmp_path), twin(one)) is None


def test_what_hosts_are_told_of_large_requests_with_windows_changes_no_decision(tmp_path: Path) -> None:
    saved = 0
    for seed in range(60):
        one = crowd(seed).windowed()
        one = one.triaged() if seed % 3 == 0 else one
        told = core(one.telling(10**6), tmp_path)
        leeway = core(one.telling(1), tmp_path)
        assert everything(leeway) == everything(told), f"crowd({seed}).windowed()"
        saved += leeway.operations < told.operations
    assert saved >= 6, "a leeway that saves nothing is not being tested"


@pytest.mark.uncompiled
def test_core_and_twin_agree_on_crowds_with_windows(tmp_path: Path) -> None:
    for seed in range(1000, 1020):
        one = crowd(seed, hosts=4, size=10).windowed().telling(1)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"crowd({seed}, 4, 10).windowed(): {difference}"


@pytest.mark.uncompiled
def test_every_stretch_that_a_request_lost_is_an_outage_of_the_run(tmp_path: Path) -> None:
    """Also the last one, which the end of the run ends; whether or not other events are recorded."""
    seen: Counter[str] = Counter()
    for seed in range(9200, 9230):
        one = cluster(seed, largest=3, requests=14, several=True).windowed()
        outcome, found = twin(one), core(one, tmp_path, events=True).events
        assert found is not None
        assert one.workload.request is not None
        assert one.workload.requests is not None
        alone = core(one, tmp_path, outages=True).events
        ended = found["kind"] == OUTAGE
        assert alone is not None
        assert {name: values[ended].tolist() for name, values in found.items()} | {"qos": []} == {
            name: values.tolist() for name, values in alone.items()
        } | {"qos": []}
        assert found["qos"][ended].tolist() == alone["qos"].tolist()
        for request, group in enumerate(outcome.groups):
            if group.outages is None:
                continue
            told = ended & (one.workload.request[found["row"]] == request) & (found["row"] >= 0)
            expected = group.outages
            columns = (found[name][told].tolist() for name in ("time", "qos", "received"))
            assert list(zip(*columns, strict=True)) == expected, f"seed {seed}, request {request}"
            seen["lost all"] += sum(received == 0.0 for _, _, received in expected)
            seen["lost some"] += sum(received > 0.0 for _, _, received in expected)
            seen["at the end"] += bool(expected and expected[-1][0] == one.config.simulation.end)
    assert min(seen[what] for what in ("lost all", "lost some", "at the end")) >= 10, seen
