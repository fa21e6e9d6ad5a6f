"""Once the API server, which was away, answers somebody, watches begin again: they do not wait for their own turn."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kube.client.test_reflector_absent import Heard, Server
from slacktide.kube.client import reflector as reflectors
from slacktide.kube.client.http import Unreachable
from slacktide.kube.client.pacing import Presence
from slacktide.kube.client.reflector import Reflector
from slacktide.kube.resources.workloads import COSCHEDULING

HANG_SECONDS = 60.0


class Away(Server):
    """A server that cannot be reached until it comes back; ``refuses`` those that watch even then."""

    def __init__(self, refuses: bool = False) -> None:
        super().__init__()
        self.away, self.refuses = True, refuses
        self.tries = 0
        self.tried = asyncio.Event()

    def _answer(self) -> None:
        self.tries += 1
        self.tried.set()
        self.tried = asyncio.Event()
        if self.away or self.refuses:
            self.presence.lost()
            raise Unreachable("GET /: connection refused")

    def answers(self) -> None:
        """Somebody else is answered."""
        self.away = False
        self.presence.answered()


@pytest.fixture
def long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for its own turn waits for the end of the test; nobody else waits at all."""
    monkeypatch.setattr(reflectors, "TOGETHER_SECONDS", 0.0)
    monkeypatch.setattr(reflectors, "SHORTEST_BACKOFF_SECONDS", 2 * HANG_SECONDS)
    monkeypatch.setattr(reflectors, "LONGEST_BACKOFF_SECONDS", 2 * HANG_SECONDS)


async def begun(server: Away) -> tuple[Reflector[Any], asyncio.Task[None]]:
    """A reflector that has tried once, in vain."""
    reflector = Reflector(cast("Any", server), COSCHEDULING, Heard())
    tried = server.tried.wait()
    task = asyncio.create_task(reflector.run())
    async with asyncio.timeout(HANG_SECONDS):
        await tried
    return reflector, task


@pytest.mark.usefixtures("long_pauses")
def test_a_watch_begins_again_when_the_server_answers_somebody_else() -> None:
    async def play() -> None:
        server = Away()
        reflector, task = await begun(server)
        server.answers()
        async with asyncio.timeout(HANG_SECONDS):
            await reflector.synced.wait()
        task.cancel()

    asyncio.run(play())


@pytest.mark.usefixtures("long_pauses")
def test_a_watch_that_fails_while_others_are_answered_is_not_begun_faster() -> None:
    async def play() -> None:
        server = Away(refuses=True)
        _, task = await begun(server)
        again = server.tried.wait()
        server.answers()
        async with asyncio.timeout(HANG_SECONDS):
            await again
        for _ in range(100):
            server.answers()
            await asyncio.sleep(0)  # a turn, of which a watch that is begun takes a few
        assert server.tries == 2
        task.cancel()

    asyncio.run(play())


def test_who_waits_is_told_of_a_return_only() -> None:
    async def play() -> None:
        presence = Presence()
        waits = asyncio.create_task(presence.back(HANG_SECONDS))
        await asyncio.sleep(0)
        presence.answered()  # it was not away
        await asyncio.sleep(0)
        assert not waits.done()
        presence.lost()
        presence.answered()
        assert await waits
        assert not await presence.back(0.0)

    asyncio.run(play())
