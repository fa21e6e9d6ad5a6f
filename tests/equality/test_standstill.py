"""While nothing happens passes are left out in which nobody can be served, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.kernels.drive import event_loop, scheduling_pass
from slacktide.kernels.memo.standstill import NOWHERE
from slacktide.kernels.tables.buffer_capacity import OVER, PASS_DUE
from slacktide.kernels.tables.schema import RECORD_EVENTS
from slacktide.policy.loader import load
from slacktide.sim.engine import prepare
from slacktide.state.growing_arrays import grow
from support.clusters import POLICIES_WITH_RULES, Cluster, cluster
from support.runs import compare, core, everything, same_events, settings_of, twin


def waiting(seed: int, policy: str, several: bool = False, neighbours: bool = False, resizes: bool = False) -> Cluster:
    """A random cluster with a watchdog that fires often, on which some fit nowhere, and some take turns."""
    random = np.random.default_rng([seed, 0x5EED, 23])
    one = cluster(seed, 4, 20, several=several, neighbours=neighbours, resizes=resizes)
    demand = one.workload.demand.copy()
    large = random.random(len(demand)) < random.choice([0.0, 0.1, 0.4])
    if one.workload.requests is None or random.random() < 0.5:
        demand[large] *= 9.0
    workload = replace(one.workload, demand=demand)
    watchdog = float(random.choice([0.5, 1.0, 2.75]))
    return replace(one, workload=workload).with_(policy={"name": policy}, scheduler={"watchdog": watchdog})


def left_out(one: Cluster, folder: Path, record: int = 0) -> tuple[int, int]:
    """How many of a run's passes are left out, and how many there are."""
    config = settings_of(one, folder)
    tb = prepare(one.workload, one.hosts, config, load(config), record)
    control, count = tb.control, 0
    while True:
        code = event_loop.advance(tb.state)
        if code == OVER:
            return count, int(control["batch"])
        if code != PASS_DUE:
            grow(tb, code)
            continue
        until = float(control["still_until"])
        resting = control["now"] < until and control["changes"] == control["still_from"]
        while grow(tb, int(scheduling_pass.run_pass(tb.state))):
            pass
        if resting:
            assert control["pass_placed"] == 0
            assert control["still_until"] == until
        count += bool(resting)


@pytest.mark.parametrize("policy", POLICIES_WITH_RULES)
@pytest.mark.parametrize("resizes", [False, True], ids=["fixed", "resizes"])
@pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_leaving_passes_out_changes_nothing(
    several: bool, neighbours: bool, resizes: bool, policy: str, tmp_path: Path
) -> None:
    for seed in range(9000, 9008):
        one = waiting(seed, policy, several, neighbours, resizes)
        for which in (one,) if policy == "priority" else (one, one.triaged().with_(policy={"name": policy})):
            found = core(which, tmp_path)
            plain = core(which.naively(), tmp_path)
            said = f"waiting({seed}, {policy!r}, {several}, {neighbours}, {resizes}), {which.config.policy.overload}"
            assert everything(found) == everything(plain), said
            assert (found.pass_count, found.end) == (plain.pass_count, plain.end), said


@pytest.mark.parametrize("policy", POLICIES_WITH_RULES)
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_where_many_wait_for_long(several: bool, policy: str, tmp_path: Path) -> None:
    for seed in range(9100, 9106):
        one = waiting(seed, policy, several, neighbours=seed % 3 == 0)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"waiting({seed}, {policy!r}, {several}, {seed % 3 == 0}): {difference}"


@pytest.mark.parametrize("policy", POLICIES_WITH_RULES)
def test_many_passes_are_left_out(policy: str, tmp_path: Path) -> None:
    counts = np.array([left_out(waiting(seed, policy), tmp_path) for seed in range(9000, 9030)]).sum(axis=0)
    assert counts[0] > (0.3 if policy == "priority" else 0.1) * counts[1]


def test_with_a_switch_that_is_not_exact_no_pass_is_left_out(tmp_path: Path) -> None:
    one = waiting(9001, "priority")
    for name, value in {
        "relaxed_randomization": 0.5,
        "equivalence_tolerance": 1.0,
        "queue_pruning": True,
    }.items():
        assert left_out(one.with_(optimize={name: value}), tmp_path)[0] == 0


@pytest.mark.parametrize("policy", POLICIES_WITH_RULES)
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_events_are_the_same_where_passes_are_left_out(several: bool, policy: str, tmp_path: Path) -> None:
    for seed in range(9000, 9006):
        same_events(waiting(seed, policy, several), tmp_path)
    rests, _ = left_out(waiting(9003, policy), tmp_path, RECORD_EVENTS)
    assert rests == left_out(waiting(9003, policy), tmp_path)[0]


def test_who_fits_nowhere_is_told_by_capacity_and_constraints(tmp_path: Path) -> None:
    told = 0
    for seed in range(9000, 9030):
        one = waiting(seed, "qos-driven")
        config = settings_of(one, tmp_path)
        tb = prepare(one.workload, one.hosts, config, load(config), 0)
        while (code := event_loop.run(tb.state, 1000)) != OVER:
            grow(tb, code, lambda _: None)
        for kind in tb["kinds"]:
            if kind["homeless"] == 0:
                continue
            large = (tb["demand"][kind["shape"]] > tb["capacity"]).any(axis=1)
            closed = tb["allowed"][kind["term"], tb["hosts"]["group"]] == 0
            assert (kind["homeless"] == NOWHERE) == bool((large | closed).all())
            told += kind["homeless"] == NOWHERE
    assert told > 0
