"""Where one failed, who asks for no less of anything does not look anywhere; nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.clusters import Cluster, cluster
from support.runs import compare, core, everything, twin
from support.small import BRONZE, GOLD, Request, machines, small

POLICIES = ("priority", "hybrid", "qos-driven")


def distinct(seed: int, policy: str, hosts: int, requests: int, several: bool = False) -> Cluster:
    """A random cluster on which no two requests ask for the same, on some seeds under triage."""
    random = np.random.default_rng([seed, 0xC0DE, 29])
    one = cluster(seed, hosts, requests, several=several)
    share = random.uniform(0.05, float(random.choice([0.6, 1.2])), one.workload.demand.shape)
    if one.workload.request is not None:
        share = share[one.workload.request]
    demand = one.hosts.capacity.max(axis=0) * share
    one = replace(one, workload=replace(one.workload, demand=demand)).with_(
        policy={"name": policy, "overload": "share"}, scheduler={"watchdog": 2.75}
    )
    return one.triaged() if seed % 2 and policy != "priority" else one


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_looks_that_are_left_out_change_nothing(several: bool, policy: str, tmp_path: Path) -> None:
    for seed in range(29_000, 29_024):
        one = distinct(seed, policy, 24, 150, several)
        plain = everything(core(one.naively(), tmp_path))
        assert everything(core(one, tmp_path)) == plain, f"distinct({seed}, {policy!r}, 24, 150, {several})"


@pytest.mark.parametrize("policy", POLICIES)
def test_core_and_twin_agree_where_no_two_ask_for_the_same(policy: str, tmp_path: Path) -> None:
    for seed in range(29_100, 29_106):
        one = distinct(seed, policy, 6, 60)
        assert compare(core(one, tmp_path), twin(one)) is None, f"distinct({seed}, {policy!r}, 6, 60)"


def halves(hosts: int, waiting: int, falling: bool, mixed: bool) -> Cluster:
    """Gold instances leave CPU on half of the hosts, memory on the others; bronze ones ask in vain for some of both.

    Each asks for another amount. ``mixed``: hosts of both kinds are next to each other.
    """
    rows = [Request(GOLD, 0.0, size=2.0) for _ in range(hosts)] + [Request(BRONZE, 1.0) for _ in range(waiting)]
    one = small(rows, machines(*[4.0] * hosts), end=400.0)
    first = np.arange(hosts) % 2 == 0 if mixed else np.arange(hosts) < hosts // 2
    capacity = np.where(first[:, None], [[4.0, 2.0]], [[2.0, 4.0]])
    amounts = np.linspace(1.25, 1.75, waiting)[:: -1 if falling else 1]
    demand = np.concatenate([one.workload.demand[:hosts], np.stack([amounts, amounts], axis=1)])
    one = replace(one, workload=replace(one.workload, demand=demand), hosts=replace(one.hosts, capacity=capacity))
    return one.with_(policy={"name": "qos-driven", "overload": "triage"})


def looks(one: Cluster, folder: Path) -> float:
    """Bound checks and operations for each pass of a run."""
    result = core(one, folder)
    assert result.pass_count > 30
    plain = everything(core(one.naively(), folder))
    assert everything(result) == plain
    return (result.bound_checks + result.operations) / result.pass_count


@pytest.mark.parametrize("mixed", [False, True], ids=["blocks", "mixed"])
def test_the_least_of_those_who_wait_looks_for_all(mixed: bool, tmp_path: Path) -> None:
    assert looks(halves(64, 40, falling=False, mixed=mixed), tmp_path) < 64 * 4  # not for each of 40


def test_hosts_next_to_each_other_that_lend_too_little_are_passed_by(tmp_path: Path) -> None:
    assert looks(halves(64, 40, falling=True, mixed=False), tmp_path) < 40 * 64 / 4
