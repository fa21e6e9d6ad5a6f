"""How a PodGroup stands is written until it is there, and says what is so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kube.act.backstage import Backstage
from slacktide.kube.client.http import ApiError
from support import virtual_time


class Registry(Backstage):
    """A term in which conditions of groups are written; ``said`` is what was taken, ``asked`` how often it was sent.

    The first ``failures`` requests are refused with ``problem``.
    """

    def __init__(self, problem: ApiError | None = None, failures: int = 0) -> None:
        super().__init__()
        self.said: list[tuple[str, str]] = []
        self.asked = 0
        self._problem, self._failures, self._patch = problem, failures, self.server.patch
        self.server.patch = self._take  # type: ignore[method-assign]

    async def _take(self, path: str, body: bytes, *more: Any, **settings: Any) -> bytes:
        if "/podgroups/" not in path:
            return await self._patch(path, body, *more, **settings)
        self.asked += 1
        if self._problem is not None and self.asked <= self._failures:
            raise self._problem
        (condition,) = msgspec.json.decode(body)["status"]["conditions"]
        self.said.append((condition["status"], condition["message"]))
        return b"{}"

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        async with self.leading():
            task = asyncio.create_task(self.session._statuses[1].run())
            yield
            assert not task.done()
            task.cancel()

    async def bind_a_group(self) -> None:
        self.node("n1", 8)
        self.gang(least=2)
        for name in "ab":
            self.pod(name, "g")
        await self.decide()
        assert len(self.server.bindings) == 2


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_what_a_moment_refused_is_written_the_next(status: int) -> None:
    async def play() -> None:
        house = Registry(ApiError(status, "NotNow", "etcd has a new leader"), failures=3)
        async with house.writing():
            await house.bind_a_group()
            await asyncio.sleep(10)
        assert (house.said, house.asked) == ([("True", "")], 4)

    virtual_time.run(play)


@pytest.mark.parametrize("status", [403, 404, 422])
def test_what_is_refused_for_good_is_not_asked_every_second_and_is_written_once_it_may(status: int) -> None:
    async def play() -> None:
        house = Registry(ApiError(status, "No", "not by you"), failures=3)
        async with house.writing():
            await house.bind_a_group()
            await asyncio.sleep(150)
            assert (house.said, house.asked) == ([], 3)
            await asyncio.sleep(60)
        assert (house.said, house.asked) == ([("True", "")], 4)

    virtual_time.run(play)


def test_why_a_group_waits_is_refused_and_told_again_likewise() -> None:
    async def play() -> None:
        house = Registry(ApiError(403, "Forbidden", "not by you"), failures=2)
        async with house.writing():
            house.node("n1", 1)
            house.gang(least=2)
            for name in "ab":
                house.pod(name, "g")
            await house.decide()
            await asyncio.sleep(100)
            assert (house.said, house.asked) == ([], 2)
            await asyncio.sleep(60)
            assert [status for status, _ in house.said] == ["False"]

    virtual_time.run(play)


def test_it_says_that_victims_are_awaited_only_where_some_are() -> None:
    async def play() -> None:
        house = Registry()
        async with house.writing():
            house.node("n1", 1)
            house.gang(least=2)
            for name in "ab":
                house.pod(name, "g", nominated="n1")  # by somebody else
            await house.decide()
            await asyncio.sleep(5)
            ((status, message),) = house.said
            assert status == "False"
            assert "preempts" not in message
            house.said.clear()
            for number in (2, 3):
                house.node(f"n{number}")
                house.low(f"low{number}", f"n{number}")
            await house.decide(passes=3)
            assert sorted(house.server.evicted) == ["low2", "low3"]
            await asyncio.sleep(5)
            assert house.said == [("False", "waiting for the pods that it preempts to terminate")]

    virtual_time.run(play)
