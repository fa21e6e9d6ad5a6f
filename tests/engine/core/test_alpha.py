"""Workloads that are expected to take another time to start than before, while they wait and run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.workbench import T0, settings
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.engine.ledger.overview import overview
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.model import APPROACHES, DEFAULT_CLASSES
from slacktide.state.spec import Spec
from support.churning import Churn, live_config

ALPHAS = (None, 0.0, 5.0, 60.0)


class Moving(Churn):
    """Some workloads are moved between classes of one name that differ in ``alpha``, before each pass."""

    def __init__(self, engine: Engine, seed: int, *, forgetful: bool) -> None:
        super().__init__(engine, seed)
        self.forgetful = forgetful

    def decide(self) -> None:
        for key in list(self.of):
            if self.chance(0.3):
                self.move(key, self.pick(ALPHAS))
        if self.forgetful:
            self.engine.tables.resource(
                f"nobody-asks-for-{len(self.engine.tables.resources)}"
            )  # all hosts are looked at anew
        super().decide()

    def move(self, key: str, alpha: float | None) -> None:
        batch, spec, number = self.shape[key]
        controller = self.engine.controllers[key]
        service = replace(spec.service, alpha=alpha)
        if service == controller.service:
            return
        moved = replace(spec, service=service)
        new = self.number()
        self.specs[new], self.users[new] = moved, 0
        self.engine.spec(new, moved)
        self.shape[key] = batch, moved, new
        first = int(self.random.integers(len(self.of[key]) + 1))  # pods may be told of it before their workload
        for place, uid in enumerate([*self.of[key], ""]):
            if place == first:
                self.engine.controller(key, service, controller.approach, batch)
            if not uid:
                continue
            pod = self.pods[uid]
            self.engine.respec(uid, new)
            self.users[new] += 1
            old, pod.spec = pod.spec, new
            self.drop_user(old)
        if number in self.users and not self.users[number]:
            self.users[number] = 1
            self.drop_user(number)


def decided(seed: int, *, forgetful: bool) -> list[Decision]:
    churn = Moving(Engine(live_config(preempt_when="better")), seed, forgetful=forgetful)
    for _ in range(60):
        churn.step(float(churn.random.exponential(1.5)))
    return churn.decisions


@pytest.mark.parametrize("seed", range(6))
def test_what_is_remembered_of_hosts_holds_while_workloads_move(seed: int) -> None:
    remembered = decided(seed, forgetful=False)
    assert remembered == decided(seed, forgetful=True)
    assert any(one.victims for one in remembered)


def test_a_workload_decides_by_its_own_and_says_so() -> None:
    """Silver (.9) runs from 0 to 90 and waits since: 90 / .9 - 90 = 10 s are left, less what a start is to take."""
    config = settings(alpha=10.0)
    slow = replace(DEFAULT_CLASSES[1], alpha=180.0)
    engine = Engine(config)
    engine.host("node", {"cpu": 2000, "memory": 2**33, "pods": 10}, {}, True)
    for number, service in enumerate((DEFAULT_CLASSES[1], slow)):
        engine.spec(number, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), service))
        engine.controller(f"c{number}", service, APPROACHES.index("aggregated"), False)
        engine.found(f"p{number}", f"p{number}", f"c{number}", number, "node", T0)
        engine.ready(f"p{number}", T0)
        engine.gone(f"p{number}", T0 + 90)
    found = [slo_status(engine, f"c{number}", T0 + 90) for number in (0, 1)]
    assert [(one.slack, one.alpha, one.state) for one in found] == [(0.0, 10.0, "Kept"), (-170.0, 180.0, "Kept")]
    assert overview(engine, T0 + 90).alpha.tolist() == [10.0, 180.0]
    assert [one.service.name for one in engine.controllers.values()] == ["silver", "silver"]
    engine.controller("c1", DEFAULT_CLASSES[1], APPROACHES.index("aggregated"), False)
    assert slo_status(engine, "c1", T0 + 90).slack == 0.0


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_workload_is_not_given_up_for_its_slow_start(alpha: float | None) -> None:
    """Whoever has just come is behind by nothing. It is late once it is behind by savable - qos.alpha: 30 s."""
    engine = Engine(settings(alpha=10.0, overload="triage"))
    engine.host("small", {"cpu": 1, "memory": 2**33, "pods": 10}, {}, True)
    service = replace(DEFAULT_CLASSES[1], alpha=alpha)
    engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), service))
    engine.controller("c", service, APPROACHES.index("independent"), False)
    engine.arrive("p", "p", "c", 0, T0)
    engine.wake("p")
    late = []
    for seconds in (0, 1, 29, 31):
        engine.run(T0 + seconds)
        found = slo_status(engine, "c", T0 + seconds)
        late.append((found.lost + found.starving, engine.tables.overloaded()["silver"]))
    assert late == [(0, False)] * 3 + [(1, True)]
