"""Evictions that are not sent after all, or get no answer: an event tells of those that were carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cluster.labtools import pod, pods_path
from cluster.running import CLASSES, service_class
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH, Connection, Unreachable
from slacktide.kube.scheduler import Scheduler
from slacktide.lab import ControlPlane
from slacktide.settings import load_live

SETTINGS = ("kube.leader_election=false", "kube.bindings=1", "qos.alpha=0.1", "kube.learn_startup=false")
"""With one binding at a time there is one eviction at a time."""
WAIT_SECONDS = 180.0
WITHDRAWN, LOST, ANSWER_LOST = "withdrawn", "lost", "answer lost"


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


class Crowded(Connection):
    """Evictions wait for their turn, as behind a rate limit, until ``turn`` is set; ``fault`` befalls the first."""

    def __init__(self, access: Access, fault: str) -> None:
        super().__init__(access)
        self.fault = fault
        self.waits, self.turn = asyncio.Event(), asyncio.Event()

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if path.endswith("/eviction"):
            self.waits.set()
            await self.turn.wait()
            fault, self.fault = self.fault, ""
            if fault == ANSWER_LOST:
                await super().request(method, path, **options)
            if fault in (LOST, ANSWER_LOST):
                raise Unreachable("there is no answer")
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
            session = self.scheduler.session
            engine = None if session is None else session.engine
            known = self.scheduler.mirror.uids.get((self.name, name), "")
            return known if engine is not None and known in engine.pods and engine.pods[known].ready else ""

        await until(lambda: bool(uid()))
        return uid()

    async def ends(self, name: str) -> None:
        """It has done its work, and the scheduler knows that."""
        body = {"status": {"phase": "Succeeded"}}
        await asyncio.to_thread(self.lab.api.patch, f"{self.path}/{name}/status", body, STRATEGIC_MERGE_PATCH)
        await until(lambda: self.scheduler.mirror.pods[self.scheduler.mirror.uids[self.name, name]].is_final)

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


async def play(scene: Scene, connection: Crowded, fault: str) -> None:
    await scene.comes("first", "low")
    await scene.runs("first")
    await scene.comes("fickle", "high")
    await connection.waits.wait()
    if fault == WITHDRAWN:  # both go before the eviction is sent
        await scene.goes("fickle")
        await scene.goes("first")
    elif fault == LOST:
        await scene.ends("first")
        await scene.runs("fickle")
        await scene.goes("fickle")
    else:
        connection.turn.set()
        await scene.runs("fickle")
        await scene.goes("fickle")
    # The next eviction comes after the first is settled.
    await scene.comes("second", "low")
    await scene.runs("second")
    await scene.comes("needs", "high")
    connection.turn.set()
    await scene.runs("needs")
    assert await scene.scheduler.recorder.drain(WAIT_SECONDS)
    expected = ["first", "second"] if fault == ANSWER_LOST else ["second"]
    assert await scene.preempted() == expected
    assert scene.scheduler.counts.evicted == len(expected)


@pytest.mark.parametrize("fault", [WITHDRAWN, LOST, ANSWER_LOST])
def test_events_tell_of_evictions_that_were_carried_out(
    lab: ControlPlane, access: Access, namespace: str, fault: str
) -> None:
    classes = [service_class(f"{namespace}-high", 0.999, 1), service_class(f"{namespace}-low", 0.02, 3)]

    async def run() -> None:
        async with Crowded(access, fault) as connection:
            scheduler = Scheduler(connection, load_live(overrides=SETTINGS), "me")
            task = asyncio.create_task(scheduler.run())
            try:
                await play(Scene(lab, namespace, scheduler), connection, fault)
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
