"""A watch of a real API server: pages, selectors and versions are its own. What may go wrong is asked in
``simulated/test_reflector.py``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from cluster.labtools import HANG_SECONDS
from slacktide.kube.client import reflector as listing
from slacktide.kube.client.credentials import load_access
from slacktide.kube.client.http import Connection
from slacktide.kube.client.kinds import Identity, Kind, Malformed
from slacktide.kube.client.reflector import Reflector
from slacktide.kube.resources.objects import Owner
from slacktide.lab import ControlPlane

SECRET = Kind(Owner, "v1", "secrets", namespaced=True)  # of which nobody else makes any


class Names:
    """Those that are there, and whether each was told once."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.told: list[tuple[str, str]] = []

    def replaced(self, objects: Sequence[Owner]) -> None:
        for found in objects:
            self.changed(found)

    def changed(self, found: Owner) -> None:
        self.there.add(found.metadata.name)
        self.told.append((found.metadata.uid, found.metadata.resource_version))

    def deleted(self, identity: Identity, _last: object) -> None:
        self.there.discard(identity.name)

    def malformed(self, problem: Malformed) -> None:
        raise AssertionError(problem)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not is_so():
            await asyncio.sleep(0.02)


def test_what_selectors_choose_is_listed_in_pages_and_then_watched(
    lab: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ATTEMPTS", (2,))
    names = Names()

    def body(name: str, color: str) -> bytes:
        return json.dumps({"metadata": {"name": name, "labels": {"color": color}}}).encode()

    async def run() -> None:
        async with Connection(await load_access(lab.kubeconfig)) as connection:
            path = SECRET.path(namespace)
            for name in "abcde":
                await connection.post(path, body(name, "green" if name == "b" else "red"))
            reflector = Reflector(connection, SECRET, names, path=path, label_selector="color in (red, blue)")
            task = asyncio.create_task(reflector.run())
            await until(reflector.synced.is_set)
            assert names.there == set("acde")
            await connection.post(path, body("f", "blue"))
            await connection.post(path, body("g", "green"))
            await connection.patch(SECRET.path(namespace, "a"), b'{"metadata":{"labels":{"color":"green"}}}')
            await connection.delete(SECRET.path(namespace, "c"))
            await connection.patch(SECRET.path(namespace, "b"), b'{"metadata":{"labels":{"color":"red"}}}')
            await until(lambda: names.there == set("bdef"))
            assert (reflector.lists, reflector.failures) == (1, 0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert len(names.told) == len(set(names.told))
