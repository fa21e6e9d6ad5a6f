"""What becomes of a pod group's decisions when something changes before its pods are bound."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube.act.backstage import Backstage, played
from slacktide.engine.core import types
from slacktide.kube.act.device_allocation import DeviceAllocator
from slacktide.kube.client.http import ApiError, Unreachable


async def pair_waits_for_victims(house: Backstage) -> None:
    """Two pods of the group g have places, which victims have not left."""
    for name in "ab":
        house.node(name)
        house.low(f"low-{name}", name)
    house.gang()
    for name in ("p0", "p1"):
        house.pod(name, "g")
    await house.decide()
    assert sorted(house.server.evicted) == ["low-a", "low-b"]
    assert {name: said[-1] for name, said in house.server.nominated.items()}.keys() == {"p0", "p1"}


def test_a_pod_group_that_is_deleted_while_its_pods_wait_for_victims_is_not_bound() -> None:
    """Nor are its pods taken for some of no group, until there is one of its name again."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            await pair_waits_for_victims(house)
            house.no_gang()
            house.gone("low-a", "low-b")
            await house.decide(2, pause=0.0)
            await house.decide()
            assert house.server.bindings == {}
            assert house.session.feed.pods["p0"].problem.endswith("does not exist")
            assert house.session.actor.nominations == {}
            house.gang()
            await house.decide()
            assert house.server.bindings.keys() == {"p0", "p1"}

    played(play)


def test_a_group_of_which_a_pod_is_being_deleted_is_not_bound() -> None:
    """A pod of a Job has a finalizer, so it is there for a while, and cannot be bound any more."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            await pair_waits_for_victims(house)
            house.pod("p1", "g", goes=True)
            house.gone("low-a", "low-b")
            await house.decide(3)
            assert house.server.bindings == {}
            house.pod("p2", "g")
            await house.decide()
            assert house.server.bindings.keys() == {"p0", "p2"}

    played(play)


def test_nobody_is_evicted_for_a_pod_that_is_being_deleted() -> None:
    """Its place is given up also where it is of no group."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            house.node("a")
            house.low("low-a", "a")
            house.pod("p0")
            await house.decide(pause=0.0)
            house.pod("p0", goes=True)
            await house.decide()
            assert house.server.evicted == []
            assert house.session.engine.pods["low-a"].state == types.PLACED

    played(play)


@pytest.mark.parametrize("least", [1, 3])
def test_another_least_number_holds_at_once(least: int) -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            await pair_waits_for_victims(house)
            house.gang(least=least)
            await house.decide()
            house.gone("low-a")
            await house.decide()
            assert len(house.server.bindings) == (1 if least == 1 else 0)
            house.gone("low-b")
            await house.decide()
            assert len(house.server.bindings) == (2 if least == 1 else 0)

    played(play)


def test_a_pod_that_changes_its_group_is_not_bound_with_its_former_one() -> None:
    """Groups that are named by labels."""

    def said(group: str, total: int) -> dict[str, Any]:
        labels = {"kueue.x-k8s.io/pod-group-name": group}
        return {"labels": labels, "annotations": {"kueue.x-k8s.io/pod-group-total-count": str(total)}}

    async def play(house: Backstage) -> None:
        async with house.leading():
            for name in "abc":
                house.node(name)
            house.low("low-c", "c")
            for name in ("p0", "p1", "p2"):
                house.pod(name, **said("one", 3))
            await house.decide()
            assert house.server.evicted == ["low-c"]
            house.pod("p3", **said("two", 2))
            house.pod("p0", **said("two", 2))
            house.pod("p4", **said("one", 3))
            house.node("d")
            house.gone("low-c")
            await house.decide(4)
            assert house.server.bindings.keys() in ({"p1", "p2", "p4"}, {"p0", "p3"})

    played(play)


def test_pods_whose_decisions_were_given_up_in_their_pass_come_again() -> None:
    """The first of a group cannot be carried out: the others' decisions are given up before it is their turn."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            for name in "ab":
                house.node(name)
            house.gang()
            for name in ("p0", "p1"):
                house.pod(name, "g")
                house.session.feed.pods[name].failures = 5
            reserve, left = house.session.actor.devices.reserve, ["its devices are gone"]
            house.session.actor.devices.reserve = lambda uid, host: left.pop() if left else reserve(uid, host)  # type: ignore[method-assign]
            await house.decide()
            assert house.server.bindings == {}
            await asyncio.sleep(60.0)
            await house.decide()
            assert house.server.bindings.keys() == {"p0", "p1"}

    played(play)


def test_room_of_victims_that_stay_is_nobody_elses() -> None:
    """A pod that comes to the room that another one's victim would have left has to wait where this one stays."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            house.node("a")
            house.low("low-a", "a")
            house.pod("first", cores=2)
            house.pod("second", cores=2, cls="low")
            reserve = house.session.actor.devices.reserve
            house.session.actor.devices.reserve = lambda uid, host: (  # type: ignore[method-assign]
                "its devices are gone" if uid == "first" else reserve(uid, host)
            )
            await house.decide()
            assert house.server.evicted == []
            assert house.server.bindings == {}
            assert house.session.engine.pods["low-a"].state == types.PLACED

    played(play)


def test_what_a_pods_status_says_of_its_place_is_in_order_and_tried_again() -> None:
    """The request that takes a nomination away fails: it would be somebody else's for ever."""

    async def play(house: Backstage) -> None:
        failures = [Unreachable("no answer"), ApiError(500, "InternalError", "etcd"), Unreachable("no answer")]
        async with house.leading():
            await pair_waits_for_victims(house)
            house.server.refuses = lambda kind, name: (
                failures.pop() if (kind, name) == ("nomination", "p0") and failures else None
            )
            house.no_gang()
            await asyncio.sleep(30.0)
            assert failures == []
            assert {name: said[-1] for name, said in house.server.nominated.items()} == {"p0": "", "p1": ""}
            assert house.session.engine.preferred == {}

    played(play)


def test_an_adopted_place_that_is_given_up_is_taken_out_of_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """A former leader nominated it; its place is lost before the term has begun to act (its devices are gone), or when
    it is to be bound."""
    reserve, gone = DeviceAllocator.reserve, ["early"]

    def lost(self: DeviceAllocator, uid: str, host: str) -> str:
        return f"{gone.pop()}: its devices are gone" if uid in gone else reserve(self, uid, host)

    monkeypatch.setattr(DeviceAllocator, "reserve", lost)

    async def play(house: Backstage) -> None:
        for name in "ab":
            house.node(name)
        house.pod("early", nominated="a")
        house.pod("late", nominated="b")
        house.server.refuses = lambda kind, name: (
            ApiError(403, "Forbidden", "no") if (kind, name) == ("binding", "late") else None
        )
        async with house.leading():
            await house.decide()
            assert house.server.nominated == {"early": [""], "late": [""]}
            assert house.session.engine.preferred == {}
            house.pod("late", nominated="a")
            assert house.session.engine.preferred == {"late": "a"}, "that is somebody else's"

    played(play)


def test_a_new_leader_gives_up_what_of_a_group_cannot_be_completed() -> None:
    async def play(house: Backstage) -> None:
        house.node("a")
        house.gang()
        house.pod("p0", "g", nominated="a")
        house.pod("p1", "g")
        async with house.leading():
            assert house.session.actor._keeps_a_place("p0")
            await house.decide()
            assert (house.server.bindings, house.server.nominated) == ({}, {"p0": [""]})
            house.pod("p0", "g")
            house.node("b")
            await house.decide()
            assert house.server.bindings.keys() == {"p0", "p1"}

    played(play)


def test_who_gives_up_its_place_while_the_others_get_theirs_takes_them_along() -> None:
    """Two wait for one victim. As it goes, the node of the other three is closed: the first one that is looked at finds
    that, and all five give up, also those whose turn comes after it."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            house.node("a", 12)
            house.node("b", 8)
            house.low("low", "b", 8)
            house.gang(least=4)
            for i in range(5):
                house.pod(f"p{i}", "g")
            await house.decide()
            assert [len(one.outstanding) for one in house.session.actor.nominations.values()] == [1, 1]
            house.node("a", 12, unschedulable=True)
            house.gone("low")
            await house.decide(3)
            assert house.server.bindings == {}
            house.node("a", 12)
            await house.decide(3)
            assert len(house.server.bindings) == 5

    played(play)


def test_places_found_at_once_are_given_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new node has room for both; the devices of the first are another's by then."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            await pair_waits_for_victims(house)
            house.node("c", 8)
            reserve, refusals = DeviceAllocator.reserve, ["devices are another's"]
            monkeypatch.setattr(
                DeviceAllocator, "reserve", lambda *found: refusals.pop() if refusals else reserve(*found)
            )
            with house.session.gate.closed():
                house.session.actor.look_again(everybody=True)
            await asyncio.sleep(0)
            assert house.server.bindings == {}
            assert types.PLACED not in [house.session.engine.pods[name].state for name in ("p0", "p1")]

    played(play)
