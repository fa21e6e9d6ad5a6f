"""The product's own client, above a transport that hands requests to the model instead of to sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self
from urllib.parse import parse_qsl

import aiohttp
from yarl import URL

from simulated.api_model import Answer, Request
from simulated.chance import Chance
from simulated.network import Wire
from simulated.resources import target_of
from simulated.store import Store
from simulated.watching import Watch
from slacktide.kube.client.credentials import Access, Fixed
from slacktide.kube.client.http import Connection
from slacktide.kube.client.payload import Permitted

SERVER = "http://127.0.0.1:6443"
CONNECTING = (0.0, 0.005)
SLOWLY_CONNECTING = (0.1, 12.0)
"""Seconds until a connection is there, before the first byte is written."""
LEASELESS_SLOW = 0.3
"""So many connections take long while a process cannot renew its lease: so that of what it may still send some is to be
written when somebody else leads."""


class Written:
    """Takes the bytes of a body that is written."""

    def __init__(self) -> None:
        self.body = b""

    async def write(self, piece: Any) -> None:
        self.body += bytes(piece)


class Response:
    """An answer, as aiohttp has it."""

    def __init__(self, answer: Answer) -> None:
        self.status, self.headers, self.reason = answer.code, answer.headers, ""
        self._body = answer.body

    async def read(self) -> bytes:
        return self._body


class Stream:
    """An answer without end, as aiohttp has it."""

    def __init__(self, watch: Watch, silence: float | None) -> None:
        self.status, self.headers, self.reason, self.connection = 200, dict[str, str](), "", None
        self._watch, self._silence = watch, silence
        self.content = self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watch.close()

    def iter_any(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """No generator: one of those that is collected has a turn, and when it is collected no seed decides."""
        if not self._watch.told:
            await self._watch.more(self._silence)
        found = self._watch.told.popleft()
        if found is None:
            raise StopAsyncIteration
        if isinstance(found, Exception):
            raise found
        return found


class NoStream(Response):
    """A watch that was not accepted."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...


class Session:
    """What stands for ``aiohttp.ClientSession``: its requests go over a :class:`Wire`."""

    def __init__(self, wire: Wire, store: Store, chance: Chance, agent: str) -> None:
        self._wire, self._store, self._chance, self._agent = wire, store, chance, agent
        self._subject = f"connections of {wire.actor.name}"
        self.watches: list[Watch] = []

    async def close(self) -> None:
        """Nothing is open."""

    async def request(
        self, method: str, url: URL, *, data: Any, headers: dict[str, str], timeout: aiohttp.ClientTimeout, **_: Any
    ) -> Response:
        if self._wire.dead:
            raise aiohttp.ClientConnectionError("the process is dead")
        try:
            async with asyncio.timeout(timeout.total or timeout.sock_read):
                await self._connected()
                body = b""
                if isinstance(data, Permitted):
                    written: Any = Written()
                    await data.write_with_length(written, None)
                    body = written.body
                elif data is not None:
                    body = data if isinstance(data, bytes) else data.read()
                query = _query(url.raw_query_string)
                sent = Request(method, url.raw_path, query, body, headers["Content-Type"], self._agent)
                return Response(await self._wire.exchange(sent))
        except ConnectionResetError as error:
            raise aiohttp.ClientOSError(str(error)) from None
        except TimeoutError:
            if timeout.total is None:
                raise aiohttp.SocketTimeoutError("no byte came") from None
            raise

    async def _connected(self) -> None:
        slow = LEASELESS_SLOW if self._wire.leaseless else self._wire.weather.slow / 3
        is_slow = self._chance.happens(self._subject, slow)
        await asyncio.sleep(self._chance.between(self._subject, *(SLOWLY_CONNECTING if is_slow else CONNECTING)))

    async def get(self, url: URL, *, headers: dict[str, str], **_: Any) -> Any:
        """Begin a watch."""
        timeout: aiohttp.ClientTimeout = _["timeout"]
        if self._wire.dead:
            raise aiohttp.ClientConnectionError("the process is dead")
        query = _query(url.raw_query_string)
        target = target_of(url.raw_path)
        asked = Request("GET", url.raw_path, {"watch": "true", "limit": "1"}, b"", headers["Content-Type"])
        try:
            answer = await self._wire.exchange(asked)
        except ConnectionResetError as error:
            raise aiohttp.ClientOSError(str(error)) from None
        if not answer.ok or target is None:
            return NoStream(answer)
        watch = Watch(self._store, self._wire, self._chance, target.resource, target.namespace, query)
        self.watches = [one for one in self.watches if not one.closed]
        self.watches.append(watch)
        watch.begin()
        return Stream(watch, timeout.sock_read)


@lru_cache(1024)
def _query(text: str) -> Mapping[str, str]:
    return dict(parse_qsl(text, keep_blank_values=True))


class SimulatedConnection(Connection):
    """The product's connection, whole; only its sessions are others."""

    def __init__(self, wire: Wire, store: Store, chance: Chance, **options: Any) -> None:
        self._wire, self._store, self._chance = wire, store, chance
        super().__init__(Access(SERVER, Fixed("Bearer simulated")), **options)

    def _open(self) -> None:
        session: Any = Session(self._wire, self._store, self._chance, self.agent)
        self.session: Session = session
        self._pooled = self._unpooled = session

    def watches(self) -> list[Watch]:
        """Those that somebody listens to."""
        return [one for one in self.session.watches if not one.closed]

    def mended(self, seconds: float) -> None:
        """The network is whole again, after so many seconds."""
        for watch in self.watches():
            watch.mended(seconds)
