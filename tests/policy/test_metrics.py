"""Metrics for policies from pieces: availability is that of the built-in policies, throughput what it says."""

from __future__ import annotations

import runpy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from policy.test_pieces import EXAMPLES, KINDS, QOS_DRIVEN, as_published, own
from slacktide.config import Config
from slacktide.errors import PluginError
from slacktide.policy.loader import load
from slacktide.policy.metrics import availability, throughput
from slacktide.policy.pieces import Pieces
from support.clusters import Cluster
from support.runs import compare, core, everything, twin
from support.small import BRONZE, GOLD, Request, machines, small

BY_AVAILABILITY = replace(QOS_DRIVEN, metric=availability)
BY_DEADLINE: Pieces = runpy.run_path(str(EXAMPLES / "07_deadline.py"))["by_deadline"]
SEEDS = range(47_000, 47_024)


@pytest.mark.parametrize("kind", ["rows", "requests", "neighbours", "priorities and limits"])
def test_availability_as_a_metric_of_ones_own_decides_as_the_built_in_one(kind: str, tmp_path: Path) -> None:
    preempted = 0
    for seed in SEEDS:
        one, _ = as_published(KINDS[kind](seed))
        found = core(one, tmp_path, own=BY_AVAILABILITY)
        assert everything(found) == everything(core(one, tmp_path)), f"{kind}, seed {seed}"
        preempted += found.preemptions
        if kind == "requests" and seed % 4 == 0:
            assert compare(found, twin(one)) is None, f"{kind}, seed {seed}"
    assert preempted > 0


def deadline_twin(deadline: float, slo: float, received: float, lifetime: float) -> float:
    """By the definition: the longest wait after which it can still receive all by the deadline, tried out."""
    if received >= slo * deadline:
        return np.inf
    waits = np.arange(-4.0 * deadline, deadline, 0.25)
    makes_it = lifetime + waits + (slo * deadline - received) <= deadline
    return float(waits[makes_it].max())


@pytest.mark.parametrize("slo", [0.25, 0.5, 1.0])
@pytest.mark.parametrize(
    ("received", "lifetime"), [(0.0, 0.0), (3.0, 10.5), (25.0, 60.0), (24.75, 99.0), (10.0, 300.0)]
)
def test_throughput_is_for_how_long_one_can_wait(slo: float, received: float, lifetime: float) -> None:
    slack = throughput(100.0).slack
    assert slack(received, lifetime, 1, slo) == deadline_twin(100.0, slo, received, lifetime)
    assert slack(3.0 * received, 3.0 * lifetime, 3, slo) == slack(received, lifetime, 1, slo)


@pytest.mark.parametrize("kind", ["rows", "requests", "windows", "many"])
def test_what_saves_work_changes_no_decision_by_deadline(kind: str, tmp_path: Path) -> None:
    """A deadline within the time of these clusters."""
    policy = replace(BY_DEADLINE, metric=throughput(60.0))
    preempted = 0
    for seed in SEEDS if kind != "many" else SEEDS[:6]:
        one, _ = as_published(KINDS[kind](seed))
        found = core(one, tmp_path, own=policy)
        assert everything(found) == everything(core(one.naively(), tmp_path, own=policy)), f"{kind}, seed {seed}"
        preempted += found.preemptions
    assert preempted > 0


def run_of(requests: list[Request], policy: Pieces, folder: Path) -> list[tuple[float, int]]:
    one: Cluster = small(requests, machines(1.0), end=300.0)
    log = core(one, folder, own=policy).decisions
    assert log is not None
    return list(zip(log["time"].tolist(), log["row"].tolist(), strict=True))


def test_who_has_received_its_work_lends_its_place(tmp_path: Path) -> None:
    """Half of 100 s each, of two on a host for one: by turns, so that both have it by their deadlines."""
    policy = replace(BY_DEADLINE, metric=throughput(100.0))
    placed = run_of([Request(BRONZE), Request(BRONZE, 1.0)], policy, tmp_path)
    assert [row for _, row in placed[:2]] == [0, 1]
    assert all(row != other for (_, row), (_, other) in pairwise(placed))
    assert placed[1][0] <= 51.0


def test_a_metric_that_is_none_is_said(tmp_path: Path) -> None:
    config = Config()
    wrong = {
        "metric=3": "metric: found int, expected a Metric of two functions",
        "metric=Metric(lambda age: 1.0, lambda: 1.0)": "metric: slack: found the parameter 'age', expected",
        "metric=Metric(lambda slo: None, lambda: 1.0)": "slack: found None, expected a number, for slo = 0.9",
    }
    for given, said in wrong.items():
        path = own(tmp_path, "").partition(":")[0]
        text = Path(path).read_text().replace("import Pieces", "import Metric, Pieces")
        Path(path).write_text(text.replace("cost)\n", f"cost, {given})\n"))
        with pytest.raises(PluginError, match=said):
            load(replace(config, policy=replace(config.policy, name=f"{path}:mine")))


def test_a_metric_that_raises_ends_the_run(tmp_path: Path) -> None:
    from slacktide.policy import Metric

    policy = replace(BY_DEADLINE, metric=Metric(lambda received: 1.0 / (received - 5.0), lambda: 1.0))
    with pytest.raises(PluginError, match="raised an exception or gave no finite number"):
        run_of([Request(BRONZE), Request(GOLD, 5.0)], policy, tmp_path)
