"""Claims for extended resources are made once, whatever becomes of the requests, and none is left that nobody uses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from cluster.judging import Json
from cluster.labtools import pod, pods_path
from cluster.running import CLASSES, service_class
from cluster.test_device_faults import DEVICES, WAIT_SECONDS, at_work
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.http import MERGE_PATCH, ApiError, Connection, Unreachable
from slacktide.lab import Api, ControlPlane

MADE, FINALIZER, STATUS, SHOWN, BINDING, DELETED = "made", "finalizer", "status", "shown", "binding", "deleted"
ANSWER_LOST, LOST, REFUSED, BUSY, DIES, UNKNOWN = "answer lost", "lost", "refused", "busy", "dies", "field unknown"
LATER = "later"


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


def sort_of(method: str, path: str, body: bytes) -> str:
    """Which step of giving a device a request is."""
    if "/resourceclaims" in path:
        if method == "POST":
            return MADE
        if method == "DELETE":
            return DELETED
        return STATUS if path.endswith("/status") else FINALIZER if b"delete-protection" in body else ""
    if path.endswith("/binding"):
        return BINDING
    return SHOWN if method == "PATCH" and b"extendedResourceClaimStatus" in body else ""


class Faulty(Connection):
    """``fault`` befalls the first request of a sort."""

    def __init__(self, access: Access, sort: str, fault: str) -> None:
        super().__init__(access)
        self.sort, self.fault, self.struck = sort, fault, asyncio.Event()
        self.made = 0

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        sort = sort_of(method, path, options.get("body") or b"")
        self.made += sort == MADE
        if method == "GET" or sort != self.sort or self.struck.is_set():
            return await super().request(method, path, **options)
        self.struck.set()
        if self.fault in (ANSWER_LOST, DIES):
            await super().request(method, path, **options)
        if self.fault == DIES:
            await asyncio.Event().wait()
        if self.fault in (LOST, ANSWER_LOST):
            raise Unreachable("there is no answer")
        if self.fault == UNKNOWN:  # as an API server whose feature gate is off
            answer = json.loads(await super().request(method, path, **options))
            del answer["status"]["extendedResourceClaimStatus"]
            return json.dumps(answer).encode()
        raise ApiError({BUSY: 503, LATER: 429}.get(self.fault, 422), "", "not this one")


class Scene:
    """A node with one device, and pods that ask for it by the name of a resource."""

    def __init__(self, lab: ControlPlane, name: str) -> None:
        self.api: Api = lab.api
        self.name, self.resource = name, f"{name}.example/gpu"
        (self.node,) = lab.create_nodes(1, prefix=name, labels={"scene": name})
        self.api.post(CLASSES, service_class(name, 0.9, 1, default=False))
        selectors = [{"cel": {"expression": f'device.driver == "{name}.example"'}}]
        spec: Json = {"selectors": selectors, "extendedResourceName": self.resource}
        self.api.post(f"{DEVICES}/deviceclasses", {"metadata": {"name": name}, "spec": spec})
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": f"{name}.example", "pool": pool, "nodeName": self.node, "devices": [{"name": "one"}]}
        self.api.post(f"{DEVICES}/resourceslices", {"metadata": {"name": name}, "spec": spec})

    def comes(self, name: str) -> None:
        asked = {"cpu": "10m", self.resource: "1"}
        resources = {"requests": asked, "limits": {self.resource: "1"}}
        body = pod(
            name,
            labels={"slacktide.io/class": self.name},
            schedulerName="slacktide",
            nodeSelector={"scene": self.name},
            containers=[{"name": "main", "image": "none", "resources": resources}],
        )
        self.api.post(pods_path(self.name), body)

    def pod(self, name: str) -> Json:
        return dict(self.api.get(f"{pods_path(self.name)}/{name}"))

    def claims(self) -> list[Json]:
        return list(self.api.get(f"{DEVICES}/namespaces/{self.name}/resourceclaims")["items"])

    def is_settled(self, name: str) -> bool:
        """Whether a pod is bound, with a device by the one claim that there is, of which it knows."""
        found, claims = self.pod(name), self.claims()
        if not found["spec"].get("nodeName") or len(claims) != 1:
            return False
        (claim,) = claims
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        (user,) = claim["status"]["reservedFor"]
        said = found["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        return (result["device"], user["uid"], said) == ("one", found["metadata"]["uid"], claim["metadata"]["name"])

    def over(self) -> None:
        for path in (CLASSES, f"{DEVICES}/deviceclasses", f"{DEVICES}/resourceslices"):
            self.api.delete(f"{path}/{self.name}")


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not await asyncio.to_thread(check):
            await asyncio.sleep(0.02)


async def play(scene: Scene, access: Access, sort: str, fault: str) -> int:
    """How many claims were to be made, by whom the fault befell."""
    async with Faulty(access, sort, fault) as connection, Connection(access) as another:
        async with AsyncExitStack() as leading:
            scheduler = await leading.enter_async_context(at_work(connection))
            await asyncio.to_thread(scene.comes, "first")
            await connection.struck.wait()
            if fault == DIES:
                await leading.aclose()
                scheduler = await leading.enter_async_context(at_work(another, "another"))
            await until(lambda: scene.is_settled("first"))
            await asyncio.to_thread(scene.api.delete, f"{pods_path(scene.name)}/first?gracePeriodSeconds=0")
            await asyncio.to_thread(scene.comes, "second")
            await until(lambda: scene.is_settled("second"))
            await until(lambda: not scheduler.mirror.devices.in_use.reservations)
        return connection.made


@pytest.mark.parametrize(
    ("sort", "fault", "made"),
    [
        (MADE, ANSWER_LOST, 3),
        (MADE, LOST, 3),
        (MADE, BUSY, 3),
        (MADE, REFUSED, 3),
        (MADE, DIES, 1),
        (STATUS, LOST, 2),
        (STATUS, DIES, 1),
        (SHOWN, ANSWER_LOST, 2),
        (SHOWN, REFUSED, 3),
        (SHOWN, UNKNOWN, 3),
        (SHOWN, DIES, 1),
        (BINDING, LATER, 2),
        (BINDING, REFUSED, 3),
        (BINDING, DIES, 1),
    ],
)
def test_each_pod_has_the_device_by_one_claim(
    lab: ControlPlane,
    access: Access,
    namespace: str,
    sort: str,
    fault: str,
    made: int,
) -> None:
    lab.install()
    scene = Scene(lab, namespace)
    try:
        assert asyncio.run(play(scene, access, sort, fault)) == made
    finally:
        scene.over()


def test_a_claim_that_cannot_be_deleted_at_first_is_deleted_later(
    lab: ControlPlane,
    access: Access,
    namespace: str,
) -> None:
    """The binding is refused, and then the deletion of the claim that was made for it."""
    lab.install()
    scene = Scene(lab, namespace)

    class Twice(Faulty):
        async def request(self, method: str, path: str, **options: Any) -> bytes:
            if self.sort == BINDING and self.struck.is_set():
                self.sort, self.struck = DELETED, asyncio.Event()
            return await super().request(method, path, **options)

    async def played() -> None:
        async with Twice(access, BINDING, REFUSED) as connection, at_work(connection):
            await asyncio.to_thread(scene.comes, "first")
            await until(lambda: connection.sort == DELETED and connection.struck.is_set())
            await until(lambda: scene.is_settled("first"))

    try:
        asyncio.run(played())
    finally:
        scene.over()


def test_a_claim_of_a_pod_that_is_bound_is_not_deleted(
    lab: ControlPlane,
    access: Access,
    namespace: str,
) -> None:
    """A leader before made it. Whether the pod was bound by that one's last request is asked before it is deleted."""
    lab.install()
    scene = Scene(lab, namespace)
    scene.comes("first")
    uid = scene.pod("first")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "first", "uid": uid, "controller": True}
    marks = {"resource.kubernetes.io/extended-resource-claim": "true"}
    requests = [{"name": "r", "exactly": {"deviceClassName": namespace}}]
    metadata = {"name": "former", "annotations": marks, "ownerReferences": [owner]}
    body = {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
    scene.api.post(f"{DEVICES}/namespaces/{namespace}/resourceclaims", body)

    class Doctored(Connection):
        """The first answer about the pod says that it is bound."""

        asked, deleted_after = 0, 0

        async def request(self, method: str, path: str, **options: Any) -> bytes:
            if method == "DELETE" and path.endswith("/resourceclaims/former"):
                self.deleted_after = self.deleted_after or self.asked
            answer = await super().request(method, path, **options)
            if method == "GET" and path.endswith("/pods/first"):
                self.asked += 1
                if self.asked == 1:
                    found = json.loads(answer)
                    found["spec"]["nodeName"] = scene.node
                    return json.dumps(found).encode()
            return answer

    async def played() -> None:
        async with Doctored(access) as connection:
            async with at_work(connection):
                await until(lambda: scene.is_settled("first"))
            assert connection.deleted_after == 2

    try:
        asyncio.run(played())
    finally:
        scene.over()


def test_a_finalizer_that_somebody_touches_meanwhile_is_taken_away_all_the_same(
    lab: ControlPlane,
    access: Access,
    namespace: str,
) -> None:
    """The binding is refused; while the claim is unprotected, somebody else writes it."""
    lab.install()
    scene = Scene(lab, namespace)

    class Touched(Faulty):
        touched = False

        async def request(self, method: str, path: str, **options: Any) -> bytes:
            body = options.get("body") or b""
            unprotects = method == "PATCH" and b'"finalizers":[]' in body
            if unprotects and not self.touched:
                self.touched = True
                note = {"metadata": {"annotations": {"other.example/touched": "yes"}}}
                await asyncio.to_thread(scene.api.patch, path, note, MERGE_PATCH)
            return await super().request(method, path, **options)

    async def played() -> None:
        async with Touched(access, BINDING, REFUSED) as connection, at_work(connection):
            await asyncio.to_thread(scene.comes, "first")
            await until(lambda: scene.is_settled("first"))
            assert connection.touched

    try:
        asyncio.run(played())
    finally:
        scene.over()
