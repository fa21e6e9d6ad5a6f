"""Connections of an HTTP server, bounded: who only opens some, with TLS or without, keeps nobody else away and takes no
file descriptors that the scheduler needs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Collection
from typing import Any

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
