"""The rate limit lets through what it promises, and nothing more."""

import asyncio
import time

import pytest

from slacktide.kube.limits import Limiter


def test_a_burst_passes_at_once_and_the_rest_at_the_rate() -> None:
    async def run() -> tuple[float, float]:
        limiter = Limiter(10.0, 10)
        began = time.monotonic()
        for _ in range(10):
            await limiter.take()
        burst = time.monotonic() - began
        await asyncio.gather(*(limiter.take() for _ in range(15)))
        return burst, time.monotonic() - began

    burst, whole = asyncio.run(run())
    assert burst < 0.5
    assert 1.45 <= whole < 5.0


def test_without_a_rate_nothing_waits() -> None:
    async def run() -> float:
        limiter = Limiter(0.0)
        began = time.perf_counter()
        for _ in range(10_000):
            await limiter.take()
        return time.perf_counter() - began

    assert asyncio.run(run()) < 2.0


def test_trying_takes_nothing_when_it_fails() -> None:
    limiter = Limiter(1.0, 2)
    assert [limiter.try_take() for _ in range(50)] == [True, True] + [False] * 48


def test_idle_time_does_not_add_up_beyond_the_burst() -> None:
    limiter = Limiter(10.0, 3)
    time.sleep(0.5)
    assert sum(limiter.try_take() for _ in range(6)) in (3, 4)


def test_who_gives_up_waiting_leaves_the_place_to_others() -> None:
    async def run() -> float:
        limiter = Limiter(4.0, 1)
        await limiter.take()
        waiting = [asyncio.create_task(limiter.take()) for _ in range(20)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        began = time.monotonic()
        await limiter.take()
        return time.monotonic() - began

    assert asyncio.run(run()) < 2.0  # behind the others it would wait for 5 s


@pytest.mark.parametrize("qps", [-1.0, float("nan"), float("inf")])
def test_impossible_rates_are_refused(qps: float) -> None:
    with pytest.raises(ValueError, match="qps: found"):
        Limiter(qps)
