"""A small web server on a port of its own, for as long as a block runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp import web


@contextmanager
def serving(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Iterator[str]:
    """The URL at which ``handler`` answers all requests."""
    loop, began = asyncio.new_event_loop(), threading.Event()
    found: list[str] = []

    async def run() -> web.AppRunner:
        async def answer(request: web.Request) -> web.StreamResponse:
            return await handler(request)

        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server = site._server
        assert isinstance(server, asyncio.Server)
        found.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        return runner

    def work() -> None:
        runner = loop.run_until_complete(run())
        began.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert began.wait(30)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
