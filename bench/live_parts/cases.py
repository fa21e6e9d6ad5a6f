"""What is measured on a cluster: throughput, preemption, single pods."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from live_parts.cluster import Cluster, Running, pod
from live_parts.load import PODS, Bindings, clear, create, names, watched
from slacktide.kube.client.http import Connection

QUIET_SECONDS = 3.0
LOOK_SECONDS = 10.0
"""Between looks at thousands of pods, which cost the API server and the scheduler much."""
SETTLE_SECONDS = 20.0
"""How long what a preemption is to end has run before: promises below 1 give slack only by and by."""


@dataclass(frozen=True)
class Found:
    """One measurement; rates a second, latencies in ms, memory in MB, processor seconds."""

    bound: int
    asked: int
    rate: float
    cpu: float
    peak: float
    p50: float = 0.0
    p99: float = 0.0
    stall: float = float("nan")
    left: int = 0
    told: int = 0
    """Pods that had been told that they fit nowhere."""
    pending: float = float("nan")
    """Ledgers that waited to be written."""
    alone: tuple[Found, ...] = ()
    unseen: tuple[Found, ...] = ()
    stages: tuple[Found, ...] = ()
    """Stage by stage: before anybody waits, beside pods that nobody looks at, and beside those that fit nowhere."""


def throughput(cluster: Cluster, name: str, count: int, users: bool) -> Found:
    """``count`` pods at once, perhaps with users: from the first create to the last binding."""
    return asyncio.run(_measured(cluster, name, _throughput, count, users))


def preemption(cluster: Cluster, name: str, cores: int, wait: float) -> Found:
    """Each node full of low pods of one core; then as many high pods as nodes."""
    return asyncio.run(_measured(cluster, name, _preemption, cores, wait))


def singles(cluster: Cluster, name: str, count: int, rate: float) -> Found:
    """Pods one by one: from the answer to the create to the binding on a watch."""
    return asyncio.run(_measured(cluster, name, _singles, count, rate))


@dataclass(frozen=True)
class Crowd:
    """Pods that fit nowhere."""

    count: int
    stages: int
    """How often single pods come before and beside these, so that no percentile is of one moment."""
    patience: float
    """Seconds until all have been told so and have their ledgers."""


def crowded(cluster: Cluster, name: str, count: int, rate: float, crowd: Crowd) -> Found:
    """The same, before a crowd waits, beside one that names a scheduler which is not there, so that nobody looks at it,
    and beside one that fits nowhere, once all of that has been told so and has its ledgers."""
    return asyncio.run(_measured(cluster, name, _crowded, count, rate, crowd))


Case = Callable[..., Awaitable[Found]]


async def _measured(cluster: Cluster, name: str, case: Case, *arguments: Any) -> Found:
    async with watched(cluster) as (connection, bindings):
        with cluster.scheduler(name) as running:
            await asyncio.to_thread(running.stall)  # forgets that of the start
            found = await case(cluster, running, connection, bindings, *arguments)
            stall = await asyncio.to_thread(running.stall)
        await clear(connection)
    await asyncio.sleep(QUIET_SECONDS)
    return replace(found, stall=stall)


async def _throughput(
    cluster: Cluster, running: Running, connection: Connection, bindings: Bindings, count: int, with_users: bool
) -> Found:
    wanted = names(count)
    bodies = [pod(one, running.scheduler_name) for one in wanted]
    if with_users:
        await asyncio.to_thread(cluster.measure_zones)
        for number, body in enumerate(bodies):
            users = f"zone-{'abc'[number % 3]}:0.75 zone-{'bca'[number % 3]}:0.25"
            body["metadata"]["annotations"] = {"slacktide.io/users": users, "slacktide.io/data": "0.4"}
    before = running.usage()
    began = time.perf_counter()
    await create(connection, bodies)
    bound = await bindings.all_of(set(wanted), 240.0)
    await asyncio.sleep(QUIET_SECONDS)  # events that are still being written are part of the work
    after = running.usage()
    last = max((bindings.at[one] for one in wanted if one in bindings.at), default=began)
    return Found(bound, count, bound / max(last - began, 1e-9), after.cpu - before.cpu, after.peak)


async def _preemption(
    cluster: Cluster, running: Running, connection: Connection, bindings: Bindings, cores: int, wait: float
) -> Found:
    low = names(len(cluster.nodes) * cores)
    where = [cluster.nodes[number // cores] for number in range(len(low))]
    await create(
        connection,
        [pod(one, running.scheduler_name, cpu="1", node=node) for one, node in zip(low, where, strict=True)],
    )
    await bindings.all_of(set(low), 120.0)
    await asyncio.sleep(SETTLE_SECONDS)
    high = names(len(cluster.nodes))
    before = running.usage()
    began = time.perf_counter()
    await create(connection, [pod(one, running.scheduler_name, cpu="1", service="high") for one in high])
    bound = await bindings.all_of(set(high), wait)
    await asyncio.sleep(QUIET_SECONDS)
    after = running.usage()
    last = max((bindings.at[one] for one in high if one in bindings.at), default=began)
    left = await _count(connection) - bound
    return Found(bound, len(high), bound / max(last - began, 1e-9), after.cpu - before.cpu, after.peak, left=left)


async def _count(connection: Connection) -> int:
    """Pods on nodes."""
    answer = await connection.get(PODS, query={"fieldSelector": "spec.nodeName!="}, timeout=120.0)
    return answer.count(b'"nodeName":')


async def _crowded(
    cluster: Cluster,
    running: Running,
    connection: Connection,
    bindings: Bindings,
    count: int,
    rate: float,
    crowd: Crowd,
) -> Found:
    async def stages(told: int) -> tuple[Found, ...]:
        """Single pods, once all have been told so and no ledger waits, or patience is over."""
        until = time.perf_counter() + crowd.patience
        while not await settled(told) and time.perf_counter() < until:
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.sleep(QUIET_SECONDS)
        await asyncio.to_thread(running.stall)  # forgets those of before
        found = [await _singles(cluster, running, connection, bindings, count, rate) for _ in range(crowd.stages)]
        stall = await asyncio.to_thread(running.stall)
        return tuple(replace(one, stall=stall) for one in found)

    async def settled(told: int) -> bool:
        return not await asyncio.to_thread(running.pending) > 0 and (not told or await _told(connection) >= told)

    async def wait(scheduler: str) -> None:
        await clear(connection)
        await create(connection, [pod(one, scheduler, cpu="1000") for one in names(crowd.count)])

    alone = await stages(0)
    await wait("nobody")
    unseen = await stages(0)
    await wait(running.scheduler_name)
    beside = await stages(crowd.count)
    told, pending = await _told(connection), await asyncio.to_thread(running.pending)
    return replace(beside[-1], told=told, pending=pending, stages=beside, alone=alone, unseen=unseen)


async def _told(connection: Connection) -> int:
    """Pods of which the scheduler says that they fit nowhere."""
    answer = await connection.get(PODS, query={"fieldSelector": "spec.nodeName="}, timeout=120.0)
    return answer.count(b'"reason":"Unschedulable"')


async def _singles(
    _cluster: Cluster, running: Running, connection: Connection, bindings: Bindings, count: int, rate: float
) -> Found:
    wanted = names(count)
    answered: dict[str, float] = {}
    before = running.usage()
    bodies = [pod(one, running.scheduler_name) for one in wanted]
    began = time.perf_counter()

    async def one(number: int) -> None:
        await asyncio.sleep(began + number / rate - time.perf_counter())
        await create(connection, [bodies[number]], 1)
        answered[wanted[number]] = time.perf_counter()

    await asyncio.gather(*(one(number) for number in range(count)))
    bound = await bindings.all_of(set(wanted), 60.0)
    took = time.perf_counter() - began
    after = running.usage()
    late = sorted((bindings.at[name] - at) * 1000 for name, at in answered.items() if name in bindings.at)
    late = late or [float("nan")]
    return Found(
        bound, count, bound / took, after.cpu - before.cpu, after.peak,
        p50=late[len(late) // 2], p99=late[min(len(late) - 1, int(len(late) * 0.99))],
    )  # fmt: skip
