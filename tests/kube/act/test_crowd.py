"""Thousands of pods that fit nowhere do not hold up those that do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from kube.act.backstage import Backstage, played
from slacktide.engine.explain.preemption import PROMISE
from slacktide.kube.client.http import ApiError
from slacktide.kube.client.metadata import Metadata, Reference
from slacktide.kube.feed import fed_pod
from slacktide.kube.leader_session import FEW, LOOK_SECONDS, TOGETHER, TOLD_A_SECOND
from slacktide.kube.publish.conditions import AGAIN_A_SECOND, AGAIN_SECONDS, Reported
from slacktide.kube.resources.custom_resources import ServiceClass, ServiceClassSpec, WindowSpec
from support.calls import calls_of

CROWD = 3 * FEW


async def crowded(house: Backstage) -> None:
    """One node, which high pods fill; others wait for room there, and all have been told so."""
    house.node("a")
    house.pod("first")
    for number in range(CROWD):
        house.pod(f"waits-{number}", cores=3)
    await house.decide(2)
    assert house.session.engine.count_waiting() == CROWD
    assert not house.session.feed.woken
    tell_all(house)


def tell_all(house: Backstage, count: int = CROWD) -> None:
    now, reporter = house.clock(), house.session.reporter
    reporter._due.clear()
    reporter._old.clear()
    reporter._reported.update({f"waits-{number}": Reported(now, "no room", True) for number in range(count)})


@asynccontextmanager
async def in_turn(house: Backstage) -> AsyncIterator[None]:
    """While those who wait are looked at beside passes."""
    task = asyncio.create_task(house.session._tell_in_turn())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


ROUND = 2 * LOOK_SECONDS + CROWD / TOLD_A_SECOND
"""Within so many seconds each has had its turn."""


def test_a_pass_looks_at_who_came_since_the_one_before() -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            await crowded(house)
            house.pod("late", cores=2)
            waits = house.session.feed.pods["late"]
            async with in_turn(house):
                await asyncio.sleep(ROUND)
                assert waits.queue == fed_pod.ACTIVE  # its first pass is still to come
                assert not house.session.reporter._due
            assert calls_of(lambda: [None for _ in house.session._pass()]) < CROWD
            assert waits.queue == fed_pod.UNSCHEDULABLE
            assert house.session.reporter._due.keys() == {"late"}

    played(play)


def test_all_who_wait_have_their_turn_again_without_anything_happening() -> None:
    """What nodes lack is told again after a minute. It takes no pass, and at no time are all of them looked at."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            await crowded(house)
            reporter, passes = house.session.reporter, house.session.engine.tables.tb.control["batch"]
            house.session._work.clear()
            async with in_turn(house):
                await asyncio.sleep(AGAIN_SECONDS - 1.0)
                assert not reporter._old
                seen = [0]
                while len(reporter._old) < CROWD:
                    await asyncio.sleep(TOGETHER / TOLD_A_SECOND)
                    seen.append(len(reporter._old))
                    assert seen[-1] - seen[-2] <= 2 * TOGETHER
                    assert len(seen) <= (ROUND + 1.0) * TOLD_A_SECOND / TOGETHER
                tell_all(house)
                reporter._reported["waits-7"] = Reported(house.clock() - AGAIN_SECONDS - 1.0, "no room", True)
                await asyncio.sleep(ROUND)
                assert reporter._old.keys() == {"waits-7"}
            assert not house.session._work.is_set()
            assert house.session.engine.tables.tb.control["batch"] == passes

    played(play)


def test_few_who_wait_are_looked_at_by_passes_alone() -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            await crowded(house)
            reporter = house.session.reporter
            async with in_turn(house):
                await asyncio.sleep(AGAIN_SECONDS + ROUND)
                assert len(reporter._old) == CROWD
                house.gone(*(f"waits-{number}" for number in range(FEW, CROWD)))
                assert len(reporter._old) == FEW
                tell_all(house, FEW)
                await asyncio.sleep(AGAIN_SECONDS + ROUND)
                assert not reporter._old
                await house.decide()
                assert len(reporter._old) == FEW
                tell_all(house, FEW)
                house.pod("one-more", cores=3)
                await house.decide()
                await asyncio.sleep(AGAIN_SECONDS + ROUND)
                assert len(reporter._old) == FEW

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
            house.mirror.on_class_update(ServiceClass(Metadata("patient"), patient))
            house.node("a")
            house.pod("first")
            await house.decide()
            house.pod("waits", cores=3, cls="patient")
            await house.decide()
            told.clear()
            reasons = set()
            for _ in range(3):
                reasons.add(house.session.reporter._explainer.reason("waits", house.clock()))
                await asyncio.sleep(AGAIN_SECONDS + 1.0)
                await house.decide()
            assert len(reasons) == 3
            assert all("s if still pending" in one for one in reasons)
            assert told.count("waits") == 0

    played(play, "qos-driven", "triage")


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
            assert "waits" in house.session.reporter._reported
            house.node("small", cores=1)
            await asyncio.sleep(AGAIN_SECONDS)
            house.server.refuses = refuses
            for _ in range(2):
                told.clear()
                await house.decide(pause=0.5)
                assert told.count("waits") == 1  # tried, and not again until somebody looks
                assert not house.session.reporter._due
            house.server.refuses = lambda _kind, name: told.append(name)
            await house.decide(pause=0.5)
            said = house.session.reporter._reported["waits"].reason
            assert "0/2 nodes are available" in said
            told.clear()
            await house.decide(pause=5.0)
            assert "waits" not in told

    played(play)


def test_that_it_may_preempt_by_now_is_told_with_the_next_pass() -> None:
    """Not a minute later: the reason is another one as soon as its slack is below its margin."""

    async def play(house: Backstage) -> None:
        told: list[tuple[float, str]] = []

        def note(about: Reference, reason: str, said: str, **_: Any) -> None:
            if (about.name, reason) == ("waits", "FailedScheduling"):
                told.append((house.clock(), said))

        async with house.leading(telling=True):
            house.session.reporter._recorder = SimpleNamespace(record=note)  # type: ignore[assignment]
            window = WindowSpec(rolling="1h", budget="whole")
            soon = ServiceClassSpec(0.985, 1, namespaces=("*",), window=window)
            house.mirror.on_class_update(ServiceClass(Metadata("soon"), soon))
            house.node("a")
            house.pod("first", cls="soon", owner="soon")
            await house.decide()
            began = house.clock()
            house.pod("waits", cores=3, cls="soon")
            for _ in range(6):  # the watchdog's passes
                await house.decide()
                await asyncio.sleep(10.0)
            margin = 54.0 - house.session.engine.config.qos.alpha - 10.0
            assert [int(at - began) // 11 for at, _ in told] == [0, 1 + int(margin) // 11]
            assert told[0][1].endswith(f"preemption: may preempt from {instant(began + margin)} on if still pending.")
            assert told[1][1].endswith(f"(1 {PROMISE}).")

    played(play, "qos-driven", "triage")


def instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
