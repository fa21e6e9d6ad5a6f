"""Long work lets others run about as often as its budget says."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from slacktide.kube.client.turns import Turns

BUDGET = 0.008


class Worker:
    """Work whose parts take so many seconds for each unit, by a clock that only it moves."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 0.0, seconds
        self.turns: list[float] = []
        self.closed = False

    def clock(self) -> float:
        return self.now

    def parts(self, turns: Turns, count: int) -> Generator[None, None, str]:
        try:
            for _ in range(count):
                self.now += turns.allowance() * self.seconds
                yield
        except GeneratorExit:
            self.closed = True
            raise
        return "done"

    async def other(self) -> None:
        """Notes when it has its turn."""
        while True:
            self.turns.append(self.now)
            await asyncio.sleep(0)


def longest(worker: Worker, count: int) -> list[float]:
    """Seconds between the turns of others."""

    async def scene() -> None:
        turns = Turns(BUDGET, worker.clock)
        task = asyncio.get_running_loop().create_task(worker.other())
        await asyncio.sleep(0)
        assert await turns.through(worker.parts(turns, count)) == "done"
        task.cancel()

    asyncio.run(scene())
    return [b - a for a, b in zip(worker.turns, worker.turns[1:], strict=False)]


@pytest.mark.parametrize("seconds", [1e-8, 1e-6, 1e-5])
def test_others_have_their_turn_after_the_budget_and_a_part_at_most(seconds: float) -> None:
    gaps = longest(Worker(seconds), 2000)
    assert len(gaps) > 100
    assert max(gaps) <= BUDGET * 1.5 + 1e-9
    assert min(gaps[5:]) >= BUDGET


def test_work_that_costs_more_than_expected_is_given_less() -> None:
    worker = Worker(1e-3)  # of the first allowance: a tenth of a second
    gaps = longest(worker, 50)
    assert gaps[0] == pytest.approx(0.1)
    assert max(gaps[1:]) <= BUDGET * 1.5


def test_who_is_cancelled_closes_the_work() -> None:
    async def scene() -> Worker:
        worker = Worker(1.0)
        turns = Turns(BUDGET, worker.clock)
        task = asyncio.get_running_loop().create_task(turns.through(worker.parts(turns, 10**6)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return worker

    assert asyncio.run(scene()).closed
