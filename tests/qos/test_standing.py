"""How promises stand, in plain NumPy, as the kernels say it."""

from __future__ import annotations

import numpy as np
import pytest

from slacktide import settings
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.slo_status import STATES, slo_status
from slacktide.model import ServiceClass
from slacktide.qos.standing import at_risk, budget_left, delivered_of, left_of
from slacktide.state.spec import Spec


@pytest.mark.parametrize("seed", range(20))
def test_a_single_instance_stands_as_the_engine_says(seed: int) -> None:
    random = np.random.default_rng(seed)
    slo = float(random.choice([0.5, 0.9, 0.95, 0.999]))
    service = ServiceClass("c", slo, 1, margin=float(random.choice([0.0, 5.0, 30.0])))
    engine = Engine(settings.load())
    engine.host("n", {"cpu": 1}, {}, True)
    engine.spec(0, Spec((("cpu", 1),), service))
    engine.controller("k", service, 0, False)
    engine.arrive("u", "u", "k", 0, 1000.0)
    engine.wake("u")
    placed = 1000.0 + float(random.uniform(0.0, 20.0))
    engine.run(placed)
    engine.bound("u", placed)
    engine.ready("u", placed)
    now = placed + float(random.uniform(1.0, 200.0))
    found = slo_status(engine, "k", now)
    lifetime, share = np.array([now - 1000.0]), np.array([found.delivered])
    left = left_of(share, lifetime, np.array([slo]))
    assert found.slack is not None
    assert left[0] == pytest.approx(found.slack + engine.config.qos.alpha, abs=1e-4)
    assert delivered_of(left, lifetime, np.array([slo]))[0] == pytest.approx(found.delivered)
    risky = at_risk(left, share, np.array([slo]), np.array([service.margin]))[0]
    expected = "Missed" if found.delivered < slo - 1e-9 else "AtRisk" if risky else "Kept"
    assert found.state == expected
    assert found.state in STATES


def test_the_budget_that_is_left() -> None:
    assert budget_left(0.9, 0.95) == pytest.approx(0.5)
    assert budget_left(0.9, 0.8) == pytest.approx(-1.0)
    assert (budget_left(1.0, 1.0), budget_left(1.0, 0.999)) == (1.0, 0.0)
