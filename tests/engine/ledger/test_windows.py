"""Promises over windows in a live cluster, against what they mean second by second."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from engine.workbench import T0, settings
from reference.window_definition import calendar_slack, rolling_share, rolling_slack
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger import checkpoint
from slacktide.engine.ledger.accounts import window_from
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.extrapolate import carry_on
from slacktide.engine.ledger.restore import restore
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.model import ServiceClass, Window
from slacktide.model.window import parse_epoch, turns
from slacktide.state.spec import Spec

ALPHA = 10.0
CLOSE = 2.0**-20
"""Seconds: a metric is rounded to the grid of times, or what a window must have received is; never both."""


class OneInstance:
    """A controller of one instance on one host, and every second of its life."""

    def __init__(self, window: Window | None, slo: float) -> None:
        self.service = ServiceClass("any", slo, 1, window=window)
        self.engine = self.new_engine()
        self.up: list[bool] = []
        self.pods = 0
        self.state = "gone"
        self.since = self.ready_since = T0
        self.arrive()

    def new_engine(self) -> Engine:
        engine = Engine(settings("always", ALPHA))
        engine.host("node", {"cpu": 1000, "memory": 2**33, "pods": 9}, {}, True)
        engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), self.service))
        engine.controller("c", self.service, 0, False)
        return engine

    @property
    def now(self) -> float:
        return T0 + len(self.up)

    @property
    def uid(self) -> str:
        return f"pod-{self.pods}"

    def arrive(self) -> None:
        self.pods += 1
        self.engine.arrive(self.uid, "pod", "c", 0, self.now)
        self.engine.wake(self.uid)
        self.state, self.created = "waiting", self.now

    def place(self) -> None:
        (decision,) = self.engine.run(self.now).decisions
        assert decision.uid == self.uid
        self.engine.bound(self.uid, self.now)
        self.state, self.since = "starting", self.now

    def ready(self) -> None:
        self.engine.ready(self.uid, self.now)
        self.state, self.ready_since = "up", self.now

    def unready(self) -> None:
        self.engine.unready(self.uid, self.now)
        self.state, self.ready_since = "starting", self.now

    def gone(self) -> None:
        self.engine.gone(self.uid, self.now)
        self.state = "gone"

    def pass_time(self, seconds: int) -> None:
        self.up += [self.state == "up"] * seconds

    def slack(self, at: float = 0.0) -> float:
        found = slo_status(self.engine, "c", self.now + at).slack
        assert found is not None
        return found + ALPHA

    def lead_anew(self) -> None:
        """Another leader begins from what the ledger says, as it comes back from the API server."""
        saved = json.loads(json.dumps(export(self.engine, "c", self.now)))
        pods: list[dict[str, Any]] = []
        if self.state != "gone":
            host = "" if self.state == "waiting" else "node"
            pods = [
                {"uid": self.uid, "name": "pod", "spec": 0, "host": host, "created": self.created, "since": self.since}
                | {"ready": self.state == "up", "ready_since": self.ready_since}
            ]
        engine = self.new_engine()
        restore(engine, "c", saved, pods, self.now)
        self.engine = engine
        if self.state == "waiting":
            engine.wake(self.uid)

    def step(self, rng: random.Random, longest: int) -> None:
        deeds = {
            "gone": (self.arrive,),
            "waiting": (self.place, self.gone),
            "starting": (self.ready, self.ready, self.gone),
            "up": (self.unready, self.gone),
        }
        rng.choice(deeds[self.state])()
        self.pass_time(rng.randint(0, 4 * longest if self.state == "up" else longest))


@pytest.mark.uncompiled
@pytest.mark.parametrize("budget", ["accrued", "whole"])
@pytest.mark.parametrize("slo", [1.0, 0.99, 0.9, 0.5, 1 / 3])
@pytest.mark.parametrize("leaders", [False, True], ids=["one leader", "leaders"])
def test_the_slack_of_a_rolling_window_is_what_it_means(budget: str, slo: float, leaders: bool) -> None:
    negative = mature = 0
    for seed in range(4):
        rng = random.Random(f"{budget} {slo} {leaders} {seed}")
        window = Window(rolling=float(rng.choice([60, 97, 240])), budget=budget)
        one = OneInstance(window, slo)
        for _ in range(50):
            one.step(rng, rng.choice([2, 9, 30]))
            if leaders and rng.random() < 0.3:
                one.lead_anew()
            expected = rolling_slack(one.up, window, slo)
            assert one.slack() == pytest.approx(expected, abs=CLOSE), (seed, len(one.up))
            stands = slo_status(one.engine, "c", one.now)
            assert stands.delivered == pytest.approx(rolling_share(one.up, window), abs=1e-9)
            negative += expected < 0
            mature += len(one.up) > (window.rolling or 0)
            if one.state != "waiting" and rng.random() < 0.3:
                one.engine.run(one.now)
    assert mature > 50
    assert negative > 4


@pytest.mark.parametrize("budget", ["accrued", "whole"])
@pytest.mark.parametrize("slo", [1.0, 0.99, 0.75, 0.5])
@pytest.mark.parametrize("leaders", [False, True], ids=["one leader", "leaders"])
def test_the_slack_of_a_calendar_window_is_what_it_means(budget: str, slo: float, leaders: bool) -> None:
    epoch = parse_epoch("1970-01-01T00:00:00Z")
    turned = 0
    for seed in range(3):
        rng = random.Random(f"{budget} {slo} {leaders} {seed}")
        window = Window(calendar="1d", budget=budget, time_zone=rng.choice(["UTC", "Europe/Berlin"]))
        one = OneInstance(window, slo)
        begins = [round(begin - T0) for begin in turns(window, epoch, T0, T0 + 5 * 86_400)]
        while len(one.up) < 2.2 * 86_400:
            one.step(rng, 9_000)
            if leaders and rng.random() < 0.4:
                one.lead_anew()
            expected = calendar_slack(one.up, window, slo, begins)
            assert one.slack() == pytest.approx(expected, abs=CLOSE), (seed, len(one.up), begins)
            turned += len(one.up) > begins[1]
            if one.state != "waiting" and rng.random() < 0.3:
                one.engine.run(one.now)
    assert turned > 10


def test_a_ledger_read_later_says_what_the_scheduler_would() -> None:
    states = set()
    for seed in range(60):
        rng = random.Random(seed)
        window = Window(rolling=97.0, budget=rng.choice(["accrued", "whole"]))
        if seed % 2 == 0:
            window = Window(calendar="1d", budget=rng.choice(["accrued", "whole"]))
        one = OneInstance(window, 0.9)
        for _ in range(rng.randint(1, 25)):
            one.step(rng, 9 if window.rolling else 9_000)
        saved = checkpoint.read(json.loads(json.dumps(export(one.engine, "c", one.now))))
        slack = one.slack() - ALPHA
        for later in (0.0, 5.0, 50.0, 5_000.0, 100_000.0):  # time cannot be turned back: each engine is asked once
            read = carry_on(saved, "always", 0.9, slack, one.now + later, 10.0)
            stands = slo_status(one.engine, "c", one.now + later)
            assert read.slack == pytest.approx(stands.slack, abs=1e-5), (seed, later)
            assert read.delivered == pytest.approx(stands.delivered, abs=1e-9), (seed, later)
            assert read.state == stands.state
            states.add(read.state)
    assert states == {"Kept", "AtRisk", "Missed"}


def test_a_class_that_gets_a_window_begins_it_then() -> None:
    one = OneInstance(None, 0.9)
    one.pass_time(500)  # waits
    one.place()
    one.ready()
    one.pass_time(1_000)
    one.engine.run(one.now)
    assert one.slack() < 0  # a third of its life was lost
    windowed = replace(one.service, window=Window(rolling=600.0, budget="accrued"))
    one.engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), windowed))
    one.engine.controller("c", windowed, 0, False)
    assert one.slack() == pytest.approx(0.0, abs=CLOSE)
    one.pass_time(300)
    assert one.slack() == pytest.approx(300 / 0.9 - 300, abs=CLOSE)
    one.unready()
    one.pass_time(20)
    assert one.slack() == pytest.approx(300 / 0.9 - 320, abs=CLOSE)
    less = replace(windowed, slo=0.5)
    one.engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), less))
    one.engine.controller("c", less, 0, False)
    assert one.slack() == pytest.approx(300 - 20, abs=CLOSE)  # of 600 s 300 are enough, and it has had these


def test_a_ledger_says_which_budget_its_window_has() -> None:
    """So one of a release in which another budget was the default is read as what it was."""
    for window, budget in ((Window(rolling=600.0), "whole"), (Window(rolling=600.0, budget="accrued"), "accrued")):
        one = OneInstance(window, 0.9)
        one.place()
        saved = json.loads(json.dumps(export(one.engine, "c", one.now)))
        assert saved["window"] == {"rolling": 600.0, "budget": budget, "time_zone": "UTC"}
        assert window_from(saved["window"]) == window


def test_there_is_room_for_all_outages_that_time_alone_tells_of() -> None:
    """Start-ups are noted when they leave their windows, and many began together."""
    service, many, at_once = ServiceClass("any", 0.5, 1, window=Window(rolling=60.0)), 400, 4
    engine = Engine(settings("always", ALPHA))
    engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), service))
    engine.controller("c", service, 0, False)
    for i in range(many):
        engine.host(f"node-{i}", {"cpu": 1000 * at_once, "memory": 2**33, "pods": 9}, {}, True)
    uids = [f"p{i}" for i in range(many * at_once)]
    for i, uid in enumerate(uids):
        engine.arrive(uid, uid, "c", 0, T0)
        engine.bound_elsewhere(uid, f"node-{i // at_once}", T0)
    for uid in uids:
        engine.ready(uid, T0 + 5.0)
    tables = engine.tables
    engine.turn(T0 + 500.0)  # it is so late now
    assert len(uids) <= int(tables.tb.control["outages"]) < len(tables.tb["outages"])
    assert slo_status(engine, "c", T0 + 500.0).slack == 30.0 - ALPHA


def test_a_ledger_of_a_promise_over_a_window_stays_small() -> None:
    one = OneInstance(Window(rolling=30 * 86_400.0), 0.99)
    one.place()
    for _ in range(200):
        one.ready()
        one.pass_time(60)
        one.unready()
        one.pass_time(1)
    assert len(json.dumps(export(one.engine, "c", one.now))) < 4_096
