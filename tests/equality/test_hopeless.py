"""Turns that would be in vain are left out, as are looks at hosts that spare nobody less; nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.kernels.drive import event_loop, scheduling_pass
from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.buffer_capacity import OVER, PASS_DUE
from slacktide.policy.loader import load
from slacktide.sim.engine import prepare
from slacktide.state.growing_arrays import grow
from support.clusters import Cluster, cluster
from support.runs import compare, core, everything, same_events, settings_of, twin
from support.small import BRONZE, GOLD, Request, machines, small

POLICIES = ("priority", "hybrid", "qos-driven")


def crowded(seed: int, policy: str, several: bool = False, neighbours: bool = False) -> Cluster:
    """A random cluster on which many of few kinds wait for long."""
    random = np.random.default_rng([seed, 0xC0DE, 16])
    one = cluster(seed, 3, 60, several=several, neighbours=neighbours)
    demand = one.workload.demand.copy()
    demand[:] = demand.mean() * random.choice([0.5, 1.0, 2.0], len(demand))[:, None]
    if one.workload.requests is not None:
        demand[:] = demand[0]
    overload = "triage" if seed % 2 and one.config.policy.queue_order == one.config.policy.victim_order else "share"
    if "metric" in (one.config.policy.queue_order, one.config.policy.victim_order):
        overload = "share"
    return replace(one, workload=replace(one.workload, demand=demand)).with_(
        policy={"name": policy, "overload": overload}, scheduler={"watchdog": 2.75}
    )


def passes(one: Cluster, folder: Path) -> tuple[Tables, int, int]:
    """The tables after a run, how many turns were left out at ends of passes, and how many passes there were."""
    config = settings_of(one, folder)
    tb = prepare(one.workload, one.hosts, config, load(config), 0)
    left_out = 0
    while True:
        code = int(event_loop.advance(tb.state))
        if code == OVER:
            return tb, left_out, int(tb.control["batch"])
        if code != PASS_DUE:
            grow(tb, code, lambda _: None)
            continue
        tb.control["still_until"] = -np.inf  # no pass is left out as a whole
        while grow(tb, int(scheduling_pass.run_pass(tb.state)), lambda _: None):
            pass
        if not config.policy.gang:
            left_out += int(tb.control["ahead"]) if not tb.control["pass_placed"] else 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_turns_that_are_left_out_change_nothing(several: bool, neighbours: bool, policy: str, tmp_path: Path) -> None:
    for seed in range(16_000, 16_012):
        one = crowded(seed, policy, several, neighbours)
        plain = everything(core(one.naively(), tmp_path))
        assert everything(core(one, tmp_path)) == plain, f"crowded({seed}, {policy!r}, {several}, {neighbours})"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_events_are_the_same_where_turns_are_left_out(several: bool, policy: str, tmp_path: Path) -> None:
    for seed in range(16_000, 16_012):
        same_events(crowded(seed, policy, several, neighbours=seed % 4 == 0), tmp_path)


@pytest.mark.parametrize("policy", POLICIES)
def test_core_and_twin_agree_where_turns_are_left_out(policy: str, tmp_path: Path) -> None:
    for seed in range(16_100, 16_104):
        one = crowded(seed, policy)
        assert compare(core(one, tmp_path), twin(one)) is None, f"crowded({seed}, {policy!r})"


@pytest.mark.parametrize("policy", POLICIES)
def test_most_turns_of_those_who_fit_nowhere_are_left_out(policy: str, tmp_path: Path) -> None:
    rows = [Request(GOLD, 0.0, 400.0 + 10.0 * (i % 9), 0.25) for i in range(9)]
    rows += [Request(GOLD, 0.0, np.inf, 3.75), *(Request(BRONZE, 1.0, np.inf, 2.0 + i % 2) for i in range(300))]
    one = small(rows, machines(6.0), end=500.0).with_(policy={"name": policy})
    _, left_out, count = passes(one, tmp_path)
    assert count > 20
    assert left_out > 250 * (count - 10)
    plain = everything(core(one.naively(), tmp_path))
    assert everything(core(one, tmp_path)) == plain


def spared(hosts: int) -> Cluster:
    """Bronze instances fill all hosts, one after the other; gold ones wait until somebody has run for 30 s."""
    rows = [Request(BRONZE, 0.5 * i, np.inf, 2.0) for i in range(hosts)]
    rows += [Request(GOLD, 0.5 * hosts + i, np.inf, 1.0 + i % 2) for i in range(hosts // 2)]
    one = small(rows, machines(*[2.5] * hosts), end=hosts + 90.0)
    return one.with_(policy={"name": "priority", "min_running": 30.0})


@pytest.mark.parametrize("hosts", [8, 40])
def test_who_was_spared_is_preempted_at_the_first_pass_after_it(hosts: int, tmp_path: Path) -> None:
    one = spared(hosts)
    plain = everything(core(one.naively(), tmp_path))
    assert everything(core(one, tmp_path)) == plain
    assert compare(core(one, tmp_path), twin(one)) is None


def test_hosts_that_spare_somebody_are_not_looked_at_in_each_pass(tmp_path: Path) -> None:
    """Gold instances wait in vain for 200 s beside gold ones, of which a small one completes now and then."""

    def cost(hosts: int) -> int:
        rows = [Request(GOLD, 0.0, np.inf, 1.75) for _ in range(hosts)]
        rows += [Request(GOLD, 1.0, 100.0 + 5.0 * i, 0.25) for i in range(20)]
        rows += [Request(BRONZE, 2.0, np.inf, 0.5), Request(GOLD, 2.0, np.inf, 1.0)]
        one = small(rows, machines(*[2.0] * hosts), end=220.0)
        tb, _, count = passes(one.with_(policy={"name": "priority", "min_running": 30.0}), tmp_path)
        assert count >= 30
        return int(tb.control["operations"])

    assert cost(200) - cost(50) < 150 * 6  # each host is looked at when it is filled, and once when it spares one less
