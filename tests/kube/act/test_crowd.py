"""Thousands of pods that fit nowhere do not hold up those that do."""

from __future__ import annotations

import asyncio

from kube.act.backstage import Backstage, played
from slacktide.kube.client.http import ApiError
from slacktide.kube.feed import fed_pod
from slacktide.kube.publish.conditions import AGAIN_A_SECOND, AGAIN_SECONDS, Told
from slacktide.kube.resources.custom_resources import ServiceClass, ServiceClassSpec, WindowSpec, WrittenMetadata
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
    await all_in_turn(house)
    tell_all(house)


async def all_in_turn(house: Backstage) -> int:
    """Passes as they call for each other, until all who wait were looked at; how many passes."""
    number = 0
    while house.term._in_turn:
        await asyncio.sleep(FEW / TOLD_A_SECOND + 0.01)
        assert house.term._work.is_set()  # it calls for a pass of its own
        house.term._work.clear()
        await house.decide(pause=0.0)
        number += 1
    return number


def tell_all(house: Backstage) -> None:
    now, reporter = house.clock(), house.term.reporter
    reporter._due.clear()
    reporter._old.clear()
    reporter._told.update({f"waits-{number}": Told(now, "no room", True) for number in range(CROWD)})


def test_a_pass_that_follows_another_one_looks_at_who_came_since() -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            await crowded(house)
            house.pod("late", cores=2)
            waits = house.term.feed.pods["late"]
            assert waits.queue == fed_pod.ACTIVE
            assert calls_of(lambda: [None for _ in house.term._pass()]) < CROWD
            assert waits.queue == fed_pod.UNSCHEDULABLE
            assert house.term.reporter._due.keys() == {"late"}

    played(play)


def test_all_who_wait_have_their_turn_again_without_anything_happening() -> None:
    """What nodes lack is told again after a minute, and no pass looks at all of them."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            await crowded(house)
            reporter = house.term.reporter
            await asyncio.sleep(AGAIN_SECONDS + 1.0)
            assert house.term._work.is_set()
            await house.decide(pause=0.0)
            assert len(reporter._old) == FEW
            assert await all_in_turn(house) == CROWD // FEW - 1
            assert len(reporter._old) == CROWD
            tell_all(house)
            reporter._told["waits-7"] = Told(house.clock() - AGAIN_SECONDS - 1.0, "no room", True)
            await house.decide(pause=0.0)
            assert not reporter._old  # all have just had their turn
            await asyncio.sleep(CROWD / TOLD_A_SECOND + 0.01)
            assert house.term._work.is_set()
            await house.decide(pause=0.0)
            await all_in_turn(house)
            assert reporter._old.keys() == {"waits-7"}

    played(play)


def test_what_is_told_again_does_not_hold_up_others() -> None:
    """A new node that is too small changes the reason of all that wait: the API server is not flooded with it, and who
    comes is told at once. Where only time passes nothing is told again."""

    async def play(house: Backstage) -> None:
        told: list[tuple[float, str]] = []
        house.server.refuses = lambda kind, name: told.append((house.clock(), name)) if kind == "patch" else None

        def told_since(began: float) -> list[str]:
            return [name for at, name in told if at >= began and name.startswith(("waits", "late"))]

        async with house.leading(telling=True):
            house.node("a")
            house.pod("first")
            await house.decide()
            for number in range(200):
                house.pod(f"waits-{number}", cores=3)
            began = house.clock()
            await house.decide(pause=10.0)
            assert len(told_since(began)) == 200

            await asyncio.sleep(AGAIN_SECONDS)
            began = house.clock()
            await house.decide(pause=10.0)
            assert told_since(began) == []

            house.node("small", cores=1)
            await asyncio.sleep(AGAIN_SECONDS)
            began = house.clock()
            await house.decide(pause=3.0)
            assert 2.0 * AGAIN_A_SECOND < len(told_since(began)) <= 3.0 * AGAIN_A_SECOND + 1
            house.pod("late", cores=3)
            came = house.clock()
            await house.decide(pause=0.2)
            assert "late" in told_since(came)
            await asyncio.sleep(200 / AGAIN_A_SECOND)
            assert sorted(told_since(began)) == sorted(["late", *(f"waits-{number}" for number in range(200))])

    played(play)


def test_what_is_written_stays_while_only_time_passes() -> None:
    """A reason may name seconds that pass; what the pod's condition says does not."""

    async def play(house: Backstage) -> None:
        told: list[str] = []
        house.server.refuses = lambda kind, name: told.append(name) if kind == "patch" else None
        async with house.leading(telling=True):
            window = WindowSpec(rolling="1h", budget="whole")
            patient = ServiceClassSpec(0.5, 2, namespaces=("*",), window=window)
            house.mirror.see_class(ServiceClass(WrittenMetadata("patient"), patient))
            house.node("a")
            house.pod("first")
            await house.decide()
            house.pod("waits", cores=3, cls="patient")
            await house.decide()
            told.clear()
            reasons = set()
            for _ in range(3):
                reasons.add(house.term.reporter._explainer.reason("waits", house.clock()))
                await asyncio.sleep(AGAIN_SECONDS + 1.0)
                await house.decide()
            assert len(reasons) == 3
            assert all("more before it may preempt" in one for one in reasons)
            assert told.count("waits") == 0

    played(play, "qos-driven")


def test_a_reason_that_could_not_be_told_again_waits_its_turn() -> None:
    async def play(house: Backstage) -> None:
        told: list[str] = []

        def refuses(kind: str, name: str) -> Exception | None:
            told.append(name)
            return ApiError(429, "TooManyRequests", "later") if kind == "patch" else None

        async with house.leading(telling=True):
            house.node("a")
            house.pod("first")
            await house.decide()
            house.pod("waits", cores=3)
            await house.decide()
            assert "waits" in house.term.reporter._told
            house.node("small", cores=1)
            await asyncio.sleep(AGAIN_SECONDS)
            house.server.refuses = refuses
            for _ in range(2):
                told.clear()
                await house.decide(pause=0.5)
                assert told.count("waits") == 1  # tried, and not again until somebody looks
                assert not house.term.reporter._due
            house.server.refuses = lambda _kind, name: told.append(name)
            await house.decide(pause=0.5)
            said = house.term.reporter._told["waits"].reason
            assert "0/2 nodes" in said
            told.clear()
            await house.decide(pause=5.0)
            assert "waits" not in told

    played(play)
