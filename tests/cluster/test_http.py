"""Requests to a real API server: what it answers, and rights that it learns of late.

What becomes of requests that are refused, delayed or broken off: ``simulated/test_requests.py``,
``kube/client/test_http.py``.
"""

import asyncio
import json
import uuid

import pytest

from slacktide.kube.client.credentials import load_access
from slacktide.kube.client.http import ApiError, Connection, connect
from slacktide.kube.resources.objects import NAMESPACE
from slacktide.lab import ControlPlane

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, text: str = "") -> bytes:
    return json.dumps({"metadata": {"name": name}, "data": {"text": text}}).encode()


def fresh() -> str:
    return f"c{uuid.uuid4().hex[:10]}"


def test_objects_are_created_read_changed_and_deleted_and_a_refusal_says_why(lab: ControlPlane) -> None:
    async def run() -> None:
        async with Connection(await load_access(lab.kubeconfig)) as connection:
            path = f"{CONFIG_MAPS}/{(name := fresh())}"

            async def refused(method: str, path: str, body: bytes | None = None) -> tuple[int, str, str]:
                with pytest.raises(ApiError) as caught:
                    await connection.request(method, path, body=body)
                return caught.value.status, caught.value.reason, caught.value.message

            await connection.post(CONFIG_MAPS, config_map(name, "one"))
            await connection.patch(path, b'{"data":{"text":"two"}}')
            assert json.loads(await connection.get(path))["data"] == {"text": "two"}
            query = {"fieldSelector": f"metadata.name={name}"}
            assert len(json.loads(await connection.get(CONFIG_MAPS, query=query))["items"]) == 1
            await connection.delete(path)
            *said, message = await refused("GET", path)
            assert said == [404, "NotFound"]
            assert name in message
            body = b'{"metadata":{"name":"default"}}'
            assert (await refused("POST", NAMESPACE.path(), body))[:2] == (409, "AlreadyExists")
            assert (await refused("POST", CONFIG_MAPS, config_map("Not A Name")))[:2] == (422, "Invalid")

    asyncio.run(run())


def test_a_right_that_the_server_does_not_know_of_yet_is_waited_for(lab: ControlPlane) -> None:
    """It answers as one that has just begun and has not read its bindings yet."""
    name = fresh()
    lab.api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    kubeconfig = lab.service_account_kubeconfig("default", name)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}

    async def run() -> None:
        async with await connect(kubeconfig, rights_patience=60.0) as connection:
            posted = asyncio.create_task(connection.post(CONFIG_MAPS, config_map(name)))
            while not connection._missing.since:
                await asyncio.sleep(0.01)
            path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
            await asyncio.to_thread(lab.api.post, path, binding)
            assert json.loads(await posted)["metadata"]["name"] == name
            assert not connection._missing.since

    asyncio.run(run())
