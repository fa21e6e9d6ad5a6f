"""Kinds that differ only in where their users are: they share what is found out about hosts, and decide apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.config import Config, DelaySettings, PolicySettings
from slacktide.model import Access, Constraint, Hosts, Placement, ServiceClass, Term, Workload
from slacktide.policy.loader import Loaded
from slacktide.sim.engine import prepare
from slacktide.state.growth import Growing
from slacktide.state.spec import Spec
from support.clusters import Cluster
from support.edges import edge
from support.runs import compare, core, decisions_of, twin

AWARE = Config(policy=PolicySettings(score="delay-aware"), delay=DelaySettings(grants=True))
IN_A = Term((Constraint("zone", "in", values=("a",)),))
HERE, THERE = Access(1.0, "", (("here", 1.0),)), Access(1.0, "", (("there", 1.0),))


def crowd(seed: int) -> Cluster:
    """A cluster at the edge whose instances have one of two demands, but users of their own."""
    one = edge(seed, largest=6, requests=40)
    like = np.random.default_rng(seed).integers(2, size=len(one.workload))
    workload = replace(one.workload, demand=one.workload.demand[like])
    if workload.limit is not None:
        workload = replace(workload, limit=np.maximum(workload.limit, workload.demand))
    return replace(one, workload=workload)


@pytest.mark.slow
def test_what_is_shared_changes_no_decision_and_saves_work(tmp_path: Path) -> None:
    saved = 0
    for seed in range(80):
        one = crowd(seed)
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"crowd({seed}): {difference}"
        plain = core(one.naively(), tmp_path)
        assert decisions_of(plain) == decisions_of(result), f"crowd({seed})"
        saved += result.operations < plain.operations
    assert saved >= 40, "nothing is shared"


def test_rows_that_differ_in_users_or_limits_are_alike_and_no_others() -> None:
    #          user, other user, other limit, other class, other term, other demand, as the first
    columns = {
        "access": [0, 1, 0, 0, 0, 0, 0],
        "limit": [2, 2, 3, 2, 2, 2, 2],
        "cls": [0, 0, 0, 1, 0, 0, 0],
        "term": [0, 0, 0, 0, 1, 0, 0],
        "demand": [1, 1, 1, 1, 1, 2, 1],
    }
    count = len(columns["access"])
    workload = Workload(
        ids=np.arange(count),
        admission=np.zeros(count),
        duration=np.full(count, 9.0),
        demand=np.array([columns["demand"], [1] * count], float).T,
        service_class=np.array(columns["cls"], np.int16),
        job=np.arange(count),
        anti_affinity=np.zeros(count, np.bool_),
        term=np.array(columns["term"], np.int32),
        terms=(Term(), IN_A),
        limit=np.array([columns["limit"], [1] * count], float).T,
        access=np.array(columns["access"], np.int32),
        accesses=(HERE, THERE),
    )
    hosts = Hosts(np.arange(2), ("here", "there"), np.full((2, 2), 9.0), ({"zone": "a"}, {}))
    tb = prepare(workload, hosts, AWARE, Loaded(), 0)
    kind = tb["instances"]["kind"]
    alike = tb["kinds"]["alike"][kind].tolist()
    assert len(set(kind.tolist())) == 6
    assert alike[0] == alike[1] == alike[2] == alike[6]
    assert len(set(alike)) == 4
    assert (tb["kinds"]["alike"][alike] == alike).all(), "the first of them stands for itself"
    assert tb["kinds"]["pair"][kind[0]] == tb["kinds"]["pair"][kind[1]] == tb["kinds"]["pair"][kind[4]]
    assert len(set(tb["kinds"]["pair"][kind].tolist())) == 3


def test_pods_that_differ_in_users_or_limits_are_alike_and_no_others() -> None:
    growing = Growing(AWARE)
    low, high = ServiceClass("low", 0.5, 2), ServiceClass("high", 1.0, 1)
    first = Spec((("cpu", 100),), low, access=HERE)
    alike = [
        first,
        replace(first, access=THERE),
        replace(first, limit=(("cpu", 300),)),
        replace(first, application="other"),
    ]
    others = [
        replace(first, demand=(("cpu", 200),)),
        replace(first, service=high),
        replace(first, term=IN_A),
        replace(first, placement=Placement(("marked",))),
        replace(first, never=True),
    ]
    for _ in range(2):
        numbers = [growing.kind_of(one) for one in (*alike, *others)]
        found = growing.tb["kinds"]["alike"][numbers].tolist()
        assert len(set(numbers)) == 9
        assert found[:4] == [numbers[0]] * 4
        assert found[4:] == numbers[4:]
        growing.forget_kinds()
