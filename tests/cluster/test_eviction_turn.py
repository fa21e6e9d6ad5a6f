"""An eviction that waits for its turn, until nobody wants it any more: it is not sent, and no event tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cluster.labtools import pod, pods_path
from cluster.running import CLASSES, service_class
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.http import Connection
from slacktide.kube.scheduler import Scheduler
from slacktide.lab import ControlPlane
from slacktide.settings import load_live

SETTINGS = ("kube.leader_election=false", "kube.bindings=1", "qos.alpha=0.1")
"""With one binding at a time there is one eviction at a time."""
WAIT_SECONDS = 180.0


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


class Crowded(Connection):
    """Evictions wait for their turn, as behind a rate limit, until ``turn`` is set."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self.waits, self.turn = asyncio.Event(), asyncio.Event()

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if path.endswith("/eviction"):
            self.waits.set()
            await self.turn.wait()
        return await super().request(method, path, **options)


class Scene:
    """One node that one pod fills, and an administrator who need not wait."""

    def __init__(self, lab: ControlPlane, namespace: str, scheduler: Scheduler) -> None:
        self.lab, self.path, self.scheduler = lab, pods_path(namespace), scheduler
        self.name = namespace

    async def comes(self, name: str, kind: str) -> None:
        labels = {"slacktide.io/class": f"{self.name}-{kind}"}
        body = pod(name, cpu="1500m", labels=labels, schedulerName="slacktide", nodeSelector={"scene": self.name})
        await asyncio.to_thread(self.lab.api.post, self.path, body)

    async def runs(self, name: str) -> str:
        """Its UID, once the scheduler knows that it is ready."""

        def uid() -> str:
            term = self.scheduler.term
            engine = None if term is None else term.engine
            known = self.scheduler.mirror.uids.get((self.name, name), "")
            return known if engine is not None and known in engine.pods and engine.pods[known].ready else ""

        await until(lambda: bool(uid()))
        return uid()

    async def goes(self, name: str) -> None:
        """It is gone, and the scheduler knows that."""
        await asyncio.to_thread(self.lab.api.delete, f"{self.path}/{name}", 0)
        await until(lambda: (self.name, name) not in self.scheduler.mirror.uids)

    async def preempted(self) -> list[str]:
        """Names of the pods that events tell so of."""
        events = await asyncio.to_thread(self.lab.api.get, f"/api/v1/namespaces/{self.name}/events")
        return sorted(one["involvedObject"]["name"] for one in events["items"] if one["reason"] == "Preempted")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


async def play(scene: Scene, connection: Crowded) -> None:
    await scene.comes("ends", "low")
    await scene.runs("ends")
    await scene.comes("fickle", "high")
    await connection.waits.wait()
    # Both go before the eviction is sent: nobody evicted the one for the other.
    await scene.goes("fickle")
    await scene.goes("ends")
    # The next eviction comes after the first is settled.
    await scene.comes("victim", "low")
    await scene.runs("victim")
    await scene.comes("needs", "high")
    connection.turn.set()
    await scene.runs("needs")
    assert await scene.scheduler.recorder.drain(WAIT_SECONDS)
    assert await scene.preempted() == ["victim"]
    assert scene.scheduler.counts.evicted == 1


def test_no_event_tells_of_an_eviction_that_was_not_sent(lab: ControlPlane, access: Access, namespace: str) -> None:
    classes = [service_class(f"{namespace}-high", 0.999, 1), service_class(f"{namespace}-low", 0.02, 3)]

    async def run() -> None:
        async with Crowded(access) as connection:
            scheduler = Scheduler(connection, load_live(overrides=SETTINGS), "me")
            task = asyncio.create_task(scheduler.run())
            try:
                await play(Scene(lab, namespace, scheduler), connection)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    for one in classes:
        lab.api.post(CLASSES, one)
    lab.create_nodes(1, cpu="2", labels={"scene": namespace})
    try:
        asyncio.run(run())
    finally:
        for one in classes:
            lab.api.delete(f"{CLASSES}/{one['metadata']['name']}")
