"""How workloads stand is looked at some at a time: others have their turn, and go, meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from kube.act.backstage import Backstage, played
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.overview import Overview
from slacktide.kube import housekeeping
from slacktide.kube.client.http import ApiError, Unreachable
from slacktide.kube.housekeeping import ASK_AGAIN, LOOKED_AT_A_SECOND, TOGETHER

WORKLOADS = 5 * TOGETHER


def test_workloads_that_go_meanwhile_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            for number in range(WORKLOADS):
                house.pod(f"waits-{number}")
            looked_at: list[int] = []
            see = house.session.losses.see

            def noted(found: Overview) -> None:
                looked_at.append(len(found.controllers))
                see(found)

            monkeypatch.setattr(house.session.losses, "see", noted)
            began = house.clock()
            task = asyncio.create_task(house.session._housekeeper._look_at_all())
            while not looked_at:
                await asyncio.sleep(0)
            house.gone(*(f"waits-{number}" for number in range(TOGETHER, WORKLOADS - 1)))
            assert await task == []
            assert looked_at == [TOGETHER, 0, 0, 0, 1]
            assert house.clock() - began == pytest.approx((WORKLOADS - TOGETHER) / LOOKED_AT_A_SECOND)

    played(play)


def test_vacant_instances_are_retired_in_their_round(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            for number in range(WORKLOADS):
                house.pod(f"waits-{number}")
            asked: list[str] = []

            def first_of(_engine: Engine, _now: float, _patience: float, keys: list[str]) -> list[str]:
                asked.extend(keys)
                return keys[:1]

            monkeypatch.setattr(housekeeping, "retire_vacant", first_of)
            changed: list[str] = []
            monkeypatch.setattr(house.session, "changed", changed.append)
            await house.session._housekeeper._look_at_all()
            assert asked == list(house.session.engine.controllers)
            assert changed == asked[::TOGETHER]

    played(play)


def test_with_an_owner_that_nobody_watches_goes_its_ledger_which_is_asked_for() -> None:
    """Of two owners without pods one is still there: its ledger is asked for again, though not soon. Where nobody has
    an answer both are asked for again a minute later, one at a time."""

    async def play(house: Backstage) -> None:
        async with house.leading():
            for owner in ("gone", "there", "busy"):
                house.pod(f"{owner}-1", owner=owner)
            house.gone("gone-1", "there-1")
            controllers, vacancy = house.session.feed.controllers, house.config.kube.vacancy
            ledgers = {one.name: one.ledger for one in controllers.targets.values()}
            house.server.ledgers_left = {ledgers["there"]}
            problem: Exception | None = Unreachable("the network is away")
            house.server.refuses = lambda kind, _name: problem if kind == "ledger" else None
            looking = asyncio.create_task(house.session._housekeeper.run())
            await asyncio.sleep(vacancy - 2.0)
            assert not house.server.asked_for  # their successors may still come
            await asyncio.sleep(6.5)
            assert sorted(house.server.asked_for) == sorted([ledgers["gone"], ledgers["there"]])
            problem = ApiError(429, "TooManyRequests", "later")
            await asyncio.sleep(vacancy)
            assert len(house.server.asked_for) == 4
            assert {one.name for one in controllers.targets.values()} == {"gone", "there", "busy"}
            problem = None
            await asyncio.sleep(vacancy)
            assert {one.name for one in controllers.targets.values()} == {"there", "busy"}
            house.server.asked_for.clear()
            await asyncio.sleep(2 * ASK_AGAIN * vacancy)
            assert {one.name for one in controllers.targets.values()} == {"there", "busy"}
            assert house.server.asked_for == [ledgers["there"]] * 2
            looking.cancel()

    played(play)
