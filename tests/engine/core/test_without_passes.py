"""An engine that follows reality has no passes: workloads come and go, and nobody looks what changed meanwhile."""

from __future__ import annotations

from engine.workbench import SILVER, T0, settings
from slacktide.engine.core.engine import Engine
from slacktide.state.spec import Spec


def test_requests_that_come_and_go_are_noted_once_for_each_place() -> None:
    engine = Engine(settings())
    engine.host("h", {"cpu": 64_000, "memory": 2**40, "pods": 100}, {}, True)
    engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), SILVER))
    tb = engine.tables.tb
    for number in range(200):  # more than there is room for at once
        key, at = f"Job/shop/job-{number}/{number}", T0 + 10.0 * number
        engine.controller(key, SILVER, 2, True)
        engine.arrive(key, key, key, 0, at)
        engine.wake(key)
        engine.bound_elsewhere(key, "h", at + 1.0)
        engine.ready(key, at + 2.0)
        engine.gone(key, at + 3.0, True)
        if key in engine.controllers:
            engine.controller_gone(key, at + 4.0)
        noted = tb["stirred"][: int(tb.control["stirred"])].tolist()
        assert len(noted) == len(set(noted)) <= engine.tables.requests, number
    assert engine.tables.requests < 5
