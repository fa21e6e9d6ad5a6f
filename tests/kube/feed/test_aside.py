"""A pod that the engine cannot be told of, before or half way through: it is set aside whole, and all others go on."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kube.feed.test_blame import World, kept
from slacktide.engine.core import types
from slacktide.engine.core.operations import OPERATIONS, Operation
from slacktide.kube.feed import takeover
from slacktide.kube.feed.fed_pod import NOWHERE, UNSCHEDULABLE
from slacktide.kube.feed.feed import Feed
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.mirror.barrier import DEFECT

ABOUT_PODS = sorted(name for name, one in OPERATIONS.items() if "uid" in one.__struct_fields__ and name != "other_gone")
NOT_THE_FEEDS = {"nominated", "spared", "displace", "displaced", "join_group", "prefer", "respec", "protect"}
"""What others tell, and what the story below does not come to."""
HALVES = ("before", "after")


def breaks(world: World, method: str, half: str, uid: str = "bad") -> Callable[[], None]:
    """An operation about one pod fails from now on, before anything is done or when all of it is."""
    whole = getattr(world.engine, method)

    def broken(*args: Any, **named: Any) -> None:
        if half == "after" or args[0] != uid:
            whole(*args, **named)
        if args[0] == uid:
            raise OverflowError("int too big to convert")

    setattr(world.engine, method, broken)
    return lambda: setattr(world.engine, method, whole)


def story(world: World, name: str, uid: str) -> None:
    """A pod comes, is bound by somebody, gets ready, is ready no more, is told to go, and is gone."""
    world.pod(name, uid=uid)
    other = "b"
    if name == "bad":
        world.engine.run(world.clock())  # it was about to go to another node
        other = "b" if name in world.engine.pods and world.engine.pods[name].host == "a" else "a"
    for change in (
        partial(world.pod, name, other, uid=uid, bound=world.t),
        partial(world.pod, name, other, uid=uid, ready=world.t, started=world.t),
        partial(world.pod, name, other, uid=uid, unready=world.t, started=world.t),
        partial(world.pod, name, other, uid=uid, unready=world.t, started=world.t, going=True),
    ):
        world.tick(world.t + 1)
        change()
        world.tick(world.t + 1)


def told(world: World, uid: str) -> list[str]:
    """Operations about a pod."""
    said = world.said  # type: ignore[attr-defined]
    return [re.sub("spec=[0-9]+", "", str(one)) for one in said if getattr(one, "uid", "") == uid]


def world_of_two() -> World:
    world = World()
    said: list[Operation] = []
    world.engine.journal = said.append
    world.said = said  # type: ignore[attr-defined]
    world.owner(uid="web")
    world.owner(uid="other")
    return world


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("method", [one for one in ABOUT_PODS if one not in NOT_THE_FEEDS])
def test_whatever_fails_the_pod_is_aside_and_another_lives_as_ever(
    method: str, half: str, defects: list[logging.LogRecord]
) -> None:
    undisturbed, world = world_of_two(), world_of_two()
    breaks(world, method, half)
    for one in (undisturbed, world):
        story(one, "bad", "other")
        story(one, "good", "web")
    assert told(world, "good") == told(undisturbed, "good")
    if method in {one.method for one in undisturbed.said if getattr(one, "uid", "") == "bad"}:  # type: ignore[attr-defined]
        assert world.mirror.barrier.counts["Pod", DEFECT] >= 1
        assert defects
    for name in ("bad", "good"):
        world.drop(name)
    assert not world.engine.pods or method == "gone", "nobody is left"
    assert not world.engine.others
    assert not world.feed.pods
    world.owner(uid="web", replicas=2)
    world.up("third", uid="web")
    assert world.engine.pods["third"].bound


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("method", ["arrive", "wake", "blame"])
def test_who_cannot_enter_waits_with_the_problem_and_enters_when_it_changes(
    method: str, half: str, defects: list[logging.LogRecord]
) -> None:
    world = world_of_two()
    mend = breaks(world, method, half)
    world.pod("bad", cpu="99")  # which no node could take: so it is blamed as well
    fed = world.feed.pods["bad"]
    assert fed.queue == UNSCHEDULABLE
    assert fed.problem == "the pod is invalid: OverflowError: int too big to convert"
    assert world.heard.waiting[-1] == "bad", "who waits is told why"
    assert "bad" not in world.engine.pods or world.engine.pods["bad"].state == types.ASLEEP
    assert "bad" not in world.engine.waiting()
    mend()
    world.node("c")  # others' changes look at it again, and leave it where it is
    assert fed.problem.startswith("the pod is invalid")
    world.pod("bad", cpu="1")
    assert fed.problem == ""
    assert world.engine.waiting() == ["bad"]
    assert len(defects) == 1


@pytest.mark.parametrize("half", HALVES)
def test_who_runs_and_cannot_enter_takes_its_room_and_nothing_else(half: str, defects: list[Any]) -> None:
    world = world_of_two()
    mend = breaks(world, "found", half)
    world.up("bad", cpu="3")
    assert world.engine.room("a")["cpu"] == 1000
    assert ("bad" in world.engine.pods) == (half == "after")
    mend()
    world.up("bad", cpu="3")
    assert world.engine.pods["bad"].bound
    assert world.engine.room("a")["cpu"] == 1000
    assert defects


@pytest.mark.parametrize("half", HALVES)
def test_who_runs_and_is_known_stays_known(half: str, defects: list[Any]) -> None:
    """Else it would be nobody's victim."""
    world = world_of_two()
    world.up("bad")
    breaks(world, "unready", half)
    world.t = 5.0
    world.pod("bad", "a", unready=5.0, started=0.0)
    assert world.engine.pods["bad"].bound
    assert world.feed.pods["bad"].queue == NOWHERE
    assert not world.engine.others
    assert defects


@pytest.mark.parametrize("half", HALVES)
def test_who_is_gone_leaves_whatever_fails(half: str, defects: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of_two()
    world.up("bad")
    world.up("good")

    def forget(self: LiveFeed, pod: Any, succeeded: bool) -> None:
        if half == "after":
            whole(self, pod, succeeded)
        if pod.uid == "bad":
            raise LookupError("nowhere")
        if half == "before":
            whole(self, pod, succeeded)

    whole = LiveFeed._forget
    monkeypatch.setattr(LiveFeed, "_forget", forget)
    for one in ("bad", "good"):
        world.drop(one)
    assert not world.engine.pods
    assert not world.feed.pods
    assert world.engine.room("a")["cpu"] == 4000
    assert defects


# -- taking over -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["restore", "consider", "observed"])
def test_a_new_leader_sets_it_aside_as_well(
    method: str, defects: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of_two()
    world.owner(uid="other")
    world.up("bad", uid="other", cpu="3")
    world.up("good", "b")
    world.pod("waiting")

    def fail(whole: Any, *args: Any) -> Any:
        if any(getattr(one, "uid", "") in ("bad", "other") for one in args):
            raise RecursionError("maximum recursion depth exceeded")
        return whole(*args)

    if method == "restore":
        whole = Feed.__init__

        def made(self: Any, *args: Any) -> None:
            whole(self, *args)
            self.controllers.restore = partial(fail, self.controllers.restore)

        monkeypatch.setattr(Feed, "__init__", made)
    elif method == "consider":
        before = LiveFeed._consider
        monkeypatch.setattr(LiveFeed, "_consider", lambda self, pod: fail(partial(before, self), pod))
    else:
        monkeypatch.setattr(takeover, "observed", partial(fail, takeover.observed))
    world.lead()
    assert world.engine.pods["good"].bound
    assert world.engine.waiting() == ["waiting"]
    assert world.engine.room("a")["cpu"] == 1000, "it takes its room all the same"
    assert {one.about.name for one in world.mirror.barrier.aside.values()} == {"bad"}
    assert defects


@pytest.mark.parametrize("name", ["_remember", "_keep_memory"])
def test_a_ledger_that_cannot_be_gone_on_from_keeps_no_leader_from_leading(
    name: str, defects: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.owner()
    world.up("p")
    world.drop("p")
    ledgers = kept(world)
    if name == "_keep_memory":
        world.mirror.owners.watched.clear()
    monkeypatch.setattr(takeover, name, lambda *_: 1 // 0)
    world.lead(ledgers)
    assert world.mirror.barrier.counts == {("Availability", DEFECT): 1}
    world.owner()
    world.up("q")
    assert world.engine.pods["q"].bound
    assert defects
