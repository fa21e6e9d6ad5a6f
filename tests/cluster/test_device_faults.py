"""Devices are given once and for all, whatever becomes of the requests that write them down."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from cluster.judging import Json
from cluster.labtools import pod, pods_path
from cluster.running import CLASSES, service_class
from slacktide.engine.core.engine import Engine
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.http import MERGE_PATCH, ApiError, Connection, Unreachable
from slacktide.kube.scheduler import Scheduler
from slacktide.lab import Api, ControlPlane
from slacktide.settings import load_live

SETTINGS = (
    *("kube.leader_election=false", "kube.learn_startup=false", "kube.backoff_first=0.05"),
    "qos.alpha=0.1",
)
DEVICES = "/apis/resource.k8s.io/v1"
WAIT_SECONDS = 60.0
FINALIZER, STATUS, BINDING = "finalizer", "status", "binding"
CONFLICT, LOST, ANSWER_LOST, REFUSED, DIES = "conflict", "lost", "answer lost", "refused", "dies"
NONE = "none"


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


class Faulty(Connection):
    """``fault`` befalls the first request of a sort; ``sent`` counts the requests of each that were sent. ``before`` is
    done before that request, by somebody else."""

    def __init__(
        self, access: Access, api: Api, sort: str, fault: str, before: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(access)
        self.api, self.sort, self.fault, self.before = api, sort, fault, before
        self.sent: Counter[str] = Counter()
        self.struck = asyncio.Event()

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if method not in ("PATCH", "POST"):
            return await super().request(method, path, **options)
        sort = ""
        if "/resourceclaims/" in path:
            sort = STATUS if path.endswith("/status") else FINALIZER
        elif path.endswith("/binding"):
            sort = BINDING
        self.sent[sort] += 1
        if sort != self.sort or self.struck.is_set():
            return await super().request(method, path, **options)
        if self.fault == CONFLICT:  # somebody writes an annotation in the same moment
            body = {"metadata": {"annotations": {"other.example/touched": "yes"}}}
            await asyncio.to_thread(self.api.patch, path.removesuffix("/status"), body, MERGE_PATCH)
        await asyncio.to_thread(self.before)
        self.struck.set()
        if self.fault in (ANSWER_LOST, DIES):
            await super().request(method, path, **options)
        if self.fault == DIES:
            await asyncio.Event().wait()
        if self.fault in (LOST, ANSWER_LOST):
            raise Unreachable("there is no answer")
        if self.fault == REFUSED:
            raise ApiError(422, "Invalid", "not this one")
        return await super().request(method, path, **options)


class Scene:
    """A node with two devices, a claim on one of them, and a pod that has it."""

    def __init__(self, lab: ControlPlane, name: str) -> None:
        self.api, self.name = lab.api, name
        (self.node,) = lab.create_nodes(1, prefix=name, labels={"scene": name})
        self.api.post(CLASSES, service_class(name, 0.9, 1, default=False))
        expression = f'device.driver == "{name}.example"'
        spec: Json = {"selectors": [{"cel": {"expression": expression}}]}
        self.api.post(f"{DEVICES}/deviceclasses", {"metadata": {"name": name}, "spec": spec})
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": f"{name}.example", "pool": pool, "nodeName": self.node}
        spec["devices"] = [{"name": "one"}, {"name": "two"}]
        self.api.post(f"{DEVICES}/resourceslices", {"metadata": {"name": name}, "spec": spec})

    def make(self, name: str) -> None:
        """A claim on one device."""
        requests = [{"name": "r", "exactly": {"deviceClassName": self.name}}]
        self.api.post(self._path(), {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}})

    def has(self, name: str, pool: str, device: str, node: str) -> None:
        """Somebody else gives a claim another device, on a node."""
        path, here = f"{self._path()}/{name}", {"key": "metadata.name", "operator": "In", "values": [node]}
        result = {"request": "r", "driver": f"{self.name}.example", "pool": pool, "device": device}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        }
        self.api.patch(path, {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}, MERGE_PATCH)
        for given in (None, allocation):
            self.api.patch(f"{path}/status", {"status": {"allocation": given}}, MERGE_PATCH)

    def comes(self, name: str, *further: str) -> None:
        """A pod with a claim of its own, and others."""
        self.make(name)
        self.pod(name, name, *further)

    def pod(self, name: str, *names: str) -> None:
        claims = [{"name": one, "resourceClaimName": one} for one in names]
        body = pod(
            name,
            labels={"slacktide.io/class": self.name},
            schedulerName="slacktide",
            nodeSelector={"scene": self.name},
            resourceClaims=claims,
        )
        self.api.post(pods_path(self.name), body)

    def claim(self, name: str) -> Json:
        return dict(self.api.get(f"{self._path()}/{name}"))

    def is_bound(self, name: str) -> bool:
        return bool(self.api.get(f"{pods_path(self.name)}/{name}")["spec"].get("nodeName"))

    def _path(self) -> str:
        return f"{DEVICES}/namespaces/{self.name}/resourceclaims"


async def until_bound(scene: Scene, name: str) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not await asyncio.to_thread(scene.is_bound, name):
            await asyncio.sleep(0.02)


@asynccontextmanager
async def at_work(connection: Connection, name: str = "me") -> AsyncIterator[Scheduler]:
    """A scheduler that leads, until this is left."""
    scheduler = Scheduler(connection, load_live(overrides=SETTINGS), name)
    task = asyncio.create_task(scheduler.run())
    try:
        yield scheduler
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def play(scene: Scene, access: Access, sort: str, fault: str) -> Counter[str]:
    async with Faulty(access, scene.api, sort, fault) as connection, Connection(access) as another:
        async with AsyncExitStack() as leading:
            scheduler = await leading.enter_async_context(at_work(connection))
            await asyncio.to_thread(scene.comes, "first")
            await connection.struck.wait()
            if fault == DIES:
                await leading.aclose()
                scheduler = await leading.enter_async_context(at_work(another, "another"))
            await until_bound(scene, "first")
            await asyncio.to_thread(scene.comes, "second")
            await until_bound(scene, "second")
            await _settled(scheduler, scene.node)
        return connection.sent


async def _settled(scheduler: Scheduler, node: str) -> None:
    """Pods that are bound ask for devices no more, and nothing is reserved for them: their claims have the devices."""
    assert scheduler.session is not None
    engine, devices = scheduler.session.engine, scheduler.mirror.devices
    async with asyncio.timeout(WAIT_SECONDS):
        while devices.in_use.reservations or _used(engine, node):
            await asyncio.sleep(0.01)


async def scheduled(
    scene: Scene, connect: Callable[[], Faulty], play: Callable[[asyncio.Event], Awaitable[None]]
) -> None:
    """While a scheduler works by a connection; ``play`` is told when its fault has struck."""
    try:
        async with connect() as connection, at_work(connection), asyncio.timeout(WAIT_SECONDS):
            await play(connection.struck)
    finally:
        for path in (CLASSES, f"{DEVICES}/deviceclasses", f"{DEVICES}/resourceslices"):
            await asyncio.to_thread(scene.api.delete, f"{path}/{scene.name}")


def test_a_claim_that_got_devices_of_another_node_meanwhile_leads_its_pod_there(
    lab: ControlPlane, access: Access, namespace: str
) -> None:
    """It has devices, so that nothing is kept for its pod; and as nobody uses it yet, others may take them away."""
    lab.install()
    scene = Scene(lab, namespace)
    (other,) = lab.create_nodes(1, prefix=f"{namespace}-other", labels={"scene": namespace})
    scene.make("claim")
    scene.has("claim", namespace, "one", scene.node)

    def moves() -> None:
        scene.has("claim", "elsewhere", "two", other)

    async def play(_: asyncio.Event) -> None:
        await asyncio.to_thread(scene.pod, "pod", "claim")
        await until_bound(scene, "pod")

    asyncio.run(scheduled(scene, lambda: Faulty(access, scene.api, STATUS, NONE, moves), play))
    assert scene.api.get(f"{pods_path(namespace)}/pod")["spec"]["nodeName"] == other
    assert [one["name"] for one in scene.claim("claim")["status"]["reservedFor"]] == ["pod"]


def test_a_pod_that_is_not_bound_leaves_all_its_claims_also_where_one_is_being_deleted(
    lab: ControlPlane, access: Access, namespace: str
) -> None:
    lab.install()
    scene = Scene(lab, namespace)
    scene.make("goes")

    def deleted() -> None:
        scene.api.delete(f"{scene._path()}/goes")

    async def play(struck: asyncio.Event) -> None:
        await asyncio.to_thread(scene.comes, "pod", "goes")
        await struck.wait()
        assert scene.claim("pod")["status"]["reservedFor"]
        while (await asyncio.to_thread(scene.claim, "pod"))["status"].get("reservedFor"):
            await asyncio.sleep(0.02)

    asyncio.run(scheduled(scene, lambda: Faulty(access, scene.api, BINDING, REFUSED, deleted), play))
    assert not scene.is_bound("pod")


def _used(engine: Engine, node: str) -> int:
    """What stands for devices and is taken on a node, as the engine reckons."""
    h, tables = engine.hosts[node], engine.tables
    here = [at for at, name in enumerate(tables.resources) if name.startswith("devices/")]
    return int((tables.tb["capacity"][h] - tables.tb["free"][h])[here].sum())


@pytest.mark.parametrize(
    ("sort", "fault", "sent"),
    [
        (FINALIZER, CONFLICT, {FINALIZER: 3, STATUS: 2, BINDING: 2}),
        (FINALIZER, ANSWER_LOST, {FINALIZER: 2, STATUS: 2, BINDING: 2}),
        (STATUS, CONFLICT, {FINALIZER: 2, STATUS: 3, BINDING: 2}),
        (STATUS, LOST, {FINALIZER: 2, STATUS: 3, BINDING: 2}),
        (STATUS, ANSWER_LOST, {FINALIZER: 2, STATUS: 2, BINDING: 2}),
        # The pod is taken out of reservedFor, and comes back to the same device.
        (BINDING, REFUSED, {FINALIZER: 2, STATUS: 4, BINDING: 3}),
        (STATUS, DIES, {FINALIZER: 1, STATUS: 1}),
    ],
)
def test_each_pod_gets_one_device_and_no_two_the_same(
    lab: ControlPlane, access: Access, namespace: str, sort: str, fault: str, sent: dict[str, int]
) -> None:
    lab.install()
    scene = Scene(lab, namespace)
    try:
        found = asyncio.run(play(scene, access, sort, fault))
    finally:
        for path in (CLASSES, f"{DEVICES}/deviceclasses", f"{DEVICES}/resourceslices"):
            lab.api.delete(f"{path}/{namespace}")
    claims = [scene.claim(name) for name in ("first", "second")]
    results = [one["status"]["allocation"]["devices"]["results"] for one in claims]
    assert sorted(one["device"] for each in results for one in each) == ["one", "two"]
    assert [[one["name"] for one in each["status"]["reservedFor"]] for each in claims] == [["first"], ["second"]]
    assert {key: found[key] for key in sent} == sent
