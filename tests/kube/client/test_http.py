"""Requests over sockets, to servers that break off, fall silent or are not who they should be.

When a request is sent again is asked in ``simulated/test_requests.py``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from kube.client.test_credentials import plugin, written
from slacktide.kube.client import http, payload
from slacktide.kube.client.credentials import Access, Fixed, TokenFile, load_access
from slacktide.kube.client.http import ApiError, Connection, NotSent, Unreachable, connect
from slacktide.kube.client.payload import LineSplitter
from support.authority import SERVER, Authority

HANG_SECONDS = 120.0
AT_ONCE = 20
PATH, WATCHED = "/api/v1/things", {"watch": "true"}

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(answer: Answer, context: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[str]:
    """The address of a server that answers so."""
    application = web.Application(client_max_size=2**24)
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
        yield f"http{'s' if context else ''}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def fine(_: web.Request) -> web.StreamResponse:
    return web.json_response({})


async def reset(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response(status=503)  # nobody gets this


async def halved(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b'{"half":')
    return await reset(request)


async def refused(_: web.Request) -> web.StreamResponse:
    return web.Response(status=500)


async def only_the_right(request: web.Request) -> web.StreamResponse:
    return web.json_response({}, status=200 if request.headers["Authorization"] == "Bearer right" else 401)


async def silent(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(HANG_SECONDS)
    return web.Response()


def test_resets_halved_answers_and_dead_servers_are_unreachable() -> None:
    asked: list[Answer] = []

    async def answers(request: web.Request) -> web.StreamResponse:
        return await asked[-1](request)

    async def run() -> None:
        async with served(answers) as address, Connection(Access(address, Fixed(None))) as connection:
            for way in (fine, reset, fine, halved, fine):
                asked.append(way)
                if way is fine:
                    await connection.get("/version")
                    continue
                with pytest.raises(Unreachable, match=r"GET http://127\.0\.0\.1:\d+/version: "):
                    await connection.get("/version")
        async with Connection(Access(address, Fixed(None))) as connection:
            with pytest.raises(Unreachable):
                await connection.get("/version")
            async with served(fine, port=int(address.rpartition(":")[2])):  # it comes back
                await connection.get("/version")

    asyncio.run(run())


def test_a_permit_that_ends_while_a_request_waits_for_a_connection_holds_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "POOL", 1)
    allowed, seen, asked = [True], list[str](), list[bool]()

    def permit() -> bool:
        asked.append(bool(allowed))
        return asked[-1]

    async def run() -> None:
        begun, goes_on = asyncio.Event(), asyncio.Event()

        async def answers(request: web.Request) -> web.StreamResponse:
            seen.append(request.method)
            begun.set()
            await goes_on.wait()
            return web.json_response({})

        async with served(answers) as address, Connection(Access(address, Fixed(None))) as connection:
            first = asyncio.create_task(connection.get(PATH))
            await begun.wait()
            second = asyncio.create_task(connection.post(PATH, b"{}", permit=permit))
            while not asked:
                await asyncio.sleep(0)
            allowed.clear()  # while it waits for the only connection
            goes_on.set()
            with pytest.raises(NotSent, match="no longer needed"):
                await second
            await first
            assert (seen, asked) == (["GET"], [True, False])
            await connection.post(PATH, b"{}", permit=lambda: True)  # and the next one is sent
        assert seen == ["GET", "POST"]

    asyncio.run(run())


def test_hundreds_of_requests_are_under_way_at_once() -> None:
    many = 200

    async def run() -> None:
        all_there, count = asyncio.Event(), [0]

        async def answers(_: web.Request) -> web.StreamResponse:
            count[0] += 1
            if count[0] == many:
                all_there.set()
            await all_there.wait()
            return web.json_response({})

        async with served(answers) as address, Connection(Access(address, Fixed(None))) as connection:
            async with asyncio.timeout(HANG_SECONDS):
                await asyncio.gather(*(connection.get(PATH) for _ in range(many)))

    asyncio.run(run())


def test_the_server_is_verified(tmp_path: Path) -> None:
    """Neither without the cluster's authority, nor under another name; unless one says so."""
    authority, files = Authority("cluster"), (tmp_path / "server.crt", tmp_path / "server.key")
    for file, content in zip(files, authority.client("127.0.0.1", purpose=SERVER, address="127.0.0.1"), strict=True):
        file.write_bytes(content)
    (tmp_path / "ca.crt").write_text(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)

    def variant(name: str, server: str, **cluster: object) -> Path:
        config = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": server, **cluster}}],
            "users": [{"name": "x", "user": {"token": "t"}}],
        }
        path = tmp_path / name
        path.write_text(json.dumps(config))
        return path

    async def reaches(path: Path) -> bool:
        async with await connect(path) as connection:
            try:
                await connection.get("/version")
            except Unreachable as error:
                assert "certificate" in str(error).lower()  # noqa: PT017 (the other way is as good)
                return False
        return True

    trusted = {"certificate-authority": str(tmp_path / "ca.crt")}

    async def run() -> None:
        async with served(fine, context) as address:
            assert await reaches(variant("trusted", address, **trusted))
            assert not await reaches(variant("unknown", address))
            assert not await reaches(variant("named", address, **trusted, **{"tls-server-name": "elsewhere.example"}))
            assert await reaches(variant("unchecked", address, **{"insecure-skip-tls-verify": True}))

    asyncio.run(run())


def test_no_message_shows_the_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "very-secret-token-5e0a"
    told: list[str] = []

    async def run() -> None:
        asyncio.get_running_loop().set_debug(True)
        for way in (refused, reset, halved, silent):
            async with served(way) as address:
                wrong = Access(address, Fixed(f"Bearer {secret}"))
                told.extend((repr(wrong), repr(wrong.credentials), str(vars(wrong.credentials).keys())))
                async with Connection(wrong, timeout=0.2, list_silence=0.2) as connection:
                    told.append(repr(connection))
                    with pytest.raises((ApiError, Unreachable)) as caught:
                        await connection.get(PATH)
                    told.append("".join(traceback.format_exception(caught.value)) + repr(caught.value))
                    with pytest.raises((ApiError, Unreachable)) as caught:
                        async for _ in connection.stream(PATH, WATCHED):
                            pass
                    told.append("".join(traceback.format_exception(caught.value)) + repr(caught.value))

    asyncio.run(run())
    assert len(told) == 24
    assert not [text for text in (*told, caplog.text) if secret in text]


def test_a_renewed_token_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("not-yet-valid\n")

    async def run() -> None:
        credentials = TokenFile(file)
        async with served(only_the_right) as address, Connection(Access(address, credentials)) as connection:
            with pytest.raises(ApiError) as caught:
                await connection.get(PATH)
            assert caught.value.status == 401
            file.write_text("right\n")
            # A refusal makes it look at once, though not again and again.
            connection._refused_at = float("-inf")
            await connection.get(PATH)
            file.write_text("no-longer-valid\n")
            await connection.get(PATH)
            credentials.valid_until = 0.0
            with pytest.raises(ApiError):
                await connection.get(PATH)

    asyncio.run(run())


def test_an_exec_plugin_is_asked_again_when_its_token_is_refused(tmp_path: Path) -> None:
    count = tmp_path / "count"
    body = f"""
path = {str(count)!r}
n = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, 'w').write(str(n))
token = 'expired' if n == 1 else 'right'
print(json.dumps({{'apiVersion': 'client.authentication.k8s.io/v1', 'status': {{'token': token}}}}))
"""

    async def run() -> None:
        all_came, came = asyncio.Event(), [0]

        async def answers(request: web.Request) -> web.StreamResponse:
            came[0] += 1
            if came[0] == AT_ONCE:
                all_came.set()
            await all_came.wait()
            return await only_the_right(request)

        async with served(answers) as address:
            user = plugin(tmp_path / "p.py", body)
            path = written(tmp_path / "a", user, clusters=[{"name": "one", "cluster": {"server": address}}])
            access = await load_access(path)
            async with Connection(Access(address, access.credentials)) as connection:
                # All are refused at first; one of them asks the plugin for all.
                await asyncio.gather(*(connection.get(PATH) for _ in range(AT_ONCE)))

    asyncio.run(run())
    assert count.read_text() == "2"


async def large(request: web.Request) -> web.StreamResponse:
    """A watch with one event of 900,000 bytes, and another one after it."""
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(json.dumps({"type": "ADDED", "object": "x" * 900_000}).encode() + b'\n{"type":"NEXT"}\n')
    return response


def test_a_watch_passes_large_objects_on_whole() -> None:
    async def run() -> None:
        async with served(large) as address, Connection(Access(address, Fixed(None))) as connection:
            first, *lists = [lines async for lines in connection.stream(PATH, WATCHED)]
            assert first == []
            event, following = (json.loads(line) for lines in lists for line in lines)
            assert (event["type"], event["object"]) == ("ADDED", "x" * 900_000)
            assert following["type"] == "NEXT"

    asyncio.run(run())


def test_an_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "LONGEST_LINE", 100_000)

    async def run() -> None:
        async with served(large) as address, Connection(Access(address, Fixed(None))) as connection:
            with pytest.raises(Unreachable, match="a line of more than 100000 bytes"):
                async for _ in connection.stream(PATH, WATCHED):
                    pass

    asyncio.run(run())


def test_lines_come_whole_however_the_stream_was_cut() -> None:
    stream = b'{"a":1}\n{"b":"' + b"z" * 5000 + b'"}\n\n{"c":3}\n'
    for size in (1, 2, 7, 100, 4096, 10_000):
        splitter = LineSplitter()
        lines = [line for at in range(0, len(stream), size) for line in splitter.feed(stream[at : at + size])]
        assert lines == stream.split(b"\n")[:-1]
