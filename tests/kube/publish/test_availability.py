"""What a ledger says to people: when the promise can break, and why it is at risk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.workbench import T0, Workbench
from slacktide.engine.ledger.slo_status import SloStatus, slo_status
from slacktide.kube.publish.state_events import breaks_at, message


def ran_from_ten() -> Workbench:
    """Bronze (half is promised) waited for 10 s, and runs since."""
    bench = Workbench()
    bench.controller("c", "independent")
    bench.arrive("p", "c", 0)
    bench.run(0)
    bench.engine.bound("p", T0)
    bench.ready("p", 10)
    return bench


def ran_for_a_minute() -> SloStatus:
    """It ran for the last 50 of its 60 s."""
    return slo_status(ran_from_ten().engine, "c", T0 + 60)


def test_it_breaks_when_what_it_got_is_less_than_promised_of_the_time() -> None:
    found = ran_for_a_minute()
    assert found.alpha > 0.0
    # 50 s are half of 100 s, which are over 40 s after this.
    assert breaks_at(found, T0 + 60) == pytest.approx(T0 + 100)


def test_that_instant_stays_while_it_is_stopped_and_is_the_one_at_which_it_breaks() -> None:
    bench = ran_from_ten()
    bench.gone("p", 60)
    told = {breaks_at(slo_status(bench.engine, "c", T0 + at), T0 + at) for at in (60, 75, 99)}
    assert len(told) == 1
    (instant,) = told
    assert instant is not None
    assert slo_status(bench.engine, "c", instant - 0.01).state != "Missed"
    after = slo_status(bench.engine, "c", instant + 0.01)
    assert (after.state, breaks_at(after, instant + 0.01)) == ("Missed", None)


def test_what_cannot_break_has_no_such_instant() -> None:
    found = ran_for_a_minute()
    assert breaks_at(replace(found, slack=None), T0) is None
    assert breaks_at(replace(found, state="Unknown"), T0) is None


def test_only_a_risk_is_explained_and_the_reserve_is_no_loss() -> None:
    found = ran_for_a_minute()
    assert message(found) == ""
    risky = replace(found, state="AtRisk", slack=-5.6)
    assert message(replace(risky, delivered=0.6)) == (
        "kept so far; if all pods stopped now it would break in 4.4 s, less than the margin of class bronze, and 80% "
        "of the error budget is used"
    )
