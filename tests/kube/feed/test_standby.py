"""What came and went while nobody led, told by a replica that stood by, is as if somebody had led all the time."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from kube.feed.test_blame import T0, World, ended, kept
from slacktide.kube.mirror.departures import KEPT_SECONDS, MOST_KEPT
from slacktide.kube.resources.objects import Identity
from slacktide.model.causes import OPERATOR

BASE, TAKEOVER, END = 100.0, 200.0, 260.0
"""The ledger is written and its leader dies; another one leads; the two are compared."""
Story = Callable[[World], None]


def gone(world: World, name: str) -> None:
    """A pod is no more, and the watch showed how it was last."""
    record = world.mirror.pods[name]
    world.mirror.drop_pod(Identity("default", name, name, ""), record.pod)


def at(world: World, t: float) -> None:
    world.t = t
    if world.mirror._followers:
        world.tick(t)


def by_hand(world: World) -> None:
    """The pod is deleted, the next one runs for a while and is deleted as well."""
    at(world, 110.4)
    world.pod("p", "a", ready=0, started=0, going=True)
    gone(world, "p")
    world.pod("q", created=110)
    at(world, 113.6)
    world.pod("q", "a", created=110, bound=113)
    at(world, 117.9)
    world.pod("q", "a", created=110, bound=113, ready=117, started=117)
    at(world, 150.3)
    world.pod("q", "a", created=110, bound=113, ready=117, started=117, going=True)
    gone(world, "q")
    world.pod("r", created=150)
    at(world, 155.5)
    world.pod("r", "b", created=150, bound=155)
    at(world, 158.2)
    world.pod("r", "b", created=150, bound=155, ready=158, started=158)


def without_a_successor(world: World) -> None:
    at(world, 120.7)
    world.pod("p", "a", ready=0, started=0, going=True)
    gone(world, "p")


def a_probe(world: World) -> None:
    at(world, 120.7)
    world.pod("p", "a", unready=120, started=0)
    at(world, 140.2)
    world.pod("p", "a", ready=140, started=0)


def a_probe_and_then_gone(world: World) -> None:
    at(world, 120.7)
    world.pod("p", "a", ready=0, started=0, going=True)
    at(world, 122.1)
    world.pod("p", "a", unready=122, started=0, going=True)
    at(world, 130.6)
    gone(world, "p")
    world.pod("q", created=130)
    at(world, 133.3)
    world.pod("q", "a", created=130, bound=133)
    at(world, 134.8)
    world.pod("q", "a", created=130, bound=133, ready=134, started=134)


def drained(world: World) -> None:
    """Within a maintenance window."""
    world.window(100, 1000, room="a")
    world.node("a", unschedulable=True)
    at(world, 120.7)
    world.pod("p", "a", ready=0, started=0, going=True, marked="EvictionByEvictionAPI")
    gone(world, "p")
    world.pod("q", created=120)
    at(world, 131.4)
    world.pod("q", "b", created=120, bound=131)
    at(world, 133.9)
    world.pod("q", "b", created=120, bound=131, ready=133, started=133)


def a_lost_node(world: World) -> None:
    at(world, 120.7)
    world.node("a", ready=False, since=120)
    world.pod("p", "a", unready=120, started=0)
    at(world, 150.5)
    world.pod("p", "a", unready=120, started=0, going=True, marked="DeletionByTaintManager")
    gone(world, "p")
    world.pod("q", created=150)
    at(world, 153.5)
    world.pod("q", "b", created=150, bound=153)
    at(world, 159.5)
    world.pod("q", "b", created=150, bound=153, ready=159, started=159)


def a_crash(world: World) -> None:
    """It is over, and still listed for a while."""
    at(world, 120.5)
    world.pod("p", "a", unready=120, status={"phase": "Failed"}, container={"state": ended(120)})
    at(world, 121.0)
    gone(world, "p")
    world.pod("q", created=121)
    at(world, 124.5)
    world.pod("q", "b", created=121, bound=124)
    at(world, 130.5)
    world.pod("q", "b", created=121, bound=124, ready=130, started=130)


def replaced_at_once(world: World) -> None:
    """Controllers make the next pod as soon as one is told to go, and that takes its time."""
    at(world, 120.2)
    world.pod("p", "a", ready=0, started=0, going=True)
    world.pod("q", created=120)
    at(world, 121.1)
    gone(world, "p")
    at(world, 131.4)
    world.pod("q", "b", created=120, bound=131)
    at(world, 133.9)
    world.pod("q", "b", created=120, bound=131, ready=133, started=133)


def replaced_at_once_and_waiting(world: World) -> None:
    at(world, 120.2)
    world.pod("p", "a", ready=0, started=0, going=True)
    world.pod("q", created=120)
    at(world, 121.1)
    gone(world, "p")


STORIES: tuple[Story, ...] = (
    by_hand, without_a_successor, a_probe, a_probe_and_then_gone, drained, a_lost_node, a_crash,
    replaced_at_once, replaced_at_once_and_waiting,
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
    world.t = END
    found = world.status()
    return world.lost(), found.losses.good, found.slack


@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_as_if_somebody_had_led(story: Story, approach: str) -> None:
    led, good, slack = told(story, approach, unled=False)
    found, found_good, found_slack = told(story, approach, unled=True)
    assert sum(found) + found_good == pytest.approx(sum(led) + good, abs=1e-5)
    assert found_good == pytest.approx(good, abs=0.6), "a timestamp is a whole second"
    assert found == pytest.approx(led, abs=0.6)
    assert found_slack == pytest.approx(slack, abs=6.0), "ten seconds of slack are one of a promise of .9"


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
    assert one.ended_by == OPERATOR
    assert one.at == T0 + 120.7
    json.dumps(one.at)
