"""What a ledger costs the API server: processor time of a write, and its size, as the resource definition has it and
with a status whose every number is owned by itself.

    python bench/ledger_writes.py [--ledgers 1000] [--rounds 2]

Starts a control plane (programs as for ``slacktide lab``), lets the scheduler write the ledger of one pod, and applies
so many of the same content by four writers: at first, then with other numbers. Rounds take turns. Prints medians.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from live_parts.cluster import NAMESPACE, Cluster, pod, usage
from live_parts.load import create, names
from measuring import announce, parsed, table

from slacktide.kube.client.http import APPLY_PATCH, Connection, connect
from slacktide.kube.client.kinds import encode
from slacktide.kube.publish.availability import MANAGER
from slacktide.kube.resources.objects import AVAILABILITY

WRITERS = 4
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/availabilities.slacktide.io"
NOTICED_SECONDS = 5.0
"""For so long an API server may go on with the former definition."""
KINDS = ("as a whole", "number by number")


def define(cluster: Cluster, kind: str) -> None:
    """Let the status be owned in this way."""
    versions = cluster.api.get(DEFINITION)["spec"]["versions"]
    for version in versions:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        status.pop("x-kubernetes-map-type", None)
        if kind == KINDS[0]:
            status["x-kubernetes-map-type"] = "atomic"
    cluster.api.patch(DEFINITION, {"spec": {"versions": versions}})


async def a_ledger(cluster: Cluster, connection: Connection) -> dict[str, Any]:
    """What the scheduler writes of a pod that runs."""
    (name,) = names(1)
    with cluster.scheduler("qos-driven"):
        await create(connection, [pod(name, "slacktide")])
        while True:
            for one in json.loads(await connection.get(AVAILABILITY.path(NAMESPACE)))["items"]:
                if one["status"].get("running") == 1:
                    return dict(one["status"])
            await asyncio.sleep(0.2)


async def writes(cluster: Cluster, count: int, write: Callable[[int], Any]) -> float:
    """Processor time of the API server for each of so many writes, ms."""
    process = cluster.plane.components["kube-apiserver"].pid
    before, left = usage(process).cpu, iter(range(count))

    async def writer() -> None:
        for number in left:
            await write(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(writer())
    return 1000 * (usage(process).cpu - before) / count


async def measured(cluster: Cluster, ledgers: int, rounds: int) -> dict[str, list[tuple[float, float, int]]]:
    """Of each kind and round: processor time of a first write and of a later one, ms, and bytes of the object."""
    found: dict[str, list[tuple[float, float, int]]] = {kind: [] for kind in KINDS}
    async with await connect(cluster.plane.kubeconfig, timeout=120) as connection:
        status = await a_ledger(cluster, connection)

        async def write(name: str, good: float) -> None:
            body = {"apiVersion": AVAILABILITY.api_version, "kind": "Availability", "metadata": {"name": name}}
            said = body | {"status": status | {"goodSeconds": good}}
            await connection.patch(AVAILABILITY.path(NAMESPACE, name), encode(said), APPLY_PATCH, query=MANAGER)

        for number in range(rounds):
            for place, kind in enumerate(KINDS):
                await asyncio.to_thread(define, cluster, kind)
                await asyncio.sleep(NOTICED_SECONDS)
                begin = f"l-{number}-{place}"
                first = await writes(cluster, ledgers, lambda i, begin=begin: write(f"{begin}-{i}", 1.0))
                later = await writes(cluster, ledgers, lambda i, begin=begin: write(f"{begin}-{i}", 2.0))
                size = len(await connection.get(AVAILABILITY.path(NAMESPACE, f"{begin}-0")))
                found[kind].append((first, later, size))
    return found


def main() -> None:
    """Print the table."""
    chosen = parsed(__doc__, ledgers=1000, rounds=2)
    announce(":")
    with tempfile.TemporaryDirectory(prefix="slacktide-bench-") as directory:
        cluster = Cluster(Path(directory), 1, cpu="4", kubelets=True)
        try:
            found = asyncio.run(measured(cluster, chosen.ledgers, chosen.rounds))
        finally:
            cluster.close()
    rows = []
    for kind, runs in found.items():
        first, later, size = (statistics.median(one) for one in zip(*runs, strict=True))
        rows.append([kind, f"{first:.1f}", f"{later:.1f}", f"{size:,.0f}"])
    print(table(("a ledger's status is owned", "first write, API server's processor ms", "a later one", "bytes"), rows))


if __name__ == "__main__":
    main()
