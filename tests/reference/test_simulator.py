"""Small scenarios whose every event can be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reference.outcome import Outcome
from reference.simulator import HostEvent, simulate
from slacktide.config import Config, PolicySettings, QosSettings, preset
from slacktide.errors import ConfigError
from slacktide.model import Constraint, Hosts, Term
from support.small import BRONZE, GOLD, SILVER, Request, workload
from support.small import machines as cluster

SETTINGS = Config(qos=QosSettings(alpha=10.0), policy=PolicySettings(overload="share", score="mean", cost="default"))


def run(
    requests: Sequence[Request],
    hosts: Hosts,
    end: float | None,
    hot: float = 0.0,
    cold: float = 0.0,
    events: Sequence[HostEvent] = (),
    config: Config | None = None,
    work: Any = "kept",
    **policy: Any,
) -> Outcome:
    config = SETTINGS if config is None else config
    config = replace(
        config,
        policy=replace(config.policy, **policy),
        simulation=replace(config.simulation, end=end, preempted_work=work),
    )
    return simulate(workload(requests), hosts, config, [hot], [cold], events)


def test_a_full_host_serves_the_next_when_the_first_completes() -> None:
    outcome = run([Request(GOLD, duration=30.0), Request(GOLD, duration=20.0)], cluster(1.0), None, cold=5.0)
    assert outcome.decisions == [(0, 0.0, 0, 0, ()), (4, 35.0, 1, 0, ())]
    assert [r.completed for r in outcome.requests] == [35.0, 60.0]
    assert [r.pending for r in outcome.requests] == [0.0, 35.0]
    assert outcome.holds == 4


def test_the_three_accountings_of_a_startup() -> None:
    outcome = run([Request(GOLD)], cluster(1.0), 100.0, cold=20.0)
    assert outcome.availability(0, "restart") == outcome.availability(0, "never") == 1.0
    assert outcome.availability(0, "always") == 0.8
    assert (outcome.requests[0].running, outcome.requests[0].startup_first) == (80.0, 20.0)


def test_a_preempted_request_goes_on_where_it_was() -> None:
    requests = [Request(BRONZE, duration=200.0), Request(GOLD, admission=100.0, duration=50.0)]
    outcome = run(requests, cluster(1.0), None, hot=2.0, cold=5.0)
    assert outcome.decisions == [(0, 0.0, 0, 0, ()), (1, 100.0, 1, 0, (0,)), (7, 155.0, 0, 0, ())]
    victim = outcome.requests[0]
    assert (victim.preemptions, victim.starts, victim.pending) == (1, 2, 55.0)
    assert (victim.startup_first, victim.startup_restarts, victim.wasted_startup) == (5.0, 2.0, 5.0)
    assert victim.completed == 155.0 + 2.0 + (200.0 - 95.0)
    assert outcome.availability(0, "restart") == pytest.approx(205.0 / (205.0 + 55.0 + 2.0))


def test_lost_work_starts_from_nothing_and_counts_as_discarded() -> None:
    requests = [Request(BRONZE, duration=200.0), Request(GOLD, admission=100.0, duration=50.0)]
    outcome = run(requests, cluster(1.0), None, hot=2.0, cold=5.0, work="lost")
    victim = outcome.requests[0]
    assert (victim.completed, victim.discarded, victim.running) == (155.0 + 2.0 + 200.0, 95.0, 200.0)
    assert outcome.availability(0, "restart") == pytest.approx((200.0 + 5.0) / 357.0)


def test_the_less_important_violator_is_given_up_though_its_metric_is_smaller() -> None:
    requests = [Request(SILVER), Request(BRONZE, admission=99.0), Request(GOLD, admission=100.0)]
    assert run(requests, cluster(2.0), 101.0).decisions[-1] == (2, 100.0, 2, 0, (1,))
    assert run(requests, cluster(2.0), 101.0, victim_order="metric").decisions[-1] == (2, 100.0, 2, 0, (0,))


def test_a_less_important_violator_never_preempts() -> None:
    outcome = run([Request(GOLD), Request(SILVER)], cluster(1.0), 1000.0)
    assert len(outcome.decisions) == 1
    assert outcome.requests[1].pending == 1000.0


@pytest.mark.parametrize(("patience", "swapped_at"), [(0.0, 10.0), (60.0, 60.0), (100.0, 100.0)])
def test_patience_delays_a_swap_of_equals(patience: float, swapped_at: float) -> None:
    # Running silver: Q = t/9 - 10; waiting silver: Q = -t - 10; apart by 10 t / 9.
    outcome = run([Request(SILVER), Request(SILVER)], cluster(1.0), 101.0, patience=patience)
    assert outcome.decisions[1][1:] == (swapped_at, 1, 0, (0,))


def test_who_was_preempted_too_often_is_left_alone_by_peers() -> None:
    requests = [Request(SILVER), Request(SILVER)]
    free = run(requests, cluster(1.0), 3000.0, hot=30.0, cold=30.0, overhead_scope="none")
    limited = run(requests, cluster(1.0), 3000.0, hot=30.0, cold=30.0)
    assert sum(p[3] for p in limited.passes) < sum(p[3] for p in free.passes)


def test_instances_of_an_anti_affine_job_never_share_a_host() -> None:
    requests = [Request(GOLD, job=1, anti_affinity=True) for _ in range(3)]
    outcome = run(requests, cluster(9.0, 9.0), 100.0)
    assert {decision[3] for decision in outcome.decisions} == {0, 1}
    assert len(outcome.decisions) == 2
    assert [r.starts for r in outcome.requests] == [1, 1, 0]


def test_constraints_hold() -> None:
    term = Term((Constraint("row", ">", "0"),))
    outcome = run([Request(GOLD, term=term), Request(GOLD, term=term)], cluster(9.0, 1.0), 50.0)
    assert [decision[3] for decision in outcome.decisions] == [1]


@pytest.mark.parametrize("kind", ["down", "drain"])
def test_a_host_that_goes_down_sends_its_instances_back(kind: str) -> None:
    events = [(10.0, 0, kind), (50.0, 0, "up")]
    outcome = run([Request(SILVER, duration=100.0)], cluster(1.0), None, hot=1.0, cold=5.0, events=events)
    assert [(d[1], d[3]) for d in outcome.decisions] == [(0.0, 0), (50.0, 0)]
    result = outcome.requests[0]
    assert (result.preemptions, result.starts, result.pending, result.wasted_startup) == (0, 2, 40.0, 5.0)
    assert result.completed == 50.0 + 1.0 + 95.0
    assert [p[0] for p in outcome.passes] == [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]


def test_after_a_failure_another_host_takes_over_at_once() -> None:
    outcome = run([Request(GOLD)], cluster(2.0, 1.0), 100.0, cold=5.0, events=[(3.0, 0, "down")])
    assert [(d[1], d[3]) for d in outcome.decisions] == [(0.0, 0), (3.0, 1)]
    result = outcome.requests[0]
    assert (result.startup_first, result.startup_restarts, result.wasted_startup) == (3.0, 5.0, 3.0)


def test_the_watchdog_fires_only_while_somebody_waits() -> None:
    outcome = run([Request(GOLD, duration=25.0), Request(SILVER, duration=40.0)], cluster(1.0), None)
    assert [p[0] for p in outcome.passes] == [0.0, 10.0, 20.0, 25.0]
    assert [p[1:] for p in outcome.passes] == [(2, 1, 0), (1, 0, 0), (1, 0, 0), (1, 1, 0)]


def test_a_completion_makes_room_for_an_admission_at_the_same_instant() -> None:
    outcome = run([Request(GOLD, duration=10.0), Request(BRONZE, admission=10.0)], cluster(1.0), 20.0)
    assert outcome.decisions == [(0, 0.0, 0, 0, ()), (1, 10.0, 1, 0, ())]


def test_at_the_end_only_completions_happen() -> None:
    requests = [Request(GOLD, duration=50.0), Request(GOLD, admission=1.0), Request(GOLD, admission=50.0)]
    outcome = run(requests, cluster(1.0), 50.0)
    assert outcome.requests[0].completed == 50.0
    assert (outcome.requests[1].admitted, outcome.requests[1].pending) == (True, 49.0)
    assert not outcome.requests[2].admitted
    assert outcome.passes[-1][0] == 41.0


def test_a_run_without_end_stops_when_nothing_can_change() -> None:
    outcome = run([Request(GOLD, duration=10.0), Request(GOLD, size=5.0)], cluster(1.0), None)
    assert [p[0] for p in outcome.passes] == [0.0, 10.0]
    assert outcome.requests[1].pending == 10.0


def test_a_victim_may_move_within_the_pass_that_preempted_it() -> None:
    requests = [Request(BRONZE), Request(GOLD, admission=100.0, size=2.0)]
    same = run(requests, cluster(2.0, 1.0), 111.0)
    assert same.decisions[1:] == [(1, 100.0, 1, 0, (0,)), (1, 100.0, 0, 1, ())]
    assert same.passes[1] == (100.0, 1, 2, 1)
    following = run(requests, cluster(2.0, 1.0), 111.0, config=preset("published"))
    assert following.decisions[1:] == [(1, 100.0, 1, 0, (0,)), (2, 110.0, 0, 1, ())]


def test_priority_gives_up_the_least_important_then_the_latest() -> None:
    requests = [Request(SILVER), Request(BRONZE, admission=1.0), Request(BRONZE, admission=2.0)]
    outcome = run([*requests, Request(GOLD, admission=50.0, size=2.0)], cluster(3.0), 51.0, name="priority")
    assert outcome.decisions[-1] == (3, 50.0, 3, 0, (2, 1))
    late_silver = [*requests, Request(SILVER, admission=50.0, size=3.0)]
    assert len(run(late_silver, cluster(3.0), 100.0, name="priority").decisions) == 3


def test_hybrid_follows_priority_above_its_queue_limit() -> None:
    # A bronze far below its promise may preempt a silver with slack, but never by priority.
    requests = [Request(SILVER), Request(BRONZE, admission=250.0)]
    assert len(run(requests, cluster(1.0), 260.0, name="hybrid", queue_limit=1).decisions) == 2
    assert len(run(requests, cluster(1.0), 260.0, name="hybrid", queue_limit=0).decisions) == 1


def test_the_seed_decides_between_equal_hosts_and_repeats() -> None:
    def choices(seed: int) -> list[int]:
        config = replace(SETTINGS, simulation=replace(SETTINGS.simulation, seed=seed))
        return [d[3] for d in run([Request(GOLD)] * 8, cluster(*[1.0] * 8), 10.0, config=config).decisions]

    assert choices(0) == choices(0)
    assert sorted(choices(0)) == sorted(choices(1)) == list(range(8))
    assert choices(0) != choices(1)


def test_names_that_are_not_built_in_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"policy\.name"):
        run([Request(GOLD)], cluster(1.0), 10.0, name="mine.py:Mine")
    with pytest.raises(ConfigError, match=r"policy\.score"):
        run([Request(GOLD)], cluster(1.0), 10.0, score="unknown")
