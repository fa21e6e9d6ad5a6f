"""How workloads stand is looked at some at a time: others have their turn, and go, meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from kube.act.backstage import Backstage, played
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.overview import Overview
from slacktide.kube import housekeeping
from slacktide.kube.housekeeping import LOOKED_AT_A_SECOND, TOGETHER

WORKLOADS = 5 * TOGETHER


def test_workloads_that_go_meanwhile_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            for number in range(WORKLOADS):
                house.pod(f"waits-{number}")
            looked_at: list[int] = []
            see = house.term.losses.see

            def noted(found: Overview) -> None:
                looked_at.append(len(found.controllers))
                see(found)

            monkeypatch.setattr(house.term.losses, "see", noted)
            began = house.clock()
            task = asyncio.create_task(house.term._housekeeper._look_at_all())
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
            monkeypatch.setattr(house.term, "changed", changed.append)
            await house.term._housekeeper._look_at_all()
            assert asked == list(house.term.engine.controllers)
            assert changed == asked[::TOGETHER]

    played(play)
