"""Watches, whatever happens in between: the handler ends up with what is there, and is told of each change once."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from simulated.alone import ONE_WAY, Client, Fault, plays, until, warnings_of
from simulated.api_model import Request
from simulated.loop import EPOCH, WorldLoop
from simulated.resources import BY_NAME, Json, Refused, Target, encode
from simulated.world import NAMESPACE, World
from slacktide.kube.client import reflector as listing
from slacktide.kube.client.kinds import Identity, Kind, Malformed
from slacktide.kube.client.reflector import (
    CATCHING_UP_SECONDS,
    LONGEST_BACKOFF_SECONDS,
    SHORTEST_BACKOFF_SECONDS,
    SLICE_SECONDS,
    Reflector,
)
from slacktide.kube.clock import Sources, read_from
from slacktide.kube.mirror import watches
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import SERVICE_CLASS, Owner, ServiceClass
from slacktide.settings import load_live

THINGS = Kind(Owner, "v1", "services", namespaced=True)
"""Of which nobody else makes any."""
RESOURCE = BY_NAME["services"]
HEARD = 2 * ONE_WAY + 0.005
"""Seconds within which a change is heard of while all is well."""


class Picture:
    """What a handler knows, and what it was told, with every broken promise."""

    def __init__(self) -> None:
        self.replacements = 0
        self.objects: dict[str, tuple[str, str]] = {}
        self.told: Counter[tuple[str, str, str]] = Counter()
        self.deletions: list[tuple[Identity, object]] = []
        self.problems: list[Malformed] = []
        self.broken: list[str] = []

    def replaced(self, objects: Sequence[Owner | ServiceClass]) -> None:
        self.replacements += 1
        for found in objects:
            self.changed(found)

    def changed(self, found: Owner | ServiceClass) -> None:
        metadata = found.metadata
        if not self.replacements:
            self.broken.append(f"{metadata.name} was told before the first list")
        if metadata.name in self.objects and self.objects[metadata.name][0] != metadata.uid:
            self.broken.append(f"{metadata.name} became another object without a deletion")
        self.objects[metadata.name] = metadata.uid, metadata.resource_version
        self.told[metadata.name, metadata.uid, metadata.resource_version] += 1

    def deleted(self, identity: Identity, last: object) -> None:
        if identity.name not in self.objects and identity.name not in [problem.name for problem in self.problems]:
            self.broken.append(f"{identity.name} was deleted without having been there")
        self.objects.pop(identity.name, None)
        self.deletions.append((identity, last))

    def malformed(self, problem: Malformed) -> None:
        self.problems.append(problem)

    def in_order(self) -> None:
        assert not self.broken
        assert self.replacements == 1
        assert [state for state, times in self.told.items() if times > 1] == []


class Scene:
    """A client that watches, and what others do meanwhile."""

    def __init__(self, world: World) -> None:
        self.world, self.client, self.picture = world, Client(world), Picture()
        self.reflector = self.watching(self.picture)

    def watching(self, picture: Picture, **options: Any) -> Reflector[Owner]:
        return Reflector(self.client.connection, THINGS, picture, path=THINGS.path(NAMESPACE), **options)

    def put(self, name: str, value: str = "1") -> None:
        body = {"metadata": {"name": name}, "spec": {"value": value}}
        is_there = self.world.store.get("services", NAMESPACE, name) is not None
        path = THINGS.path(NAMESPACE, name if is_there else "")
        assert self.world.api.answer(Request("PUT" if is_there else "POST", path, {}, encode(body))).ok

    def remove(self, name: str) -> None:
        self.world.api.delete(Target(RESOURCE, NAMESPACE, name, ""), {})

    def truth(self) -> dict[str, tuple[str, str]]:
        metadata = [one["metadata"] for one in self.world.store.every("services")]
        return {one["name"]: (one["uid"], one["resourceVersion"]) for one in metadata}

    async def agrees(self) -> None:
        await until(lambda: self.picture.objects == self.truth(), "the handler knows what is there")

    async def is_watched(self) -> None:
        await until(self.client.connection.watches, "a watch is open")

    @asynccontextmanager
    async def running(self, *more: Reflector[Any]) -> AsyncIterator[None]:
        every = [self.reflector, *more]
        tasks = [asyncio.create_task(one.run()) for one in every]
        try:
            for one in every:
                await until(one.synced.is_set, "it has listed")
            yield
            assert not [task for task in tasks if task.done()]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def scenario(play: Callable[[Scene], Awaitable[None]]) -> None:
    async def scene(world: World) -> None:
        found = Scene(world)
        await play(found)
        found.picture.in_order()

    plays(scene)


def test_what_is_there_comes_first_then_every_change() -> None:
    async def play(scene: Scene) -> None:
        scene.put("a")
        scene.put("b")
        assert scene.reflector.age() == float("inf")
        async with scene.running():
            assert set(scene.picture.objects) == {"a", "b"}
            await scene.is_watched()
            scene.put("a", "2")
            scene.put("c")
            scene.remove("b")
            await asyncio.sleep(HEARD)
            assert scene.picture.objects == scene.truth()
            assert scene.reflector.age() <= HEARD
        ((identity, last),) = scene.picture.deletions
        assert identity.name == "b"
        assert isinstance(last, Owner)
        assert scene.reflector.lists == 1

    scenario(play)


def test_a_cut_watch_goes_on_where_it_was() -> None:
    async def play(scene: Scene) -> None:
        async with scene.running():
            for turn in range(4):
                scene.put("a", str(turn))
                await scene.is_watched()
                scene.client.cut_watches()
                scene.put(f"b{turn}")
                scene.remove(f"b{turn}")
                scene.put(f"c{turn}")
            await scene.agrees()
        assert scene.reflector.lists == 1
        # Nothing is missed: also what came and went while no watch was open.
        assert [identity.name for identity, _ in scene.picture.deletions] == ["b0", "b1", "b2", "b3"]

    scenario(play)


def test_a_watch_that_catches_up_knows_since_when_it_was_away() -> None:
    class Timed(Picture):
        def __init__(self) -> None:
            super().__init__()
            self.away: Callable[[], float] = lambda: 0.0
            self.notes: dict[str, tuple[float, float]] = {}

        def changed(self, found: Owner | ServiceClass) -> None:
            super().changed(found)
            self.notes[found.metadata.name] = self.away(), asyncio.get_running_loop().time()

    async def play(scene: Scene) -> None:
        scene.picture = picture = Timed()
        scene.reflector = scene.watching(picture)
        picture.away = scene.reflector.away
        async with scene.running():
            await scene.is_watched()
            scene.put("before")
            await until(lambda: "before" in picture.notes)
            lived = scene.client.now
            blind = scene.client.fails(code=503)
            scene.client.cut_watches()
            await asyncio.sleep(5.0)
            scene.put("missed")
            blind.times = 0
            await until(lambda: "missed" in picture.notes)
            await asyncio.sleep(CATCHING_UP_SECONDS / 2)
            scene.put("soon")
            await asyncio.sleep(CATCHING_UP_SECONDS)
            scene.put("later")
            await until(lambda: "later" in picture.notes)
        assert picture.notes["before"][0] == picture.notes["later"][0] == 0.0
        for name in ("missed", "soon"):
            away, at = picture.notes[name]
            assert at - away == pytest.approx(lived, abs=HEARD), "when it last showed that it lived"

    scenario(play)


@pytest.mark.parametrize("at_once", [True, False], ids=["in the middle of a watch", "of a watch that begins anew"])
def test_after_an_expired_watch_the_handler_is_told_the_difference(at_once: bool) -> None:
    async def play(scene: Scene) -> None:
        for name in ("same", "changed", "gone", "again"):
            scene.put(name)
        async with scene.running():
            before = set(scene.picture.told)
            await scene.is_watched()
            if at_once:  # the API server forgets, and says so to who watches
                blind = scene.client.fails(code=503, watches=False)
                scene.client.expire_watches()
            else:
                blind = scene.client.fails(code=503)
                scene.client.cut_watches()
            await asyncio.sleep(1.0)
            scene.put("changed", "2")
            scene.put("new")
            for name in ("gone", "again"):
                scene.remove(name)
            scene.put("again")
            scene.world.store.compact("services", scene.world.store.revision)
            blind.times = 0
            await scene.agrees()
            assert {identity.name for identity, last in scene.picture.deletions if last is None} == {"gone", "again"}
            assert {name for name, _, _ in set(scene.picture.told) - before} == {"changed", "new", "again"}

    scenario(play)


@pytest.mark.parametrize("seed", range(8))
def test_under_every_fault_at_once_the_picture_ends_up_true(seed: int) -> None:
    """Changes go on for five minutes while watches are cut, expire and answers fail; then all heals."""
    draw = random.Random(seed)

    async def play(scene: Scene) -> None:
        async def break_things() -> None:
            while True:
                await asyncio.sleep(draw.uniform(1.0, 20.0))
                draw.choice([scene.client.cut_watches, scene.client.expire_watches])()
                fault = draw.choice(({"code": 500}, {"code": 410, "watches": True}, {"reset": True},
                                     {"unanswered": True, "watches": False}, {"delay": 3.0}))  # fmt: skip
                scene.client.fails(times=draw.randint(1, 4), **fault)

        async with scene.running():
            breaking = asyncio.create_task(break_things())
            for step in range(600):
                name = f"n{draw.randrange(12)}"
                if draw.random() < 0.35:
                    with suppress(Refused):  # it is not there
                        scene.remove(name)
                else:
                    scene.put(name, str(step))
                await asyncio.sleep(0.5)
            breaking.cancel()
            scene.client.faults.every.clear()
            await scene.agrees()
            assert scene.reflector.failures > 0
            assert scene.reflector.lists > 1

    scenario(play)


def test_a_server_that_is_down_is_asked_again_and_again_but_not_hammered() -> None:
    async def play(scene: Scene) -> None:
        async with scene.running():
            await scene.is_watched()
            down = scene.client.fails(reset=True)
            scene.client.cut_watches()
            began, already = scene.client.now, len(scene.client.sent)
            await asyncio.sleep(60.0)
            tries = [one.at for one in scene.client.sent[already:]]
            pauses = [b - a for a, b in zip([began, *tries], tries, strict=False)]
            assert SHORTEST_BACKOFF_SECONDS <= min(pauses) <= max(pauses) <= LONGEST_BACKOFF_SECONDS + HEARD
            assert len(tries) < 60.0 / (SHORTEST_BACKOFF_SECONDS + LONGEST_BACKOFF_SECONDS) * 2.5
            assert scene.reflector.age() == pytest.approx(60.0, abs=HEARD)
            assert "services" in scene.reflector.last_error
            scene.put("late")
            down.times = 0
            await scene.agrees()
            assert scene.client.now - began <= 60.0 + LONGEST_BACKOFF_SECONDS + HEARD
            assert scene.reflector.last_error == ""
            assert scene.reflector.age() <= HEARD

    scenario(play)


def test_without_the_right_to_look_it_waits_and_says_so() -> None:
    async def play(scene: Scene) -> None:
        scene.put("a")
        forbidden = scene.client.fails(code=403)
        task = asyncio.create_task(scene.reflector.run())
        await until(lambda: scene.reflector.failures > 1)
        assert "403" in scene.reflector.last_error
        assert not scene.reflector.synced.is_set()
        forbidden.times = 0
        await until(scene.reflector.synced.is_set)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    scenario(play)


def test_a_malformed_object_is_reported_and_its_neighbours_are_seen() -> None:
    """As a class of a wrong version, or one made while there was no schema."""

    async def scene(world: World) -> None:
        picture, client = Picture(), Client(world)

        def make(name: str, spec: object) -> Json:
            return world.make("serviceclasses", {"metadata": {"name": name}, "spec": spec})

        for one in tuple(world.store.objects["serviceclasses"]):
            world.store.remove(BY_NAME["serviceclasses"], one)
        make("good", {"slo": 0.9, "rank": 1})
        make("bad", {"slo": "high", "rank": 1})
        reflector = Reflector(client.connection, SERVICE_CLASS, picture)
        task = asyncio.create_task(reflector.run())
        await until(client.connection.watches)
        assert [problem.name for problem in picture.problems] == ["bad"]
        assert set(picture.objects) == {"good"}
        assert "$.spec.slo" in picture.problems[0].problem
        make("worse", ["nothing", "fits"])
        make("fine", {"slo": 1, "rank": 2})
        await asyncio.sleep(HEARD)
        assert set(picture.objects) == {"good", "fine"}
        assert [problem.name for problem in picture.problems] == ["bad", "worse"]
        await client.connection.patch(SERVICE_CLASS.path(name="bad"), b'{"spec":{"slo":0.5}}')
        await client.connection.delete(SERVICE_CLASS.path(name="worse"))
        await asyncio.sleep(HEARD)
        assert "bad" in picture.objects
        assert [identity.name for identity, _ in picture.deletions] == ["worse"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        picture.in_order()

    plays(scene)


@pytest.mark.parametrize("expired", [0, 1, 2])
def test_lists_come_in_pages_and_begin_anew_where_the_next_one_has_expired(
    monkeypatch: pytest.MonkeyPatch, expired: int
) -> None:
    """The third attempt asks for the whole list."""
    monkeypatch.setattr(listing, "ATTEMPTS", (2, 2, 0))

    async def play(scene: Scene) -> None:
        for name in "abcde":
            scene.put(name)
        scene.client.fails(code=410, query="continue=", times=expired)
        async with scene.running():
            assert set(scene.picture.objects) == set("abcde")
            lists = [one.query for one in scene.client.sent if "watch" not in one.query]
            assert (
                lists
                == {
                    0: ["limit", "limit&continue", "limit&continue"],
                    1: ["limit", "limit&continue", "limit", "limit&continue", "limit&continue"],
                    2: ["limit", "limit&continue", "limit", "limit&continue", ""],
                }[expired]
            )
            # After a break only what is new is told, and what is gone: pages say who is there.
            await scene.is_watched()
            scene.client.expire_watches()
            scene.put("c", "2")
            scene.put("f")
            scene.remove("a")
            await scene.agrees()
            assert scene.reflector.lists == 2
        assert [identity.name for identity, _ in scene.picture.deletions] == ["a"]

    scenario(play)


def test_who_reads_thousands_of_objects_gives_others_their_turn() -> None:
    """Each costs a millisecond: when it is read, and when the handler is told of it after a break."""
    cost, many = 0.001, 1000
    loop_of: list[WorldLoop] = []
    worked, turns = [0.0], Counter[int]()

    def works(found: Owner) -> Owner:
        worked[0] += cost
        turns[loop_of[0].steps] += 1
        return found

    class Slow(Picture):
        def changed(self, found: Owner | ServiceClass) -> None:
            super().changed(found)
            if self.replacements and len(self.objects) == many:
                worked[0] += cost
                turns[loop_of[0].steps] += 1

    async def play(scene: Scene) -> None:
        loop_of.append(scene.world.loop)  # type: ignore[arg-type]
        for number in range(many):
            scene.put(f"n{number}")
        scene.picture = Slow()
        now = scene.world.loop.time
        sources = Sources(wall=lambda: EPOCH + now(), steady=now, monotonic=lambda: now() + worked[0], work=now)
        with read_from(sources):
            scene.reflector = scene.watching(scene.picture, lighten=works)
            async with scene.running():
                await scene.is_watched()
                blind = scene.client.fails(code=503, watches=False)
                scene.client.expire_watches()
                for number in range(many):
                    scene.put(f"n{number}", "2")
                blind.times = 0
                await scene.agrees()
        assert worked[0] >= 3 * many * cost
        assert max(turns.values()) * cost <= SLICE_SECONDS + 3 * cost

    scenario(play)


def first_lists(*faults: Fault, quota: bool = False) -> tuple[ClusterMirror, list[str]]:
    """What is known after the first lists, where these faults come meanwhile, and what was logged as a warning."""

    async def scene(world: World) -> ClusterMirror:
        if quota:
            spec = {"class": "x", "hard": {"cpu": 1}}
            world.make("promisequotas", {"metadata": {"name": "q"}, "spec": spec}, NAMESPACE)
        client, mirror = Client(world), ClusterMirror(load_live(), time.time)
        client.faults.every.extend(faults)
        found = watches.Watches(client.connection, mirror)
        tasks = [asyncio.create_task(one) for one in found.running()]
        await found.first_lists()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return mirror

    with warnings_of(watches.__name__) as said:
        return plays(scene), said


def test_an_api_server_without_dynamic_resources_is_watched_all_the_same() -> None:
    """Only pods that have claims wait, with the reason."""
    unknown = first_lists(Fault(path="/resource.k8s.io/", code=404))[0].devices.unknown
    assert unknown.startswith("deviceclasses cannot be listed")
    assert "404" in unknown


BOUNDS = "/(promisequotas|maintenancewindows)$"


@pytest.mark.parametrize("fault", [{"code": 500}, {"code": 404}, {"code": 403}, {"reset": True}])
def test_one_bad_moment_at_the_start_leaves_nothing_without_bounds(fault: dict[str, Any]) -> None:
    faults = [Fault(path=f"/{kind}$", times=1, **fault) for kind in ("promisequotas", "maintenancewindows")]
    mirror, said = first_lists(*faults, quota=True)
    assert [one.times for one in faults] == [0, 0]
    assert mirror.quotas.namespaces() == [NAMESPACE]
    assert not [one for one in said if "apply the manifests of this version" in one]


@pytest.mark.parametrize("code", [404, 403])
def test_a_cluster_without_quotas_and_windows_is_scheduled_without_and_told(code: int) -> None:
    _, said = first_lists(Fault(path=BOUNDS, code=code))
    assert [one.partition(":")[0] for one in said if "apply the manifests of this version" in one] == [
        "maintenance windows are not used",
        "promise quotas are not used",
    ]
