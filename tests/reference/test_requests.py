"""Requests of several instances: the twin's rules by hand, and what must hold of its runs on any cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reference.checks import check_availability, check_ledgers, in_requests, overfull, watched
from reference.policies import Pass
from reference.requests import Totals
from reference.simulator import HostEvent, Simulation
from slacktide.config import Config, QosSettings
from slacktide.model import Constraint, Hosts, Term
from slacktide.model.workload import AGGREGATED, CONCURRENT, INDEPENDENT
from support.clusters import cluster
from support.runs import twin
from support.small import BRONZE, GOLD, SILVER, Scale, Several, machines, workload
from support.small import Request as Row

SETTINGS = Config(qos=QosSettings(alpha=10.0))
ON_0, ON_1 = (Term((Constraint("row", "==", row),)) for row in ("0", "1"))


def played(
    rows: Sequence[Row],
    several: Sequence[Several],
    hosts: Hosts,
    end: float | None,
    scales: Sequence[Scale] = (),
    hot: float = 0.0,
    cold: float = 0.0,
    events: Sequence[HostEvent] = (),
    work: Any = "by-kind",
    startup: Any = "restart",
    **policy: Any,
) -> Simulation:
    """A run that is over, with all its objects."""
    config = replace(
        SETTINGS,
        policy=replace(SETTINGS.policy, **policy),
        qos=replace(SETTINGS.qos, startup=startup),
        simulation=replace(SETTINGS.simulation, end=end, preempted_work=work),
    )
    simulation = Simulation(workload(rows, several, scales), hosts, config, [hot], [cold], events)
    simulation.run()
    return simulation


def placed(simulation: Simulation) -> list[tuple[float, int, tuple[int, ...]]]:
    """Time, row and victims of each decision."""
    return [(time, row, victims) for _, time, row, _, victims in simulation.outcome.decisions]


def test_a_service_of_one_row_is_independent_and_a_batch_request_is_not() -> None:
    rows = [Row(BRONZE, of=place) for place in range(3)]
    kinds = [Several("concurrent"), Several("aggregated"), Several("batch")]
    requests = played(rows, kinds, machines(9.0), 10.0).requests
    assert [(r.approach, r.decides) for r in requests] == [
        ("independent", False),
        ("independent", False),
        ("aggregated", True),
    ]


@pytest.mark.parametrize(
    ("approach", "available", "e", "d"), [("independent", 0.0, 100.0, 0.0), ("aggregated", 100 / 160, 100.0, 0.0)]
)
def test_availability_of_a_request_of_which_one_never_runs(approach: str, available: float, e: float, d: float) -> None:
    rows = [Row(BRONZE, of=0), Row(BRONZE, 40.0, size=5.0, of=0)]
    outcome = played(rows, [Several(approach)], machines(1.0), 100.0).outcome
    assert outcome.groups[0].totals["restart"] == Totals(160.0, e, d, 60.0)
    assert outcome.request_availability(0, "restart") == available


def test_concurrent_time_ends_when_somebody_waits() -> None:
    rows = [Row(BRONZE, of=0), Row(BRONZE, 40.0, size=5.0, of=0)]
    outcome = played(rows, [Several("concurrent")], machines(1.0), 100.0).outcome
    assert outcome.groups[0].totals["restart"] == Totals(160.0, 40.0, 60.0, 60.0)
    assert outcome.request_availability(0, "restart") == 40.0 / 160.0


@pytest.mark.parametrize(
    ("accounting", "e", "d", "p"),
    [("restart", 160.0, 0.0, 0.0), ("always", 145.0, 5.0, 10.0), ("never", 160.0, 0.0, 0.0)],
)
def test_concurrent_time_in_the_three_accountings(accounting: Any, e: float, d: float, p: float) -> None:
    # Always: the first is up from 5 s, the second from 45 s; together 35 s alone and 2 * 55 s.
    rows = [Row(BRONZE, of=0), Row(BRONZE, 40.0, of=0)]
    outcome = played(rows, [Several("concurrent")], machines(2.0), 100.0, cold=5.0).outcome
    assert outcome.groups[0].totals[accounting] == Totals(160.0, e, d, p)


def test_who_completed_is_no_longer_missed() -> None:
    rows = [Row(BRONZE, duration=30.0, of=0), Row(BRONZE, duration=50.0, of=0)]
    outcome = played(rows, [Several("concurrent")], machines(2.0), 100.0).outcome
    assert outcome.groups[0].totals["restart"] == Totals(80.0, 80.0, 0.0, 0.0)


@pytest.mark.parametrize(("work", "lost"), [("by-kind", 20.0), ("kept", 0.0), ("lost", 20.0)])
def test_a_batch_request_loses_what_a_failed_host_had_run(work: str, lost: float) -> None:
    rows = [Row(BRONZE, duration=60.0, of=0)]
    events = [(25.0, 0, "down"), (30.0, 0, "up")]
    outcome = played(rows, [Several("batch")], machines(1.0), None, cold=5.0, hot=2.0, events=events, work=work).outcome
    completed = 32.0 + 60.0 - (20.0 - lost)
    assert outcome.requests[0].completed == completed
    assert outcome.requests[0].discarded == lost
    # The first start-up stays where the accounting has put it, the second is pending.
    assert outcome.groups[0].totals["restart"] == Totals(completed, completed - 7.0 - lost, lost, 7.0)


@pytest.mark.parametrize(("work", "lost"), [("by-kind", 0.0), ("kept", 0.0), ("lost", 25.0)])
def test_a_service_keeps_its_work_unless_all_is_lost(work: str, lost: float) -> None:
    events = [(25.0, 0, "down"), (30.0, 0, "up")]
    rows = [Row(BRONZE, term=ON_0, of=0), Row(BRONZE, term=ON_1, of=0)]
    for approach, e, d in (("aggregated", 195.0 - lost, lost), ("concurrent", 190.0, 5.0)):
        outcome = played(rows, [Several(approach)], machines(1.0, 1.0), 100.0, events=events, work=work).outcome
        assert outcome.groups[0].totals["restart"] == Totals(200.0, e, d, 5.0)


# Life


def test_a_batch_request_releases_a_row_whenever_one_completes() -> None:
    rows = [Row(BRONZE, duration=10.0 * (place + 1), of=0) for place in range(4)]
    run = played(rows, [Several("batch", parallelism=2)], machines(9.0), None, cold=5.0)
    assert placed(run) == [(0.0, 0, ()), (0.0, 1, ()), (15.0, 2, ()), (25.0, 3, ())]
    assert [r.admission for r in run.outcome.requests] == [0.0, 0.0, 15.0, 25.0]
    assert [r.pending for r in run.outcome.requests] == [0.0] * 4
    assert run.outcome.groups[0].totals["restart"].lifetime == 15.0 + 25.0 + 35.0 + 45.0


def test_without_parallelism_all_rows_come_at_once() -> None:
    rows = [Row(BRONZE, duration=10.0, of=0) for _ in range(3)]
    outcome = played(rows, [Several("batch")], machines(1.0), None).outcome
    assert [r.completed for r in outcome.requests] == [10.0, 20.0, 30.0]
    assert outcome.groups[0].totals["restart"] == Totals(60.0, 30.0, 0.0, 30.0)


def test_nobody_is_released_at_the_end() -> None:
    rows = [Row(BRONZE, duration=10.0, of=0) for _ in range(2)]
    outcome = played(rows, [Several("batch", parallelism=1)], machines(1.0), 10.0).outcome
    assert [r.completed for r in outcome.requests] == [10.0, None]
    assert [r.admitted for r in outcome.requests] == [True, False]
    assert outcome.groups[0].rows == [0]


def test_the_removed_make_room_and_keep_their_history() -> None:
    rows = [Row(GOLD, of=0), Row(GOLD, of=0), Row(BRONZE, 10.0)]
    run = played(rows, [Several("aggregated")], machines(2.0), 100.0, scales=[(50.0, 0, 1)], cold=5.0)
    assert placed(run)[2:] == [(50.0, 2, ())]
    gone = run.outcome.requests[1]
    assert (gone.removed, gone.preemptions, gone.wasted_startup, gone.running) == (50.0, 0, 0.0, 45.0)
    assert run.outcome.groups[0].totals["restart"] == Totals(150.0, 150.0, 0.0, 0.0)
    assert run.hosts[0].changes == 4
    assert run.outcome.passes[-1][0] == 50.0


def test_a_service_may_be_scaled_to_nothing_and_back() -> None:
    rows = [Row(BRONZE, of=0), Row(BRONZE, of=0), Row(BRONZE, 60.0, of=0)]
    scales = [(20.0, 0, 0), (60.0, 0, 1)]
    run = played(rows, [Several("concurrent")], machines(1.0), 100.0, scales=scales)
    assert [r.removed for r in run.outcome.requests] == [20.0, 20.0, None]
    assert placed(run) == [(0.0, 0, ()), (60.0, 2, ())]
    assert run.outcome.groups[0].totals["restart"] == Totals(80.0, 40.0, 20.0, 20.0)


def test_a_scale_event_calls_for_a_pass_even_where_it_changes_nothing() -> None:
    rows = [Row(BRONZE, of=0), Row(BRONZE, size=5.0, of=0)]
    run = played(rows, [Several("aggregated")], machines(1.0), 12.0, scales=[(3.0, 0, 2), (12.0, 0, 0)])
    assert [p[0] for p in run.outcome.passes] == [0.0, 3.0]
    assert [r.removed for r in run.outcome.requests] == [None, None]


def test_a_run_without_end_waits_for_scale_events_to_come() -> None:
    rows = [Row(BRONZE, size=5.0, of=0), Row(BRONZE, 31.0, duration=4.0, of=0)]
    run = played(rows, [Several("aggregated")], machines(1.0), None, scales=[(31.0, 0, 2)])
    assert run.outcome.requests[1].completed == run.now == 35.0


def test_at_one_instant_hosts_change_before_services_are_scaled_and_rows_come() -> None:
    # Drained at 10 s, row 1 waits when it is decided who goes; row 2 comes after that.
    rows = [Row(BRONZE, term=ON_0, of=0), Row(BRONZE, term=ON_1, of=0), Row(BRONZE, 10.0, of=0)]
    events = [(10.0, 0, "drain")]
    run = played(rows, [Several("aggregated")], machines(1.0, 2.0), 20.0, scales=[(10.0, 0, 1)], events=events)
    assert [r.removed for r in run.outcome.requests] == [10.0, None, None]
    assert run.outcome.requests[0].starts == 1
    assert placed(run)[2:] == [(10.0, 2, ())]


# A pass


@pytest.mark.parametrize(("startup", "rows"), [("restart", [0, 2]), ("always", [0, 1])])
def test_placing_one_changes_who_is_next(startup: str, rows: list[int]) -> None:
    # All begin at -10 s. With one of two up and sigma .5 the other has all the time in the world.
    run = played(
        [Row(BRONZE, of=0), Row(BRONZE, of=0), Row(BRONZE)],
        [Several("aggregated")],
        machines(2.0),
        5.0,
        cold=5.0,
        startup=startup,
    )
    assert [row for _, row, _ in placed(run)] == rows


def test_evicting_one_changes_who_is_next() -> None:
    # Row 1 was sent back with 20 s to spare; row 2 had no end of it until the gold row evicted its sibling: then 5 s.
    rows = [Row(BRONZE, term=ON_0, of=0), Row(BRONZE, term=ON_1), Row(BRONZE, 30.0, term=ON_1, of=0)]
    events = [(30.0, 1, "drain"), (30.0, 1, "up")]
    run = played([*rows, Row(GOLD, 30.0, term=ON_0)], [Several("aggregated")], machines(1.0, 1.0), 31.0, events=events)
    assert placed(run)[2:] == [(30.0, 3, (0,)), (30.0, 2, ())]


def test_idle_instances_are_given_up_first() -> None:
    rows = [Row(BRONZE), Row(BRONZE, 1.0, of=0), Row(BRONZE, 1.0, size=5.0, of=0), Row(GOLD, 100.0)]
    first = played(rows, [Several("concurrent")], machines(2.0), 101.0)
    assert placed(first)[-1] == (100.0, 3, (1,))
    plain = played(rows, [Several("aggregated")], machines(2.0), 101.0)
    assert placed(plain)[-1] == (100.0, 3, (0,))


def test_idle_instances_come_first_whatever_the_victim_order() -> None:
    rows = [Row(BRONZE), Row(BRONZE, 1.0, of=0), Row(BRONZE, 1.0, size=5.0, of=0), Row(GOLD, 100.0)]
    run = played(rows, [Several("concurrent")], machines(2.0), 101.0, victim_order="metric")
    assert placed(run)[-1] == (100.0, 3, (1,))


def test_priority_does_not_know_idle_instances() -> None:
    rows = [Row(BRONZE, of=0), Row(BRONZE, size=5.0, of=0), Row(BRONZE, 1.0), Row(GOLD, 100.0)]
    run = played(rows, [Several("concurrent")], machines(2.0), 101.0, name="priority")
    assert placed(run)[-1] == (100.0, 3, (2,))
    on_host = run.instances[0]
    assert on_host.is_idle()
    for mode, cost in (("priority", -1.0), ("qos-driven", 0.0)):
        counted = replace(run.config, policy=replace(run.config.policy, cost="fewest-victims"))
        assert Pass(100.0, 9, mode, counted, [on_host.rank]).cost([on_host]) == (cost,)  # type: ignore[arg-type]


# Gang


def test_a_gang_starts_when_all_can_start() -> None:
    rows = [Row(BRONZE, duration=20.0), Row(BRONZE, of=0), Row(BRONZE, of=0)]
    apart = played(rows, [Several("concurrent")], machines(2.0), 25.0)
    assert placed(apart) == [(0.0, 0, ()), (0.0, 1, ()), (20.0, 2, ())]
    for name in ("qos-driven", "priority"):
        run = played(rows, [Several("concurrent")], machines(2.0), 25.0, gang=True, name=name)
        assert placed(run) == [(0.0, 0, ()), (20.0, 1, ()), (20.0, 2, ())]
        assert run.outcome.holds == 4
        assert [p[1:] for p in run.outcome.passes] == [(3, 1, 0), (2, 0, 0), (2, 2, 0)]


@pytest.mark.parametrize("approach", ["independent", "aggregated", "batch"])
def test_only_concurrent_requests_are_gangs(approach: str) -> None:
    rows = [Row(BRONZE, of=0), Row(BRONZE, of=0)]
    assert len(played(rows, [Several(approach)], machines(1.0), 5.0, gang=True).outcome.decisions) == 1


def test_a_gang_of_which_one_is_left_is_tried_alone() -> None:
    rows = [Row(BRONZE, of=0), Row(BRONZE, size=5.0, of=0)]
    run = played(rows, [Several("concurrent")], machines(1.0), 30.0, scales=[(10.0, 0, 1)], gang=True)
    assert (placed(run), [r.removed for r in run.outcome.requests]) == ([(10.0, 0, ())], [None, 10.0])


@pytest.mark.parametrize("name", ["qos-driven", "priority"])
def test_a_trial_that_fails_leaves_no_trace(name: str) -> None:
    rows = [Row(BRONZE), Row(GOLD, 30.0, of=0), Row(GOLD, 30.0, size=5.0, of=0)]
    run = played(rows, [Several("concurrent")], machines(1.0), 45.0, gang=True, name=name)
    bronze, gold = run.instances[0], run.instances[1]
    assert placed(run) == [(0.0, 0, ())]
    assert (bronze.starts, bronze.since, run.hosts[0].changes, gold.starts, gold.been_on) == (1, 0.0, 1, 0, set())
    assert (run.outcome.requests[0].preemptions, run.outcome.requests[1].pending) == (0, 15.0)


def test_a_gang_counts_what_preemption_frees() -> None:
    rows = [Row(BRONZE), Row(BRONZE), Row(GOLD, 30.0, of=0), Row(GOLD, 30.0, of=0)]
    run = played(rows, [Several("concurrent")], machines(1.0, 1.0), 35.0, gang=True)
    assert [row for _, row, _ in placed(run)[2:]] == [2, 3]
    assert sorted(victim for _, _, victims in placed(run) for victim in victims) == [0, 1]


def test_a_trial_counts_what_its_own_preemptions_cost() -> None:
    # C of the service: 0, and 20 / (60 + 20) once one of its two is gone.
    rows = [Row(SILVER, of=0), Row(SILVER, of=0), Row(GOLD, 30.0, of=1), Row(GOLD, 30.0, of=1)]
    kinds = [Several("aggregated"), Several("concurrent")]
    for scope, started in (("none", 2), ("all", 0)):
        run = played(rows, kinds, machines(1.0, 1.0), 31.0, cold=20.0, gang=True, overhead_scope=scope)
        assert len(placed(run)) == 2 + started


def test_a_gang_does_not_start_without_the_one_just_evicted() -> None:
    rows = [Row(SILVER, duration=25.0, term=ON_1), Row(BRONZE, of=0)]
    rows += [Row(GOLD, 30.0, term=ON_0), Row(BRONZE, 30.0, term=ON_1, of=0)]
    for gang in (False, True):
        run = played(rows, [Several("concurrent")], machines(1.0, 1.0), 31.0, gang=gang)
        assert placed(run)[2:] == [(30.0, 2, (1,))] + [(30.0, 3, ())] * (not gang)


@pytest.mark.parametrize(("waits", "again"), [(False, True), (True, False)])
def test_in_the_second_round_a_gang_needs_all_who_wait(waits: bool, again: bool) -> None:
    # Row 1 runs on host 0; host 1, free since 25 s, is not for the gold row, which takes host 0 at 30 s.
    late = Row(BRONZE, 20.0, size=5.0 if waits else 0.5, term=ON_1, of=0)
    rows = [Row(SILVER, duration=25.0, term=ON_1), Row(BRONZE, of=0), late, Row(GOLD, 30.0, term=ON_0)]
    for gang in (False, True):
        run = played(rows, [Several("concurrent")], machines(1.0, 1.5), 31.0, gang=gang)
        assert (30.0, 3, (1,)) in placed(run)
        assert ((30.0, 1, ()) in placed(run)) == (again or not gang)


# Any cluster


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_what_holds_on_any_cluster(first: int) -> None:
    preempting = 0
    for seed in range(first, first + 20):
        one = cluster(seed, largest=6, requests=25, several=True)
        simulation = watched(one)
        outcome = simulation.outcome
        check_ledgers(simulation)
        for index, made in enumerate(simulation.requests):
            check_availability(outcome, index, keeps=not made.loses_work(simulation.config))
        assert overfull(one, outcome) == [], f"cluster({seed}, 6, 25, several=True)"
        preempting += any(decision[4] for decision in outcome.decisions)
    assert preempting >= 3, "clusters without contention prove little"


def test_a_request_of_one_instance_decides_like_that_instance_alone() -> None:
    for seed in range(40):
        one = cluster(seed, largest=4, requests=20).with_(simulation={"end": 140.0, "preempted_work": "kept"})
        alone = twin(one)
        for gang in (False, True):
            ganged = one.with_(policy={"gang": gang})
            for batch, approach in ((False, CONCURRENT), (False, AGGREGATED), (True, AGGREGATED), (False, INDEPENDENT)):
                for ghosts in (False, True):
                    outcome = twin(in_requests(ganged, batch, approach, ghosts))
                    assert outcome.decisions == alone.decisions, (seed, batch, approach, ghosts)
                    assert outcome.passes == alone.passes


def test_independent_requests_decide_as_if_there_were_none() -> None:
    for seed in range(40):
        one = cluster(seed, largest=4, requests=20, several=True)
        kinds = one.workload.requests
        assert kinds is not None
        asked = replace(
            kinds,
            batch=np.zeros(len(kinds), np.bool_),
            approach=np.full(len(kinds), INDEPENDENT, np.int8),
            scale_time=kinds.scale_time[:0],
            scale_request=kinds.scale_request[:0],
            scale_replicas=kinds.scale_replicas[:0],
        )
        one = one.with_(simulation={"preempted_work": "kept"})
        grouped = twin(replace(one, workload=replace(one.workload, requests=asked)))
        alone = twin(replace(one, workload=replace(one.workload, requests=None, request=None)))
        assert grouped.decisions == alone.decisions
        assert grouped.passes == alone.passes
        assert grouped.requests == alone.requests


def test_random_clusters_are_valid_workloads_of_every_kind() -> None:
    seen: set[Any] = set()
    for seed in range(60):
        one = cluster(seed, largest=4, requests=20, several=True).workload
        requests, of = one.requests, one.request
        assert requests is not None
        assert of is not None
        assert (np.diff(one.admission) >= 0).all()
        assert (np.diff(requests.scale_time) >= 0).all()
        for index in range(len(requests)):
            rows = np.flatnonzero(of == index)
            events = requests.scale_request == index
            at, wanted = requests.scale_time[events], requests.scale_replicas[events]
            assert len(set(one.service_class[rows])) == len(set(one.job[rows])) == 1
            assert not requests.batch[index] or (len(set(one.admission[rows])) == 1 and not events.any())
            seen.add((bool(requests.batch[index]), int(requests.approach[index]), len(rows) > 1, bool(events.any())))
            for time, more in zip(at[1:], np.diff(wanted), strict=True):
                assert (one.admission[rows] == time).sum() >= more
            seen.add(("endless", bool(np.isinf(one.duration[rows]).any())))
    assert len(seen) == 2 + 7 + 7
