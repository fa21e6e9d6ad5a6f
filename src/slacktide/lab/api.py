"""The API server's client for those who may wait (the lab, tests): blocks where ``kube.client.http`` awaits."""

from __future__ import annotations

import asyncio
import json
import threading
import weakref
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from slacktide.kube.client.credentials import Access, Fixed, tls_context
from slacktide.kube.client.http import JSON, MERGE_PATCH, TOO_MANY, ApiError, Connection

T = TypeVar("T")

AGENT = "slacktide-lab"
"""The API server names who wrote a field by it: the lab's nodes are not the scheduler's work."""
CONCURRENT = 64
BUSY_TRIES, BUSY_SECONDS = 20, 0.5
"""A server that is too busy, as it is for a moment with a kind that was just defined, is asked again so often."""


class Api:
    """Requests to one API server with one token; the server's certificate is verified against ``ca_file``.

    Safe to use from several threads: all requests are sent by an event loop in a thread of its own, which ends
    with ``close``, or when nobody holds the client any more. Methods raise ``ApiError`` where the server refuses,
    and ``Unreachable`` where it does not answer.
    """

    def __init__(self, url: str, token: str, ca_file: Path, timeout_seconds: float = 60) -> None:
        access = Access(url, Fixed(f"Bearer {token}"), tls_context(ca_file.read_bytes(), str(ca_file)))
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(self._loop,), name="lab-api", daemon=True).start()
        self._connection = self._wait(_connect(access, timeout_seconds))
        self.close = weakref.finalize(self, _end, self._connection, self._loop)

    def get(self, path: str) -> Any:
        """The decoded answer to a GET."""
        return self.request("GET", path)

    def post(self, path: str, body: Any) -> Any:
        """Creates an object, or asks a subresource (``.../eviction``, ``.../token``) for something."""
        return self.request("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        """Replaces an object."""
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH) -> Any:
        """Changes an object; ``kind`` is the patch's content type."""
        return self.request("PATCH", path, body, kind)

    def delete(self, path: str, grace_seconds: int | None = None) -> Any:
        """Deletes an object, or all of a collection."""
        body = None if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        return self.request("DELETE", path, body)

    def request(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Any:
        """Sends one request, again while the server is too busy (429); returns the decoded answer.

        An eviction is sent once: its 429 says that a disruption budget forbids it.
        """
        return self._wait(_answer(self._connection, method, path, body, content_type))

    def create_all(self, path: str, objects: Sequence[Any], concurrent: int = CONCURRENT) -> list[Any]:
        """Creates objects, ``concurrent`` at a time; returns what the server made of them, in their order."""
        return self._wait(_create_all(self._connection, path, objects, concurrent))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _connect(access: Access, timeout: float) -> Connection:
    return Connection(access, timeout=timeout, agent=AGENT)


async def _answer(connection: Connection, method: str, path: str, body: Any, content_type: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    tries = 0 if path.endswith("/eviction") else BUSY_TRIES
    while True:
        try:
            answer = await connection.request(method, path, body=data, content_type=content_type, retries=0)
        except ApiError as error:
            if error.status != TOO_MANY or tries <= 0:
                raise
            tries -= 1
            await asyncio.sleep(BUSY_SECONDS)
        else:
            return json.loads(answer) if answer[:1] in (b"{", b"[") else answer.decode(errors="replace")


async def _create_all(connection: Connection, path: str, objects: Sequence[Any], concurrent: int) -> list[Any]:
    room = asyncio.Semaphore(concurrent)

    async def create(one: Any) -> Any:
        async with room:
            return await _answer(connection, "POST", path, one, JSON)

    return await asyncio.gather(*map(create, objects))


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _end(connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
    """Without waiting: it may be the loop's own thread that finds the client unused."""

    async def close() -> None:
        await connection.close()
        loop.stop()

    asyncio.run_coroutine_threadsafe(close(), loop)
