"""A ledger says what was last, and says it before the pods are gone that could have told of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cluster.labtools import pod, pods_path
from cluster.running import CLASSES, service_class
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.http import Connection
from slacktide.kube.publish import write_plan
from slacktide.kube.publish.write_plan import LEAST_SECONDS
from slacktide.kube.scheduler import Scheduler
from slacktide.lab import ControlPlane
from slacktide.settings import load_live

WAIT_SECONDS = 180.0


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


class Slow(Connection):
    """The first request about a ledger waits until ``turn`` is set; ``under_way`` counts later ones about it."""

    def __init__(self, access: Access, ledger: str) -> None:
        super().__init__(access)
        self.ledger, self.is_first, self.under_way = f"/{ledger}", True, 0
        self.waits, self.turn, self.over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if not path.endswith(self.ledger):
            return await super().request(method, path, **options)
        if self.is_first:
            self.is_first = False
            self.waits.set()
            await self.turn.wait()
            try:
                return await super().request(method, path, **options)
            finally:
                self.over.set()
        self.under_way += 1
        try:
            return await super().request(method, path, **options)
        finally:
            self.under_way -= 1


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


async def play(lab: ControlPlane, namespace: str, connection: Slow, scheduler: Scheduler) -> None:
    async def comes(name: str) -> None:
        body = pod(name, labels={"slacktide.io/class": namespace}, schedulerName="slacktide")
        body["spec"]["nodeSelector"] = {"scene": namespace}
        await asyncio.to_thread(lab.api.post, pods_path(namespace), body)

    def is_up(name: str) -> bool:
        uid = scheduler.mirror.uids.get((namespace, name), "")
        return scheduler.engine is not None and uid in scheduler.engine.pods and scheduler.engine.pods[uid].ready

    async def says(name: str) -> tuple[int, int] | None:
        """How many run and wait by a pod's ledger."""
        path = f"/apis/slacktide.io/v1beta1/namespaces/{namespace}/availabilities"
        found = await asyncio.to_thread(lab.api.get, path)
        status = next((one["status"] for one in found["items"] if one["metadata"]["name"] == f"pod-{name}"), None)
        return None if status is None else (status["running"], status["waiting"])

    async def will_say(name: str) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while await says(name) != (1, 0):
                await asyncio.sleep(0.05)

    await comes("slow")
    await connection.waits.wait()  # there is no node yet: the pod waits, as this request says
    await asyncio.to_thread(lab.create_nodes, 1, labels={"scene": namespace})
    await until(lambda: is_up("slow"))
    await asyncio.sleep(LEAST_SECONDS)  # a ledger is written no more often
    # Who comes later has its ledger written later: whatever was to be written meanwhile of the first one is under way.
    await comes("later")
    await until(lambda: is_up("later"))
    await will_say("later")
    await until(lambda: connection.under_way == 0)
    connection.turn.set()
    await connection.over.wait()
    await will_say("slow")


def test_an_older_request_does_not_come_after_a_newer_one(lab: ControlPlane, access: Access, namespace: str) -> None:
    async def run() -> None:
        async with Slow(access, "pod-slow") as connection:
            scheduler = Scheduler(connection, load_live(overrides=["kube.leader_election=false"]), "me")
            task = asyncio.create_task(scheduler.run())
            try:
                await play(lab, namespace, connection, scheduler)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    lab.api.post(CLASSES, service_class(namespace, 0.5, 1))
    try:
        asyncio.run(run())
    finally:
        lab.api.delete(f"{CLASSES}/{namespace}")


class Written(Connection):
    """Notes what is written, and in which order, once each request is answered."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self.done: list[str] = []

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        answer = await super().request(method, path, **options)
        if method != "GET":
            self.done.append(path)
        return answer


async def give_way(lab: ControlPlane, namespace: str, connection: Written, scheduler: Scheduler) -> None:
    """A pod of a high class takes the place of one of a low class, which is the first of two to go."""

    async def comes(name: str, rank: str) -> None:
        labels = {"slacktide.io/class": f"{namespace}-{rank}"}
        body = pod(name, cpu="1", labels=labels, nodeSelector={"scene": namespace}, schedulerName="slacktide")
        await asyncio.to_thread(lab.api.post, pods_path(namespace), body)

    def is_up(name: str) -> bool:
        uid = scheduler.mirror.uids.get((namespace, name), "")
        return scheduler.engine is not None and uid in scheduler.engine.pods and scheduler.engine.pods[uid].ready

    await asyncio.to_thread(lab.create_nodes, 1, cpu="2", labels={"scene": namespace})
    await comes("one", "low")
    await comes("two", "low")
    await until(lambda: is_up("one") and is_up("two"))
    assert not [path for path in connection.done if "/availabilities/" in path]
    await comes("urgent", "high")
    await until(lambda: any(path.endswith("/eviction") for path in connection.done))


def test_a_pod_is_not_evicted_before_a_ledger_tells_of_it(
    lab: ControlPlane, access: Access, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that ends while its victims go leaves a ledger that knows how long they ran."""
    # As it is where so many pods are bound that no first ledger has its turn.
    monkeypatch.setattr(write_plan, "NEW_SECONDS", WAIT_SECONDS)
    monkeypatch.setattr(write_plan, "BUSY_SECONDS", WAIT_SECONDS)

    async def run() -> list[str]:
        async with Written(access) as connection:
            scheduler = Scheduler(connection, load_live(overrides=["kube.leader_election=false"]), "me")
            task = asyncio.create_task(scheduler.run())
            try:
                await give_way(lab, namespace, connection, scheduler)
                return list(connection.done)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    classes = {f"{namespace}-low": (0.1, 2), f"{namespace}-high": (0.999, 1)}
    for name, (slo, rank) in classes.items():
        lab.api.post(CLASSES, service_class(name, slo, rank))
    try:
        done = asyncio.run(run())
    finally:
        for name in classes:
            lab.api.delete(f"{CLASSES}/{name}")
    evicted = next(place for place, path in enumerate(done) if path.endswith("/eviction"))
    name = done[evicted].split("/")[-2]
    ledgers = [path.rsplit("/", 1)[1] for path in done[:evicted] if "/availabilities/" in path]
    assert ledgers == [f"pod-{name}"]
