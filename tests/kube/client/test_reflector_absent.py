"""A kind that the API server serves, serves no more, and serves again: custom resources come and go while we run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from slacktide.kube.client.http import ApiError
from slacktide.kube.client.kinds import Identity, Malformed
from slacktide.kube.client.pacing import Presence
from slacktide.kube.client.reflector import ABSENT_SECONDS, Reflector
from slacktide.kube.resources.workloads import COSCHEDULING, CoschedulingGroup
from support import virtual_time

MISSING = ApiError(404, "NotFound", "the server could not find the requested resource")


class Server:
    """Has one object while it serves the kind; a watch is open until that is over."""

    def __init__(self) -> None:
        self.serves, self.falters = True, 0
        self.ended = asyncio.Event()
        self.presence = Presence()

    def _answer(self) -> None:
        if self.falters:
            self.falters -= 1
            raise MISSING
        if not self.serves:
            raise MISSING

    async def get_list(self, _path: str, _query: Any = None) -> bytes:
        self._answer()
        item = {"metadata": {"name": "g", "namespace": "n", "uid": "u", "resourceVersion": "1"}}
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": [item]}).encode()

    async def stream(self, *_: Any) -> AsyncIterator[list[bytes]]:
        self._answer()
        yield []
        await self.ended.wait()

    def end_watch(self) -> None:
        self.ended.set()
        self.ended = asyncio.Event()


class Heard:
    def __init__(self) -> None:
        self.told: list[str] = []

    def replaced(self, objects: Sequence[CoschedulingGroup]) -> None:
        self.told.append(f"listed {len(objects)}")

    def changed(self, found: CoschedulingGroup) -> None:
        self.told.append(f"changed {found.metadata.name}")

    def deleted(self, identity: Identity, _last: object) -> None:
        self.told.append(f"deleted {identity.name}")

    def malformed(self, problem: Malformed) -> None:
        self.told.append(problem.problem)

    def absent(self) -> None:
        self.told.append("absent")


def test_a_kind_that_is_served_no_more_is_forgotten_and_looked_for_again() -> None:
    async def play() -> None:
        server, heard = Server(), Heard()
        reflector = Reflector(cast("Any", server), COSCHEDULING, heard, absent=heard.absent)
        task = asyncio.create_task(reflector.run())
        await asyncio.sleep(2.0)
        assert heard.told == ["listed 1"]
        server.falters = 1  # an API server that has just begun
        server.end_watch()
        await asyncio.sleep(3.0 * ABSENT_SECONDS)
        assert (heard.told, reflector.is_absent) == (["listed 1"], False)
        server.serves = False
        server.end_watch()
        await asyncio.sleep(3.0 * ABSENT_SECONDS)
        assert heard.told == ["listed 1", "deleted g", "absent", "absent"]
        assert (reflector.is_absent, reflector.synced.is_set(), reflector.failures) == (True, False, 0)
        server.serves = True
        await asyncio.sleep(2.0 * ABSENT_SECONDS)
        assert heard.told[4:] == ["listed 1"]
        assert (reflector.is_absent, reflector.synced.is_set()) == (False, True)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtual_time.run(play)
