"""The fluid relaxation of bench/fluid.py: exact where it can be worked out by hand, and never beaten by a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from slacktide.config import Config, preset
from slacktide.metrics.penalties import ALL, bonus, penalties
from slacktide.model import PenaltyTier, ServiceClass
from slacktide.qos.availability import availability, fulfilled
from slacktide.results.tables import request_rows
from slacktide.sim import RunResult
from support.benches import loaded
from support.clusters import Cluster, cluster
from support.runs import core, settings_of
from support.small import BRONZE, FOREVER, GOLD, SILVER, Request, Several, machines, small

fluid = loaded("fluid")
LENGTHS = (100.0, 10.0, 7.0)
"""Seconds of intervals: where everybody lives from 0 to the end, they make no difference."""


def most(one: Cluster, folder: Path, length: float) -> list[int]:
    config: Config = settings_of(one, folder)
    assert config.simulation.end is not None
    found: list[int] = fluid.kept(one.workload, one.hosts, config, config.simulation.end, length)
    return found


def least(one: Cluster, length: float) -> float:
    return float(fluid.penalty(one.workload, one.hosts, one.config.simulation.end, length))


def reached(one: Cluster, result: RunResult, folder: Path) -> tuple[list[int], float]:
    """Promises kept of each class, and the penalty."""
    accounting, workload = one.config.qos.startup, one.workload
    columns = result.requests
    times = ("running", "pending", "startup_first", "startup_restarts", "discarded")
    known = columns.get(f"availability_{accounting}")
    achieved = availability(accounting, *(columns[name] for name in times)) if known is None else known
    code = workload.service_class[columns["row" if workload.requests is None else "first"]]
    met = fulfilled(achieved, np.array([each.slo for each in workload.classes])[code])
    request_rows(workload, columns, accounting).write(folder / "requests.parquet")
    end = one.config.simulation.end
    assert end is not None
    owed = penalties(pq.read_table(folder / "requests.parquet"), workload.classes, accounting, end)
    total = owed["penalty"].to_pylist()[owed["class"].to_pylist().index(ALL)]
    return np.bincount(code[met], minlength=len(workload.classes)).tolist(), float(total)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    ("kind", "requests", "kept"),
    [(SILVER, 2, 2), (SILVER, 3, 2), (BRONZE, 4, 4), (BRONZE, 5, 4), (GOLD, 3, 2)],
)
def test_equal_requests_take_turns_at_best(kind: int, requests: int, kept: int, length: float, tmp_path: Path) -> None:
    one = small([Request(kind)] * requests, machines(1.0, 1.0), end=100.0)
    assert most(one, tmp_path, length)[kind] == kept


def test_capacity_goes_to_the_more_important_first(tmp_path: Path) -> None:
    one = small([Request(BRONZE)] * 3 + [Request(GOLD), Request(SILVER)], machines(1.0, 1.0), end=90.0)
    # One host for gold, .9 of the other for silver; bronze would need .5.
    assert most(one, tmp_path, 30.0) == [1, 1, 0]
    assert most(small([Request(BRONZE)] * 3 + [Request(GOLD)], machines(1.0, 1.0), end=90.0), tmp_path, 30.0) == [
        1,
        0,
        2,
    ]


@pytest.mark.parametrize(("kind", "kept"), [(GOLD, 1), (SILVER, 1), (BRONZE, 2)])
def test_who_completes_is_due_within_its_own_time(kind: int, kept: int, tmp_path: Path) -> None:
    requests = [Request(kind, 0.0, 10.0), Request(kind, 5.0, 10.0)]
    # The second would have to wait for five seconds: 10 / 15 of its life it runs, then.
    assert most(small(requests, machines(1.0), end=200.0), tmp_path, 2.5)[kind] == kept


def test_a_demand_that_exceeds_every_host_is_never_served(tmp_path: Path) -> None:
    one = small([Request(BRONZE, size=1.5), Request(BRONZE, size=1.0)], machines(1.0, 1.0), end=50.0)
    assert most(one, tmp_path, 10.0) == [0, 0, 1]


def test_who_is_admitted_later_does_not_count(tmp_path: Path) -> None:
    one = small([Request(GOLD), Request(GOLD, admission=50.0), Request(GOLD, admission=51.0)], machines(9.0), end=50.0)
    assert most(one, tmp_path, 10.0) == [2, 0, 0]
    assert [fluid.members(one.workload, 50.0, code) for code in range(3)] == [2, 0, 0]


@pytest.mark.parametrize(
    ("duration", "work", "close"),
    [
        (10.0, 10.0, 30.0),  # completes, up for at most 15 s, so within 30
        (44.0, 44.0, 98.0),
        (46.0, 46.0, 100.0),  # need not complete: with its start-up it reaches half of its life before
        (60.0, 50.0, 100.0),
        (FOREVER, 50.0, 100.0),
    ],
)
def test_what_a_promise_takes(duration: float, work: float, close: float, tmp_path: Path) -> None:
    one = small([Request(BRONZE, 20.0, duration)], machines(1.0), end=120.0, cold=5.0, hot=2.0)
    startup, _ = fluid.startups(settings_of(one, tmp_path))
    assert startup == 5.0
    found = fluid.claims(fluid.demands(one.workload, one.hosts, 120.0), one.workload.classes, 120.0, startup)
    assert found.work == pytest.approx(work, rel=1e-8)
    assert found.close == pytest.approx(20.0 + close, rel=1e-8)


def test_a_first_start_up_that_counts_as_running_lets_its_request_wait_longer(tmp_path: Path) -> None:
    requests = [Request(GOLD, duration=25.0), Request(BRONZE, duration=10.0)]
    one = replace(small(requests, machines(1.0), end=200.0), cold=(0.0, 30.0)).with_(policy=POLICIES["priority"])
    # Bronze waits for 25 s, starts for 30 and runs for 10. Without the start-up it would have to end after 20.
    runs = [one.with_(simulation={"seed": seed}) for seed in range(20)]
    kept = [reached(run, core(run, tmp_path), tmp_path)[0] for run in runs]
    assert max(kept) == most(one, tmp_path, 5.0) == [1, 0, 1]
    assert most(one.with_(qos={"startup": "always"}), tmp_path, 5.0) == [1, 0, 0]


@pytest.mark.parametrize(("cold", "kept"), [(0.0, 3), (9.0, 2), (10.5, 1)])
def test_where_start_ups_count_as_pending_they_must_fit_into_the_promise(
    cold: float, kept: int, tmp_path: Path
) -> None:
    one = small([Request(kind) for kind in (GOLD, SILVER, BRONZE)], machines(3.0), end=100.0, cold=cold, hot=cold)
    one = one.with_(qos={"startup": "always"})
    assert sum(most(one, tmp_path, 10.0)) == kept
    assert sum(reached(one, core(one, tmp_path), tmp_path)[0]) == kept


@pytest.mark.parametrize("length", LENGTHS)
def test_two_share_what_one_needs_and_owe_for_the_rest(length: float) -> None:
    one = small([Request(GOLD)] * 2, machines(1.0), end=100.0)
    # Both owe 2 where nothing runs; up to .95 of its life every share is worth (2 - 1.3 * .05) / .95.
    assert least(one, length) == pytest.approx(100.0 * (4.0 - 1.935 / 0.95), rel=1e-5)
    assert least(small([Request(GOLD)] * 2, machines(1.0, 1.0), end=100.0), length) == 0.0


def test_nobody_served_owes_all() -> None:
    one = small([Request(BRONZE, size=4.0, duration=10.0)], machines(1.0, 1.0), end=100.0)
    # A deficit of .5, doubled, of 4 CPU and the ten seconds that are due.
    assert least(one, 10.0) == pytest.approx(40.0, rel=1e-5)


@pytest.mark.parametrize(
    "one",
    [
        ServiceClass("gold", 1.0, 1),
        ServiceClass("silver", 0.9, 1),
        ServiceClass("none", 0.7, 1, tiers=()),
        ServiceClass("odd", 0.8, 1, tiers=(PenaltyTier(0.5, 0.1), PenaltyTier(0.9, 3.0), PenaltyTier(1.0, 0.2))),
    ],
    ids=lambda one: str(one.name),
)
def test_the_envelope_is_convex_and_below_the_penalty(one: ServiceClass) -> None:
    at, value = fluid.envelope(one)
    slopes = np.diff(value) / np.diff(at)
    assert (np.diff(slopes) > 0.0).all()
    assert at[0] == 0.0
    assert value[-1] == 0.0
    edges = [edge * one.slo * factor for edge in (0.5, 0.95, 0.99, 0.9) for factor in (1.0, 1.0 - 1e-12)]
    asked = np.append(np.linspace(0.0, one.slo, 2001), edges)
    owed = (one.slo - asked) * (1.0 + bonus(asked, np.zeros(len(asked), np.int16), [one]))
    assert (np.interp(asked, at, value) <= owed + 1e-12).all()
    if one.name != "odd":
        assert value[0] == pytest.approx(owed[0], rel=1e-6)  # and no lower than it must be


def test_running_is_worth_at_least_the_availability() -> None:
    random = np.random.default_rng(5)
    for _ in range(300):
        admission, duration, end = random.uniform(0, 50), random.uniform(1, 80), 100.0
        edges = np.append(np.arange(0.0, end, random.uniform(1, 20)), end)
        completes = random.random() < 0.7 and admission + duration < end - 1
        life = random.uniform(duration, end - admission) if completes else end - admission
        up = random.uniform(duration, life) if completes else random.uniform(0, min(duration, life))
        # Up for the last seconds of its life: that is worth least.
        shared = fluid.overlaps(np.array([admission + life - up]), np.array([admission + life]), edges)
        whole = fluid.overlaps(np.array([admission]), np.array([end]), edges)
        gain = fluid.worth(np.array([admission]), np.array([duration]), whole, edges, end)
        assert float((shared * gain).sum()) >= up / life - 1e-12


DIFFERENT = ("preempt_when", "patience", "victims", "reprieve")
POLICIES: dict[str, Any] = {"priority": {"name": "priority"}} | {
    name: {"name": "qos-driven", **{key: getattr(preset(name).policy, key) for key in DIFFERENT}}
    for name in ("published", "recommended")
}


@pytest.mark.parametrize("seed", range(40))
def test_no_policy_exceeds_the_bound(seed: int, tmp_path: Path) -> None:
    one = cluster(seed, largest=4, requests=30)
    if one.config.simulation.end is None:
        one = one.with_(simulation={"end": 90.0})
    order = sorted(range(len(one.workload.classes)), key=lambda code: (one.workload.classes[code].rank, code))
    bounds = {length: (most(one, tmp_path, length), least(one, length)) for length in (50.0, 3.0)}
    for name, policy in POLICIES.items():
        run = one.with_(policy=policy)
        kept, owed = reached(run, core(run, tmp_path), tmp_path)
        for length, (limit, lowest) in bounds.items():
            about = f"cluster({seed}, 4, 30), {name}, intervals of {length} s: {kept} of {limit}, {owed} of {lowest}"
            assert [kept[code] for code in order] <= [limit[code] for code in order], about
            assert owed >= lowest - 1e-6, about


@pytest.mark.parametrize("policy", list(POLICIES))
def test_equal_instances_of_a_request_count_together(policy: str, tmp_path: Path) -> None:
    requests = [Request(SILVER, of=0), Request(SILVER, of=0), Request(SILVER, of=1), Request(SILVER, of=1)]
    one = small(requests, machines(1.0, 1.0, 0.5), several=[Several("independent")] * 2, end=100.0)
    assert most(one, tmp_path, 10.0) == [0, 1, 0]
    run = one.with_(policy=POLICIES[policy])
    kept, owed = reached(run, core(run, tmp_path), tmp_path)
    assert kept[SILVER] <= 1
    assert owed >= least(one, 10.0) > 0.0


@pytest.mark.parametrize("approach", ["concurrent", "aggregated", "batch"])
def test_other_requests_of_several_instances_are_refused(approach: str, tmp_path: Path) -> None:
    one = small([Request(SILVER, of=0)] * 2, machines(1.0), several=[Several(approach)], end=100.0)
    with pytest.raises(ValueError, match="independent"):
        most(one, tmp_path, 10.0)


def test_demands_that_change_are_refused(tmp_path: Path) -> None:
    one = next(one for seed in range(20) if (one := cluster(seed, resizes=True)).workload.resize.any())  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="resizes"):
        most(one.with_(simulation={"end": 50.0}), tmp_path, 10.0)
