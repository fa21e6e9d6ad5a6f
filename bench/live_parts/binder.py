"""The least a scheduler can do: pods from a watch, nodes in turn, a binding and an event each; 64 at once."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from contextlib import aclosing
from pathlib import Path

import msgspec

from slacktide.kube.client.http import Connection, connect
from slacktide.kube.resources.bodies import encode_binding

IN_FLIGHT = 64


class Metadata(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    resource_version: str = ""
    namespace: str = ""
    uid: str = ""


class Spec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""
    scheduler_name: str = ""


class Object(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: Spec = Spec()


class Event(msgspec.Struct, frozen=True):
    type: str
    object: Object


async def bind(connection: Connection, queue: asyncio.Queue[Metadata], nodes: itertools.cycle[str]) -> None:
    while True:
        pod = await queue.get()
        node = next(nodes)
        path = f"/api/v1/namespaces/{pod.namespace}"
        await connection.post(f"{path}/pods/{pod.name}/binding", encode_binding(pod.namespace, pod.name, pod.uid, node))
        reference = {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "apiVersion": "v1"}
        event = {"metadata": {"name": f"{pod.name}.{pod.uid[:8]}", "namespace": pod.namespace}, "reason": "Scheduled",
                 "involvedObject": reference, "type": "Normal", "message": f"assigned to {node}"}  # fmt: skip
        await connection.post(f"{path}/events", msgspec.json.encode(event))


async def main(kubeconfig: Path) -> None:
    async with await connect(kubeconfig) as connection, asyncio.TaskGroup() as group:
        listed = msgspec.json.decode(await connection.get("/api/v1/nodes"))
        nodes = itertools.cycle([one["metadata"]["name"] for one in listed["items"]])
        queue: asyncio.Queue[Metadata] = asyncio.Queue()
        for _ in range(IN_FLIGHT):
            group.create_task(bind(connection, queue, nodes))
        pods = msgspec.json.decode(await connection.get("/api/v1/pods", query={"limit": "1"}))
        version = pods["metadata"]["resourceVersion"]
        while True:
            version = await watch(connection, queue, version)


async def watch(connection: Connection, queue: asyncio.Queue[Metadata], version: str) -> str:
    """One watch, until the API server ends it; where it came to."""
    decode = msgspec.json.Decoder(Event).decode
    query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
    async with aclosing(connection.stream("/api/v1/pods", query)) as stream:
        print("watching", flush=True)
        async for lines in stream:
            for line in lines:
                event = decode(line)
                spec = event.object.spec
                version = event.object.metadata.resource_version
                if event.type == "ADDED" and not spec.node_name and spec.scheduler_name == "binder":
                    queue.put_nowait(event.object.metadata)
    return version


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(main(Path(sys.argv[1])))
