"""Groups that are preempted as a whole or not at all: the core decides as the twin does, to the bit.

Only a live cluster has such groups. So that the twin can follow, the tables of a simulation are told of some.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference.groups import Whole
from reference.outcome import Outcome
from reference.simulator import Simulation
from slacktide.kernels.tables import request_records
from slacktide.kernels.tables.arrays import Tables
from slacktide.sim import RunResult
from slacktide.state import cluster as tables_of_runs
from slacktide.state.growing_arrays import make_room_for_companions
from support.clusters import POLICIES_WITH_RULES, Cluster, cluster
from support.runs import compare, core, decisions_of, everything, told_to_the_twin

Groups = list[list[int]]

GO_ELSEWHERE = {False: (9272, 9280, 9288), True: (9252, 9328)}
"""Seeds of small clusters in which groups go from several hosts."""


def groups_of(one: Cluster, seed: int) -> Groups:
    """Some rows in groups, each in one at most, most of them of one class: else each goes by itself."""
    draw = random.Random(seed)
    rows = list(range(len(one.workload)))
    draw.shuffle(rows)
    if draw.random() < 0.85:
        rows.sort(key=lambda row: int(one.workload.service_class[row]))
    groups: Groups = []
    while len(rows) > 1 and draw.random() < 0.95:
        size = draw.choice((1, 2, 2, 3, 3, 4, 6))
        groups.append(sorted(rows[:size]))
        rows = rows[size:]
    return groups


def tell(tables: Tables, groups: Groups) -> None:
    """Tables of a simulation know these groups, as those of a live cluster do."""
    rows = len(tables["instances"])
    group = np.full(rows, -1, np.int32)
    for g, members in enumerate(groups):
        group[members] = g
    records = np.zeros(len(groups), request_records.POD_GROUP)
    records["whole"], records["first"] = 1, -1
    tables.put("pod_group", group)
    tables.put("pod_groups", records)
    tables.put("next_in_group", np.full(rows, -1, np.int32))
    tables.put("companions", np.zeros(rows, np.int32))
    tables.control["whole_members"] = sum(map(len, groups))
    make_room_for_companions(tables)


def with_groups(one: Cluster, groups: Groups, folder: Path, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    build: Callable[..., Tables] = tables_of_runs.build

    def told(*args: Any, **settings: Any) -> Tables:
        tables = build(*args, **settings)
        tell(tables, groups)
        return tables

    with monkeypatch.context() as patched:
        patched.setattr(tables_of_runs, "build", told)
        return core(one, folder)


def twin_with(one: Cluster, groups: Groups) -> Outcome:
    run = Simulation(one.workload, one.hosts, one.config, one.hot, one.cold, told_to_the_twin(one))
    for rows in groups:
        whole = Whole([run.instances[row] for row in rows])
        for k in whole.instances:
            k.group = whole
    return run.run()


def companions(result: RunResult, groups: Groups) -> int:
    """How many decisions had several victims of one group, some of them from other hosts."""
    of = {row: g for g, rows in enumerate(groups) for row in rows}
    number, on = 0, dict[int, int]()
    for _, _, row, host, victims in decisions_of(result):
        shared = Counter(of[v] for v in victims if v in of)
        number += any(count > 1 for count in shared.values()) and any(on[v] != host for v in victims)
        on[row] = host
    return number


@pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree(several: bool, neighbours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    for seed in range(9000, 9080):
        one = cluster(seed, several=several, neighbours=neighbours)
        groups = groups_of(one, seed)
        result = with_groups(one, groups, tmp_path, monkeypatch)
        difference = compare(result, twin_with(one, groups))
        assert difference is None, f"cluster({seed}, several={several}, neighbours={neighbours}): {difference}"
        seen += companions(result, groups)
    assert seen >= 3, "groups that nobody preempts prove little"


@pytest.mark.uncompiled
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_on_a_few_small_clusters(
    several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = 0
    for seed in (*range(9200, 9212), *GO_ELSEWHERE[several]):
        one = cluster(seed, largest=3, requests=14, several=several, neighbours=seed % 2 == 1)
        groups = groups_of(one, seed)
        result = with_groups(one, groups, tmp_path, monkeypatch)
        difference = compare(result, twin_with(one, groups))
        assert difference is None, f"cluster({seed}, 3, 14, {several}): {difference}"
        seen += companions(result, groups)
    assert seen >= len(GO_ELSEWHERE[several])


@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
@pytest.mark.parametrize("name", POLICIES_WITH_RULES)
def test_core_and_twin_agree_under_every_policy(
    name: str, several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(9300, 9315):
        one = cluster(seed, largest=6, requests=30, several=several, neighbours=seed % 3 == 0)
        one = one.with_(policy={"name": name})
        groups = groups_of(one, seed)
        difference = compare(with_groups(one, groups, tmp_path, monkeypatch), twin_with(one, groups))
        assert difference is None, f"cluster({seed}, 6, 30, {several}) by {name}: {difference}"


def test_what_saves_work_changes_no_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(9400, 9440):
        one = cluster(seed, largest=20, requests=60, several=seed % 2 == 1, neighbours=seed % 4 == 0)
        groups = groups_of(one, seed)
        plain = everything(with_groups(one.naively(), groups, tmp_path, monkeypatch))
        assert everything(with_groups(one, groups, tmp_path, monkeypatch)) == plain, f"cluster({seed}, 20, 60)"
