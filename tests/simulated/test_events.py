"""Events as people read them: each is written once, with the count and the note of its time, whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from simulated.alone import ONE_WAY, Client, plays, until
from simulated.resources import Json
from simulated.world import NAMESPACE, World
from slacktide.kube.publish.events import LONGEST_NOTE, EventRecorder
from slacktide.kube.resources.objects import Reference

WAY = 2 * ONE_WAY + 0.005
"""Seconds that a request and its answer take, with the connection for it, at most."""


class Scene:
    """A recorder at work."""

    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self.client, self.recorder = client, recorder

    async def written(self) -> None:
        """Everything that was noted down is written, or dropped."""
        assert await self.recorder.drain(60.0)

    def about(self, reference: Reference) -> list[Json]:
        every = self.client.world.store.every("events")
        return [one for one in every if one["involvedObject"]["name"] == reference.name]

    def sent(self) -> list[str]:
        return [one.method for one in self.client.sent]


def a_pod(name: str = "one") -> Reference:
    return Reference("v1", "Pod", NAMESPACE, name, f"uid-{name}")


def with_recorder(play: Callable[[Scene], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def scene(world: World) -> None:
        client = Client(world)
        recorder = EventRecorder(client.connection, "slacktide", "test-replica", **options)
        task = asyncio.create_task(recorder.run())
        await play(Scene(client, recorder))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    plays(scene)


def test_an_event_says_who_what_and_why() -> None:
    async def play(scene: Scene) -> None:
        pod, other = a_pod(), a_pod("other")
        scene.recorder.record(pod, "Preempted", "by x for y", event_type="Warning", action="Preempting", related=other)
        await scene.written()
        (event,) = scene.about(pod)
        assert event["involvedObject"]["uid"] == pod.uid
        assert event["related"]["name"] == other.name
        assert (event["reason"], event["message"], event["type"]) == ("Preempted", "by x for y", "Warning")
        assert (event["source"], event["reportingInstance"]) == ({"component": "slacktide"}, "test-replica")
        assert (event["count"], scene.recorder.written, scene.recorder.pending) == (1, 1, 0)

    with_recorder(play)


def test_a_nodes_event_stands_in_the_default_namespace() -> None:
    async def play(scene: Scene) -> None:
        node = Reference("v1", "Node", "", "n", "")
        scene.recorder.record(node, "ForeignPods", "another scheduler's pods are here", event_type="Warning")
        await scene.written()
        assert [event["metadata"]["namespace"] for event in scene.about(node)] == ["default"]

    with_recorder(play)


def test_repeats_become_one_event_with_a_count_and_the_latest_note() -> None:
    async def play(scene: Scene) -> None:
        pod = a_pod()
        for number in range(1, 4):
            for _ in range(10):
                scene.recorder.record(pod, "FailedScheduling", f"0/{number} nodes", event_type="Warning")
            await scene.written()
        scene.recorder.record(pod, "Scheduled", "bound")
        await scene.written()
        found = {event["reason"]: (event["count"], event["message"]) for event in scene.about(pod)}
        assert found == {"FailedScheduling": (30, "0/3 nodes"), "Scheduled": (1, "bound")}
        assert scene.sent() == ["POST", "PATCH", "PATCH", "POST"]  # ten repeats that wait are one request

    with_recorder(play)


def test_repeats_while_a_write_is_under_way_are_not_lost_nor_written_twice() -> None:
    async def play(scene: Scene) -> None:
        pod = a_pod()
        scene.client.fails(delay=1.0, times=1)
        for number in range(30):
            scene.recorder.record(pod, "FailedScheduling", f"look {number}")
            await asyncio.sleep(0.02)
        await scene.written()
        (event,) = scene.about(pod)
        assert (event["count"], event["message"]) == (30, "look 29")
        assert scene.sent() == ["POST", "PATCH"]

    with_recorder(play)


def test_overloaded_it_drops_and_counts_and_never_waits() -> None:
    async def play(scene: Scene) -> None:
        for number in range(5000):
            scene.recorder.record(a_pod(str(number)), "Scheduled", "bound")
        assert (scene.recorder.pending, scene.recorder.dropped) == (100, 4900)

    with_recorder(play, capacity=100, qps=1.0, burst=1)


def test_it_keeps_to_its_rate() -> None:
    async def play(scene: Scene) -> None:
        for number in range(100):
            scene.recorder.record(a_pod(str(number)), "Scheduled", "bound")
        await scene.written()
        times = [one.at for one in scene.client.sent]
        assert times == pytest.approx([max(0, number - 9) / 20 for number in range(100)], abs=WAY)

    with_recorder(play, qps=20.0, burst=10)


@pytest.mark.parametrize(
    "fault",
    [{"code": 500}, {"code": 429, "after": 1}, {"reset": True}, {"unanswered": True}],
    ids=["500", "429", "reset", "no answer"],
)
def test_what_fails_for_a_moment_is_tried_again_a_second_later(fault: dict[str, Any]) -> None:
    async def play(scene: Scene) -> None:
        scene.client.fails(**fault, times=1)
        scene.recorder.record(a_pod(), "Scheduled", "bound")
        began = scene.client.now
        await scene.written()
        assert len(scene.about(a_pod())) == 1
        assert scene.recorder.dropped == 0
        # Of one that was written all the same the name is taken: it is changed instead.
        first, second, *more = scene.client.sent
        assert (first.at - began, second.at - began - 1.0) == pytest.approx((0.0, 0.0), abs=2 * WAY)
        assert [one.method for one in more] == (["PATCH"] if "unanswered" in fault else [])

    with_recorder(play)


def test_a_note_is_written_with_the_count_of_its_time() -> None:
    """The attempt after one that failed has the note and the count of then: no old count stands beside a new note."""

    async def play(scene: Scene) -> None:
        pod = a_pod()
        scene.client.fails(code=500, delay=1.0, times=1)
        scene.recorder.record(pod, "FailedScheduling", "nomination of node node-2 withdrawn")
        await until(scene.sent)
        scene.recorder.record(pod, "FailedScheduling", "nomination of node node-1 withdrawn")
        await scene.written()
        (event,) = scene.about(pod)
        assert (event["count"], event["message"]) == (2, "nomination of node node-1 withdrawn")
        assert scene.sent() == ["POST", "POST"]

    with_recorder(play)


def test_rights_that_are_not_known_yet_are_asked_for_again() -> None:
    """As by an API server that has just begun; who has none for good is not asked for ever."""

    async def play(scene: Scene) -> None:
        scene.client.fails(code=403, times=2)
        pod, hopeless = a_pod(), a_pod("hopeless")
        scene.recorder.record(pod, "Scheduled", "bound")
        await scene.written()
        assert len(scene.about(pod)) == 1
        scene.client.fails(code=403)
        scene.recorder.record(hopeless, "Scheduled", "bound")
        await scene.written()
        assert scene.about(hopeless) == []
        assert (scene.recorder.written, scene.recorder.dropped) == (1, 1)
        assert scene.client.codes == [403, 403, 201, 403, 403, 403]

    with_recorder(play)


def test_a_refused_event_is_dropped_and_the_next_one_written() -> None:
    async def play(scene: Scene) -> None:
        scene.recorder.record(Reference("v1", "Pod", "no-such-namespace", "x", "y"), "Scheduled", "bound")
        await scene.written()
        scene.recorder.record(a_pod(), "Scheduled", "bound " + "x" * 5000)
        await scene.written()
        assert len(scene.about(a_pod())[0]["message"]) == LONGEST_NOTE
        assert (scene.recorder.written, scene.recorder.dropped) == (1, 1)
        assert scene.client.codes == [404, 201]

    with_recorder(play)


def test_an_event_the_server_forgot_is_written_anew() -> None:
    async def play(scene: Scene) -> None:
        pod, store = a_pod(), scene.client.world.store
        scene.recorder.record(pod, "FailedScheduling", "first")
        await scene.written()
        (event,) = scene.about(pod)
        await scene.client.connection.delete(f"/api/v1/namespaces/{NAMESPACE}/events/{event['metadata']['name']}")
        scene.recorder.record(pod, "FailedScheduling", "second")
        await scene.written()
        assert [event["message"] for event in store.every("events")] == ["second"]

    with_recorder(play)
