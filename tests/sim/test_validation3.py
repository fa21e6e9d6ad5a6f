"""The third validation run of the thesis, over ten seeds; and the first hour of the trace, its rows grouped by job."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from reference.simulator import simulate
from slacktide.config import Config
from slacktide.inputs.generators.registry import generated
from slacktide.inputs.grouping import group_by_job
from slacktide.inputs.rows import select
from slacktide.model import APPROACHES, Hosts, Workload
from slacktide.sim import run
from support.auditor import faults_of
from support.clusters import Cluster
from support.published import delays_of, inputs, seeded, settings
from support.runs import compare, core, twin

SEEDS = range(10)
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "published": ("published", {}),
    "recommended": ("recommended", {}),
    "priority": ("recommended", {"name": "priority"}),
    "gang": ("recommended", {"gang": True}),
}
KINDS = (*APPROACHES, "batch")


class Outcome(NamedTuple):
    """Per service its class, availability and SLO; and how often somebody was preempted."""

    code: NDArray[np.int16]
    available: NDArray[np.float64]
    slo: NDArray[np.float64]
    preemptions: int

    @property
    def deficits(self) -> NDArray[np.float64]:
        missing = self.slo - self.available
        return missing[missing > 1e-9]


def services(approach: str, seed: int) -> tuple[Workload, Hosts]:
    return generated("validation-3", {"approach": approach}, seed)


def config(policy: str) -> Config:
    base, changes = POLICIES[policy]
    found = settings(base, cold="hot.erl", watchdog=10.0, **changes)
    return replace(found, qos=replace(found.qos, startup="always"))


@lru_cache(maxsize=16)
def outcomes(policy: str, approach: str) -> list[Outcome]:
    """One run for each seed of generator and simulation."""
    found = []
    for seed in SEEDS:
        workload, hosts = services(approach, seed)
        result = run(workload, hosts, seeded(config(policy), seed))
        code = workload.service_class[result.requests["first"]]
        slo = np.array([one.slo for one in workload.classes])[code]
        found.append(Outcome(code, result.requests["availability_always"], slo, result.preemptions))
    return found


def means(policy: str, approach: str) -> list[float]:
    return [float(one.available.mean()) for one in outcomes(policy, approach)]


@pytest.mark.parametrize(
    ("approach", "published", "within"),
    [("independent", 0.911, 0.02), ("concurrent", 0.925, 0.01), ("aggregated", 0.933, 0.01)],
)
def test_mean_availability_is_as_published(approach: str, published: float, within: float) -> None:
    assert mean(means("published", approach)) == pytest.approx(published, abs=within)


@pytest.mark.parametrize("approach", APPROACHES)
def test_recommended_settings_keep_promises_of_the_third_class_with_an_eighth_of_the_preemptions(approach: str) -> None:
    """The published ones keep none of the third class: they spread what is missing, which gives a higher mean."""
    found, published = outcomes("recommended", approach), outcomes("published", approach)
    for one in found:
        second = one.code == 1
        assert (one.available[second] >= one.slo[second] - 1e-9).all()
    assert 8 * sum(one.preemptions for one in found) <= sum(one.preemptions for one in published)
    kept, before = (
        mean(((one.available >= one.slo)[one.code == 2]).mean() for one in some) for some in (found, published)
    )
    assert kept >= 0.7
    assert before == 0.0
    assert mean(means("recommended", approach)) >= 0.915


def test_priority_is_as_published_where_instances_are_averaged() -> None:
    assert means("priority", "aggregated") == pytest.approx([0.943] * len(SEEDS), abs=0.002)


@pytest.mark.parametrize("approach", ["independent", "concurrent"])
def test_by_priority_some_services_are_without_any_availability(approach: str) -> None:
    # 100 of 106 instances find room: what is missing are three to six services, the others lack their start-up.
    for one in outcomes("priority", approach):
        without = int((one.available < 0.02).sum())
        assert 3 <= without <= 6
        assert one.available.mean() == pytest.approx(1.0 - without / len(one.available), abs=0.001)


@pytest.mark.parametrize("approach", APPROACHES)
def test_violations_are_smaller_and_more_alike_than_by_priority(approach: str) -> None:
    for one, other in zip(outcomes("published", approach), outcomes("priority", approach), strict=True):
        assert one.deficits.mean() < other.deficits.mean()
        assert one.deficits.std() < other.deficits.std()


@pytest.mark.parametrize("approach", APPROACHES)
def test_recommended_settings_violate_less_than_priority_in_the_mean(approach: str) -> None:
    """Not in each run: those that are given up lose more than they would if what is missing were spread."""
    found, other = outcomes("recommended", approach), outcomes("priority", approach)
    assert mean(one.deficits.mean() for one in found) < mean(one.deficits.mean() for one in other)
    assert mean(one.deficits.std() for one in found) < mean(one.deficits.std() for one in other)


@pytest.mark.slow
@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("policy", POLICIES)
def test_core_and_twin_decide_alike(policy: str, approach: str) -> None:
    workload, hosts = services(approach, 4)
    wanted = seeded(config(policy), 4)
    result = run(workload, hosts, wanted, passes=True, decisions=True)
    delays = delays_of(wanted.startup.hot)
    assert compare(result, simulate(workload, hosts, wanted, delays, delays)) is None


CUTS = {1: 14, 2: 20}
"""Seeds of small samples of the first hour and hosts for each, too few."""


def sample(seed: int, kind: str) -> tuple[Workload, Hosts]:
    """Some 250 rows of the hour, all tasks of jobs drawn at random, those of a job and class as a request."""
    workload, hosts = inputs("one-hour", "workload-higher-contention.erl", "hosts-620.erl")
    random = np.random.default_rng(seed)
    jobs, sizes = np.unique(workload.job, return_counts=True)
    order = random.permutation(len(jobs))
    order = order[sizes[order] <= 40]
    drawn = order[: np.searchsorted(np.cumsum(sizes[order]), 250) + 1]
    rows = np.flatnonzero(np.isin(workload.job, jobs[drawn]))
    places = random.choice(len(hosts), CUTS[seed], replace=False).tolist()
    few = Hosts(
        ids=hosts.ids[places],
        names=tuple(hosts.names[place] for place in places),
        capacity=hosts.capacity[places],
        attributes=tuple(hosts.attributes[place] for place in places),
        resources=hosts.resources,
    )
    batch = kind == "batch"
    return group_by_job(select(workload, rows), approach="aggregated" if batch else kind, batch=batch), few


@pytest.mark.slow
@pytest.mark.parametrize("seed", CUTS)
@pytest.mark.parametrize(
    ("policy", "kind"),
    [*(("recommended", kind) for kind in KINDS), ("published", "aggregated"), ("gang", "concurrent")],
)
def test_core_and_twin_decide_alike_on_jobs_of_the_trace(policy: str, kind: str, seed: int, tmp_path: Path) -> None:
    workload, hosts = sample(seed, kind)
    base, changes = POLICIES[policy]
    wanted = settings(base, **changes)
    hot, cold = (tuple(delays_of(path)) for path in (wanted.startup.hot, wanted.startup.cold))
    one = Cluster(seed, workload, hosts, wanted, hot, cold).with_(simulation={"end": 1500.0})
    result = core(one, tmp_path)
    assert compare(result, twin(one)) is None
    assert faults_of(one, result) == []
    assert result.preemptions > 1 or policy == "gang"
