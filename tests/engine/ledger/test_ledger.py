"""The ledger of a live cluster: hand-computed histories, and random ones against books kept the slow way."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from engine.workbench import KINDS, T0, Chaos, Workbench
from slacktide.config import Accounting
from slacktide.engine.core import types
from slacktide.engine.ledger.slo_status import SUMS, SloStatus, slo_status, totals
from slacktide.errors import StateError
from slacktide.kube.housekeeping import retire_vacant
from slacktide.model import ServiceClass
from slacktide.state.layout import GRID

GOLD, SILVER, BRONZE = 0, 1, 2


def sums_of(bench: Workbench, key: str, t: float) -> dict[str, float]:
    bench.check(t)
    return totals(bench.engine.controllers[key], bench.had(key, t))


def stands(bench: Workbench, key: str, t: float) -> SloStatus:
    return slo_status(bench.engine, key, T0 + t)


def started(bench: Workbench, *uids: str, at: float, ready: float) -> None:
    """A pass places these, they are bound, and ready later."""
    assert {uid for uid, _ in bench.run(at)} == set(uids)
    for uid in uids:
        bench.engine.bound(uid, T0 + at)
        bench.ready(uid, ready)


def preempting(kind: str) -> Workbench:
    """One core; bronze is ready from 5 s on and told to leave at 100 s for gold."""
    bench = Workbench(hosts=1, cores=1)
    bench.controller("bronze", kind, BRONZE)
    bench.controller("gold", "independent", GOLD)
    bench.arrive("b", "bronze", 0)
    started(bench, "b", at=0, ready=5)
    bench.arrive("g", "gold", 100)
    assert bench.run(100) == [("g", ["b"])]
    return bench


@pytest.mark.parametrize("kind", ["independent", "concurrent", "aggregated", "batch"])
def test_a_victim_runs_on_in_the_books_until_its_grace_period_is_over(kind: str) -> None:
    bench = preempting(kind)
    bench.gone("b", 130)
    bench.arrive("b2", "bronze", 130)
    bench.check(150)
    at = stands(bench, "bronze", 150)
    # Lives for 150 s: start-up 5, running from 5 to 130, waiting from 130 on. A batch loses what it did.
    running = 0 if kind == "batch" else 125
    assert (at.delivered_always, at.delivered_restart) == (running / 150, (running + 5) / 150)
    assert at.delivered_never == at.delivered_restart
    assert (at.running, at.waiting, at.preemptions, at.starts) == (0, 1, 1, 1)
    tb = bench.engine.tables.tb
    (row,) = bench.engine.controllers["bronze"].rows
    assert tb["instances"]["overhead"][row] == 5  # its start-up was for nothing
    assert tb["instances"]["discarded"][row] == (125 if kind == "batch" else 0)
    # Started again at 160, ready at 168: 8 s of a restart's start-up; at 200 it has run for 32 s more.
    bench.engine.bound("g", T0 + 131)
    bench.gone("g", 155, completed=True)
    started(bench, "b2", at=160, ready=168)
    bench.check(200)
    at = stands(bench, "bronze", 200)
    assert at.delivered_always == (running + 32) / 200
    assert at.delivered_restart == (running + 5 + 32) / 200
    assert at.delivered_never == (running + 5 + 8 + 32) / 200


@pytest.mark.parametrize("kind", ["independent", "concurrent", "aggregated", "batch"])
def test_a_victim_that_was_spared_has_lost_nothing(kind: str) -> None:
    bench = preempting(kind)
    bench.refused("g", 105)
    bench.spared("b", 105)
    bench.check(110)
    at = stands(bench, "bronze", 110)
    assert (at.delivered, at.preemptions, at.starts, at.running) == (105 / 110, 0, 1, 1)
    one = bench.engine.pods["b"]
    assert (one.state, one.preempted) == (types.PLACED, False)
    assert bench.engine.tables.tb["requests"]["overhead"][bench.engine.controllers["bronze"].q] == 0


@pytest.mark.parametrize("accounting", ["always", "restart", "never"])
@pytest.mark.parametrize("kind", ["independent", "aggregated", "batch"])
def test_a_binding_that_was_refused_counts_as_waiting(kind: str, accounting: Accounting) -> None:
    bench = Workbench(accounting=accounting)
    bench.controller("c", kind)
    bench.arrive("p", "c", 0)
    bench.run(0)
    bench.refused("p", 7)
    bench.engine.wake("p")
    started(bench, "p", at=10, ready=15)
    # Waits from 0 to 10, starts up to 15, runs to 20: its one start is its first.
    sums = sums_of(bench, "c", 20)
    assert [sums[name] for name in SUMS] == [20, 5, 5, 0, 0]
    at = stands(bench, "c", 20)
    assert (at.delivered_always, at.delivered_restart, at.starts) == (5 / 20, 10 / 20, 1)
    assert at.delivered == (5 / 20 if accounting == "always" else 10 / 20)


def test_unready_is_a_start_up_that_counts_as_a_restarts() -> None:
    bench = Workbench()
    bench.controller("c", "independent")
    bench.arrive("p", "c", 0)
    started(bench, "p", at=0, ready=5)
    bench.unready("p", 20)
    bench.ready("p", 26)
    # First start-up 0 to 5, running to 20, start-up to 26, running to 40.
    assert [sums_of(bench, "c", 40)[name] for name in SUMS] == [40, 29, 5, 6, 0]


def updated(kind: str) -> Workbench:
    """Two of two run from 4 s on; a third comes at 100 s, is ready at 104 s, and the first goes at 106 s."""
    bench = Workbench()
    bench.controller("c", kind)
    bench.want("c", 2, 0)
    bench.arrive("a", "c", 0)
    bench.arrive("b", "c", 1)
    started(bench, "a", "b", at=1, ready=4)
    bench.arrive("c", "c", 100)
    started(bench, "c", at=100, ready=104)
    bench.gone("a", 106)
    return bench


def test_a_rolling_update_hands_the_ledger_of_an_independent_instance_over() -> None:
    bench = updated("independent")
    bench.check(110)
    engine = bench.engine
    row = engine.pods["c"].row
    had = bench.had("c", 110)
    i = had.rows.tolist().index(row)
    # The ledger of a: waits 1 s, starts up to 4, runs to 106, and goes on with c, which is ready, to 110.
    assert (had["lifetime"][i], had["running"][i], had["startup_first"][i]) == (110, 106, 3)
    assert len(engine.controllers["c"].rows) == 2
    # What c had in a ledger of its own, from 100 to 106, is past: 4 s of start-up and 2 of running.
    past = engine.controllers["c"].past
    assert (past.lifetime, past.startup_first, past.running) == (6, 4, 2)
    # a: 106 of 110 s; b, since 1 s: 106 of 109. The least counts.
    assert stands(bench, "c", 110).delivered == 106 / 110


def test_a_rolling_update_adds_to_the_sums_of_an_aggregated_one() -> None:
    bench = updated("aggregated")
    # a lives 106 s and runs 102, b 109 and 106, c 10 and 6.
    sums = sums_of(bench, "c", 110)
    assert (sums["lifetime"], sums["running"]) == (225, 214)
    assert stands(bench, "c", 110).delivered == 214 / 225


def test_a_handed_over_pod_that_is_not_bound_yet_is_nobodys_victim() -> None:
    bench = Workbench()
    bench.controller("c", "independent")
    bench.want("c", 1, 0)
    bench.arrive("a", "c", 0)
    started(bench, "a", at=0, ready=4)
    bench.arrive("b", "c", 10)
    bench.run(10)
    bench.gone("a", 11)
    row = bench.engine.pods["b"].row
    assert bench.engine.tables.tb["guard"][row] == float("inf")
    bench.engine.bound("b", T0 + 12)
    assert bench.engine.tables.tb["guard"][row] == T0 + 12


SCALED = {
    # Live: a for 30 s, c for 10. a runs 28 s, c 5: the least is c's.
    "independent": (5 / 10, 1.0),
    # b lived 12 s more. Both at once from 4 to 12, a alone from 12 to 20, both from 25 to 30: 16 + 8 + 10 s.
    "concurrent": (34 / 52, 1.0),
    # a 28 s, b 8, c 5.
    "aggregated": (41 / 52, 1.0),
}


@pytest.mark.parametrize("kind", SCALED)
def test_scaled_down_and_up(kind: str) -> None:
    bench = Workbench()
    bench.controller("c", kind)
    bench.want("c", 2, 0)
    bench.arrive("a", "c", 0)
    bench.arrive("b", "c", 0)
    bench.run(0)
    for uid, ready in (("a", 2), ("b", 4)):
        bench.engine.bound(uid, T0)
        bench.ready(uid, ready)
    bench.want("c", 1, 10)
    bench.gone("b", 12)
    bench.want("c", 2, 20)
    bench.arrive("c", "c", 20)
    started(bench, "c", at=20, ready=25)
    bench.check(30)
    at = stands(bench, "c", 30)
    assert (at.delivered_always, at.delivered_restart) == SCALED[kind]  # every start here is a first one
    assert (at.running, at.starts) == (2, 3)


def test_only_who_was_vacant_for_long_is_retired() -> None:
    bench = Workbench()
    bench.controller("c", "aggregated")
    for uid in ("a", "b", "d"):
        bench.arrive(uid, "c", 0)
    started(bench, "a", "b", "d", at=0, ready=0)
    for uid, at in (("a", 10), ("b", 40)):
        bench.engine.gone(uid, T0 + at)
    controller = bench.engine.controllers["c"]
    assert retire_vacant(bench.engine, T0 + 69.0, 60.0) == []
    assert retire_vacant(bench.engine, T0 + 75.0, 60.0) == ["c"]
    assert (len(controller.vacant), len(controller.rows)) == (1, 2)
    stood = slo_status(bench.engine, "c", T0 + 90.0)
    # 90 s, 40 s of 90 s, and 10 s of the 75 s until nobody waited for a replacement any more.
    assert stood.delivered_always == pytest.approx((90 + 40 + 10) / (90 + 90 + 75), abs=1e-6)
    assert retire_vacant(bench.engine, T0 + 101.0, 60.0) == ["c"]
    assert (len(controller.vacant), len(controller.rows)) == (0, 1)
    bench.engine.desired("c", 3, T0 + 110.0)
    bench.engine.gone("d", T0 + 120.0)
    assert retire_vacant(bench.engine, T0 + 900.0, 60.0) == []  # three are wanted: the replacement will come


def test_a_job_completes_and_loses_what_failed() -> None:
    bench = Workbench()
    bench.controller("job", "batch")
    bench.arrive("one", "job", 0)
    bench.arrive("two", "job", 0)
    started(bench, "one", "two", at=0, ready=3)
    bench.gone("one", 50, completed=True)
    bench.gone("two", 60)
    bench.arrive("again", "job", 65)
    started(bench, "again", at=65, ready=70)
    bench.gone("again", 100, completed=True)
    # 'one' lived 50 s and ran 47. 'two' lived 100 s: start-ups 3 and 5, 57 s lost, 5 s waiting, 30 s of running.
    sums = sums_of(bench, "job", 120)
    assert [sums[name] for name in SUMS] == [150, 77, 6, 5, 57]
    at = stands(bench, "job", 120)
    assert (at.delivered_always, at.delivered_restart, at.delivered_never) == (77 / 150, 83 / 150, 88 / 150)
    assert (at.running, at.waiting, at.starts) == (0, 0, 3)


def test_a_job_loses_what_it_did_before_it_was_unready_as_well() -> None:
    bench = Workbench()
    bench.controller("job", "batch")
    bench.arrive("p", "job", 0)
    started(bench, "p", at=0, ready=5)
    bench.unready("p", 20)
    bench.ready("p", 26)
    bench.gone("p", 40)
    # First start-up 0 to 5, work to 20, start-up to 26, work to 40, waiting to 50: 15 and 14 s are lost.
    assert [sums_of(bench, "job", 50)[name] for name in SUMS] == [50, 0, 5, 6, 29]
    assert stands(bench, "job", 50).delivered_always == 0.0


def test_the_victim_of_a_job_is_who_has_least_to_lose_of_all_that_it_did() -> None:
    bench = Workbench(hosts=1, cores=2)
    bench.controller("job", "batch")
    bench.controller("gold", "independent", GOLD)
    bench.arrive("late", "job", 0)
    bench.arrive("broken", "job", 0)
    bench.run(0)
    for uid in ("late", "broken"):
        bench.engine.bound(uid, T0)
    bench.ready("broken", 0)
    bench.ready("late", 50)
    bench.unready("broken", 100)
    bench.ready("broken", 101)
    bench.arrive("g", "gold", 200)
    # One would lose 200 - 50 = 150 s of work, the other 100 + 99 s, of which 99 since it is ready again.
    assert bench.run(200) == [("g", ["late"])]


def test_the_state_follows_from_availability_and_slack() -> None:
    bench = Workbench()
    bench.controller("c", "independent")
    assert stands(bench, "c", 0).state == "Unknown"
    bench.arrive("p", "c", 0)
    started(bench, "p", at=0, ready=5)
    # Bronze promises half, with a margin of 10 s; alpha is 10 s. e = t - 5, so the slack is 2 (t - 5) - t - 10.
    for t, state, slack in ((8, "Missed", -12), (10, "AtRisk", -10), (19, "AtRisk", -1), (20, "Kept", 0)):
        at = stands(bench, "c", t)
        assert (at.state, at.slack, at.promised, at.service) == (state, slack, 0.5, "bronze")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ready", [0, 0.001])
def test_who_is_young_or_far_above_the_promise_is_not_at_risk(kind: str, ready: float) -> None:
    bench = Workbench()
    bench.controller("c", kind, SILVER)
    bench.arrive("p", "c", 0)
    started(bench, "p", at=0, ready=ready)
    # Of a second .1 s may be lost: less than the margin is left, and that says nothing.
    for t in (1, 10, 60, 600):
        at = stands(bench, "c", t)
        assert at.state == "Kept", (t, at)
        assert at.delivered > 0.998


def test_what_is_held_back_for_a_start_up_puts_nothing_at_risk() -> None:
    bench = Workbench()
    bench.controller("c", "independent", SILVER)
    bench.arrive("p", "c", 0)
    started(bench, "p", at=0, ready=6)
    # Silver promises .9: from 60 s on it is kept, from 120 s on with less than half of what may be lost used up.
    for t, state in ((59, "Missed"), (60, "AtRisk"), (119, "AtRisk"), (120, "Kept"), (150, "Kept")):
        at = stands(bench, "c", t)
        assert at.state == state, (t, at)
    assert stands(bench, "c", 150).slack == pytest.approx(144 / 0.9 - 150 - 10)


@pytest.mark.parametrize("accounting", ["always", "restart", "never"])
def test_states_are_those_of_the_plain_rule(accounting: Accounting) -> None:
    seen = Counter[str]()
    for seed in range(5):
        chaos = Chaos(seed, accounting)
        for _ in range(150):
            chaos.step()
            for key, books in chaos.bench.books.items():
                if not (books.refusals and books.approach == "concurrent" and accounting != "always"):
                    for slo in (0.9, 0.3, 0.1, 0.02):
                        seen[compared_state(chaos, key, accounting, slo)] += 1
    assert min(seen[state] for state in ("Missed", "AtRisk", "Kept", "Unknown")) > 8, seen


def compared_state(chaos: Chaos, key: str, accounting: Accounting, slo: float) -> str:
    """The state were this promised, with a margin of half a minute: by the kernels, and by the plain rule."""
    engine, books = chaos.bench.engine, chaos.bench.books[key]
    controller, service = engine.controllers[key], ServiceClass(f"promise-{slo}", slo, 3, 30.0)
    own = controller.service
    engine.controller(key, service, controller.approach, books.batch)
    found, t = stands(chaos.bench, key, chaos.t), max(chaos.t, engine.latest - T0)
    slack = math.inf if found.slack is None else found.slack
    engine.controller(key, own, controller.approach, books.batch)
    assert found.state == books.state(t, accounting, slack, service, engine.config.qos.alpha), (key, t)
    return found.state


def test_the_slack_of_several_that_all_run_is_unlimited_until_one_waits() -> None:
    bench = Workbench()
    bench.controller("c", "aggregated")
    for uid in ("a", "b"):
        bench.arrive(uid, "c", 0)
    started(bench, "a", "b", at=0, ready=10)
    assert stands(bench, "c", 15).slack == 2 * 10 - 2 * 15 - 10  # e = 10 of 30 s: 10 s short, and alpha
    assert stands(bench, "c", 100).slack is None
    bench.gone("b", 100)
    # e = 180, T = 200: 160 s ahead. Of 2 live, each owed half, one goes on: never missed.
    assert stands(bench, "c", 100).slack is None
    bench.gone("a", 100)
    # None goes on: 2 * .5 s of running are owed each second, e / slo - T = 160 s of lifetime, so 80 s are left.
    assert stands(bench, "c", 100).slack == 160 * 0.5 / (2 * 0.5) - 10


def test_a_pass_is_not_earlier_than_what_was_told() -> None:
    bench = Workbench()
    bench.controller("c", "aggregated")
    bench.arrive("a", "c", 100.75)
    assert [d.uid for d in bench.engine.run(T0 + 100.5).decisions] == ["a"]  # the clock was set back
    (row,) = bench.engine.controllers["c"].rows
    assert bench.engine.tables.tb["instances"]["since"][row] == T0 + 100.75


def test_a_pod_that_somebody_else_bound_first_waited_until_then() -> None:
    bench = Workbench()
    bench.controller("c", "independent")
    bench.arrive("p", "c", 0)
    bench.run(0)
    bench.books["c"].refused("p")
    bench.found_on("p", "node-2", 6)
    bench.check(10)
    one = bench.engine.pods["p"]
    assert (one.host, one.bound, stands(bench, "c", 10).starts) == ("node-2", True, 1)
    with pytest.raises(StateError, match="found bound to node-2"):
        bench.engine.bound_elsewhere("p", "node-1", T0 + 11)


def test_a_standing_changes_nothing() -> None:
    chaos = Chaos(7)
    for _ in range(60):
        chaos.step()
    tb = chaos.bench.engine.tables.tb
    before = [tb[name].tobytes() for name in ("instances", "requests", "slots", "hosts")]
    for key in chaos.bench.books:
        slo_status(chaos.bench.engine, key, T0 + chaos.t + 5)
    assert before == [tb[name].tobytes() for name in ("instances", "requests", "slots", "hosts")]


@pytest.mark.parametrize("accounting", ["always", "restart", "never"])
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (8, 16))])
def test_random_histories_agree_with_slow_books(first: int, accounting: Accounting) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + 8):
        chaos = Chaos(seed, accounting)
        for _ in range(150):
            chaos.step()
            chaos.bench.check(chaos.t)
        chaos.bench.check(chaos.t + 1000 + 1 / GRID)
        for books in chaos.bench.books.values():
            seen["refused"] += books.refusals
            seen["preempted"] += sum(one.preemptions for one in books.lives)
            seen["lost"] += sum(len(one.failed) for one in books.lives)
            seen["ended"] += sum(one.ended is not None for one in books.lives)
            seen["restarted"] += sum(one.starts > 1 for one in books.lives)
    assert min(seen[what] for what in ("refused", "preempted", "lost", "ended", "restarted")) >= 5, seen
