"""A ledger carried on says what the engine would say at that instant, while nothing happens."""

from __future__ import annotations

import json
import math

import pytest

from live.workbench import T0, Chaos
from slacktide.config import Accounting
from slacktide.live import parts
from slacktide.live.books import export, read
from slacktide.live.carrying_on import accountings, carry_on
from slacktide.live.standing import standing

ACCOUNTINGS: tuple[Accounting, ...] = ("always", "restart", "never")


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("seed", range(15))
def test_carried_on_is_what_the_engine_says(seed: int, accounting: Accounting) -> None:
    chaos, compared = Chaos(seed, accounting), 0
    for _ in range(150):
        chaos.step()
        engine = chaos.bench.engine
        at = max(T0 + chaos.t, engine.latest)
        for key, controller in engine.controllers.items():
            theirs = [
                engine.incarnations[engine.uid_of_row[row]] for row in controller.rows if row in engine.uid_of_row
            ]
            if any(one.state == parts.LEAVING or (one.state == parts.PLACED and not one.bound) for one in theirs):
                continue
            found = standing(engine, key, at)
            books = read(json.loads(json.dumps(export(engine, key, at))))
            assert accounting in accountings(books, round(found.delivered, 6))
            for later in (0.0, 0.75, 30.0, 4096.5):
                then = standing(engine, key, at + later)
                carried = carry_on(books, accounting, found.promised, found.slack, at + later)
                assert math.isclose(carried.delivered, then.delivered, rel_tol=1e-12, abs_tol=1e-15)
                if carried.slack is not None:
                    assert then.slack is not None
                    assert math.isclose(carried.slack, then.slack, abs_tol=1e-5)
                    compared += 1
                elif then.slack is not None:
                    assert found.slack is None, "only a slack that was infinite is not known later"
    assert compared > 200
