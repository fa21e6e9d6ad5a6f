"""Thousands of pods that fit nowhere do not hold up those that do."""

from __future__ import annotations

import asyncio

from kube.act.backstage import Backstage, played
from slacktide.kube.feed import fed_pod
from slacktide.kube.publish.conditions import AGAIN_SECONDS, Told
from slacktide.kube.term import FEW, TOLD_A_SECOND
from support.calls import calls_of

CROWD = 3 * FEW


async def crowded(house: Backstage) -> None:
    """One node, which high pods fill; others wait for room there, and all have been told so."""
    house.node("a")
    house.pod("first")
    for number in range(CROWD):
        house.pod(f"waits-{number}", cores=3)
    await house.decide(2)
    assert house.term.engine.count_waiting() == CROWD
    assert not house.term.feed.woken
    tell_all(house)


def tell_all(house: Backstage) -> None:
    now, reporter = house.clock(), house.term.reporter
    reporter._due.clear()
    reporter._told.update({f"waits-{number}": Told(now, "no room", True) for number in range(CROWD)})


def test_a_pass_that_follows_another_one_looks_at_who_came_since() -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            await crowded(house)
            await house.decide(pause=0.0)  # all of them have their turn
            house.pod("late", cores=2)
            waits = house.term.feed.pods["late"]
            assert waits.queue == fed_pod.ACTIVE
            assert calls_of(lambda: [None for _ in house.term._pass()]) < CROWD
            assert waits.queue == fed_pod.UNSCHEDULABLE
            assert house.term.reporter._due.keys() == {"late"}

    played(play)


def test_all_who_wait_have_their_turn_again_without_anything_happening() -> None:
    """What nodes lack is told again after a minute."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            await crowded(house)
            await asyncio.sleep(AGAIN_SECONDS + 1.0)
            await house.decide(pause=0.0)
            assert len(house.term.reporter._due) == CROWD
            tell_all(house)
            reporter = house.term.reporter
            reporter._told["waits-7"] = Told(house.clock() - AGAIN_SECONDS - 1.0, "no room", True)
            house.term._work.clear()
            await house.decide(pause=0.0)
            assert not reporter._due
            assert not house.term._work.is_set()
            await asyncio.sleep(CROWD / TOLD_A_SECOND + 0.01)
            assert house.term._work.is_set()  # it calls for a pass of its own
            await house.decide(pause=0.0)
            assert reporter._due.keys() == {"waits-7"}

    played(play)
