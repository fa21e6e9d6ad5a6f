"""The equations for requests of several instances, against histories and what they are meant to say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from reference import approaches, histories
from reference.approaches import Standing
from reference.histories import Case, History, Incarnation, cases, equal_lives, lived, standing, stopped
from slacktide.model.workload import AGGREGATED, CONCURRENT, INDEPENDENT

F = Fraction
shares = st.integers(1, 16).map(lambda n: Fraction(n, 16))


def number(value: Any) -> Any:
    """Of an array of one; Fractions stay Fractions."""
    return np.asarray(value).item()


def at(case: Case, t: Fraction | None = None) -> Standing:
    return standing(case.history, case.t if t is None else t, case.approach, batch=case.batch)


def lost(case: Case, t: Fraction | None = None) -> Fraction:
    """What stopping the considered instance would discard."""
    return case.considered.r(case.t if t is None else t) if case.batch else F(0)


def q(case: Case, t: Fraction | None = None) -> Any:
    return number(
        approaches.metric(case.approach, at(case, t), case.slo, case.alpha, case.considered.runs, lost(case, t))
    )


@given(cases())
def test_the_parts_sum_to_the_time_of_all_instances(case: Case) -> None:
    assert number(at(case).lifetime) == sum((lived(one, case.t) for one in case.history), F(0))


@given(cases())
def test_availability_is_that_of_the_thesis(case: Case) -> None:
    expected = histories.availability(case.history, case.t, case.approach, batch=case.batch)
    assert number(approaches.availability(at(case))) == (1 if expected is None else expected)


def achieved_when_stopped(case: Case, seconds: Any = 0) -> Any:
    """Availability so many seconds after the considered instance was stopped; None: nothing was owed yet."""
    then = stopped(case.history, case.index, case.t)
    return histories.availability(then, case.t + seconds, case.approach, batch=case.batch)


@given(cases(), shares, st.lists(st.integers(1, 10**6), min_size=1, max_size=5))
def test_time_to_violate_is_the_time_after_which_the_promise_is_just_kept(
    case: Case, share: Fraction, later: list[int]
) -> None:
    now = achieved_when_stopped(case)
    if not now:
        return  # no promise is kept
    case = replace(case, slo=now * share)
    value = q(case)
    if value == np.inf:
        assert all(achieved_when_stopped(case, F(x, 7)) >= case.slo for x in later)
        return
    spare = value + case.alpha
    assert spare >= 0
    assert achieved_when_stopped(case, spare) == case.slo
    assert achieved_when_stopped(case, spare + F(later[0], 7)) < case.slo


@given(cases(), shares)
def test_recoverability_is_the_pending_time_that_is_too_much(case: Case, share: Fraction) -> None:
    now = achieved_when_stopped(case)
    if now is None or now == 1:
        return  # no promise is missed
    case = replace(case, slo=now + (1 - now) * share)
    too_much = -(q(case) + case.alpha)
    assert too_much > 0
    then = approaches.considering(at(case), lost(case))
    less = replace(then, p=then.p - too_much)
    assert number(then.e) == case.slo * number(less.lifetime)
    assert number(then.e) == 0 or number(approaches.availability(less)) == case.slo


@given(cases())
def test_below_the_slo_it_is_recoverability_that_decides(case: Case) -> None:
    now = stopped(case.history, case.index, case.t)
    achieved = histories.availability(now, case.t, case.approach, batch=case.batch)
    assert (q(case) + case.alpha >= 0) == (achieved is None or achieved >= case.slo)


@given(cases())
def test_one_instance_has_the_metric_of_a_request_of_its_own(case: Case) -> None:
    alone = replace(case, history=case.history[:1])
    running = sum((one.r(case.t) for one in alone.history[0]), F(0))
    pending = sum((one.w(case.t) for one in alone.history[0]), F(0))
    gone = sum((one.r(case.t) for one in alone.history[0] if one.how == "failed"), F(0)) if case.batch else F(0)
    kept = running - gone - lost(alone)
    assert q(alone) == kept / case.slo - (running + pending) - case.alpha


@given(equal_lives())
def test_concurrent_never_exceeds_independent_of_equal_lives(given: tuple[History, Fraction]) -> None:
    history, t = given
    strict, each, mean = (
        number(approaches.availability(standing(history, t, approach, batch=False)))
        for approach in (CONCURRENT, INDEPENDENT, AGGREGATED)
    )
    worst = histories.availability(history, t, INDEPENDENT, batch=False)
    assert worst is not None
    assert strict <= worst <= mean
    assert len(history) > 1 or strict == each == mean == worst


@given(cases())
def test_aggregated_is_the_mean_of_instances_by_their_time(case: Case) -> None:
    case = replace(case, approach=AGGREGATED)
    each = [histories.availability((one,), case.t, AGGREGATED, batch=case.batch) for one in case.history]
    weighted = sum(((a or 0) * lived(one, case.t) for a, one in zip(each, case.history, strict=True)), F(0))
    whole = sum((lived(one, case.t) for one in case.history), F(0))
    assume(whole > 0)
    assert number(approaches.availability(at(case))) == weighted / whole


def slope_and_crossing(case: Case, t: Fraction) -> tuple[Any, Any]:
    losing = case.batch and case.considered.runs
    what = (case.approach, at(case, t), case.slo)
    return (
        number(approaches.slope(*what, case.considered.runs, lost(case, t), losing)),
        number(approaches.crossing(*what, lost(case, t), losing)),
    )


@given(cases(), st.integers(1, 400))
def test_between_events_the_metric_is_straight_with_one_kink(case: Case, quarters: int) -> None:
    h = F(quarters, 4)
    slope, kink = slope_and_crossing(case, case.t)
    before = q(case)
    if h <= kink:
        # On the way up the crossing itself belongs to what follows, where Q may be infinite.
        arrives = h == kink and before + case.alpha < 0
        if not arrives:
            assert q(case, case.t + h) == (before if before == np.inf else before + slope * h)
        return
    crossed = case.t + kink
    x = number(approaches.balance(approaches.considering(at(case, crossed), lost(case, crossed)), case.slo))
    assert x == 0
    behind, again = slope_and_crossing(case, crossed)
    assert again in (0, np.inf)
    rest = case.t + h
    onward = q(case, crossed)
    assert q(case, rest) == (onward if onward == np.inf else onward + behind * (h - kink))


# docs/metric.md, 'Several instances': n, up, sigma, and the slopes it states above and below sigma.


@pytest.mark.parametrize(("n", "up", "slo"), [(4, 1, F(1, 2)), (4, 3, F(9, 10)), (4, 0, F(4, 5)), (1, 0, F(3, 4))])
def test_waiting_falls_by_one_above_and_by_the_shortage_below(n: int, up: int, slo: Fraction) -> None:
    shortage = n * slo - up
    assert slopes(AGGREGATED, n, up, slo, counted=False) == (-1, -shortage / slo)
    assert slopes(CONCURRENT, n, up, slo, counted=False) == (-1, -n)


def test_waiting_with_enough_at_work_is_out_of_danger_or_recovers() -> None:
    assert slopes(AGGREGATED, 4, 3, F(1, 2), counted=False) == (0, 3 / F(1, 2) - 4)


@pytest.mark.parametrize(("n", "up", "slo"), [(4, 4, F(9, 10)), (4, 2, F(9, 10)), (3, 2, F(1, 2)), (1, 1, F(3, 4))])
def test_running_of_an_aggregated_service(n: int, up: int, slo: Fraction) -> None:
    expected = (up - n * slo) / (n * slo - up + 1) if n * slo - up + 1 > 0 else F(0)
    assert slopes(AGGREGATED, n, up, slo, counted=True) == (expected, (up - n * slo) / slo)


def test_running_of_a_concurrent_service() -> None:
    n, slo = 4, F(9, 10)
    assert slopes(CONCURRENT, n, 3, slo, counted=True) == (-1, -n)
    assert slopes(CONCURRENT, n, n, slo, counted=True) == ((n - n * slo) / (n * slo), n / slo - n)


@pytest.mark.parametrize(("n", "up", "slo"), [(4, 4, F(9, 10)), (4, 2, F(9, 10)), (1, 1, F(1, 2))])
def test_running_of_a_batch_request_falls_as_if_it_waited_already(n: int, up: int, slo: Fraction) -> None:
    shortage = n * slo - up + 1
    assert slopes(AGGREGATED, n, up, slo, counted=True, losing=True) == (-1, -shortage / slo)
    # In a start-up that counts as running nothing is at stake yet: as a service.
    assert slopes(AGGREGATED, n, up, slo, counted=True) == ((up - n * slo) / shortage, (up - n * slo) / slo)


def test_the_end_of_a_start_up_leaves_its_own_metric_and_lifts_its_waiting_siblings() -> None:
    before, after = Standing(F(90), F(0), F(5), 2, 2), Standing(F(90), F(0), F(5), 3, 1)
    own = [
        number(approaches.metric(AGGREGATED, s, F(9, 10), 0, counted))
        for s, counted in ((before, False), (after, True))
    ]
    assert own[0] == own[1]
    lifted = [number(approaches.metric(AGGREGATED, s, F(9, 10), 0, False)) for s in (before, after)]
    assert lifted[1] == lifted[0] * (F(36, 10) - 2) / (F(36, 10) - 3) > lifted[0]


def slopes(approach: int, n: int, up: int, slo: Fraction, *, counted: bool, losing: bool = False) -> tuple[Any, Any]:
    """Measured: the change of Q over a hundredth of a second, well above the SLO and well below it."""
    found = []
    for e, p in ((F(1000), F(0)), (F(1000), F(10**5))):
        now = Standing(e, F(0), p, up, n - up)
        h = F(1, 100)
        gained = up * h if approach == AGGREGATED or up == n else F(0)
        later = replace(now, e=now.e + gained, p=now.p + n * h - gained)
        lost = (F(0), h if losing else F(0))
        a, b = (
            number(approaches.metric(approach, s, slo, F(3), counted, gone))
            for s, gone in zip((now, later), lost, strict=True)
        )
        measured = F(0) if a == b == np.inf else (b - a) / h
        assert number(approaches.slope(approach, now, slo, counted, F(0), losing)) == measured
        found.append(measured)
    return found[0], found[1]


def test_kinks_lie_at_minus_alpha_and_infinity_is_only_ever_reached_upwards() -> None:
    # 3 of 4 run, SLO 1/2, ten seconds short: X grows by 3 / (1/2) - 4 = 2 a second, then nothing can go wrong.
    now = Standing(F(100), F(0), F(110), 3, 1)
    assert number(approaches.crossing(AGGREGATED, now, F(1, 2))) == 5
    later = replace(now, e=now.e + 15, p=now.p + 5)
    assert number(approaches.metric(AGGREGATED, now, F(1, 2), 7, False)) == -10 - 7
    assert number(approaches.metric(AGGREGATED, later, F(1, 2), 7, False)) == np.inf


@given(st.lists(cases(), min_size=1, max_size=4), st.sampled_from((F(1), F(1, 2), F(1, 4))))
@example([Case(((Incarnation(F(0)),),), F(0), AGGREGATED, False, F(1), F(0), 0)], F(1))
def test_arrays_give_what_single_numbers_give(many: list[Case], slo: Fraction) -> None:
    # Quarters of seconds and these SLOs are exact in binary, so that nothing lands on the other side of a bound.
    many = [replace(one, slo=slo) for one in many]
    each = [at(one) for one in many]
    fields = ("e", "d", "p", "r", "w")
    found = approaches.metric(
        np.array([one.approach for one in many]),
        Standing(*(np.array([float(number(getattr(one, name))) for one in each]) for name in fields)),
        np.array([float(one.slo) for one in many]),
        np.array([float(one.alpha) for one in many]),
        np.array([one.considered.runs for one in many]),
        np.array([float(lost(one)) for one in many]),
    )
    assert found.dtype == np.float64
    assert found.tolist() == pytest.approx([float(q(one)) for one in many], rel=1e-12)
