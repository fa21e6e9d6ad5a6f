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
from support.runs import agreed, core
from support.small import BRONZE, GOLD, Request, machines, small

CLUSTERS = 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "requests", "neighbours", "all"])
def test_core_and_twin_agree_where_instances_are_unready(kind: str, tmp_path: Path) -> None:
    every = kind == "all"
    of = {"several": kind == "requests", "neighbours": kind == "neighbours", "graces": every, "amounts": every}
    clusters = (cluster(seed, spells=True, **of) for seed in range(CLUSTERS))
    preempting = agreed(clusters, f"spells, {kind}", tmp_path)
    assert preempting >= 60, "clusters without contention prove little"


@pytest.mark.uncompiled
@pytest.mark.parametrize("engine", ["compiled", "stepwise"])
def test_core_and_twin_agree_on_a_few_small_clusters(engine: str, tmp_path: Path) -> None:
    clusters = (cluster(seed, largest=3, requests=10, spells=True, several=seed % 3 == 1) for seed in range(25))
    agreed((one.with_(simulation={"engine": engine}) for one in clusters), f"3, 10, spells, {engine}", tmp_path)


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


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_spells_are_written_and_read(suffix: str, tmp_path: Path) -> None:
    spells = ((1.5, 3.0), (600.0, 0.25))
    one = with_spells(small([Request(BRONZE), Request(GOLD)], machines(1.0)), spells, ()).workload
    write_workload(one, tmp_path / f"w.{suffix}")
    found = read_workload(tmp_path / f"w.{suffix}")
    assert found.unready is not None
    assert [found.spells[code] for code in found.unready.tolist()] == [spells, ()]


@pytest.mark.parametrize("cell", ["5", "5=0", "5=1; 5=2", "-1=2", "9=1; 5=1", "x=1"])
def test_a_broken_spell_is_named(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "w.csv"
    path.write_text(f"id,admission,duration,cpu,memory,class,unready\n1,0,,1,1,gold,\n2,0,,1,1,gold,{cell}\n")
    with pytest.raises(InputError) as caught:
        read_workload(path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.value) == (3, "unready", cell)
