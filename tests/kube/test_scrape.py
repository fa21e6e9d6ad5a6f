"""A scrape of thousands of workloads does not keep everybody waiting."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from engine.workbench import BRONZE, GOLD, T0, engine_with
from slacktide.engine.core.engine import Engine
from slacktide.kube.housekeeping import LossTotals
from slacktide.kube.observe import scrape
from slacktide.kube.observe.scrape import Collector

WORKLOADS = 35


def scraped(engine: Engine) -> Collector:
    """A collector of which only what it says of workloads is looked at."""
    feed = SimpleNamespace(controllers=SimpleNamespace(targets={}))
    session = SimpleNamespace(losses=LossTotals(), feed=feed)
    config = SimpleNamespace(kube=SimpleNamespace(metrics_workloads=0))
    scheduler = SimpleNamespace(engine=engine, session=session, clock=lambda: T0 + 50.0, config=config)
    collector = Collector(cast("Any", scheduler), cast("Any", None), lambda: 0.0)
    for unasked in ("_like_kube_scheduler", "_deeds", "_health"):
        setattr(collector, unasked, lambda: iter(()))
    return collector


def populated() -> Engine:
    engine = engine_with(hosts=2, cores=20)
    for i in range(WORKLOADS):
        engine.controller(f"c{i}", (GOLD, BRONZE)[i % 2], 1, False)
        engine.arrive(f"u{i}", f"u{i}", f"c{i}", 0, T0 + i)
        engine.wake(f"u{i}")
    engine.run(T0 + 40.0)
    return engine


def text(collector: Collector) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry).decode()


def test_workloads_are_looked_at_in_parts_and_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = scraped(populated())
    at_once = text(collector)
    assert "gold" in at_once
    monkeypatch.setattr(scrape, "TOGETHER", 10)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def play() -> None:
        task = asyncio.create_task(others())
        await collector.look()
        task.cancel()

    asyncio.run(play())
    assert turns >= WORKLOADS // 10
    assert text(collector) == at_once


def test_a_workload_that_goes_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrape, "TOGETHER", 10)
    engine = populated()
    collector = scraped(engine)

    async def play() -> None:
        look = asyncio.create_task(collector.look())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        engine.gone(f"u{WORKLOADS - 1}", T0 + 45.0)
        engine.controller_gone(f"c{WORKLOADS - 1}", T0 + 45.0)
        await look

    asyncio.run(play())
    found = collector._found
    assert found is not None
    assert [one.key for one in found.controllers] == [f"c{i}" for i in range(WORKLOADS - 1)]


def test_what_was_seen_of_an_engine_that_is_no_more_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session began while workloads were looked at."""
    monkeypatch.setattr(scrape, "TOGETHER", 10)
    collector = scraped(populated())

    async def play() -> None:
        look = asyncio.create_task(collector.look())
        await asyncio.sleep(0)
        cast("Any", collector.scheduler).engine = engine_with(hosts=2, cores=20)
        await look

    asyncio.run(play())
    assert collector._found is None
    assert "gold" not in text(collector)
