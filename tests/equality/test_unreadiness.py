"""Instances that run and are not ready for a while: the core and the twin agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.errors import InputError
from slacktide.inputs import read_workload, write_workload
from slacktide.model import Unreadiness
from support.clusters import Cluster, cluster
from support.runs import agreed, compare, core, twin
from support.small import BRONZE, GOLD, Request, machines, small

CLUSTERS = 35


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "requests", "neighbours", "all"])
def test_core_and_twin_agree_where_instances_are_unready(kind: str, tmp_path: Path) -> None:
    every = kind == "all"
    of = {"several": kind == "requests", "neighbours": kind == "neighbours", "graces": every, "amounts": every}
    clusters = (cluster(seed, spells=True, **of) for seed in range(CLUSTERS))
    preempting = agreed(clusters, f"spells, {kind}", tmp_path)
    assert preempting >= 8, "clusters without contention prove little"


@pytest.mark.uncompiled
@pytest.mark.parametrize("engine", ["compiled", "stepwise"])
def test_core_and_twin_agree_on_a_few_small_clusters(engine: str, tmp_path: Path) -> None:
    clusters = (cluster(seed, largest=3, requests=10, spells=True, several=seed % 3 == 1) for seed in range(25))
    agreed((one.on(engine) for one in clusters), f"3, 10, spells, {engine}", tmp_path)


def with_spells(one: Cluster, *spells: Unreadiness) -> Cluster:
    code = np.arange(1, len(spells) + 1, dtype=np.int32)
    return replace(one, workload=replace(one.workload, unready=code, spells=((), *spells)))


def test_its_seconds_are_lost_and_it_completes_later(tmp_path: Path) -> None:
    one = small([Request(GOLD, duration=40.0)], machines(1.0), end=100.0, cold=2.0, hot=1.0)
    result = core(with_spells(one, ((1.0, 50.0), (10.0, 5.0), (12.0, 50.0), (30.0, 7.0))), tmp_path)
    requests = result.requests
    assert requests["completed"].tolist() == [2.0 + 40.0 + 5.0 + 7.0]
    assert (requests["startup_first"].tolist(), requests["startup_restarts"].tolist()) == ([2.0], [12.0])
    assert requests["running"].tolist() == [40.0]
    assert result.placements == 1


def test_who_waits_has_no_spell(tmp_path: Path) -> None:
    one = small([Request(GOLD), Request(BRONZE)], machines(1.0), end=60.0, cold=2.0)
    result = core(with_spells(one, (), ((20.0, 10.0),)), tmp_path)
    assert result.requests["startup_restarts"].tolist() == [0.0, 0.0]


@pytest.mark.uncompiled
def test_a_spell_does_not_renew_what_spares_an_instance_at_first(tmp_path: Path) -> None:
    """It counts from when the instance was put on its host."""
    rows = [Request(BRONZE), Request(GOLD, admission=110.0)]
    policy = {"name": "priority", "min_running": 100.0}
    one = with_spells(small(rows, machines(1.0), end=300.0, cold=2.0, policy=policy), ((90.0, 1.0),), ())
    result = core(one, tmp_path)
    assert compare(result, twin(one)) is None
    assert result.decisions is not None
    assert result.decisions["time"].tolist() == [0.0, 110.0]


@pytest.mark.uncompiled
@pytest.mark.parametrize(("grace", "until"), [(0.0, 30.0), (5.0, 35.0)])
def test_a_startup_before_a_spell_is_of_use_until_the_instance_is_stopped(
    grace: float, until: float, tmp_path: Path
) -> None:
    rows = [
        Request(BRONZE, duration=100.0),
        Request(BRONZE, duration=400.0),
        Request(GOLD, admission=30.0, duration=9.0),
    ]
    spells = (((10.0, 3.0), (20.0, 4.0)), ((10.0, 3.0), (120.0, 5.0)), ())
    one = with_spells(small(rows, machines(1.0, 1.0), end=200.0, cold=2.0, hot=1.0), *spells)
    one = replace(one, workload=replace(one.workload, grace=np.array([grace, grace, 0.0])))
    one = one.with_(policy={"name": "priority"})
    result = core(one, tmp_path)
    assert compare(result, twin(one)) is None
    wasted = result.requests["wasted_startup"].tolist()
    preempted = result.requests["preemptions"].tolist()
    assert sorted(preempted) == [0, 0, 1]
    gone = preempted.index(1)
    assert wasted[gone] == 2.0 + sum(seconds for begin, seconds in spells[gone] if begin < until)
    assert [wasted[row] for row in range(3) if row != gone] == [0.0, 0.0]


@pytest.mark.uncompiled
def test_a_spell_to_come_is_nothing_to_wait_for_where_nobody_is_on_a_host(tmp_path: Path) -> None:
    rows = [Request(GOLD, duration=100.0), Request(BRONZE, admission=2.0, size=9.0, duration=100.0)]
    one = with_spells(small(rows, machines(1.0)), ((1e6, 5.0),), ())
    result = core(one, tmp_path)
    assert compare(result, twin(one)) is None
    assert result.end < 200.0


@pytest.mark.uncompiled
def test_a_spell_that_came_while_nobody_was_on_a_host_is_void(tmp_path: Path) -> None:
    rows = [Request(GOLD, duration=10.0), Request(GOLD, admission=50.0, duration=10.0)]
    one = with_spells(small(rows, machines(1.0)), (), ((20.0, 5.0), (54.0, 3.0)))
    result = core(one, tmp_path)
    assert compare(result, twin(one)) is None
    assert result.requests["completed"].tolist() == [10.0, 63.0]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_spells_are_written_and_read(suffix: str, tmp_path: Path) -> None:
    spells = ((1.5, 3.0), (600.0, 0.25))
    one = with_spells(small([Request(BRONZE), Request(GOLD)], machines(1.0)), spells, ()).workload
    write_workload(one, tmp_path / f"w.{suffix}")
    found = read_workload(tmp_path / f"w.{suffix}")
    assert found.unready is not None
    assert [found.spells[code] for code in found.unready.tolist()] == [spells, ()]


@pytest.mark.parametrize("cell", ["5", "5=0", "5=0.0000001", "5=1; 5=2", "-1=2", "9=1; 5=1", "x=1"])
def test_a_broken_spell_is_named(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text(f"id,admission,duration,cpu,memory,class,unready\n1,0,,1,1,gold,\n2,0,,1,1,gold,{cell}\n")
    with pytest.raises(InputError) as caught:
        read_workload(path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.value) == (3, "unready", cell)
