"""How many connections a server keeps, over TLS and without, on both event loops."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, cast

import aiohttp
import pytest

from slacktide.cli.process import run_fast
from slacktide.kube.observe import http_site
from slacktide.kube.observe.certificates import Certificate
from slacktide.kube.observe.http_site import Site

RUN: list[Callable[[Coroutine[Any, Any, None]], Any]] = [asyncio.run, run_fast]
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_site, "MOST_CONNECTIONS", 8)
    monkeypatch.setattr(http_site, "MOST_HANDSHAKES", 4)


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def ask(site: Site) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://127.0.0.1:{site.port}/livez", ssl=trusting()) as got,
    ):
        return got.status


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[Site]:
    async with Site("test", "127.0.0.1:0", {}, Certificate(None, None, "127.0.0.1").context) as site:
        yield site


async def ended(connections: list[Stream]) -> int:
    """How many the server has closed, once it has closed any at all."""
    async with asyncio.timeout(60):
        done, others = await asyncio.wait([asyncio.ensure_future(one.read()) for one, _ in connections])
    assert not others
    return len(done)


@pytest.mark.parametrize("run", RUN)
def test_who_connects_and_never_begins_with_tls_is_closed(
    run: Callable[[Coroutine[Any, Any, None]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest at once where there are too many, the others soon; meanwhile others are served."""
    monkeypatch.setattr(http_site, "HANDSHAKE_SECONDS", 2.0)

    async def play() -> None:
        async with served() as site:
            silent = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(40)]
            assert await ask(site) == 200
            # The last ones: after the time for a handshake.
            assert await ended(silent) == 40
            for _, writer in silent:
                writer.close()

    run(play())


@pytest.mark.parametrize("run", RUN)
def test_who_says_no_goodbye_is_counted_no_more(run: Callable[[Coroutine[Any, Any, None]], Any]) -> None:
    """TLS has both ends say goodbye. These do not, and take nobody's place all the same."""

    async def play() -> None:
        async with served() as site:
            idle: list[Stream] = []
            for _ in range(40):
                stream = await asyncio.open_connection("127.0.0.1", site.port, ssl=trusting())
                cast(asyncio.Transport, stream[1].transport).pause_reading()  # it hears of nothing, and answers nothing
                idle.append(stream)
            for _ in range(3):
                assert await ask(site) == 200
            for _, writer in idle:
                writer.transport.abort()

    run(play())


@pytest.mark.parametrize("run", RUN)
def test_what_comes_with_the_end_of_a_handshake_is_read(run: Callable[[Coroutine[Any, Any, None]], Any]) -> None:
    async def play() -> None:
        async with served() as site:
            for _ in range(20):
                assert await ask(site) == 200

    run(play())


def test_an_address_that_is_taken_is_told_and_leaves_nothing() -> None:
    async def play() -> None:
        async with served() as site:
            with pytest.raises(Exception, match=f"test: cannot listen on 127.0.0.1:{site.port}: "):
                async with Site("test", f"127.0.0.1:{site.port}", {}):
                    pass
            assert await ask(site) == 200

    asyncio.run(play())


def test_it_listens_on_every_address_of_this_machine() -> None:
    async def play() -> None:
        async with Site("test", "0.0.0.0:0", {}) as site, aiohttp.ClientSession() as session:
            for address in ("127.0.0.1", "127.0.0.2"):
                async with session.get(f"http://{address}:{site.port}/livez") as got:
                    assert got.status == 200

    asyncio.run(play())
