"""Plans on a live engine whose nodes change: cordoned, relabelled, and with an accelerator that comes and goes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from engine.shortage import live_settings
from engine.workbench import T0
from slacktide.engine.core.engine import Engine
from slacktide.model import NO_CONSTRAINT, Constraint, ServiceClass, Term, Window
from slacktide.model.constraint import Tolerates, taint_attribute
from slacktide.state.compaction import compact
from slacktide.state.spec import Spec

GOLD = ServiceClass("gold", 0.99, 1, window=Window(rolling=7200.0), alpha=5.0)
CORDONED = {taint_attribute("NoSchedule", "node.kubernetes.io/unschedulable"): ""}
EVERYWHERE, IN_A = Term((Tolerates(),)), Term((Constraint("zone", "==", "a"),))


@dataclass
class Services:
    """Services of one pod each, found where they run; nodes of ten CPU."""

    engine: Engine = field(default_factory=lambda: Engine(live_settings()))
    now: float = T0
    count: int = 0

    def node(self, name: str, attributes: dict[str, str] | None = None, devices: int = 0) -> None:
        amounts = {"cpu": 10_000, "memory": 2**38, "pods": 200, "accelerator": devices}
        self.engine.host(name, amounts, attributes or {}, True)

    def run_on(self, node: str, term: Term = NO_CONSTRAINT, cpu: int = 1000, devices: int = 0) -> None:
        """One more service; without a node its pod waits."""
        number, self.count = self.count, self.count + 1
        demand = (("cpu", cpu), ("memory", 2**30), ("pods", 1), *((("accelerator", devices),) if devices else ()))
        self.engine.spec(number, Spec(demand, GOLD, term))
        self.engine.controller(f"s{number}", GOLD, 0, False, False, self.now)
        if node:
            self.engine.found(f"p{number}", f"s{number}", f"s{number}", number, node, self.now)
            self.engine.ready(f"p{number}", self.now + 5.0)
        else:
            self.engine.arrive(f"p{number}", f"s{number}", f"s{number}", number, self.now)
            self.engine.wake(f"p{number}")

    def passes(self, count: int, seconds: float = 10.0) -> None:
        for _ in range(count):
            self.now += seconds
            self.engine.run(self.now)

    @property
    def given_up(self) -> int:
        return int(self.engine.tables.tb.control["given_up"])

    @property
    def pools(self) -> int:
        return int((self.engine.tables.tb["pools"]["kind"] >= 0).sum())


@pytest.mark.parametrize("cordoned", [4, 10])
def test_nobody_is_given_up_for_nodes_that_are_cordoned(cordoned: int) -> None:
    """They run on there, and what they hold is theirs, though the nodes would take none of them now."""
    services = Services()
    for number in range(20):
        services.node(f"n{number}")
    for number in range(170):
        services.run_on(f"n{number % 20}", EVERYWHERE)
    services.passes(6)
    for number in range(cordoned):
        services.node(f"n{number}", CORDONED)
    services.passes(30)
    assert (services.given_up, services.pools) == (0, 0)


def test_nobody_is_given_up_for_nodes_that_leave_a_zone() -> None:
    services = Services()
    for number in range(10):
        services.node(f"n{number}", {"zone": "a" if number < 5 else "b"})
    for number in range(35):
        services.run_on(f"n{number % 5}", IN_A)
    services.passes(6)
    for number in range(5):
        services.node(f"n{number}", {"zone": "b"})
        services.passes(10)
        assert services.given_up == 0, number


def test_only_who_is_bound_to_a_zone_is_given_up_for_its_shortage_whatever_kinds_are_dropped() -> None:
    services = Services()
    for number in range(4):
        services.node(f"n{number}", {"zone": "a" if number < 2 else "b"})
    for number in range(20):
        services.run_on(f"n{number % 2}", IN_A)
    for number in range(10):
        services.run_on(f"n{2 + number % 2}")
    services.passes(6)
    assert (services.given_up, services.pools) == (0, 0)
    for _ in range(3):
        services.run_on("", IN_A)
    services.passes(200)
    assert (services.given_up, services.pools) == (3, 1)
    compact(services.engine.tables)
    assert services.pools == 1
    services.passes(60)
    assert (services.given_up, services.pools) == (3, 1)


def test_an_accelerator_that_is_gone_for_some_seconds_leaves_no_nonsense_behind() -> None:
    """Nine ask for one of eight devices. While the plugin starts anew there are none."""
    services = Services()
    services.node("n0", devices=8)
    services.node("n1")
    for number in range(9):
        services.run_on("n0" if number < 8 else "", cpu=100, devices=1)
    for _ in range(3):
        services.run_on("n0", cpu=100)
    services.passes(60)
    assert (services.given_up, services.pools) == (1, 1)
    services.node("n0", devices=0)
    services.passes(1)
    services.node("n0", devices=8)
    services.passes(60)
    assert services.given_up == 1
