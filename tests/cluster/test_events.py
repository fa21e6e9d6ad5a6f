"""Events as people read them, on a real API server."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from cluster.faulty import Fault, FaultyProxy
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.http import Connection
from slacktide.kube.publish import events as recorder_module
from slacktide.kube.publish.events import EventRecorder
from slacktide.kube.resources.objects import Reference
from slacktide.lab import ControlPlane


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


def a_pod() -> Reference:
    return Reference("v1", "Pod", "default", f"pod-{uuid.uuid4().hex[:10]}", str(uuid.uuid4()))


async def events(connection: Connection, about: Reference) -> list[dict[str, Any]]:
    path = f"/api/v1/namespaces/{about.namespace or 'default'}/events"
    body = await connection.get(path, query={"fieldSelector": f"involvedObject.name={about.name}"})
    found: list[dict[str, Any]] = json.loads(body)["items"]
    return found


def with_recorder(
    access: Access, play: Callable[[EventRecorder, Connection, FaultyProxy], Any], **options: Any
) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as through, Connection(access) as direct:
            recorder = EventRecorder(through, "slacktide", "test-replica", **options)
            task = asyncio.create_task(recorder.run())
            await play(recorder, direct, proxy)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_an_event_says_who_what_and_why(access: Access) -> None:
    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:
        pod, other = a_pod(), a_pod()
        recorder.record(pod, "Preempted", "by x for y", event_type="Warning", action="Preempting", related=other)
        assert await recorder.drain(60.0)
        (event,) = await events(direct, pod)
        assert event["involvedObject"]["uid"] == pod.uid
        assert event["related"]["name"] == other.name
        assert (event["reason"], event["message"], event["type"]) == ("Preempted", "by x for y", "Warning")
        assert (event["source"], event["reportingInstance"]) == ({"component": "slacktide"}, "test-replica")
        assert (event["count"], recorder.written, recorder.pending) == (1, 1, 0)
        assert proxy.paths

    with_recorder(access, play)


def test_a_nodes_event_stands_in_the_default_namespace(access: Access) -> None:
    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:  # noqa: ARG001 (no faults here)
        node = Reference("v1", "Node", "", f"node-{uuid.uuid4().hex[:8]}", "")
        recorder.record(node, "ForeignPods", "another scheduler's pods are here", event_type="Warning")
        assert await recorder.drain(60.0)
        assert [event["metadata"]["namespace"] for event in await events(direct, node)] == ["default"]

    with_recorder(access, play)


def test_repeats_become_one_event_with_a_count_and_the_latest_note(access: Access) -> None:
    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:
        pod = a_pod()
        for number in range(1, 4):
            for _ in range(10):
                recorder.record(pod, "FailedScheduling", f"0/{number} nodes", event_type="Warning")
            assert await recorder.drain(60.0)
        recorder.record(pod, "Scheduled", "bound")
        assert await recorder.drain(60.0)
        found = {event["reason"]: event for event in await events(direct, pod)}
        assert len(found) == 2
        assert (found["FailedScheduling"]["count"], found["FailedScheduling"]["message"]) == (30, "0/3 nodes")
        assert found["Scheduled"]["count"] == 1
        # Ten repeats that wait are one request.
        assert len(proxy.paths) <= 6

    with_recorder(access, play)


def test_repeats_while_a_write_is_under_way_are_not_lost_nor_written_twice(access: Access) -> None:
    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:
        pod = a_pod()
        proxy.add(Fault(delay=1.0, times=1))
        for number in range(30):
            recorder.record(pod, "FailedScheduling", f"look {number}")
            await asyncio.sleep(0.02)
        assert await recorder.drain(60.0)
        (event,) = await events(direct, pod)
        assert (event["count"], event["message"]) == (30, "look 29")

    with_recorder(access, play)


def test_overloaded_it_drops_and_counts_and_never_waits(access: Access) -> None:
    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:  # noqa: ARG001 (all but the recorder is at rest)
        began = time.perf_counter()
        for _ in range(5000):
            recorder.record(a_pod(), "Scheduled", "bound")
        assert time.perf_counter() - began < 600.0  # at its rate it would take more than an hour
        assert recorder.pending == 100
        assert recorder.dropped == 4900

    with_recorder(access, play, capacity=100, qps=1.0, burst=1)


def test_it_keeps_to_its_rate(access: Access) -> None:
    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:  # noqa: ARG001 (only requests count)
        began = time.monotonic()
        for _ in range(100):
            recorder.record(a_pod(), "Scheduled", "bound")
        async with asyncio.timeout(60):
            while len(proxy.paths) < 50:
                await asyncio.sleep(0.05)
        assert len(proxy.paths) <= 10 + 20 * (time.monotonic() - began) + 2

    with_recorder(access, play, qps=20.0, burst=10)


def test_passing_failures_are_tried_again(access: Access) -> None:
    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:
        pods = [a_pod() for _ in range(4)]
        for fault in (
            Fault(status=500, times=1),
            Fault(status=429, times=1, retry_after=1),
            Fault(reset=True, times=1),
            Fault(lose_answer=True, times=1),
        ):
            proxy.add(fault)
        for pod in pods:
            recorder.record(pod, "Scheduled", "bound")
        assert await recorder.drain(60.0)
        assert [len(await events(direct, pod)) for pod in pods] == [1, 1, 1, 1]
        assert recorder.dropped == 0

    with_recorder(access, play)


def test_a_note_is_written_with_the_count_of_its_time(access: Access) -> None:
    """The attempt after one that failed has the note and the count of then: no old count stands beside a new note."""

    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:
        pod = a_pod()
        proxy.add(Fault(status=500, delay=1.0, times=1))
        recorder.record(pod, "FailedScheduling", "nomination of node node-2 withdrawn")
        async with asyncio.timeout(60):
            while not proxy.paths:
                await asyncio.sleep(0)
        recorder.record(pod, "FailedScheduling", "nomination of node node-1 withdrawn")
        assert await recorder.drain(60.0)
        (event,) = await events(direct, pod)
        assert (event["count"], event["message"]) == (2, "nomination of node node-1 withdrawn")
        assert [method for method, _ in proxy.paths] == ["POST", "POST"]

    with_recorder(access, play)


def test_rights_that_are_not_known_yet_are_asked_for_again(access: Access) -> None:
    """As by an API server that has just begun; who has none for good is not asked for ever."""

    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:
        proxy.add(Fault(status=403, times=2))
        pod, hopeless = a_pod(), a_pod()
        recorder.record(pod, "Scheduled", "bound")
        assert await recorder.drain(60.0)
        assert len(await events(direct, pod)) == 1
        proxy.add(Fault(status=403))
        recorder.record(hopeless, "Scheduled", "bound")
        assert await recorder.drain(60.0)
        assert await events(direct, hopeless) == []
        assert (recorder.written, recorder.dropped, proxy.seen["POST", "403"]) == (1, 1, 5)

    with_recorder(access, play)


def test_a_refused_event_is_dropped_and_the_next_one_written(access: Access) -> None:
    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:
        nowhere = Reference("v1", "Pod", "no-such-namespace", "x", "y")
        recorder.record(nowhere, "Scheduled", "bound")
        pod = a_pod()
        recorder.record(pod, "Scheduled", "bound " + "x" * 5000)
        assert await recorder.drain(60.0)
        assert len((await events(direct, pod))[0]["message"]) == recorder_module.LONGEST_NOTE
        assert (recorder.written, recorder.dropped, proxy.seen["POST", "404"]) == (1, 1, 1)

    with_recorder(access, play)


def test_an_event_the_server_forgot_is_written_anew(access: Access) -> None:
    async def play(recorder: EventRecorder, direct: Connection, proxy: FaultyProxy) -> None:  # noqa: ARG001 (no faults here)
        pod = a_pod()
        recorder.record(pod, "FailedScheduling", "first")
        assert await recorder.drain(60.0)
        (event,) = await events(direct, pod)
        await direct.delete(f"/api/v1/namespaces/default/events/{event['metadata']['name']}")
        recorder.record(pod, "FailedScheduling", "second")
        assert await recorder.drain(60.0)
        assert [event["message"] for event in await events(direct, pod)] == ["second"]

    with_recorder(access, play)
