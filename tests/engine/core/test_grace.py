"""Of several hosts with victims the one is chosen whose victims are gone while the beneficiary can still wait."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from engine.workbench import BRONZE, SILVER, T0, settings
from reference.costs import COSTS, Victim, lateness
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.kernels.drive import apply_plan
from slacktide.model import ServiceClass
from slacktide.state.spec import Spec

ROOM = (("cpu", 4000), ("pods", 1))
PATIENT = ServiceClass("patient", 0.5, 1, margin=1000.0)
"""One of it may preempt while it has much slack."""
LIFE = 500.0


def cluster(victims: list[tuple[ServiceClass, float, float]], cost: str = "fewest-victims") -> Engine:
    """Nodes with one pod each: its class, grace period, and for how long it has run at T0 + LIFE."""
    config = settings()
    engine = Engine(replace(config, policy=replace(config.policy, cost=cost)))
    for number, (service, grace, ran) in enumerate(victims):
        name, at = f"victim-{number}", T0 + LIFE - ran
        engine.host(f"node-{number}", {"cpu": 4000, "pods": 5}, {}, True)
        engine.spec(number, Spec(ROOM, service, grace=grace))
        engine.controller(name, service, 0, False)
        engine.arrive(name, name, name, number, at)
        engine.bound_elsewhere(name, f"node-{number}", at)
        engine.ready(name, at)
    return engine


def decided(engine: Engine, had: float) -> Decision | None:
    """What becomes of a pod that has run for so many seconds before, at T0 + LIFE."""
    engine.host("former", {"cpu": 4000, "pods": 5}, {}, True)
    engine.spec(99, Spec(ROOM, PATIENT))
    engine.controller("j", PATIENT, 0, False)
    engine.arrive("j-1", "j", "j", 99, T0 + LIFE - had)
    engine.bound_elsewhere("j-1", "former", T0 + LIFE - had)
    engine.ready("j-1", T0 + LIFE - had)
    engine.gone("j-1", T0 + LIFE)
    engine.host("former", {"cpu": 4000, "pods": 5}, {}, False)
    engine.arrive("j-2", "j", "j", 99, T0 + LIFE)
    engine.wake("j-2")
    return next(iter(engine.run(T0 + LIFE).decisions), None)


def host_of(decision: Decision | None) -> str:
    return "" if decision is None else decision.host


def is_eligible(service: ServiceClass, theirs: float, mine: float) -> bool:
    """Whether a running one may be preempted for a patient one (docs/semantics.md), with a patience of 60 s."""
    if theirs >= service.margin:
        return mine < theirs
    return service.rank > PATIENT.rank or mine + 60.0 < theirs


@pytest.mark.uncompiled
def test_a_victim_that_is_gone_in_time_goes_first() -> None:
    for graces in ((3600.0, 30.0), (30.0, 3600.0)):
        found = decided(cluster([(BRONZE, grace, 300.0) for grace in graces]), had=70.0)
        assert found is not None
        assert (found.metric, found.host) == (60.0, f"node-{graces.index(30.0)}")


@pytest.mark.uncompiled
def test_one_that_can_wait_for_all_does_not_mind() -> None:
    for graces in ((50.0, 30.0), (30.0, 50.0)):
        # The first has more slack to give, whatever its grace.
        engine = cluster([(BRONZE, graces[0], 400.0), (BRONZE, graces[1], 300.0)], "slack")
        assert host_of(decided(engine, had=70.0)) == "node-0"


@pytest.mark.uncompiled
@pytest.mark.parametrize("cost", COSTS)
def test_a_less_important_victim_is_no_reason_to_be_late(cost: str) -> None:
    victims = [(BRONZE, 100.0, 1.0), (SILVER, 30.0, 1.0)]
    assert host_of(decided(cluster(victims, cost), had=20.0)) == "node-1"
    equal = [(service, 30.0, ran) for service, _, ran in victims]
    assert host_of(decided(cluster(equal, cost), had=20.0)) == "node-0"


@pytest.mark.uncompiled
@pytest.mark.parametrize("cost", COSTS)
def test_the_choice_is_the_twins(cost: str) -> None:
    differs = 0
    for seed in range(80):
        dice = random.Random(seed)
        victims = [
            (dice.choice((PATIENT, SILVER, BRONZE)), dice.choice((1.0, 30.0, 60.0, 300.0)), dice.randint(1, 4000) / 10)
            for _ in range(dice.randint(2, 6))
        ]
        engine, had = cluster(victims, cost), dice.randint(10, 1000) / 10
        engine.tables.settle()
        state, rows = engine.tables.tb.state, [engine.pods[f"victim-{i}"].row for i in range(len(victims))]
        q = [float(apply_plan.metric_on_host(state, h, row, T0 + LIFE)) for h, row in enumerate(rows)]
        found = decided(engine, had)
        if found is None:
            continue  # nobody may be preempted
        merits, without = list[tuple[float, ...]](), list[tuple[float, ...]]()
        for metric, (service, grace, _) in zip(q, victims, strict=True):
            first, *rest = COSTS[cost]([Victim(service.rank, metric, service.margin)], [1, 2, 3])
            able = is_eligible(service, metric, found.metric)
            merits.append((first, -lateness([grace], found.metric), *rest) if able else (float("-inf"),))
            without.append((first, *rest) if able else (float("-inf"),))
        chosen = int(found.host.removeprefix("node-"))
        assert merits[chosen] == max(merits), (seed, merits)
        costs_no_more = (other >= without[chosen] for other in without)
        differs += any(no_more and merit < max(merits) for no_more, merit in zip(costs_no_more, merits, strict=True))
    assert differs > 10
