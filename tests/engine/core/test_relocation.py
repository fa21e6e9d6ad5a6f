"""Whether a pod that waits for its resize may be moved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.workbench import BRONZE, GOLD, T0, settings
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.relocation import NO_ROOM, NOT_ALL_READY, PROTECTED, is_whole, obstacle
from slacktide.model import Placement, Rule, ServiceClass, Term, Topology
from slacktide.model.constraint import Constraint
from slacktide.model.placement import CLUSTER, HOST
from slacktide.state.spec import Spec

CORE = 1000
WANTED = {"cpu": 3 * CORE, "pods": 1}
APART = Placement(("web",), (Rule("away", "web", Topology(HOST)),))


def two_pods(
    hosts: int = 2, cores: int = 4, service: ServiceClass = BRONZE, placement: Placement = APART, least: float = 0.0
) -> Engine:
    """Pods a and b of one controller, of a core each, ready since 10 s, on node-0 and node-1, of ``hosts`` nodes."""
    config = settings()
    engine = Engine(replace(config, policy=replace(config.policy, min_running=least)))
    for i in range(hosts):
        engine.host(f"node-{i}", {"cpu": cores * CORE, "pods": 10}, {"node": str(i)}, True)
    engine.spec(0, Spec((("cpu", CORE), ("pods", 1)), service, Term(), placement))
    engine.controller("web", service, 0, False)
    for i, uid in enumerate("ab"):
        engine.arrive(uid, uid, "web", 0, T0)
        engine.bound_elsewhere(uid, f"node-{i}", T0)
        engine.ready(uid, T0 + 10)
    return engine


def test_a_pod_may_move_to_a_node_with_room_once_it_has_slack() -> None:
    # Promised .5 and ready after 10 s: at t it has (t - 10) / .5 - t - 10 = t - 30 s of slack, and keeps 10.
    engine = two_pods(hosts=3)
    assert "its slack of 9.0 s is below the 10 s margin of its class" in obstacle(engine, "a", WANTED, T0 + 39)
    assert obstacle(engine, "a", WANTED, T0 + 41) == ""


def test_a_pod_is_not_in_its_own_way_but_others_are() -> None:
    # On node-1 runs b, from which a keeps away, be it on every node or in the whole cluster.
    assert obstacle(two_pods(hosts=2), "a", WANTED, T0 + 100) == NO_ROOM
    assert obstacle(two_pods(hosts=2, placement=Placement()), "a", WANTED, T0 + 100) == ""
    engine = two_pods(hosts=3, placement=Placement(("web",), (Rule("away", "web", Topology(CLUSTER)),)))
    assert obstacle(engine, "a", WANTED, T0 + 100) == NO_ROOM
    assert engine.tables.tb["tallies"].sum() == 2, "asking counts nobody"
    engine.desired("web", 1, T0 + 100)
    engine.gone("b", T0 + 100)
    assert obstacle(engine, "a", WANTED, T0 + 101) == ""
    assert engine.tables.tb["tallies"].sum() == 1, "asking counts nobody"


def test_its_own_node_is_no_node_to_move_to_though_it_seems_to_have_room() -> None:
    engine = two_pods(hosts=1 + 1, placement=APART)
    assert obstacle(engine, "a", {"cpu": CORE, "pods": 1}, T0 + 100) == NO_ROOM


@pytest.mark.parametrize(("wanted", "hosts"), [({"cpu": 5 * CORE}, 3), ({"cpu": CORE, "x.io/y": 1}, 3), (WANTED, 2)])
def test_nobody_moves_without_a_node_that_has_room(wanted: dict[str, int], hosts: int) -> None:
    assert obstacle(two_pods(hosts=hosts), "a", wanted, T0 + 100) == NO_ROOM


def test_a_node_that_takes_nobody_is_no_node_to_move_to() -> None:
    engine = two_pods(hosts=3)
    engine.host("node-2", {"cpu": 4 * CORE, "pods": 10}, {"node": "2"}, False)
    assert obstacle(engine, "a", WANTED, T0 + 100) == NO_ROOM


def test_a_node_from_which_its_volumes_cannot_be_used_is_no_node_to_move_to() -> None:
    engine = two_pods(hosts=4)
    assert obstacle(engine, "a", WANTED, T0 + 100, Term((Constraint("node", "in", values=("0", "1")),))) == NO_ROOM
    assert obstacle(engine, "a", WANTED, T0 + 100, Term((Constraint("node", "in", values=("0", "3")),))) == ""


def test_nobody_moves_while_another_of_its_controller_is_missing() -> None:
    engine = two_pods(hosts=3)
    engine.unready("b", T0 + 90)
    assert obstacle(engine, "a", WANTED, T0 + 100) == NOT_ALL_READY
    assert not is_whole(engine, "web")
    engine.ready("b", T0 + 95)
    assert obstacle(engine, "a", WANTED, T0 + 100) == ""
    assert is_whole(engine, "web")
    engine.desired("web", 2, T0 + 100)
    engine.gone("b", T0 + 101)
    assert obstacle(engine, "a", WANTED, T0 + 102) == NOT_ALL_READY


def test_nobody_moves_against_its_budget_or_its_least_running_time() -> None:
    engine = two_pods(hosts=3)
    engine.budget("default/web", 0)
    engine.protect("a", "default/web")
    assert obstacle(engine, "a", WANTED, T0 + 100) == PROTECTED
    engine.budget("default/web", 1)
    assert obstacle(engine, "a", WANTED, T0 + 100) == ""
    assert obstacle(two_pods(hosts=3, least=200.0), "a", WANTED, T0 + 100) == PROTECTED
    assert obstacle(two_pods(hosts=3, least=50.0), "a", WANTED, T0 + 100) == ""


def test_nobody_moves_who_is_told_to_go_or_never_came() -> None:
    engine = two_pods(hosts=3)
    engine.doomed("a")
    assert obstacle(engine, "a", WANTED, T0 + 100) == PROTECTED
    assert obstacle(engine, "nobody", WANTED, T0 + 100) == "it is not bound to a node"


def test_a_promise_without_slack_moves_nobody() -> None:
    assert "is below the 10 s" in obstacle(two_pods(hosts=3, service=GOLD), "a", WANTED, T0 + 1e6)
