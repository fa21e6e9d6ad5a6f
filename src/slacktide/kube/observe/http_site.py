"""An HTTP server at an address that a setting names, with or without TLS."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Self, cast

from aiohttp import web
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from slacktide.errors import ConfigError
from slacktide.kube.client.addresses import split_address
from slacktide.kube.client.http import MISDIRECTED
from slacktide.kube.observe.families import text_of
from slacktide.kube.observe.http_connections import Listener

IDLE_SECONDS = 75.0
"""A connection on which no request comes for so long is closed, also one on which none has come yet."""
GOODBYE_SECONDS = 0.5
"""So long answers that are under way may take at the end: streams never end by themselves, and hold nobody up."""
Route = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """Serves GET of ``routes`` by path, and of /livez, at ``listen`` while it is entered; over TLS with a ``context``.

    ``listen`` is ``HOST:PORT``, port 0 any that is free; empty: nothing is served. Raises :class:`ConfigError` that
    names the ``setting``.
    """

    def __init__(
        self, setting: str, listen: str, routes: Mapping[str, Route], context: ssl.SSLContext | None = None
    ) -> None:
        self._setting, self._listen, self._context = setting, listen, context
        self._routes = {"/livez": livez, **routes}
        self._runner: web.AppRunner | None = None
        self._listener: Listener | None = None

    async def __aenter__(self) -> Self:
        if self._listen:
            await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            await self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def port(self) -> int:
        """On which it listens, while it is entered."""
        return 0 if self._listener is None else self._listener.port

    async def _open(self) -> None:
        host, port = address_of(self._setting, self._listen)
        asked: set[asyncio.Protocol] = set()

        @web.middleware
        async def noted(request: web.Request, handler: Route) -> web.StreamResponse:
            asked.add(request.protocol)
            try:
                return await handler(request)
            finally:
                asked.discard(request.protocol)

        application = web.Application(middlewares=[noted])
        application.add_routes([web.get(path, route) for path, route in self._routes.items()])
        seconds: dict[str, Any] = {"shutdown_timeout": GOODBYE_SECONDS, "keepalive_timeout": IDLE_SECONDS}
        self._runner = web.AppRunner(application, access_log=None, **seconds)
        await self._runner.setup()
        server = cast(web.Server, self._runner.server)
        listener = Listener(server, lambda: server.connections, asked, self._context)
        try:
            await listener.listen(host, port)
        except OSError as error:
            await listener.close()
            await self._runner.cleanup()
            said = error.strerror or error
            raise ConfigError(f"{self._setting}: cannot listen on {self._listen}: {said}") from error
        self._listener = listener


def address_of(setting: str, listen: str) -> tuple[str, int]:
    """Host and port to listen on. Raises :class:`ConfigError` that names the ``setting``."""
    try:
        return split_address(listen, least_port=0)
    except ValueError as error:
        raise ConfigError(f"{setting}: {error}") from None


def near(route: Route) -> Route:
    """``route`` for requests that name this machine: another site's name that is made to lead here (DNS rebinding) is
    none, and without this a page of that site could read the answer."""

    async def asked(request: web.Request) -> web.StreamResponse:
        if not _is_near(request.host):
            text = f"Host: found {request.host!r}, expected localhost or 127.0.0.1"
            return web.json_response({"error": text}, status=MISDIRECTED)
        return await route(request)

    return asked


def _is_near(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    with contextlib.suppress(ValueError):
        return ip_address(name).is_loopback
    return name.lower() == "localhost"


async def livez(request: web.Request) -> web.Response:  # noqa: ARG001
    """That this process answers."""
    return web.Response(text="ok\n")


def metrics_page(registry: CollectorRegistry, prepare: Callable[[], Awaitable[None]] | None = None) -> Route:
    """/metrics of what is registered. ``prepare`` is waited for before: it does what would take too long at once.
    One scrape has its turn after the other, so that no more than one is in memory."""
    turn = asyncio.Lock()

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        async with turn:
            if prepare is not None:
                await prepare()
            text = await text_of(registry, encode)
        return web.Response(body=text, headers={"Content-Type": content_type})

    return metrics
