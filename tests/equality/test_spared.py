"""What one who may preempt more finds is not what one who may preempt fewer finds, where the order of victims decides.

By a budget one of two on a host may go. Whoever may preempt both takes the first of their order, which frees too
little, and fails. Whoever may preempt the second one only takes that, and has room. A rule about neighbours does the
same: the first of the order is whom the instance must be near to.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.config import Config, preset
from slacktide.model import Budget, Constraint, Hosts, Placement, Rule, ServiceClass, Term, Workload
from support.clusters import Cluster
from support.runs import compare, core, decisions_of, everything, twin

ON = tuple(Term((Constraint("zone", "==", zone),)) for zone in "abc")
FREED = 100.0
"""When the two that wait have lost their host."""


def cluster_of(workload: Workload, rooms: list[float]) -> Cluster:
    """Hosts a to c, of so many cores, of which b and c fail at 100 s."""
    zones = tuple({"zone": one} for one in "abc")
    hosts = Hosts(np.arange(3), ("a", "b", "c"), np.array([[room, 8.0] for room in rooms]), zones)
    base: Config = preset("recommended")
    config = replace(
        base,
        qos=replace(base.qos, alpha=0.0),
        policy=replace(base.policy, overhead_scope="none", patience=0.0, overload="share"),
        simulation=replace(base.simulation, end=FREED + 4.0),
    )
    return Cluster(1, workload, hosts, config, (0.0,), (0.0,), ((FREED, 1, "fail"), (FREED, 2, "fail")))


def rows(admission: list[float], cores: list[float], classes: list[int], terms: list[int]) -> dict[str, Any]:
    """Columns of instances that run for ever; ``terms``: 1 to 3 for a to c, 0 for anywhere."""
    count = len(admission)
    return {
        "ids": np.arange(count),
        "admission": np.array(admission),
        "duration": np.full(count, 1e6),
        "demand": np.array([[one, 1.0] for one in cores]),
        "service_class": np.array(classes, np.int16),
        "job": np.arange(count),
        "anti_affinity": np.zeros(count, np.bool_),
        "term": np.array(terms, np.int32),
        "terms": (Term(), *ON),
    }


def of_one_budget(with_rules: bool) -> Cluster:
    """Host a has the two that may go, one of them; b and c those that want what the large one has.

    At 100 s the small one is 11 s above a margin of 0, the large one 67 s, below its margin of 1,000 s. Of those that
    wait, which are below theirs and more important, one is 8 s above its promise and one 15. ``with_rules``: they ask
    for something of their neighbours, which holds.
    """
    columns = rows([0.0, 0.0, FREED - 15.0, FREED - 8.0], [2.0, 4.0, 4.0, 4.0], [1, 2, 0, 0], [1, 1, 0, 0])
    if with_rules:
        columns["placement"] = np.array([0, 0, 1, 1], np.int32)
        columns["placements"] = (Placement(), Placement((), (Rule("away", "nobody"),)))
    workload = Workload(
        **columns,
        classes=(
            ServiceClass("asks", 0.5, 1, margin=20.0),
            ServiceClass("small", 0.9, 2, margin=0.0),
            ServiceClass("large", 0.6, 3, margin=1000.0),
        ),
        budget=np.array([0, 0, -1, -1], np.int32),
        budgets=(Budget("both", max_unavailable=1),),
    )
    return cluster_of(workload, [6.0, 4.0, 4.0])


def near_one_that_may_go() -> Cluster:
    """Host a has two of which each frees enough; those that wait must be near the first of their order.

    At 100 s that one is 11 s above a margin of 0, the other one 80 s, below its margin of 100 s. Of those that wait one
    is 5 s above its promise and one 12. All are of one rank.
    """
    columns = rows(
        [0.0, 0.0, 0.0, 20.0, FREED - 12.0, FREED - 5.0], [2.0, 1.0, 1.0, 2.0, 2.0, 2.0], [1, 1, 1, 0, 0, 0],
        [1, 2, 3, 1, 0, 0],
    )  # fmt: skip
    workload = Workload(
        **columns,
        classes=(ServiceClass("asks", 0.5, 1, margin=100.0), ServiceClass("small", 0.9, 1, margin=0.0)),
        placement=np.array([1, 1, 1, 0, 2, 2], np.int32),
        placements=(Placement(), Placement(("wanted",)), Placement((), (Rule("near", "wanted"),))),
    )
    return cluster_of(workload, [4.0, 3.0, 3.0])


@pytest.mark.uncompiled
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "alone"])
@pytest.mark.parametrize("case", ["budget", "budget, with rules", "near"])
def test_who_may_take_fewer_finds_room_where_another_one_failed(case: str, shared: bool, tmp_path: Path) -> None:
    one = near_one_that_may_go() if case == "near" else of_one_budget(case != "budget")
    one = one.with_(optimize={"shared_evaluations": shared})
    found = core(one, tmp_path)
    served, victim = (4, 3) if case == "near" else (2, 1)
    assert [each[2:] for each in decisions_of(found) if each[1] >= FREED] == [(served, 0, (victim,))]
    assert compare(found, twin(one)) is None
    assert everything(core(one.naively(), tmp_path)) == everything(found)
