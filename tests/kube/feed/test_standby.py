"""What came and went while nobody led, told by a replica that stood by, is as if somebody had led all the time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kube.feed.test_blame import T0, World, ended, kept, readiness
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.kube.feed.fed_pod import HELD
from slacktide.kube.mirror.pod_record import KEPT_SECONDS, MOST_KEPT, End
from slacktide.kube.resources.objects import POD, Identity
from slacktide.model import ServiceClass
from slacktide.model.causes import OPERATOR
from slacktide.state.spec import Spec
from support import made_objects

BASE, TAKEOVER, END = 100.0, 200.0, 260.0
"""The ledger is written and its leader dies; another one leads; the two are compared."""
Story = Callable[[World], None]


def gone(world: World, name: str) -> None:
    """A pod is no more, and the watch showed how it was last."""
    record = world.mirror.pods[name]
    world.mirror.on_pod_delete(Identity("default", name, name, ""), record.pod)


def at(world: World, t: float) -> None:
    world.t = t
    if world.mirror._followers:
        world.tick(t)


def told_to_go(world: World, name: str = "p", **more: Any) -> None:
    """A pod on node a that is ready is told to go."""
    world.pod(name, "a", ready=0, started=0, going=True, **more)


def comes(world: World, name: str, node: str, created: float, bound: float, ready: float) -> None:
    """A pod is bound and gets ready; timestamps are whole seconds."""
    at(world, bound)
    world.pod(name, node, created=int(created), bound=int(bound))
    at(world, ready)
    world.pod(name, node, created=int(created), bound=int(bound), ready=int(ready), started=int(ready))


def by_hand(world: World) -> None:
    """The pod is deleted, the next one runs for a while and is deleted as well."""
    at(world, 110.4)
    told_to_go(world)
    gone(world, "p")
    world.pod("q", created=110)
    comes(world, "q", "a", 110, 113.6, 117.9)
    at(world, 150.3)
    world.pod("q", "a", created=110, bound=113, ready=117, started=117, going=True)
    gone(world, "q")
    world.pod("r", created=150)
    comes(world, "r", "b", 150, 155.5, 158.2)


def without_a_successor(world: World) -> None:
    at(world, 120.7)
    told_to_go(world)
    gone(world, "p")


def a_probe(world: World) -> None:
    at(world, 120.7)
    world.pod("p", "a", unready=120, started=0)
    at(world, 140.2)
    world.pod("p", "a", ready=140, started=0)


def a_node_away_for_a_moment(world: World, *, back: bool = True) -> None:
    """It is back before its pods are said to be unready."""
    at(world, 120.2)
    world.away_for_a_moment("a")
    at(world, 121.7)
    world.pod("p", "a", started=0, status=readiness(False, 121))
    if back:
        at(world, 140.2)
        world.pod("p", "a", started=0, ready=140, status=readiness(True, 140))


def a_node_away_for_a_moment_and_its_pod_is_gone(world: World) -> None:
    a_node_away_for_a_moment(world, back=False)
    at(world, 150.3)
    world.pod("p", "a", started=0, going=True, status=readiness(False, 121), terminationGracePeriodSeconds=0)
    gone(world, "p")
    world.pod("q", created=150)
    comes(world, "q", "b", 150, 155.5, 158.2)


def a_probe_and_then_gone(world: World) -> None:
    at(world, 120.7)
    told_to_go(world)
    at(world, 122.1)
    world.pod("p", "a", unready=122, started=0, going=True)
    at(world, 130.6)
    gone(world, "p")
    world.pod("q", created=130)
    comes(world, "q", "b", 130, 133.3, 134.8)


def drain(world: World, until: float, others_until: float = 0.0) -> None:
    """The pod is evicted from a node that is worked on until then; another node is so as well."""
    world.window(50, until, room="a")
    if others_until:
        world.window(50, others_until, name="other", room="b")
    world.node("a", unschedulable=True)
    at(world, world.t + 0.7)
    told_to_go(world, marked="EvictionByEvictionAPI")


def drained(world: World) -> None:
    """Within a maintenance window."""
    at(world, 120.0)
    drain(world, 1000)
    gone(world, "p")
    world.pod("q", created=120)
    comes(world, "q", "b", 120, 131.4, 133.9)


def drained_in_the_window_that_ends_first(world: World) -> None:
    """The next pod waits for longer than that."""
    at(world, 120.0)
    drain(world, 140, 1000)
    gone(world, "p")
    world.pod("q", created=120)
    comes(world, "q", "b", 120, 151.4, 153.9)


def drained_and_starting_when_the_window_ends(world: World) -> None:
    at(world, 120.0)
    drain(world, 140, 1000)
    gone(world, "p")
    world.pod("q", created=120)
    comes(world, "q", "b", 120, 131.4, 153.9)


def drained_and_waiting(world: World) -> None:
    """The window ends when another one leads."""
    at(world, 120.0)
    drain(world, 230, 1000)
    gone(world, "p")
    world.pod("q", created=120)
    at(world, 150.0)


def drained_and_replaced_at_once(world: World) -> None:
    at(world, 120.0)
    drain(world, 140, 1000)
    world.pod("q", created=120)
    at(world, 121.9)
    gone(world, "p")
    comes(world, "q", "b", 120, 151.4, 153.9)


def drained_and_still_there(world: World) -> None:
    """The pod that was told to go is not gone, nor is the next one ready, when another one leads."""
    at(world, 120.0)
    drain(world, 230, 1000)
    world.pod("q", created=120)
    at(world, 125.3)
    world.pod("p", "a", unready=125, started=0, going=True, marked="EvictionByEvictionAPI")
    at(world, 190.0)
    world.pod("q", "b", created=120, bound=190)


def drained_and_still_ready(world: World) -> None:
    """As long as its grace lasts."""
    at(world, 120.0)
    drain(world, 230, 1000)
    world.pod("q", created=120)
    at(world, 190.0)
    world.pod("q", "b", created=120, bound=190)


def drained_without_a_successor(world: World) -> None:
    at(world, 120.0)
    drain(world, 140, 1000)
    gone(world, "p")


def drained_and_the_node_is_open_again(world: World) -> None:
    """Before the pod is gone."""
    at(world, 120.0)
    drain(world, 1000)
    at(world, 123.0)
    world.node("a")
    at(world, 124.4)
    gone(world, "p")
    world.pod("q", created=124)
    comes(world, "q", "b", 124, 131.4, 133.9)


def drained_and_the_cordon_is_seen_later(world: World) -> None:
    """Watches of different kinds have no order."""
    world.window(100, 1000, room="a")
    at(world, 120.7)
    told_to_go(world, marked="EvictionByEvictionAPI")
    world.node("a", unschedulable=True)
    at(world, 122.1)
    world.node("a")
    gone(world, "p")
    world.pod("q", created=122)
    comes(world, "q", "b", 122, 131.4, 133.9)


def a_lost_node(world: World) -> None:
    at(world, 120.7)
    world.node("a", ready=False, since=120)
    world.pod("p", "a", unready=120, started=0)
    at(world, 150.5)
    world.pod("p", "a", unready=120, started=0, going=True, marked="DeletionByTaintManager")
    gone(world, "p")
    world.pod("q", created=150)
    comes(world, "q", "b", 150, 153.5, 159.5)


def by_hand_and_then_a_lost_node(world: World) -> None:
    """The pod that came in the place of the deleted one was ready: what follows is the cluster's doing."""
    at(world, 110.4)
    told_to_go(world)
    gone(world, "p")
    world.pod("q", created=110)
    comes(world, "q", "a", 110, 113.6, 117.9)
    at(world, 150.5)
    world.node("a", ready=False, since=150)
    world.pod("q", "a", created=110, bound=113, unready=150, started=117)
    at(world, 160.5)
    world.pod("q", "a", created=110, bound=113, unready=150, started=117, going=True, marked="DeletionByTaintManager")
    gone(world, "q")
    world.pod("r", created=160)
    comes(world, "r", "b", 160, 163.5, 169.5)


def a_crash(world: World) -> None:
    """It is over, and still listed for a while."""
    at(world, 120.5)
    world.pod("p", "a", unready=120, status={"phase": "Failed"}, container={"state": ended(120)})
    at(world, 121.0)
    gone(world, "p")
    world.pod("q", created=121)
    comes(world, "q", "b", 121, 124.5, 130.5)


def replaced_at_once(world: World) -> None:
    """Controllers make the next pod as soon as one is told to go, and that takes its time."""
    at(world, 120.2)
    told_to_go(world)
    world.pod("q", created=120)
    at(world, 121.1)
    gone(world, "p")
    comes(world, "q", "b", 120, 131.4, 133.9)


def replaced_at_once_and_waiting(world: World) -> None:
    at(world, 120.2)
    told_to_go(world)
    world.pod("q", created=120)
    at(world, 121.1)
    gone(world, "p")


def waits_on(world: World) -> None:
    at(world, 150.0)


def starts_at_last(world: World) -> None:
    comes(world, "q", "b", 90, 160.4, 170.2)


STORIES: tuple[Story, ...] = (
    by_hand, without_a_successor, a_probe, a_probe_and_then_gone, a_node_away_for_a_moment,
    a_node_away_for_a_moment_and_its_pod_is_gone, drained, drained_in_the_window_that_ends_first,
    drained_and_starting_when_the_window_ends, drained_and_waiting, drained_and_replaced_at_once,
    drained_and_still_there, drained_and_still_ready, drained_without_a_successor, drained_and_the_node_is_open_again,
    drained_and_the_cordon_is_seen_later, a_lost_node, by_hand_and_then_a_lost_node, a_crash, replaced_at_once,
    replaced_at_once_and_waiting,
)  # fmt: skip


def one_up(world: World) -> None:
    world.up("p")


def one_replaced(world: World) -> None:
    """It is Terminating on a dead node, and another one is ready in its place."""
    world.up("p")
    at(world, 10.0)
    world.node("a", ready=False, since=10)
    world.pod("p", "a", unready=10, started=0)
    at(world, 20.0)
    world.pod("p", "a", unready=10, started=0, going=True, marked="DeletionByTaintManager")
    world.pod("q", created=20)
    at(world, 22.0)
    world.pod("q", "b", created=20, bound=22)
    at(world, 25.0)
    world.pod("q", "b", created=20, bound=22, ready=25, started=25)


def preempted_and_gone(world: World) -> None:
    """The next pod is there at once, and waits until this one is gone: it takes its time, and runs on."""
    at(world, 100.4)
    told_to_go(world, marked="EvictionByEvictionAPI")
    world.pod("q", created=100)
    at(world, 108.7)
    gone(world, "p")
    comes(world, "q", "b", 100, 131.4, 133.9)


def one_preempted(world: World) -> None:
    """Decided before the ledger is written."""
    world.up("p")
    at(world, 99.0)
    world.node("b", cpu="1")
    engine = world.engine
    more = engine.room("a")["cpu"] + 1
    engine.spec(999, Spec((("cpu", more), ("pods", 1)), ServiceClass("gold", 1.0, 1)))
    engine.controller("g", ServiceClass("gold", 1.0, 1), 0, False)
    engine.arrive("g", "g", "g", 999, world.clock())
    engine.wake("g")
    (decision,) = engine.run(world.clock()).decisions
    assert [one.uid for one in decision.victims] == ["p"]
    world.feed.succession.told(engine.pods["p"].key, "p")
    engine.desired("g", 0, world.clock())
    engine.gone("g", world.clock())
    engine.controller_gone("g", world.clock())
    world.node("b")


def told(
    story: Story, approach: str, *, unled: bool, before: Story = one_up
) -> tuple[tuple[float, float, float], float, float | None]:
    """What is lost by cause, and the good seconds and the slack, at the end."""
    world = World(approach)
    world.owner()
    before(world)
    at(world, BASE)
    ledgers = kept(world)
    if unled:
        world.mirror._followers.clear()
    story(world)
    at(world, TAKEOVER)
    if unled:
        world.lead(ledgers)
    at(world, 230.0)
    at(world, END)
    found = world.status()
    return world.lost(), found.losses.good, found.slack


@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_as_if_somebody_had_led(story: Story, approach: str) -> None:
    led, good, slack = told(story, approach, unled=False)
    found, found_good, found_slack = told(story, approach, unled=True)
    assert sum(found) + found_good == pytest.approx(sum(led) + good, abs=1e-5)
    assert found_good == pytest.approx(good, abs=1e-5)
    assert found == pytest.approx(led, abs=1e-5)
    assert found_slack == pytest.approx(slack, abs=1e-3)


@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
def test_a_successor_counts_from_when_the_preempted_one_is_gone(approach: str) -> None:
    led, good, slack = told(preempted_and_gone, approach, unled=False, before=one_preempted)
    found, found_good, found_slack = told(preempted_and_gone, approach, unled=True, before=one_preempted)
    assert led == pytest.approx((133.9 - 108.7, 0.0, 0.0), abs=1e-5)
    assert found == pytest.approx(led, abs=1e-5)
    assert found_good == pytest.approx(good, abs=1e-5)
    assert found_slack == pytest.approx(slack, abs=1e-3)


def nominated(world: World) -> None:
    """A pod waits for the place of a victim on node a."""
    body = {
        "metadata": {"name": "g", "namespace": "default", "uid": "g"},
        "spec": {"schedulerName": "slacktide", "containers": [made_objects.container(cpu="4")]},
        "status": {"nominatedNodeName": "a"},
    }
    world.mirror.on_pod_update(made_objects.decoded(POD, body))


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
def test_a_successor_waits_for_a_victim_of_a_former_leader_that_still_runs(approach: str, others: int) -> None:
    """And only as many as there are victims: who comes besides, as the workload grows, is an instance of its own."""

    def played(*, unled: bool) -> tuple[tuple[float, float, float], float, float | None]:
        world = World(approach)
        world.owner(1 + others)
        one_preempted(world)
        at(world, BASE)
        ledgers = kept(world)
        if unled:
            world.mirror._followers.clear()
        at(world, 100.4)
        nominated(world)
        told_to_go(world, marked="EvictionByEvictionAPI")
        for number in range(1 + others):
            world.pod(f"q{number}", created=100)
        at(world, TAKEOVER)
        if unled:
            world.lead(ledgers)
        assert [world.feed.pods[f"q{number}"].problem for number in range(1 + others)] == [HELD, ""][: 1 + others]
        at(world, 208.7)
        gone(world, "p")
        for number in range(1 + others):
            assert world.feed.pods[f"q{number}"].problem == ""
            comes(world, f"q{number}", "b", 100, 231.4 + number, 233.9 + number)
        at(world, END)
        (key,) = (one for one in world.engine.controllers if one.endswith("/web"))
        found = slo_status(world.engine, key, world.clock())
        return (found.losses.cluster, found.losses.workload, found.losses.operator), found.losses.good, found.slack

    led, good, slack = played(unled=False)
    found, found_good, found_slack = played(unled=True)
    if not others:
        assert led == pytest.approx((233.9 - 208.7, 0.0, 0.0), abs=1e-5)
    assert found == pytest.approx(led, abs=0.6 if others else 1e-5)  # of the second only the whole second
    assert found_good == pytest.approx(good, abs=1e-5)
    assert found_slack == pytest.approx(slack, abs=0.6 if others else 1e-3)


@pytest.mark.parametrize("until", [140.0, 230.0])
@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
@pytest.mark.parametrize("story", [waits_on, starts_at_last], ids=lambda story: story.__name__)
def test_a_ledger_says_until_when_the_window_lasts_in_which_it_was_drained(
    story: Story, approach: str, until: float
) -> None:
    """For a replica that has just been started."""

    def one_drained(world: World) -> None:
        world.up("p")
        at(world, 90.0)
        drain(world, until, 1000)
        gone(world, "p")
        world.pod("q", created=90)

    led = told(story, approach, unled=False, before=one_drained)
    found = told(story, approach, unled=True, before=one_drained)
    assert found[0] == pytest.approx(led[0], abs=0.6)
    assert found[1] == pytest.approx(led[1], abs=0.6)
    lost_until = until if story is waits_on else min(until, 170.2)
    assert led[0][2] == pytest.approx(lost_until - 90.7, abs=1e-5)


def drained_until(approach: str, until: float) -> World:
    """The only pod was drained at 90.7 s in a window that lasts until then."""
    world = World(approach)
    world.owner()
    world.up("p")
    at(world, 90.0)
    drain(world, until)
    gone(world, "p")
    return world


def led_by_another(world: World) -> None:
    """Nobody leads for a while, then another one, until the end."""
    ledgers = kept(world)
    world.mirror._followers.clear()
    at(world, TAKEOVER)
    world.lead(ledgers)
    at(world, END)


@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
def test_a_ledger_may_be_written_when_the_window_is_over_and_nobody_has_seen_to_it(approach: str) -> None:
    world = drained_until(approach, BASE - 0.3)
    world.pod("q", created=90)
    world.t = BASE
    led_by_another(world)
    assert world.lost()[2] == pytest.approx(BASE - 90.7, abs=0.6)


@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
def test_a_window_ends_for_a_workload_that_has_no_pods_when_another_one_leads(approach: str) -> None:
    world = drained_until(approach, TAKEOVER + 10.0)
    at(world, BASE)
    led_by_another(world)
    assert world.lost()[2] == pytest.approx(TAKEOVER + 10.0 - 90.7, abs=0.6)
    (controller,) = world.engine.controllers.values()
    assert not controller.drained, "else ledgers would say it for ever"


@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
def test_one_that_another_has_replaced_long_ago_takes_nobodys_place(approach: str) -> None:
    def swept_away(world: World) -> None:
        at(world, 150.0)
        gone(world, "p")

    led = told(swept_away, approach, unled=False, before=one_replaced)
    found = told(swept_away, approach, unled=True, before=one_replaced)
    assert found[0] == pytest.approx(led[0], abs=1e-5)
    assert found[1] == pytest.approx(led[1], abs=1e-5)
    assert found[2] == pytest.approx(led[2], abs=1e-4)


def test_what_is_kept_of_departures_is_bounded() -> None:
    world = World()
    world.owner()
    world.mirror._followers.clear()
    for t in (0.0, 10.0, KEPT_SECONDS + 5.0):
        world.t = t
        world.up(f"p{t:.0f}")
        gone(world, f"p{t:.0f}")
    world.pod("waits", created=0)
    gone(world, "waits")  # it had no place
    assert [one.record.uid for one in world.mirror.departures.taken()] == ["p10", f"p{KEPT_SECONDS + 5.0:.0f}"]
    assert not list(world.mirror.departures.taken())
    assert MOST_KEPT >= 1000


def test_who_leads_keeps_no_departures() -> None:
    world = World()
    world.owner()
    world.up("p")
    gone(world, "p")
    assert not list(world.mirror.departures.taken())


def test_a_drain_is_the_operators_though_the_node_is_open_again() -> None:
    world = World()
    world.owner()
    world.up("p")
    world.mirror._followers.clear()
    drained(world)
    world.node("a")
    (one,) = world.mirror.departures.taken()
    assert one.end == End(OPERATOR, T0 + 1000)
    assert one.at == T0 + 120.7
    json.dumps(one.at)
