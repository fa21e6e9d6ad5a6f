"""The rate limit lets through what it promises, and nothing more."""

import asyncio
from types import SimpleNamespace

import pytest

from slacktide.kube.client import pacing
from slacktide.kube.client.pacing import Limiter


class Clock:
    """The limiter's clock, which only the test moves; ``waits`` are the sleeps asked for, which nobody ends."""

    def __init__(self) -> None:
        self.now = 1024.0  # rates are powers of two, so that nothing is rounded
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.Event().wait()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(pacing, "monotonic_seconds", found.monotonic)
    slow = SimpleNamespace(sleep=found.sleep, CancelledError=asyncio.CancelledError)
    monkeypatch.setattr(pacing, "asyncio", slow)
    return found


async def cancelled(tasks: "list[asyncio.Task[None]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_a_burst_passes_at_once_and_the_rest_at_the_rate(clock: Clock) -> None:
    async def run() -> None:
        limiter = Limiter(8.0, 10)
        for _ in range(10):
            await limiter.take()
        assert clock.waits == []
        tasks = [asyncio.create_task(limiter.take()) for _ in range(15)]
        await asyncio.sleep(0)
        assert clock.waits == pytest.approx([0.125 * number for number in range(1, 16)])
        await cancelled(tasks)

    asyncio.run(run())


def test_without_a_rate_nothing_waits(clock: Clock) -> None:
    async def run() -> None:
        limiter = Limiter(0.0)
        for _ in range(10_000):
            await limiter.take()

    asyncio.run(run())
    assert clock.waits == []


def test_idle_time_does_not_add_up_beyond_the_burst(clock: Clock) -> None:
    async def run() -> None:
        limiter = Limiter(8.0, 3)
        clock.now += 0.5
        tasks = [asyncio.create_task(limiter.take()) for _ in range(4)]
        await asyncio.sleep(0)
        assert clock.waits == pytest.approx([0.125])
        clock.now += 0.375
        tasks += [asyncio.create_task(limiter.take()) for _ in range(4)]
        await asyncio.sleep(0)
        assert clock.waits == pytest.approx([0.125, 0.125, 0.25])
        await cancelled(tasks)

    asyncio.run(run())


def test_who_gives_up_waiting_leaves_the_place_to_others(clock: Clock) -> None:
    async def run() -> None:
        limiter = Limiter(4.0, 1)
        await limiter.take()
        await cancelled([asyncio.create_task(limiter.take()) for _ in range(20)])
        tasks = [asyncio.create_task(limiter.take()) for _ in range(20)]
        await asyncio.sleep(0)
        await cancelled(tasks)
        clock.waits.clear()
        (task,) = [asyncio.create_task(limiter.take())]
        await asyncio.sleep(0)
        assert clock.waits == pytest.approx([0.25])  # behind the others it would be 5 s
        await cancelled([task])

    asyncio.run(run())


@pytest.mark.parametrize("qps", [-1.0, float("nan"), float("inf")])
def test_impossible_rates_are_refused(qps: float) -> None:
    with pytest.raises(ValueError, match="qps: found"):
        Limiter(qps)
