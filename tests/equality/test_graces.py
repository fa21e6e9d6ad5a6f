"""Preempted instances that go on for a grace period: the core and the twin agree, and who waits for them waits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.errors import InputError
from slacktide.inputs import read_workload, write_workload
from slacktide.sim import RunResult
from support.clusters import Cluster, cluster
from support.runs import agreed, core
from support.small import BRONZE, GOLD, Request, machines, small

CLUSTERS = 35


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "requests", "neighbours", "resizes", "amounts"])
def test_core_and_twin_agree_where_victims_take_their_time(kind: str, tmp_path: Path) -> None:
    of = {"several": kind == "requests", "neighbours": kind == "neighbours", "resizes": kind == "resizes"}
    clusters = (cluster(seed, graces=True, amounts=kind == "amounts", **of) for seed in range(CLUSTERS))
    preempting = agreed(clusters, f"graces, {kind}", tmp_path)
    assert preempting >= 8, "clusters without victims prove little"


@pytest.mark.uncompiled
@pytest.mark.parametrize("engine", ["compiled", "stepwise"])
def test_core_and_twin_agree_on_a_few_small_clusters(engine: str, tmp_path: Path) -> None:
    clusters = (cluster(seed, largest=3, requests=10, graces=True, several=seed % 3 == 1) for seed in range(30))
    agreed((one.on(engine) for one in clusters), f"3, 10, graces, {engine}", tmp_path)


def decided(result: RunResult) -> list[tuple[float, int, int]]:
    assert result.decisions is not None
    return list(zip(*(result.decisions[name].tolist() for name in ("time", "row", "host")), strict=True))


def with_graces(one: Cluster, *seconds: float) -> Cluster:
    return replace(one, workload=replace(one.workload, grace=np.array(seconds)))


def test_victims_take_what_is_drawn_of_their_grace_periods(tmp_path: Path) -> None:
    rows = [Request(BRONZE), Request(GOLD, admission=20.0, duration=40.0)]
    one = with_graces(small(rows, machines(1.0), end=100.0, cold=2.0, hot=1.0), 30.0, 0.0)
    half = core(one.with_(simulation={"grace": "constant:0.5"}), tmp_path)
    assert half.requests["completed"].tolist()[1] == 20.0 + 15.0 + 2.0 + 40.0


def test_who_preempts_starts_when_its_victim_is_gone_which_ran_until_then(tmp_path: Path) -> None:
    rows = [Request(BRONZE), Request(GOLD, admission=20.0, duration=40.0)]
    one = with_graces(small(rows, machines(1.0), end=100.0, cold=2.0, hot=1.0), 30.0, 0.0)
    result = core(one, tmp_path)
    assert decided(result) == [(0.0, 0, 0), (20.0, 1, 0), (92.0, 0, 0)]
    assert result.requests["completed"].tolist()[1] == 20.0 + 30.0 + 2.0 + 40.0
    assert result.requests["running"].tolist()[0] == (50.0 - 2.0) + (100.0 - 92.0 - 1.0)
    assert result.requests["startup_first"].tolist() == [2.0, 32.0]
    assert result.preemptions == 1


def test_who_completes_in_its_grace_has_completed(tmp_path: Path) -> None:
    rows = [Request(BRONZE, duration=28.0), Request(GOLD, admission=20.0, duration=40.0)]
    result = core(with_graces(small(rows, machines(1.0), end=100.0, cold=2.0), 30.0, 0.0), tmp_path)
    assert result.requests["completed"].tolist() == [30.0, 30.0 + 2.0 + 40.0]


def test_the_host_is_chosen_whose_victims_go_sooner(tmp_path: Path) -> None:
    rows = [Request(BRONZE), Request(BRONZE), Request(GOLD, admission=20.0)]
    for graces in ((30.0, 5.0, 0.0), (5.0, 30.0, 0.0)):
        result = core(with_graces(small(rows, machines(1.0, 1.0), end=60.0, cold=2.0), *graces), tmp_path)
        first, second, gold = decided(result)[:3]
        assert gold[2] == (first, second)[graces.index(5.0)][2]


def test_a_host_that_fails_ends_grace_periods(tmp_path: Path) -> None:
    rows = [Request(BRONZE), Request(GOLD, admission=20.0)]
    one = small(rows, machines(1.0), end=60.0, cold=2.0, events=[(25.0, 0, "fail"), (40.0, 0, "repair")])
    result = core(with_graces(one, 30.0, 0.0), tmp_path)
    assert [event[:2] for event in decided(result)] == [(0.0, 0), (20.0, 1), (40.0, 1)]
    assert result.requests["running"].tolist() == [23.0, 20.0]


def test_who_fits_beside_the_one_it_waits_for_waits_for_it(tmp_path: Path) -> None:
    """A third row finds room that a victim still takes: it starts when that is gone."""
    rows = [Request(BRONZE, size=2.0), Request(GOLD, admission=20.0), Request(GOLD, admission=25.0)]
    result = core(with_graces(small(rows, machines(2.0), end=60.0, cold=2.0), 30.0, 0.0, 0.0), tmp_path)
    assert decided(result) == [(0.0, 0, 0), (20.0, 1, 0), (25.0, 2, 0)]
    assert result.requests["startup_first"].tolist() == [2.0, 32.0, 27.0]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_graces_are_written_and_read(suffix: str, tmp_path: Path) -> None:
    one = with_graces(small([Request(BRONZE), Request(GOLD)], machines(1.0)), 30.5, 0.0).workload
    write_workload(one, tmp_path / f"w.{suffix}")
    found = read_workload(tmp_path / f"w.{suffix}").grace
    assert found is not None
    assert found.tolist() == [30.5, 0.0]


def test_a_broken_grace_is_named(tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text(
        "id,admission,duration,cpu,memory,class,grace\n1,0,,1,1,gold,30\n2,0,,1,1,gold,-1\n3,0,,1,1,gold,\n"
    )
    with pytest.raises(InputError) as caught:
        read_workload(path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.value) == (3, "grace", "-1.0")
