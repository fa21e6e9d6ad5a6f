"""Lists that come slowly are taken whole; those that fall silent are given up."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from slacktide.kube.client.credentials import FOREVER, Access, Fixed
from slacktide.kube.client.http import Connection, Unreachable
from slacktide.kube.client.kinds import Identity
from slacktide.kube.client.reflector import Reflector
from slacktide.kube.resources.objects import NODE, Node

NAMES = [f"node-{number}" for number in range(40)]
NODES = json.dumps({
    "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": one, "uid": one}} for one in NAMES]
}).encode()  # fmt: skip
PATH = NODE.path()
PATIENT = 300.0
SHORT = 0.3

Answer = Callable[[web.Request, web.StreamResponse], Awaitable[None]]


@asynccontextmanager
async def served(answer: Answer) -> AsyncIterator[Access]:
    """A server that knows its version, and answers everything else as ``answer`` does."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.path == "/version":
            return web.json_response({})
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer(request, response)
        return response

    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield Access(f"http://127.0.0.1:{runner.addresses[0][1]}", Fixed(None))
    finally:
        await runner.cleanup()


async def slowly(request: web.Request, response: web.StreamResponse) -> None:
    """Piece by piece, three times as long as a request may last."""
    await response.prepare(request)
    ends = time.monotonic() + 3 * SHORT
    for at in range(0, len(NODES) - 1, 100):
        await response.write(NODES[at : min(at + 100, len(NODES) - 1)])
        await asyncio.sleep(0.01)
    while time.monotonic() < ends:
        await response.write(b" ")
        await asyncio.sleep(0.01)
    await response.write(NODES[-1:])


async def silently(_: web.Request, __: web.StreamResponse) -> None:
    """Not a byte."""
    await asyncio.Event().wait()


async def half(request: web.Request, response: web.StreamResponse) -> None:
    """A half, and nothing more."""
    await response.prepare(request)
    await response.write(NODES[: len(NODES) // 2])
    await asyncio.Event().wait()


def test_a_list_that_comes_slowly_is_taken_whole_while_a_small_request_is_not_waited_for() -> None:
    async def run() -> None:
        async with served(slowly) as access, Connection(access, timeout=SHORT, list_silence=PATIENT) as connection:
            await connection.get("/version", timeout=PATIENT)  # makes a connection, for which a slow machine takes long
            began = time.monotonic()
            assert json.loads(await connection.get_list(PATH))["metadata"] == {"resourceVersion": "7"}
            assert time.monotonic() - began >= 3 * SHORT
            with pytest.raises(Unreachable, match="no answer in time"):
                await connection.get(PATH)

    asyncio.run(run())


@pytest.mark.parametrize("answer", [silently, half])
def test_a_list_that_falls_silent_is_given_up(answer: Answer) -> None:
    async def run() -> None:
        async with (
            served(answer) as access,
            Connection(access, timeout=PATIENT, list_silence=SHORT) as connection,
            asyncio.timeout(PATIENT),
        ):
            with pytest.raises(Unreachable, match=rf"GET http://127\.0\.0\.1:\d+{PATH}: no byte came for 0\.3 s$"):
                await connection.get_list(PATH)

    asyncio.run(run())


def test_a_watch_that_is_not_accepted_is_given_up_long_before_one_that_says_nothing() -> None:
    async def run() -> None:
        async with (
            served(silently) as access,
            Connection(access, timeout=PATIENT, list_silence=SHORT) as connection,
            asyncio.timeout(PATIENT),
        ):
            with pytest.raises(Unreachable, match="no answer in time"):
                async for _ in connection.stream(PATH, {"watch": "true"}, silence=2 * PATIENT):
                    pass

    asyncio.run(run())


class Picture:
    """What a reflector told of nodes."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def replaced(self, objects: Sequence[Node]) -> None:
        self.names = [one.metadata.name for one in objects]

    def changed(self, found: object) -> None: ...

    def deleted(self, identity: Identity, last: object) -> None: ...

    def malformed(self, problem: object) -> None: ...


def test_a_reflector_lists_again_after_silence_and_takes_what_comes_slowly() -> None:
    asked: list[bool] = []

    async def first_half_then_slowly(request: web.Request, response: web.StreamResponse) -> None:
        if "watch" in request.query:
            await silently(request, response)
        asked.append(True)
        await (half if len(asked) == 1 else slowly)(request, response)

    async def run() -> None:
        async with (
            served(first_half_then_slowly) as access,
            Connection(access, timeout=SHORT, list_silence=3 * SHORT) as connection,
        ):
            picture = Picture()
            reflector = Reflector(connection, NODE, picture)
            task = asyncio.create_task(reflector.run())
            async with asyncio.timeout(PATIENT):
                await reflector.synced.wait()
            assert picture.names == NAMES
            assert reflector.lists >= 2
            assert reflector.failures >= 1
            assert "no byte came for 0.9 s" in reflector.last_error
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


class NewCertificate(Fixed):
    """Credentials whose client certificate is another one after a refusal."""

    valid_until = FOREVER

    async def renew(self, context: ssl.SSLContext | None, *, force: bool) -> bool:  # noqa: ARG002 (the protocol's)
        return True


def test_a_list_under_way_outlives_the_certificate_it_was_asked_for_with() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def waits(request: web.Request, response: web.StreamResponse) -> None:
        if request.path != PATH:
            response.set_status(401)
            await response.prepare(request)
            return
        await response.prepare(request)
        await response.write(NODES[:100])
        begun.set()
        await go_on.wait()
        await response.write(NODES[100:])

    async def run() -> None:
        async with (
            served(waits) as access,
            Connection(Access(access.server, NewCertificate(None)), timeout=SHORT, list_silence=PATIENT) as connection,
            asyncio.timeout(PATIENT),
        ):
            task = asyncio.create_task(connection.get_list(PATH))
            await begun.wait()
            with pytest.raises(Exception, match="401"):
                await connection.get("/refused", timeout=PATIENT)
            await asyncio.sleep(2 * SHORT)  # what else was asked for before has been cut off by now
            go_on.set()
            assert await task == NODES

    asyncio.run(run())
