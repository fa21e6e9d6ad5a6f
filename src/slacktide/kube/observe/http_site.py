"""An HTTP server at an address that a setting names, with or without TLS."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from ipaddress import ip_address
from typing import Any, Self, cast

from aiohttp import web
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from slacktide.errors import ConfigError
from slacktide.kube.client.addresses import split_address
from slacktide.kube.client.http import MISDIRECTED
from slacktide.kube.observe.families import text_of

MOST_CONNECTIONS = 256
"""Where so many are open the oldest are closed that nothing is asked on."""
MOST_HANDSHAKES = 64
"""Where so many have yet to show that they speak TLS the oldest of these is closed."""
HANDSHAKE_SECONDS = 5.0
GOODBYE_SECONDS = 2.0
"""So long the other end has to say goodbye as TLS wants it; then the connection is closed all the same."""
WITHOUT_FILES_SECONDS = 0.2
"""Where no connection can be accepted, because this process has no file descriptors left, it is tried again after
this."""
BACKLOG = 128


class Listener:
    """Accepts connections at a host and a port until it is closed. ``make`` makes a connection's protocol, ``made`` are
    those of the connections that are there, the oldest first, and ``asked`` those on which an answer is under way.
    ``context``: over TLS.

    Connections are accepted by hand, as the servers of an event loop tell of none before its handshake is over.
    """

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        made: Callable[[], Collection[Any]],
        asked: Collection[asyncio.Protocol],
        context: ssl.SSLContext | None,
    ) -> None:
        self._make, self._made, self._asked, self._context = make, made, asked, context
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._opening: dict[asyncio.Task[None], None] = {}
        """Connections whose handshake is under way, the oldest first."""

    @property
    def port(self) -> int:
        """On which it listens; 0 where it does not."""
        return int(self._sockets[0].getsockname()[1]) if self._sockets else 0

    async def listen(self, host: str, port: int) -> None:
        """Begin. Raises :class:`OSError`."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((one[0], one[4]) for one in found):
            self._sockets.append(_bound(family, address))
        self._accepting = [loop.create_task(self._accept(one)) for one in self._sockets]

    async def close(self) -> None:
        """End; connections that are open stay."""
        tasks = [*self._accepting, *self._opening]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in self._sockets:
            one.close()
        self._sockets.clear()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(WITHOUT_FILES_SECONDS)
                continue
            if not self._has_room():
                connection.close()
                continue
            if len(self._opening) >= MOST_HANDSHAKES:
                oldest = next(iter(self._opening))
                del self._opening[oldest]
                oldest.cancel()
            task = loop.create_task(self._open(connection))
            self._opening[task] = None
            task.add_done_callback(lambda task: self._opening.pop(task, None))
            await asyncio.sleep(0)  # where many come the others have their turn, and this one begins

    def _has_room(self) -> bool:
        """Whether one more may come, after the oldest that are too many are closed."""
        connections = [one for one in self._made() if one.transport is not None and not one.transport.is_closing()]
        if len(connections) < MOST_CONNECTIONS:
            return True
        idle = [one for one in connections if one not in self._asked]
        # At once: over TLS whoever says no goodbye would stay for a while, and be counted.
        for one in idle[: MOST_CONNECTIONS // 4]:
            one.transport.abort()
        return bool(idle)

    async def _open(self, connection: socket.socket) -> None:
        times: dict[str, Any] = {}
        if self._context is not None:
            times = {"ssl_handshake_timeout": HANDSHAKE_SECONDS, "ssl_shutdown_timeout": GOODBYE_SECONDS}
        with contextlib.suppress(OSError):  # of TLS as well: what is wrong with the other end is not for us to say
            await asyncio.get_running_loop().connect_accepted_socket(self._make, connection, ssl=self._context, **times)


def _bound(family: int, address: tuple[Any, ...]) -> socket.socket:
    """A socket that listens at an address."""
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let two programs listen at one address
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.setblocking(False)
        found.bind(address)
        found.listen(BACKLOG)
    except OSError:
        found.close()
        raise
    return found


IDLE_SECONDS = 75.0
"""A connection on which no request comes for so long is closed, also one on which none has come yet."""
SHUTDOWN_SECONDS = 0.5
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

    async def __aexit__(self, *raised: object) -> None:
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
        seconds: dict[str, Any] = {"shutdown_timeout": SHUTDOWN_SECONDS, "keepalive_timeout": IDLE_SECONDS}
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
