"""A victim may protect another one, so who may take fewer is not judged by who may take more, and failed.

By a budget one of two on a host may go. Whoever may preempt both takes the first of their order, which frees too
little, and fails. Whoever may preempt the second one only takes that, and has room.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.config import preset
from slacktide.model import Budget, Constraint, Hosts, ServiceClass, Term, Workload
from support.clusters import EXACT_SWITCHES, Cluster
from support.runs import compare, core, decisions_of, everything, twin

ON = tuple(Term((Constraint("zone", "==", zone),)) for zone in "abc")
FREED = 100.0
"""When the two that wait have lost their host."""


def contested() -> Cluster:
    """Zone a has the two that may go, one of them; b and c those that lose their host, and want what the large one has.

    At 100 s the small one is 11 s above a margin of 0, the large one 67 s, below its margin of 1,000 s. Of those that
    wait, which are below theirs and more important, one is 8 s above its promise and one 15.
    """
    classes = (
        ServiceClass("asks", 0.5, 1, margin=20.0),
        ServiceClass("small", 0.9, 2, margin=0.0),
        ServiceClass("large", 0.6, 3, margin=1000.0),
    )
    workload = Workload(
        ids=np.arange(4),
        admission=np.array([0.0, 0.0, FREED - 15.0, FREED - 8.0]),
        duration=np.full(4, 1e6),
        demand=np.array([[2.0, 1.0], [4.0, 1.0], [4.0, 1.0], [4.0, 1.0]]),
        service_class=np.array([1, 2, 0, 0], np.int16),
        job=np.arange(4),
        anti_affinity=np.zeros(4, np.bool_),
        term=np.array([1, 1, 0, 0], np.int32),
        classes=classes,
        terms=(Term(), *ON),
        budget=np.array([0, 0, -1, -1], np.int32),
        budgets=(Budget("both", max_unavailable=1),),
    )
    zones = tuple({"zone": one} for one in "abc")
    hosts = Hosts(np.arange(3), ("a", "b", "c"), np.array([[6.0, 8.0], [4.0, 8.0], [4.0, 8.0]]), zones)
    base = preset("recommended")
    config = replace(
        base,
        qos=replace(base.qos, alpha=0.0),
        policy=replace(base.policy, overhead_scope="none", patience=0.0, overload="share"),
        simulation=replace(base.simulation, end=FREED + 4.0),
    )
    return Cluster(1, workload, hosts, config, (0.0,), (0.0,), ((FREED, 1, "fail"), (FREED, 2, "fail")))


@pytest.mark.uncompiled
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "alone"])
def test_who_may_take_fewer_finds_room_where_another_one_failed(shared: bool, tmp_path: Path) -> None:
    one = contested().with_(optimize={"shared_evaluations": shared})
    found = core(one, tmp_path)
    assert [each[2:] for each in decisions_of(found) if each[1] >= FREED] == [(2, 0, (1,))]
    assert compare(found, twin(one)) is None
    for switch in EXACT_SWITCHES:
        assert everything(core(one.without(switch), tmp_path)) == everything(found), switch
