"""Victims for room and for rules about neighbours are found together, as kube-scheduler finds them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.workbench import BRONZE, GOLD, SILVER, T0, settings
from slacktide.engine.core.engine import Engine
from slacktide.engine.explain import preemption
from slacktide.engine.explain.reasons import Explainer
from slacktide.model import NO_CONSTRAINT, Placement, Rule, ServiceClass, Term, Topology
from slacktide.model.constraint import Constraint
from slacktide.model.placement import HOST
from slacktide.state.spec import Spec

CORE = 1000
LATER = T0 + 600.0
ZONE = Topology("zone")
WEB = Placement(("web",), (Rule("spread", "web", ZONE, 1),))


class Scene:
    """Nodes of ten cores in domains of their own; those that run are ready for ten minutes when somebody comes."""

    def __init__(self, nodes: int = 2, **attributes: str) -> None:
        config = settings()
        self.engine = Engine(replace(config, policy=replace(config.policy, name="priority")))
        self.number = 0
        for i in range(nodes):
            self.engine.host(f"n{i}", {"cpu": 10 * CORE, "pods": 20}, {"zone": f"z{i}", **attributes}, True)

    def _new(self, uid: str, service: ServiceClass, cores: int, **fields: Any) -> int:
        self.number += 1
        self.engine.spec(self.number, Spec((("cpu", cores * CORE), ("pods", 1)), service, **fields))
        self.engine.controller(uid, service, 0, False)
        return self.number

    def runs(self, uid: str, service: ServiceClass, cores: int, node: str, *marks: str, budget: str = "") -> None:
        number = self._new(uid, service, cores, placement=Placement(tuple(marks)))
        self.engine.found(uid, uid, uid, number, node, T0, budget)
        self.engine.ready(uid, T0)

    def comes(self, cores: int, placement: Placement, term: Term = NO_CONSTRAINT) -> tuple[str, set[str]] | None:
        """Where a pod goes and who has to go for it."""
        number = self._new("new", SILVER, cores, placement=placement, term=term)
        self.engine.arrive("new", "new", "new", number, LATER)
        self.engine.wake("new")
        for one in self.engine.run(LATER).decisions:
            return one.host, {victim.uid for victim in one.victims}
        return None

    def reason(self) -> str:
        return Explainer(self.engine).reason("new", LATER)


def test_one_makes_room_and_the_second_mends_the_skew() -> None:
    scene = Scene()
    scene.runs("high", GOLD, 9, "n0", "web")
    for uid in ("a", "b", "c"):
        scene.runs(uid, BRONZE, 3, "n1", "web")
    found = scene.comes(3, WEB)
    assert found is not None
    assert found[0] == "n1"
    assert len(found[1]) == 2


def test_nobody_goes_who_need_not() -> None:
    """Of those that count only two have to go; the one that does not count fits beside."""
    scene = Scene()
    scene.runs("high", GOLD, 9, "n0", "web")
    for uid in ("a", "b", "c"):
        scene.runs(uid, BRONZE, 1, "n1", "web")
    scene.runs("other", BRONZE, 4, "n1")
    found = scene.comes(3, WEB)
    assert found is not None
    assert len(found[1] & {"a", "b", "c"}) == len(found[1]) == 2


def test_a_host_whose_rules_hold_is_preferred_to_one_where_they_are_mended() -> None:
    scene = Scene(3)
    scene.runs("high", GOLD, 9, "n0", "web")
    for uid in ("a", "b", "c"):
        scene.runs(uid, BRONZE, 3, "n1", "web")
    scene.runs("d", BRONZE, 9, "n2")
    assert scene.comes(3, WEB) == ("n2", {"d"})


@pytest.mark.parametrize("cores", [2, 3])
def test_anti_affinity_and_spread_are_mended_together(cores: int) -> None:
    scene = Scene()
    scene.runs("high", GOLD, 9, "n0", "web")
    scene.runs("apart", BRONZE, 3, "n1", "port:80")
    for uid in ("a", "b"):
        scene.runs(uid, BRONZE, 3, "n1", "web")
    rules = (*WEB.rules, Rule("away", "port:80", Topology(HOST)))
    found = scene.comes(cores, Placement(("web",), rules))
    assert found is not None
    assert found[0] == "n1"
    assert "apart" in found[1]
    assert len(found[1]) == 2


def test_whom_it_must_be_near_stays() -> None:
    scene = Scene()
    scene.runs("high", GOLD, 10, "n0", "web")
    scene.runs("db", BRONZE, 4, "n1", "db")
    for uid in ("a", "b"):
        scene.runs(uid, BRONZE, 3, "n1", "web")
    rules = (*WEB.rules, Rule("near", "db", Topology(HOST)))
    found = scene.comes(3, Placement(("web",), rules))
    assert found is not None
    assert found[0] == "n1"
    assert found[1] in ({"a"}, {"b"})


def test_a_budget_that_is_used_up_keeps_the_skew_as_it_is_and_the_reason_says_so() -> None:
    scene = Scene(10)
    for i in range(2, 10):
        scene.engine.host(f"n{i}", {"cpu": 10 * CORE, "pods": 20}, {"other": "yes"}, True)
    scene.engine.budget("web", 1)
    scene.runs("high", GOLD, 9, "n0", "web")
    for uid in ("a", "b", "c"):
        scene.runs(uid, BRONZE, 3, "n1", "web", budget="web")
    assert scene.comes(3, WEB, Term((Constraint("other", "absent"),))) is None
    said = scene.reason()
    wrong = "8 node(s) didn't match Pod's node affinity/selector (other absent)"
    assert said.startswith(f"0/10 nodes are available: {wrong}, 2 Insufficient cpu. preemption: ")
    assert f"1 {preemption.PROTECTED}" in said
    scene.engine.budget("web", 2)
    (decision,) = scene.engine.run(LATER + 1.0).decisions
    assert (decision.host, len(decision.victims)) == ("n1", 2)


def test_where_others_on_the_domain_are_too_many_the_reason_says_so() -> None:
    scene = Scene(2)
    scene.engine.host("n2", {"cpu": 10 * CORE, "pods": 20}, {"zone": "z1"}, True)
    scene.runs("high", GOLD, 9, "n0", "web")
    scene.runs("a", BRONZE, 9, "n1", "web")
    for uid in ("b", "c"):
        scene.runs(uid, GOLD, 4, "n2", "web")
    assert scene.comes(3, WEB) is None
    assert preemption.CROWDED in scene.reason()
