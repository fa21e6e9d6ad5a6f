"""Load on a cluster: pods created by many clients at once, and bindings as a watch shows them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import msgspec

from live_parts.binder import Event
from live_parts.cluster import NAMESPACE, Cluster
from slacktide.kube.client.http import GATEWAY_TIMEOUT, ApiError, Connection, Unreachable, connect

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
POSTS = 64
"""Posts under way at once."""


class Bindings:
    """When each pod was first seen, and first seen bound (seconds of ``perf_counter``), by name."""

    def __init__(self, connection: Connection, path: str = PODS) -> None:
        self._connection, self._path = connection, path
        self._decode = msgspec.json.Decoder(Event).decode
        self.seen: dict[str, float] = {}
        self.at: dict[str, float] = {}
        self.watching = asyncio.Event()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Watch, again and again: the API server ends a watch that does not keep up."""
        listed = msgspec.json.decode(await self._connection.get(self._path, query={"limit": "1"}))
        self._version = listed["metadata"]["resourceVersion"]
        while True:
            await self._watch()

    async def _watch(self) -> None:
        query = {"watch": "true", "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        async with aclosing(self._connection.stream(self._path, query)) as stream:
            async for lines in stream:
                now = time.perf_counter()
                self.watching.set()
                for line in lines:
                    event = self._decode(line)
                    found = event.object
                    self._version = found.metadata.resource_version
                    self.seen.setdefault(found.metadata.name, now)
                    if found.spec.node_name and event.type != "DELETED":
                        self.at.setdefault(found.metadata.name, now)
                self._changed.set()

    async def all_of(self, names: set[str], seconds: float) -> int:
        """Wait until all of these are bound, at most so long since the last new one; how many are."""
        until = time.perf_counter() + seconds
        while True:
            found = len(names & self.at.keys())
            left = until - time.perf_counter()
            if found == len(names) or left <= 0:
                return found
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, 1.0)):
                    await self._changed.wait()
            await asyncio.sleep(0.1)


@asynccontextmanager
async def watched(cluster: Cluster, path: str = PODS) -> AsyncIterator[tuple[Connection, Bindings]]:
    """A connection, and bindings as they come from now on."""
    async with await connect(cluster.plane.kubeconfig, timeout=120) as connection:
        bindings = Bindings(connection, path)
        task = asyncio.create_task(bindings.run())
        await bindings.watching.wait()
        try:
            yield connection, bindings
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def create(connection: Connection, pods: Sequence[dict[str, Any]], posts: int = POSTS) -> None:
    """Create pods, so many posts at once."""
    bodies: Iterator[bytes] = iter([msgspec.json.encode(one) for one in pods])

    async def post() -> None:
        for body in bodies:
            await connection.post(PODS, body)

    async with asyncio.TaskGroup() as group:
        for _ in range(posts):
            group.create_task(post())


async def clear(connection: Connection) -> None:
    """Delete all pods, events and ledgers of the namespace, and wait until they are gone."""
    body = b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}'
    for path in (PODS, f"/api/v1/namespaces/{NAMESPACE}/events"):
        while True:
            try:
                await connection.delete(path, body, timeout=300.0)
            except Unreachable:
                pass  # an answer of so many objects may break off; what is left is looked at
            except ApiError as error:
                if error.status != GATEWAY_TIMEOUT:  # the API server gives up after a minute; some are gone by then
                    raise
            left = await connection.get(path, query={"limit": "1"})
            if not msgspec.json.decode(left)["items"]:
                break
            await asyncio.sleep(0.5)


NUMBERS = itertools.count(1)


def names(count: int) -> list[str]:
    """Names that were never used before."""
    run = next(NUMBERS)
    return [f"b{run}-{number}" for number in range(count)]
