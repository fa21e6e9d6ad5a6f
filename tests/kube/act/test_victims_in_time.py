"""A place is given up where its victims do not go in time, which begins when they are told to go."""

from __future__ import annotations

import asyncio

import pytest

from kube.act import backstage
from kube.act.backstage import Backstage, played
from slacktide.engine.core import types

MANY = 100
GRACE = {"terminationGracePeriodSeconds": 0}


def test_evictions_that_wait_for_their_turn_cost_nobody_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, what was not evicted within the patience was given up, and taken for a victim that does not go."""
    monkeypatch.setattr(backstage, "ANSWER_SECONDS", 9.0)

    async def play(house: Backstage) -> None:
        for number in range(MANY):
            house.node(f"n{number}")
            house.pod(f"low-{number}", "", f"n{number}", cls="low", **GRACE)
            house.pod(f"high-{number}")
        async with house.leading():
            patience = house.config.kube.victim_patience
            await house.decide(pause=0.0)
            began = house.clock()
            while len(house.server.evicted) < MANY:
                assert house.session.actor.counts.given_up == 0
                for name in set(house.server.evicted) & house.server.pods.keys():
                    house.gone(name)
                await asyncio.sleep(1.0)
                assert house.clock() - began < 1000.0
            assert house.clock() - began > 2 * patience  # else this shows nothing
            house.gone(*(set(house.server.evicted) & house.server.pods.keys()))
            await asyncio.sleep(patience)
            assert house.server.bindings.keys() == {f"high-{number}" for number in range(MANY)}
            assert house.session.actor.counts.given_up == house.session.actor.counts.spared == 0

    played(play)


def test_a_victim_that_does_not_go_has_its_grace_and_the_patience_from_when_it_was_told() -> None:
    async def play(house: Backstage) -> None:
        house.node("a")
        house.pod("low", "", "a", cls="low", terminationGracePeriodSeconds=50)
        house.pod("high")
        async with house.leading():
            await house.decide(pause=0.0)
            while not house.server.evicted:
                await asyncio.sleep(0.01)
            await asyncio.sleep(50.0 + house.config.kube.victim_patience - 2.0)
            assert house.session.actor.nominations.keys() == {"high"}
            await asyncio.sleep(4.0)
            assert house.session.actor.nominations.keys() == set()
            assert house.session.actor.counts.given_up == 1
            assert house.session.engine.pods["high"].state != types.PLACED

    played(play)


def test_two_places_that_wait_for_one_victim_are_both_given_up_where_it_does_not_go() -> None:
    async def play(house: Backstage) -> None:
        house.node("a")
        house.pod("low", "", "a", cls="low", terminationGracePeriodSeconds=10)
        house.pod("one", cores=2)
        house.pod("two", cores=2)
        async with house.leading():
            await house.decide()
            assert house.session.actor.nominations.keys() == {"one", "two"}
            assert house.server.evicted == ["low"]
            await asyncio.sleep(10.0 + house.config.kube.victim_patience + 3.0)
            assert house.session.actor.nominations.keys() == set()
            assert house.session.actor.counts.given_up == 2
            await house.decide(3)
            assert house.server.bindings == {}
            house.gone("low")
            await asyncio.sleep(5.0)
            await house.decide()
            assert house.server.bindings.keys() == {"one", "two"}

    played(play)


def test_a_victim_whose_deletion_others_began_before_its_turn_has_its_time_from_then() -> None:
    """Nobody waits for it any more, and it never goes."""

    async def play(house: Backstage) -> None:
        house.node("a")
        house.pod("low", "", "a", cls="low", terminationGracePeriodSeconds=10)
        house.pod("high")
        async with house.leading():
            await house.decide(pause=0.0)
            house.node("new")
            house.pod("low", "", "a", cls="low", terminationGracePeriodSeconds=10, goes=True)
            await house.decide(pause=0.0)
            assert house.session.actor.nominations == {}
            assert house.session.engine.pods["low"].state == types.LEAVING
            await asyncio.sleep(10.0 + house.config.kube.victim_patience + 3.0)
            assert house.server.bindings == {"high": "new"}
            assert house.server.evicted == []
            assert house.session.engine.pods["low"].state == types.PLACED

    played(play)
