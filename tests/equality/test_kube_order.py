"""Equals in the order of kube-scheduler (``policy.equals``), and Jobs that back off: the core and the twin agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.model import Constraint, Term
from support.clusters import Cluster, cluster
from support.runs import Decision, compare, core, decisions_of, twin
from support.small import BRONZE, GOLD, Request, Several, machines, small, workload

CLUSTERS = 14
EQUALS = ("admission", "kube-scheduler")
OLD, NEW = 1, 14
"""Rows of those that wait for the same room."""
KINDS: dict[str, dict[str, Any]] = {
    "rows": {},
    "requests": {"several": True},
    "neighbours": {"neighbours": True},
    "marks": {"neighbours": True, "marks": True, "amounts": True},
    "graces": {"several": True, "graces": True, "resizes": True},
    "gangs": {"several": True, "neighbours": True, "graces": True},
}


def as_kube(seed: int, kind: str, **more: Any) -> Cluster:
    """A drawn cluster under the priority policy, in the order of kube-scheduler; of some, Jobs back off."""
    drawn = cluster(seed, **KINDS[kind], **more)
    if seed % 2:
        drawn = drawn.with_(simulation={"batch_recreation": "uniform:0,20"})
    policy = {"name": "priority", "equals": "kube-scheduler", "reprieve": seed % 3 > 0, "gang": kind == "gangs"}
    return drawn.with_(policy=policy | {"cost": "slack" if seed % 5 == 0 else "default"})


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_core_and_twin_agree(kind: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(CLUSTERS):
        one = as_kube(seed, kind)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"as_kube({seed}, {kind}): {difference}"
        seen["differs"] += compare(core(one, tmp_path), twin(one.with_(policy={"equals": "admission"}))) is not None
    assert seen["differs"] >= 1, "clusters in which the order of equals makes no difference prove little"


@pytest.mark.uncompiled
def test_core_and_twin_agree_on_a_few_small_clusters(tmp_path: Path) -> None:
    for seed in range(40):
        kind = tuple(KINDS)[seed % len(KINDS)]
        one = as_kube(seed, kind, largest=3, requests=10)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"as_kube({seed}, {kind}, 3, 10): {difference}"


def ordered(one: Cluster, equals: str, folder: Path) -> list[Decision]:
    """The decisions of a hand-made cluster by priority, in this order of equals; the twin's are the same."""
    one = one.with_(policy={"name": "priority", "equals": equals})
    result = core(one, folder)
    assert compare(result, twin(one)) is None
    return decisions_of(result)


def on(row: int) -> Term:
    """Only on the host of this row."""
    return Term((Constraint("row", "==", str(row)),))


@pytest.mark.parametrize(("busy", "first"), [(True, NEW), (False, OLD)])
def test_who_was_tried_often_backs_off_and_the_new_one_comes_first(busy: bool, first: int, tmp_path: Path) -> None:
    """Two wait for host 0, one from second 1 on, one from second 38 on; it is free at 40.25. Where an instance
    completes on host 1 every four seconds, the old one was tried so often that it backs off until 50, the new one until
    42."""
    rows = [Request(BRONZE, duration=40.25, term=on(0)), Request(BRONZE, admission=1.0, term=on(0))]
    rows += [Request(BRONZE, admission=1.5, duration=4.0 if busy else 80.0, term=on(1)) for _ in range(12)]
    rows += [Request(BRONZE, admission=38.0, term=on(0))]
    one = small(rows, machines(1.0, 1.0), end=60.0)
    placed = {equals: [row for _, at, row, _, _ in ordered(one, equals, tmp_path) if at == 40.25] for equals in EQUALS}
    assert placed == {"admission": [OLD], "kube-scheduler": [first]}


def test_who_started_last_goes_first(tmp_path: Path) -> None:
    """A large one waits for room while a small one that came after it starts; both are alike for whoever preempts."""
    rows = [
        Request(BRONZE, duration=10.0), Request(BRONZE, admission=1.0, size=2.0),
        Request(BRONZE, admission=2.0, size=0.5), Request(GOLD, admission=60.0, size=0.5),
    ]  # fmt: skip
    one = small(rows, machines(2.5), end=100.0)
    victims = {equals: [out for _, _, row, _, out in ordered(one, equals, tmp_path) if row == 3] for equals in EQUALS}
    assert victims == {"admission": [(2,)], "kube-scheduler": [(1,)]}


def test_of_hosts_with_as_many_victims_that_one_is_taken_where_they_started_last(tmp_path: Path) -> None:
    """The other one would have more room afterwards, which counts where starts do not."""
    rows = [
        Request(BRONZE, size=1.0, term=on(0)), Request(BRONZE, admission=5.0, size=0.5, term=on(1)),
        Request(BRONZE, admission=6.0, size=0.5, term=on(1)), Request(GOLD, admission=60.0, size=0.5),
    ]  # fmt: skip
    one = small(rows, machines(1.0, 1.0), end=100.0)
    victims = {equals: [out for _, _, row, _, out in ordered(one, equals, tmp_path) if row == 3] for equals in EQUALS}
    assert victims == {"admission": [(0,)], "kube-scheduler": [(2,)]}


def test_what_a_victim_still_takes_is_room_only_for_one_who_may_preempt_it(tmp_path: Path) -> None:
    """A victim of size 1 goes for one of size .5; the other half is given away at once, or when it is gone."""
    rows = [Request(BRONZE), Request(BRONZE, admission=10.0, size=0.5), Request(GOLD, admission=20.0, size=0.5)]
    one = small(rows, machines(1.0), end=100.0)
    one = replace(one, workload=replace(one.workload, grace=np.array([5.0, 0.0, 0.0])))
    placed = {equals: [at for _, at, row, _, _ in ordered(one, equals, tmp_path) if row == 1] for equals in EQUALS}
    assert placed == {"admission": [20.0], "kube-scheduler": [25.0]}
    rows[1] = replace(rows[1], kind=GOLD, admission=21.0)
    one = replace(one, workload=replace(workload(rows[:1] + rows[:0:-1]), grace=np.array([5.0, 0.0, 0.0])))
    assert [at for _, at, row, _, _ in ordered(one, "kube-scheduler", tmp_path) if row == 2] == [21.0]


def test_the_next_instance_of_a_job_comes_after_a_while(tmp_path: Path) -> None:
    """Both are preempted; the Job's comes again 7 seconds later, where there is room all the time."""
    rows = [Request(BRONZE, of=0), Request(BRONZE), Request(GOLD, admission=20.0, size=2.0, duration=3.0)]
    one = small(rows, machines(2.0), end=100.0, several=[Several("batch", 1)])
    one = one.with_(policy={"name": "priority"}, simulation={"batch_recreation": "constant:7"})
    result = core(one, tmp_path)
    assert compare(result, twin(one)) is None
    again = [(row, at) for _, at, row, _, _ in decisions_of(result) if at > 20.0]
    assert again == [(1, 23.0), (0, 27.0)]
