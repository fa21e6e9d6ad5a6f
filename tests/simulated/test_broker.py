"""A workload file becomes Deployments and Jobs at its own times, and what has ended goes: at known instants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from simulated.alone import ONE_WAY, Client, plays, until
from simulated.pod_model import bind
from simulated.resources import BY_NAME, Json, Target
from simulated.store import Change
from simulated.world import NAMESPACE, World
from slacktide.errors import ConfigError
from slacktide.model import ServiceClass
from slacktide.submit.broker import LOOK_SECONDS, Broker, BrokerReport
from slacktide.submit.manifests import Manner, submissions
from submit.test_broker import HEAD, MANY, workload

CLASSES = (ServiceClass("gold", 1.0, 1, overhead_limit=0.2), ServiceClass("bronze", 0.5, 3))
SPEED = 10.0
WAY = 2 * ONE_WAY + 0.005
"""Seconds that a request and its answer take, with the connection for it, at most."""


class Scene:
    """A broker in a world, and what was written of its Deployments and Jobs, with the seconds since it began."""

    def __init__(self, world: World) -> None:
        self.world, self.client = world, Client(world)
        self.broker = Broker(self.client.connection, NAMESPACE, "w", speed=SPEED)
        self.written: list[tuple[float, str, str, int]] = []
        self._began = 0.0
        world.store.followers.append(self._see)

    def _see(self, change: Change) -> None:
        spec, before = change.body.get("spec", {}), (change.before or {}).get("spec")
        if change.resource.plural in ("deployments", "jobs") and (spec != before or change.type == "DELETED"):
            count = spec.get("replicas", spec.get("completions", 0))
            at = self.world.loop.time() - self._began
            self.written.append((at, change.type, change.body["metadata"]["name"], count))

    async def submit(self, rows: Any, **words: Any) -> BrokerReport:
        await self.broker.prepare(CLASSES, create=True)
        self._began = self.world.loop.time()
        return await self.broker.submit(submissions(rows, Manner("w", speed=SPEED), "w.csv"), **words)

    def is_as_written(self, *expected: tuple[float, str, str, int]) -> None:
        assert [one[1:] for one in self.written] == [one[1:] for one in expected]
        assert [one[0] for one in self.written] == pytest.approx([one[0] for one in expected], abs=2 * WAY)


def scenes(play: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def scene(world: World) -> None:
        await play(Scene(world))

    plays(scene)


def test_objects_come_and_are_scaled_at_their_times(tmp_path: Path) -> None:
    """Ten times as fast as the file says."""
    rows = workload(
        tmp_path,
        MANY,
        "1,0,,0.1,0.1,gold,service,1,,,,20=3",
        "2,10,40,0.1,0.1,bronze,batch,,2,1,aggregated,",
        "3,500,,0.1,0.1,gold,service,1,,,,",
    )

    async def play(scene: Scene) -> None:
        report = await scene.submit(rows, until=30.0)
        assert (report.deployments, report.jobs, report.scaled, report.refused) == (1, 1, 1, 0)
        assert report.latest <= 2 * WAY
        scene.is_as_written((0.0, "ADDED", "w-1", 1), (1.0, "ADDED", "w-2", 2), (2.0, "MODIFIED", "w-1", 3))

    scenes(play)


def test_a_service_goes_when_its_pods_have_run_long_enough(tmp_path: Path) -> None:
    rows = workload(tmp_path, HEAD, "1,0,30,0.1,0.1,gold,1,0,", "2,0,inf,0.1,0.1,gold,1,0,")

    async def play(scene: Scene) -> None:
        world = scene.world
        world.make_node("node")
        world.kubelets.probes = (0.0, 0.0)
        task = asyncio.create_task(scene.submit(rows))
        await until(lambda: len(world.store.every("pods")) == 2, "the pods of both")
        await asyncio.sleep(60.0)
        assert not task.done()  # who waits does not run
        for key in list(world.store.objects["pods"]):
            bind(world.store, Target(BY_NAME["pods"], *key, "binding"), {"target": {"name": "node"}})
        ready: list[float] = []

        def see(change: Change) -> None:
            conditions: list[Json] = change.body.get("status", {}).get("conditions", [])
            if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions) and not ready:
                ready.append(world.loop.time())

        world.store.watching["pods"].append(see)
        report = await task
        assert (report.deployments, report.removed) == (2, 1)
        took = world.loop.time() - ready[0]
        assert 30.0 / SPEED <= took <= 30.0 / SPEED + 2 * LOOK_SECONDS + 4 * WAY + 0.6  # the kubelets are not as quick
        assert [one["metadata"]["name"] for one in world.store.every("deployments")] == ["w-2"]

    scenes(play)


def test_classes_that_are_missing_are_named_or_made() -> None:
    mine = (ServiceClass("bench-only", 0.75, 2, margin=3.0),)

    async def play(scene: Scene) -> None:
        with pytest.raises(ConfigError, match="service classes bench-only: not in the cluster"):
            await scene.broker.prepare(mine, create=False)
        await scene.broker.prepare(mine, create=True)
        made = scene.world.store.get("serviceclasses", "", "bench-only")
        assert made is not None
        expected = {"slo": 0.75, "rank": 2, "marginSeconds": 3}
        assert {key: made["spec"][key] for key in expected} == expected

    scenes(play)


def test_what_is_refused_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    """What is not answered, or refused for a moment, is tried again, and nothing is made twice."""
    rows = workload(tmp_path, HEAD, *(f"{number},0,inf,0.1,0.1,gold,1,0," for number in range(1, 5)))

    async def play(scene: Scene) -> None:
        scene.client.fails(path="deployments", body='"w-1"', code=422)
        scene.client.fails(path="deployments", body='"w-2"', unanswered=True, times=1)
        scene.client.fails(path="deployments", body='"w-3"', code=503, times=2)
        report = await scene.submit(rows, until=100.0)
        assert (report.deployments, report.refused) == (3, 1)
        assert f"Deployment {NAMESPACE}/w-1: 422" in report.problems[0]
        found = {name: at for at, _, name, _ in scene.written}
        assert found == pytest.approx({"w-2": 0.0, "w-4": 0.0, "w-3": 0.2 + 0.4}, abs=4 * WAY)

    scenes(play)
