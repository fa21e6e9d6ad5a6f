"""An object is its UID, whatever its name: where etcd was restored from a backup, a watch that goes on may show another
object of a name, and the end of the first one never."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from slacktide.kube.client.kinds import Identity
from slacktide.kube.client.pacing import Presence
from slacktide.kube.client.reflector import Reflector
from slacktide.kube.resources.workloads import COSCHEDULING, CoschedulingGroup
from support import virtual_time


def group(uid: str, version: str) -> dict[str, Any]:
    return {"metadata": {"name": "g", "namespace": "n", "uid": uid, "resourceVersion": version}}


class Server:
    """Lists one object, and tells what a test says."""

    def __init__(self) -> None:
        self.presence = Presence()
        self.news: asyncio.Queue[tuple[str, str, str]] = asyncio.Queue()

    async def get_list(self, _path: str, _query: Any = None) -> bytes:
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": [group("first", "1")]}).encode()

    async def stream(self, *_: Any) -> AsyncIterator[list[bytes]]:
        yield []
        while True:
            kind, uid, version = await self.news.get()
            yield [json.dumps({"type": kind, "object": group(uid, version)}).encode()]


class Heard:
    def __init__(self) -> None:
        self.told: list[str] = []

    def replaced(self, objects: Sequence[CoschedulingGroup]) -> None:
        self.told += [f"listed {one.metadata.uid}" for one in objects]

    def changed(self, found: CoschedulingGroup) -> None:
        self.told.append(f"changed {found.metadata.uid}")

    def deleted(self, identity: Identity, _last: object) -> None:
        self.told.append(f"deleted {identity.uid}")

    def malformed(self, problem: object) -> None:
        self.told.append(str(problem))


def test_another_object_of_a_name_ends_the_first_one_which_cannot_end_the_other() -> None:
    async def play() -> None:
        server, heard = Server(), Heard()
        reflector = Reflector(cast("Any", server), COSCHEDULING, heard)
        task = asyncio.create_task(reflector.run())
        for news in (("MODIFIED", "second", "2"), ("DELETED", "first", "3"), ("MODIFIED", "second", "4")):
            server.news.put_nowait(news)
        await asyncio.sleep(1.0)
        assert heard.told == ["listed first", "deleted first", "changed second", "changed second"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtual_time.run(play)
