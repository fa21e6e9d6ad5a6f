"""The twin's rules, one by one, against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from reference import chance, metric, scores
from reference.amounts import scale, whole
from reference.costs import Victim, fewest_victims, slack
from reference.metric import ACCOUNTINGS, Ledger, request_metric
from reference.policies import eligible
from reference.queue import qos_order, victim_order
from reference.requests import Approach, Request
from reference.state import Host, Instance
from reference.times import on_grid
from slacktide.config import Config, PolicySettings, QosSettings, SimulationSettings

SETTINGS = Config(qos=QosSettings(alpha=10.0))

GOLD, SILVER, BRONZE = (1.0, 1), (0.9, 2), (0.5, 3)


def instance(
    kind: tuple[float, int], e: float, p: float, spent: float = 0.0, running: bool = False, row: int = 0
) -> Instance:
    sigma, rank = kind
    made = Instance(row, sigma, rank, margin=10.0, limit=1.0 - sigma, alpha=10.0, service_class=rank - 1, spent=spent)
    made.ledgers["restart"] = Ledger(e, p)
    made.host = Host(0, (1, 1)) if running else None
    made.starts = int(running)
    return made


def test_the_mixer_is_splitmix64() -> None:
    assert chance.mix(0) == 0xE220A8397B1DCDAF  # first output of the published generator from state 0


def test_draws_have_63_bits_and_depend_on_every_argument() -> None:
    draws = {
        chance.draw(*arguments) for arguments in [(0, 1, 0, 0), (1, 1, 0, 0), (0, 2, 0, 0), (0, 1, 1, 0), (0, 1, 0, 1)]
    }
    assert len(draws) == 5
    assert max(draws) < 2**63


def test_amounts_get_nine_digits_or_as_many_as_fit() -> None:
    assert scale([0.5, 1.0]) == 1e9
    assert scale([2.0**40]) == 1000.0
    assert scale([2.0**50]) == 1.0
    assert whole(0.0625, 1e9) == 62_500_000
    assert [whole(0.5, 1.0), whole(1.5, 1.0)] == [0, 2]


def test_a_startup_that_is_pending_counts_as_pending_until_it_ends() -> None:
    before = Ledger(100.0, 10.0)
    assert metric.running_ledger(before, 50.0, 5.0, True, 52.0) == Ledger(100.0, 12.0)
    assert metric.running_ledger(before, 50.0, 5.0, True, 60.0) == Ledger(105.0, 15.0)
    assert metric.running_ledger(before, 50.0, 5.0, False, 60.0) == Ledger(110.0, 10.0)


@pytest.mark.parametrize(
    ("accounting", "first", "second"), [("always", True, True), ("restart", False, True), ("never", False, False)]
)
def test_accountings_differ_in_which_startup_is_pending(accounting: str, first: bool, second: bool) -> None:
    named = next(name for name in metric.ACCOUNTINGS if name == accounting)
    assert [metric.startup_is_pending(named, starts) for starts in (1, 2)] == [first, second]


def test_metric_by_hand() -> None:
    assert metric.running_metric(Ledger(90.0, 10.0), 0.9, 10.0) == -10.0
    assert metric.running_metric(Ledger(90.0, 10.0), 0.5, 10.0) == 70.0
    assert metric.waiting_key(Ledger(90.0, 10.0), 200.0, 0.5, 10.0) - 230.0 == 40.0


def test_equal_metrics_of_different_histories_are_equal() -> None:
    alpha = on_grid(22.37107)
    waiting = metric.waiting_key(Ledger(1998.0, 200.0), 3001.0, 0.9, alpha) - 3020.0
    running = metric.running_metric(Ledger(2007.0, 220.0), 0.9, alpha)
    assert waiting == running == 3.0 - alpha


def test_overhead_is_the_share_of_startups_that_were_preempted() -> None:
    assert metric.overhead(5.0, 95.0) == 0.05
    assert metric.overhead(0.0, 0.0) == 0.0


def test_availability_is_one_while_nothing_was_owed() -> None:
    assert metric.availability(Ledger()) == 1.0
    assert metric.availability(Ledger(30.0, 10.0)) == 0.75


def test_scores_order_hosts_as_their_formulas_do() -> None:
    x, y = scores.left_over(6, 2, 10) / 2**40, scores.left_over(8, 2, 10) / 2**40
    assert (x, y) == pytest.approx((0.4, 0.6))
    least, even = 10 * (0.4 + 0.6) / 2, 10 * (1 - abs(0.4 - 0.6))
    assert 5 * scores.least_requested(x, y) == pytest.approx(least)
    assert 10 * (1 + scores.balanced(x, y)) == pytest.approx(even)
    assert 5 + 2.5 * scores.mean(x, y) == pytest.approx((least + even) / 2)
    assert scores.left_over(0, 0, 0) == 0.0


def test_costs_by_hand() -> None:
    victims = [Victim(2, 5.0, 10.0), Victim(3, 15.0, 10.0), Victim(3, -2.0, 10.0)]
    assert slack(victims, (1, 2, 3)) == (0.0, -5.0, -12.0, -12.0)
    assert fewest_victims(victims, (1, 2, 3)) == (0.0, -1.0, -2.0)


def test_the_queue_puts_violators_first_by_importance() -> None:
    config = SETTINGS
    late = instance(BRONZE, 0.0, 50.0, row=0)
    important = instance(GOLD, 100.0, 0.0, row=1)
    fine = instance(BRONZE, 100.0, 0.0, row=2)
    finer = instance(BRONZE, 200.0, 0.0, row=3)
    by_metric = replace(config, policy=PolicySettings(queue_order="metric"))
    assert qos_order([finer, fine, late, important], 0.0, config) == [important, late, fine, finer]
    assert qos_order([finer, fine, late, important], 0.0, by_metric) == [late, important, fine, finer]


def test_victims_come_in_the_mirror_of_the_queue_order() -> None:
    config = SETTINGS
    late = instance(BRONZE, 0.0, 50.0, running=True, row=0)
    important = instance(SILVER, 90.0, 0.0, running=True, row=1)  # Q = 0
    fine = instance(BRONZE, 100.0, 0.0, running=True, row=2)
    finer = instance(BRONZE, 200.0, 0.0, running=True, row=3)
    by_metric = replace(config, policy=PolicySettings(victim_order="metric"))
    assert victim_order([important, late, fine, finer], 0.0, config) == [finer, fine, late, important]
    assert victim_order([important, late, fine, finer], 0.0, by_metric) == [finer, fine, important, late]


def test_whoever_has_slack_may_be_preempted_by_a_smaller_metric() -> None:
    better = replace(SETTINGS, policy=PolicySettings(preempt_when="better"))
    rich = instance(BRONZE, 100.0, 0.0, running=True)  # Q = 90
    less = instance(BRONZE, 50.0, 0.0)  # Q = 40, above its margin
    assert eligible(less, rich, 0.0, better)
    assert not eligible(less, rich, 0.0, SETTINGS)
    assert eligible(instance(BRONZE, 0.0, 0.0), rich, 0.0, SETTINGS)
    assert not eligible(instance(BRONZE, 200.0, 0.0), rich, 0.0, better)
    assert not eligible(instance(BRONZE, 100.0, 0.0), rich, 0.0, better)


def test_among_violators_importance_decides_then_the_metric_with_patience() -> None:
    config = SETTINGS
    silver, bronze = instance(SILVER, 0.0, 0.0, running=True), instance(BRONZE, 0.0, 0.0, running=True)
    assert eligible(instance(SILVER, 0.0, 0.0), bronze, 0.0, config)
    assert not eligible(instance(BRONZE, 0.0, 500.0), silver, 0.0, config)
    assert not eligible(instance(SILVER, 0.0, 60.0), silver, 0.0, config)
    assert eligible(instance(SILVER, 0.0, 61.0), silver, 0.0, config)
    assert not eligible(instance(SILVER, 100.0, 0.0), replace(silver), 0.0, config)


@pytest.mark.parametrize(
    ("scope", "by_gold", "by_silver", "by_bronze"),
    [
        ("same-or-more-important", True, False, False),
        ("same-class", True, False, True),
        ("all", False, False, False),
        ("none", True, True, True),
    ],
)
def test_scope_of_the_overhead_limit(scope: str, by_gold: bool, by_silver: bool, by_bronze: bool) -> None:
    config = replace(SETTINGS, policy=PolicySettings(overhead_scope=scope))  # type: ignore[arg-type]
    swapped = instance(SILVER, 900.0, 0.0, spent=120.0, running=True)  # Q = 90, C = .1176 > .1
    late = [eligible(instance(kind, 0.0, 99.0), swapped, 0.0, config) for kind in (GOLD, SILVER, BRONZE)]
    assert late == [by_gold, by_silver, by_bronze]


def test_the_limit_itself_is_still_allowed() -> None:
    config = SETTINGS
    at_limit = instance(BRONZE, 100.0, 0.0, spent=100.0, running=True)  # C = .5
    assert eligible(instance(BRONZE, 0.0, 99.0), at_limit, 0.0, config)
    assert not eligible(instance(BRONZE, 0.0, 99.0), replace(at_limit, spent=101.0), 0.0, config)


# Requests of several instances


def waiting(row: int, e: float = 0.0, p: float = 0.0, since: float = 0.0, admission: float = 0.0) -> Instance:
    """A bronze instance (sigma .5) with this ledger in all accountings."""
    made = Instance(row, 0.5, 3, margin=10.0, limit=0.5, alpha=10.0, admission=admission, since=since, admitted=True)
    made.ledgers = {name: Ledger(e, p) for name in ACCOUNTINGS}
    return made


def running(row: int, host: Host | None = None, startup: float = 0.0, **known: float) -> Instance:
    """The same on a host, in its first start."""
    made = waiting(row, **known)
    made.host, made.startup, made.starts = host or Host(0, (9, 9)), startup, 1
    return made


def request(approach: Approach, *instances: Instance, batch: bool = False) -> Request:
    made = Request(approach, batch, instances=list(instances))
    for j in instances:
        j.request = made
    return made


# The metric


def test_the_metric_below_the_promise_is_what_is_missing() -> None:
    assert request_metric(-3.5, live=4, contributing=2, sigma=0.9, alpha=10.0) == -13.5


def test_the_metric_has_a_kink_and_no_jump_where_the_promise_is_just_kept() -> None:
    step = 2.0**-20
    at = [request_metric(x, 2, 1, 0.75, 10.0) + 10.0 for x in (-1.0, -step, 0.0, 1.0)]
    assert at == [-1.0, -step, 0.0, 1.5]  # D = .5: a second above lasts 1.5 s


def test_the_slack_above_the_promise_is_rounded_to_the_grid() -> None:
    assert request_metric(10.0, 2, 1, 0.9, 0.0) == round(10.0 * (0.9 / (2 * 0.9 - 1)) * 2**20) / 2**20


@pytest.mark.parametrize(("live", "contributing"), [(1, 1), (2, 1), (4, 3)])
def test_there_is_no_end_to_slack_that_is_not_used_up(live: int, contributing: int) -> None:
    assert request_metric(0.0, live, contributing, 0.5, 10.0) == inf
    assert request_metric(-1.0, live, contributing, 0.5, 10.0) == -11.0


def test_slack_of_more_than_a_century_is_infinite() -> None:
    assert request_metric(2.0**32, 1, 0, 1.0, 0.0) == 2.0**32
    assert request_metric(2.0**32 + 1.0, 1, 0, 1.0, 0.0) == inf


# The ledger


def test_the_ledger_is_the_sum_over_all_instances_gone_or_not() -> None:
    gone, on, left = waiting(0, e=30.0, p=10.0), running(1, since=50.0, p=50.0), waiting(2, since=80.0, admission=80.0)
    gone.gone = 40.0
    later = waiting(3)
    later.admitted = False
    both = request("aggregated", gone, on, left, later)
    assert both.lifetime(100.0) == 40.0 + 100.0 + 20.0
    assert both.running(100.0, "restart") == 30.0 + 50.0
    assert (both.live(), both.up(100.0, "restart")) == ([on, left], [on])
    # E = 160 = T: X = 0; of 2 live one goes on: D = 0 as seen by the waiting one, 1 by the running one.
    assert [j.metric_at(100.0, SETTINGS) for j in (on, left)] == [-10.0, inf]


def test_a_startup_that_counts_as_pending_is_not_up() -> None:
    always = replace(SETTINGS, qos=replace(SETTINGS.qos, startup="always"))
    starting, other = running(0, startup=20.0), waiting(1)
    both = request("aggregated", starting, other)
    assert both.up(10.0, "restart") == [starting]
    assert both.up(10.0, "always") == []
    assert both.up(20.0, "always") == [starting]
    assert starting.metric_at(10.0, always) == other.metric_at(10.0, always) == -30.0


def test_a_running_batch_instance_is_judged_without_its_incarnation_where_that_would_be_lost() -> None:
    on, left = running(0, startup=10.0), waiting(1, since=60.0, admission=60.0)
    request("aggregated", on, left, batch=True)
    kept = replace(SETTINGS, simulation=SimulationSettings(preempted_work="kept"))
    lost = replace(SETTINGS, simulation=SimulationSettings(preempted_work="lost"))
    # T = 140, e = 100 (the first start-up runs), 90 of it useful.
    assert left.metric_at(100.0, SETTINGS) == left.metric_at(100.0, kept) == inf
    assert on.metric_at(100.0, kept) == 60.0 * (0.5 / 1.0) - 10.0
    assert on.metric_at(100.0, SETTINGS) == on.metric_at(100.0, lost) == 20.0 - 140.0 - 10.0


def test_overhead_is_of_all_incarnations_of_all_instances() -> None:
    on, left = running(0), waiting(1)
    on.spent, left.spent = 5.0, 20.0
    both = request("aggregated", on, left)
    assert both.overhead_at(75.0, SETTINGS) == on.overhead_at(75.0, SETTINGS) == 0.25
    on.spent = left.spent = 0.0
    assert both.overhead_at(0.0, SETTINGS) == 0.0


def test_who_is_scaled_away_first() -> None:
    one, two, three = Host(1, (9, 9)), Host(2, (9, 9)), Host(3, (9, 9))
    early, late, later = (waiting(row, since=at, admission=at) for row, at in ((0, 0.0), (1, 5.0), (2, 5.0)))
    starting, last = running(3, three, startup=20.0, since=81.0), running(6, one, startup=30.0)
    pair = [running(4, two, startup=10.0), running(5, two, startup=20.0)]
    service = request("concurrent", early, late, later, starting, *pair, last)
    stranger = request("concurrent", running(7, one, startup=20.0, since=80.0))
    assert [j.row for j in service.excess(0, 100.0)] == [2, 1, 0, 3, 5, 4, 6]
    assert [j.row for j in service.excess(5, 100.0)] == [2, 1]
    assert stranger.excess(1, 100.0) == stranger.excess(2, 100.0) == []


def test_equally_ready_instances_go_by_row_and_ready_at_this_instant_is_ready() -> None:
    one = Host(1, (9, 9))
    ready, same = running(0, one, startup=20.0, since=80.0), running(1, one, startup=10.0, since=90.0)
    starting = running(2, Host(2, (9, 9)), startup=0.5, since=100.0)
    assert [j.row for j in request("aggregated", ready, same, starting).excess(0, 100.0)] == [2, 1, 0]


def test_idle_instances_cost_nothing_and_only_idle_ones_less_than_nothing() -> None:
    idle, late, rich = Victim(3, -50.0, 10.0, idle=True), Victim(3, 5.0, 10.0), Victim(2, 40.0, 10.0)
    assert slack([idle], (2, 3)) == slack([idle, idle], (2, 3)) == (0.0, 0.0, inf)
    assert slack([idle, late, rich], (2, 3)) == (0.0, -5.0, 25.0)
    assert slack([], (2, 3)) == (0.0, 0.0, 0.0)
    assert fewest_victims([idle, late, rich], (2, 3)) == (-1.0, -1.0)
    assert fewest_victims([idle], (2, 3)) == (0.0, 0.0)
