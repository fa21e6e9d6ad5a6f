"""Settings of the authors' simulator: the overhead limit, what is added to it, and no constraints."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from reference.simulator import simulate
from slacktide.config import TUNED_LIMIT, Config, preset
from slacktide.inputs.generators.registry import generated
from slacktide.inputs.rows import equal_hosts
from slacktide.model import DEFAULT_CLASSES, Constraint, Placement, Rule, ServiceClass, Term, Topology, Workload
from slacktide.sim import RunResult, run
from slacktide.sim.ignoring import considered
from support.runs import compare

END = 420.0
STARTS = [2.5]


def config(name: Any = "published", /, **policy: Any) -> Config:
    base = preset(name)
    startup = replace(base.startup, hot="constant:2.5", cold="constant:2.5")
    simulation = replace(base.simulation, end=END)
    return replace(base, policy=replace(base.policy, **policy), startup=startup, simulation=simulation)


@lru_cache(maxsize=8)
def decided(limit: float | None, added: float) -> RunResult:
    workload, hosts = generated("validation-1")
    wanted = config(overhead_limit=limit, added_overhead=added)
    return run(workload, hosts, wanted, passes=True, decisions=True)


@pytest.mark.parametrize(("limit", "added"), [(0.02, 0.0), (None, -0.48), (0.3, -0.28)])
def test_core_and_twin_decide_alike(limit: float | None, added: float) -> None:
    workload, hosts = generated("validation-1")
    wanted = config(overhead_limit=limit, added_overhead=added)
    assert compare(decided(limit, added), simulate(workload, hosts, wanted, STARTS, STARTS)) is None
    assert decided(limit, added).preemptions < decided(None, 0.0).preemptions


def test_what_is_added_counts_on_top_and_stays_a_share() -> None:
    silver = ServiceClass("silver", 0.9, 2)
    own = ServiceClass("own", 0.9, 2, overhead_limit=0.3)
    assert silver.limit_or(None, 0.0) == pytest.approx(0.1)
    assert silver.limit_or(None, 0.15) == pytest.approx(0.25)
    assert (silver.limit_or(0.02, 0.0), own.limit_or(0.02, 0.0)) == (0.02, 0.3)
    assert (own.limit_or(None, 0.9), own.limit_or(None, -0.9)) == (1.0, 0.0)


def test_the_tuned_preset_is_the_published_one_with_a_limit() -> None:
    published, tuned = preset("published"), preset("published-tuned")
    assert tuned == replace(published, policy=replace(published.policy, overhead_limit=TUNED_LIMIT))
    assert {one.limit_or(tuned.policy.overhead_limit, 0.0) for one in DEFAULT_CLASSES} == {TUNED_LIMIT}


def constrained() -> Workload:
    """Three requests: one that only another kind of host would do, two of a job that must be apart, one with a rule."""
    nowhere = Term((Constraint("disk", "==", "ssd"),))
    apart = Placement(("web",), (Rule("away", "web", Topology()),))
    return Workload(
        ids=np.arange(5),
        admission=np.zeros(5),
        duration=np.full(5, np.inf),
        demand=np.full((5, 2), 0.1),
        service_class=np.zeros(5, np.int16),
        job=np.array([0, 1, 1, 3, 4]),
        anti_affinity=np.array([False, True, True, False, False]),
        term=np.array([1, 0, 0, 0, 0], np.int32),
        terms=(Term(()), nowhere),
        placement=np.array([0, 0, 0, 1, 1], np.int32),
        placements=(Placement(), apart),
    )


def test_without_constraints_anybody_runs_anywhere() -> None:
    hosts = equal_hosts(1, {"cpu": 1.0, "memory": 1.0})
    usual, ignoring = (
        replace(config(name="priority"), simulation=replace(config().simulation, ignore=what))
        for what in ("nothing", "constraints")
    )
    assert run(constrained(), hosts, usual).placements == 2  # of the job one, and one of those that keep apart
    assert run(constrained(), hosts, ignoring).placements == 5
    assert considered(constrained(), usual).terms == constrained().terms
    assert considered(constrained(), ignoring).placements[1].marks == ("web",)  # marks and preferences stay
