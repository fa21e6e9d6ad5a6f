"""A ledger carried on says what the engine would say at that instant, while nothing happens."""

from __future__ import annotations

import json
import math

import pytest

from engine.workbench import T0, Chaos, Workbench
from slacktide.config import Accounting
from slacktide.engine.core import types
from slacktide.engine.ledger.checkpoint import read
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.extrapolate import Carried, accountings, carry_on
from slacktide.engine.ledger.slo_status import slo_status

ACCOUNTINGS: tuple[Accounting, ...] = ("always", "restart", "never")


def test_what_runs_receives_all_of_its_lifetime_and_what_waits_nothing() -> None:
    bench = Workbench()
    bench.controller("c", "aggregated")  # bronze: half is promised
    bench.arrive("p", "c", 0)
    bench.run(0)
    bench.engine.bound("p", T0)
    bench.ready("p", 10)
    books = read(json.loads(json.dumps(export(bench.engine, "c", T0 + 20))))
    assert carry_on(books, "always", 0.5, None, T0 + 20) == Carried(10 / 20, None, None, "Kept")
    assert carry_on(books, "always", 0.5, None, T0 + 60) == Carried(50 / 60, None, None, "Kept")
    bench.gone("p", 60)
    books = read(json.loads(json.dumps(export(bench.engine, "c", T0 + 60))))
    # Received 50, lived 60: twice 50 less 60 is 40 s, and with alpha 10 s a slack of 30; 12 s later it is 12 s less.
    assert carry_on(books, "always", 0.5, 30.0, T0 + 72) == Carried(50 / 72, 18.0, 28.0, "Kept")
    assert carry_on(books, "always", 0.5, 30.0, T0 + 72, margin=29.0).state == "AtRisk"


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("seed", range(5))
def test_carried_on_is_what_the_engine_says(seed: int, accounting: Accounting) -> None:
    chaos, compared = Chaos(seed, accounting), 0
    for _ in range(150):
        chaos.step()
        engine = chaos.bench.engine
        at = max(T0 + chaos.t, engine.latest)
        for key, controller in engine.controllers.items():
            theirs = [engine.pods[engine.uid_of_row[row]] for row in controller.rows if row in engine.uid_of_row]
            if any(one.state == types.LEAVING or (one.state == types.PLACED and not one.bound) for one in theirs):
                continue
            found = slo_status(engine, key, at)
            books = read(json.loads(json.dumps(export(engine, key, at))))
            assert accounting in accountings(books, round(found.delivered, 6))
            for later in (0.0, 0.75, 30.0, 4096.5):
                then = slo_status(engine, key, at + later)
                margin = controller.service.margin
                carried = carry_on(books, accounting, found.promised, found.slack, at + later, margin)
                assert carried.state == then.state
                assert math.isclose(carried.delivered, then.delivered, rel_tol=1e-12, abs_tol=1e-15)
                if carried.slack is not None:
                    assert then.slack is not None
                    assert math.isclose(carried.slack, then.slack, abs_tol=1e-5)
                    compared += 1
                elif then.slack is not None:
                    assert found.slack is None, "only a slack that was infinite is not known later"
    assert compared > 200
