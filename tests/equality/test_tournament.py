"""Many distinct demands that must preempt find the hosts that a look at every host finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.config import Config, preset
from slacktide.kernels.place import offers
from slacktide.model import NO_CONSTRAINT, Constraint, Hosts, Term, Workload
from slacktide.sim import RunResult, run
from slacktide.state import cluster as tables
from support.clusters import Cluster, HostEvent, cluster
from support.runs import core, decisions_of, everything

GOLD, SILVER, BRONZE = range(3)
POLICIES: dict[str, dict[str, Any]] = {
    "priority": {"name": "priority"},
    "priority by slack": {"name": "priority", "cost": "slack"},
    "recommended": {},
    "share": {"overload": "share"},
    "fewest victims": {"overload": "share", "cost": "fewest-victims"},
    "larger metric": {"overload": "share", "preempt_when": "better"},
}


@pytest.fixture
def contested(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tournament on clusters of any size, from the first look on."""
    monkeypatch.setattr(tables, "MANY_HOSTS", 1)
    monkeypatch.setattr(tables, "LOOKS_BEFORE", 0)


def crowd(seed: int, hosts: int, count: int, *, terms: bool = False) -> tuple[Workload, Hosts]:
    """A full cluster of two kinds of hosts, then ``count`` instances at three instants, nearly all of other demands."""
    rng = np.random.default_rng(seed)
    capacity = np.where(rng.random(hosts)[:, None] < 0.7, 8.0, 12.0) * np.array([[1.0, 2.0]])
    full = 10 * hosts
    admission = np.concatenate([np.sort(rng.uniform(0.0, 50.0, full)), np.repeat([100.0, 140.0, 180.0], count)])
    demand = np.round(rng.uniform(0.2, 2.6, (len(admission), 2)), 3) * np.array([1.0, 2.0])
    demand[full:] = np.round(rng.uniform(0.5, 6.0, (3 * count, 2)), 3)
    classes = rng.choice([GOLD, SILVER, BRONZE], len(admission), p=[0.1, 0.3, 0.6])
    classes[full:] = rng.choice([GOLD, SILVER], 3 * count)
    workload = Workload(
        ids=np.arange(len(admission)),
        admission=admission,
        duration=rng.uniform(20.0, 400.0, len(admission)),
        demand=demand,
        service_class=classes.astype(np.int16),
        job=np.arange(len(admission)) // 3,
        anti_affinity=rng.random(len(admission)) < 0.1,
        term=np.where(rng.random(len(admission)) < (0.3 if terms else 0.0), 1, 0).astype(np.int32),
        terms=(NO_CONSTRAINT, Term((Constraint("zone", "==", "a"),))),
    )
    zones = tuple({"zone": "ab"[row % 2]} for row in range(hosts))
    return workload, Hosts(np.arange(hosts), tuple(f"host-{row}" for row in range(hosts)), capacity, zones)


def settings(policy: str) -> Config:
    base = preset("recommended")
    return replace(
        base,
        policy=replace(base.policy, **POLICIES[policy]),
        startup=replace(base.startup, hot="uniform:0.5,4.5", cold="uniform:2,9"),
        simulation=replace(base.simulation, end=300.0, seed=3),
    )


def decided(load: tuple[Workload, Hosts], config: Config) -> RunResult:
    return run(*load, config, decisions=True, passes=True)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("terms", [False, True])
def test_a_tournament_changes_no_decision(policy: str, terms: bool, request: pytest.FixtureRequest) -> None:
    load, config = crowd(5, 40, 60, terms=terms), settings(policy)
    usual = decided(load, config)
    request.getfixturevalue("contested")
    found = decided(load, config)
    assert usual.preemptions > 50
    assert decisions_of(found) == decisions_of(usual)
    assert found.operations < usual.operations


@pytest.mark.uncompiled
@pytest.mark.parametrize("policy", ["priority", "share"])
def test_a_few_in_a_tournament_are_decided_as_usual(policy: str, request: pytest.FixtureRequest) -> None:
    load, config = crowd(6, 5, 6), settings(policy)
    usual = decided(load, config)
    request.getfixturevalue("contested")
    assert decisions_of(decided(load, config)) == decisions_of(usual)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("seed", range(700, 760))
def test_random_clusters_are_decided_alike(
    seed: int, several: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    some = cluster(seed, several=several)
    usual = everything(core(some, tmp_path))
    request.getfixturevalue("contested")
    found = everything(core(some, tmp_path))
    assert found[0] == usual[0]
    assert found[2:] == usual[2:]


def overcommitted(seed: int, hosts: int, count: int, policy: str) -> Cluster:
    """A crowd in which many demand nothing of one resource, and others take more of hosts than is free there."""
    rng = np.random.default_rng([seed, 0x07E5])
    load, machines = crowd(seed, hosts, count)
    demand = load.demand.copy()
    nothing = rng.integers(0, 3, len(demand))
    demand[10 * hosts :][nothing[10 * hosts :, None] == np.arange(2)] = 0.0
    taken = np.round(rng.uniform(0.0, 12.0, (hosts, 2)), 1) * np.array([1.0, 2.0])
    events: list[HostEvent] = [
        (90.0, h, "others", {"cpu": cpu, "memory": memory}) for h, (cpu, memory) in enumerate(taken.tolist())
    ]
    load = replace(load, demand=demand)
    return Cluster(seed, load, machines, settings(policy), (0.5, 3.0), (2.0, 9.0), tuple(events))


@pytest.mark.parametrize(
    ("policy", "seed", "size"),
    [
        *((policy, seed, 40) for policy in POLICIES for seed in (2, 3, 5, 8)),
        pytest.param("share", 6, 12, marks=pytest.mark.uncompiled),
    ],
)
def test_hosts_are_found_that_others_overcommit(
    policy: str, seed: int, size: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """What is lacking of a resource counts for those only who demand some of it."""
    some = overcommitted(seed, size, size, policy)
    usual = core(some, tmp_path)
    request.getfixturevalue("contested")
    assert usual.preemptions > 5
    assert decisions_of(core(some, tmp_path)) == decisions_of(usual)


@pytest.mark.parametrize("policy", ["priority", "share"])
def test_many_demands_on_many_hosts_look_at_few_of_them(policy: str) -> None:
    """The largest part is what the first demands look at, before there is a tournament."""
    hosts, count = tables.MANY_HOSTS, 200
    full = 4 * hosts
    workload = Workload(
        ids=np.arange(full + count),
        admission=np.repeat([0.0, 100.0], (full, count)),
        duration=np.full(full + count, np.inf),
        demand=np.repeat(np.concatenate([np.ones(full), 1.0 - np.arange(count) / 1000.0])[:, None], 2, axis=1),
        service_class=np.repeat([BRONZE, GOLD], (full, count)).astype(np.int16),
        job=np.arange(full + count),
        anti_affinity=np.zeros(full + count, np.bool_),
        term=np.zeros(full + count, np.int32),
    )
    names = tuple(f"host-{row}" for row in range(hosts))
    machines = Hosts(np.arange(hosts), names, np.full((hosts, 2), 4.0), ({},) * hosts)
    result = run(
        workload,
        machines,
        replace(settings(policy), simulation=replace(settings(policy).simulation, end=101.0)),
        passes=True,
    )
    assert result.preemptions == count
    assert result.passes is not None
    spent = result.passes["operations"][result.passes["time"] >= 100.0].sum()
    assert spent < (tables.LOOKS_BEFORE + 2) * hosts + 20 * count


def test_offers_are_of_as_many_victims_as_tables_have_room_for() -> None:
    assert tables.contest_arrays(tables.MANY_HOSTS, 8, 3, 2)["offers"].shape[1] == offers.OFFERS
