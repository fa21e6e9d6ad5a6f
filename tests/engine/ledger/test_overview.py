"""The overview of all controllers says of each what ``standing`` says of it alone."""

from __future__ import annotations

import math
from dataclasses import astuple, fields

import numpy as np
import pytest

from engine.workbench import BRONZE, GOLD, T0, Chaos, engine_with
from slacktide.config import Accounting
from slacktide.engine.ledger.overview import STATES, joined, overview
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.kernels.drive import live_events
from slacktide.model import INDEPENDENT
from support.calls import calls_of

ACCOUNTINGS: tuple[Accounting, ...] = ("always", "restart", "never")


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("seed", range(12))
def test_every_controller_stands_as_it_does_alone(seed: int, accounting: Accounting) -> None:
    chaos = Chaos(seed, accounting)
    for step in range(150):
        chaos.step()
        if step % 10:
            continue
        engine = chaos.bench.engine
        at = max(T0 + chaos.t + 3.5, engine.latest)
        found = overview(engine, at)
        assert found.at == at
        for i, one in enumerate(found.controllers):
            alone = slo_status(engine, one.key, at)
            assert found.promised[i] == alone.promised
            assert math.isclose(found.delivered[i], alone.delivered, rel_tol=1e-12)
            assert found.slack[i] == (math.inf if alone.slack is None else alone.slack)
            assert STATES[found.state[i]] == alone.state
            assert (found.running[i], found.waiting[i]) == (alone.running, alone.waiting)
            assert (found.preemptions[i], found.starts[i]) == (alone.preemptions, alone.starts)
            assert found.losses[i].tolist() == list(astuple(alone.losses))
            if one.approach != INDEPENDENT:
                assert found.slack[i] == live_events.weigh(engine.tables.tb.state, one.q, at)


def test_only_the_controllers_asked_for() -> None:
    chaos = Chaos(3)
    for _ in range(50):
        chaos.step()
    found = overview(chaos.bench.engine, T0 + chaos.t, ["c1"])
    assert [one.key for one in found.controllers] == ["c1"]


def test_ten_thousand_controllers_take_few_calls_each() -> None:
    engine = engine_with(hosts=100, cores=200)
    for i in range(10_000):
        engine.controller(f"c{i}", (GOLD, BRONZE)[i % 2], i % 3, False)
        engine.arrive(f"u{i}", f"u{i}", f"c{i}", 0, T0)
    assert calls_of(lambda: overview(engine, T0 + 10)) < 30 * 10_000


def test_parts_make_the_whole() -> None:
    chaos = Chaos(5)
    for _ in range(150):
        chaos.step()
    engine, at = chaos.bench.engine, T0 + chaos.t
    keys = list(engine.controllers)
    assert len(keys) > 2
    whole, parts = overview(engine, at), joined([overview(engine, at, keys[:1]), overview(engine, at, keys[1:])])
    assert (parts.at, parts.controllers) == (whole.at, whole.controllers)
    for one in fields(whole)[2:]:
        ours, theirs = getattr(parts, one.name), getattr(whole, one.name)
        assert np.array_equal(ours, theirs, equal_nan=theirs.dtype.kind == "f"), one.name
