"""A gang that cannot start as a whole leaves no trace, not even in what is remembered of hosts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.model import Budget, Constraint, Term
from support.clusters import Cluster, cluster
from support.runs import compare, core, decisions_of, twin
from support.small import BRONZE, GOLD, Request, Several, machines, small


def failed_trial() -> Cluster:
    """A gang tries to preempt an instance in its start-up, which costs its request more overhead than it may have."""
    rows = [Request(BRONZE, of=0), Request(BRONZE, of=0), Request(BRONZE, 2.0, of=0)]
    rows += [Request(GOLD, 5.0, of=1), Request(GOLD, 5.0, of=1), Request(GOLD, 5.0)]
    one = small(
        rows,
        machines(1.5, 2.0),
        end=40.0,
        hot=3.0,
        cold=3.0,
        qos={"startup": "always"},
        several=[Several("concurrent"), Several("concurrent")],
        scales=[(2.0, 0, 3)],
        policy={"gang": True, "overhead_scope": "all", "score": "least-requested"},
    )
    demand = np.array([[2.0, 1.0], [1.5, 1.0], [1.5, 1.0], [2.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    hosts = replace(one.hosts, capacity=np.array([[1.5, 10.0], [2.0, 2.0]]))
    return replace(one, workload=replace(one.workload, demand=demand), hosts=hosts)


@pytest.mark.uncompiled
def test_a_trial_reprieves_whom_the_pass_would(tmp_path: Path) -> None:
    """Two of a budget that spares all but one: the gang starts only as the first, on whom it falls first, may stay."""
    terms = [Term((Constraint("row", "==", str(host)),)) for host in (0, 0, 1)]
    sizes = ((0.0, 1.0), (5.0, 3.0), (10.0, 2.0))
    rows = [Request(BRONZE, at, size=size, term=term) for (at, size), term in zip(sizes, terms, strict=True)]
    rows += [Request(GOLD, 300.0, size=size, of=0) for size in (3.0, 2.0)]
    one = small(rows, machines(4.0, 2.0), end=400.0, hot=1.0, cold=1.0, several=[Several("concurrent")])
    budget = np.array([0, -1, 0, -1, -1], np.int32)
    one = replace(one, workload=replace(one.workload, budget=budget, budgets=(Budget("b", max_unavailable=1),)))
    for reprieve, victims in ((True, [1, 2]), (False, [])):
        tried = one.with_(policy={"gang": True, "reprieve": reprieve})
        result = core(tried, tmp_path)
        assert compare(result, twin(tried)) is None
        assert result.decisions is not None
        assert result.decisions["victims"].tolist() == victims


@pytest.mark.uncompiled
def test_hosts_forget_a_fall_that_was_only_tried(tmp_path: Path) -> None:
    one = failed_trial()
    result = core(one, tmp_path)
    assert compare(result, twin(one)) is None
    assert decisions_of(result)[2] == (2, 5.0, 5, 0, (1,)), "the single one preempts what the gang could not use"


def test_core_and_twin_agree_on_gangs(tmp_path: Path) -> None:
    preempting = 0
    for seed in range(60_000, 60_040):
        one = cluster(seed, several=True).with_(policy={"gang": True, "overhead_scope": "all"})
        result = core(one, tmp_path)
        assert compare(result, twin(one)) is None, f"cluster({seed}, several=True)"
        preempting += result.preemptions > 0
    assert preempting >= 10, "gangs that never preempt prove little"
