"""Watches of a real API server: whatever happens in between, the handler ends up with what is there."""

import asyncio
import gc
import json
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from cluster.faulty import Fault, FaultyProxy
from slacktide.kube.client import reflector
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.http import ApiError, Connection, Unreachable
from slacktide.kube.client.kinds import Identity, Kind, Malformed
from slacktide.kube.client.reflector import CATCHING_UP_SECONDS, Reflector
from slacktide.kube.mirror import watches
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import NAMESPACE, POD, PROMISE_QUOTA, SERVICE_CLASS, Owner, Pod, ServiceClass
from slacktide.lab import ControlPlane
from slacktide.settings import load_live

SECRET = Kind(Owner, "v1", "secrets", namespaced=True)  # of which nobody else makes any


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


class Picture:
    """What a handler knows, and what it was told, with every broken promise."""

    def __init__(self) -> None:
        self.replacements = 0
        self.objects: dict[tuple[str, str], tuple[str, str]] = {}
        self.told: Counter[tuple[str, str, str]] = Counter()
        self.deletions: list[tuple[Identity, object]] = []
        self.problems: list[Malformed] = []
        self.broken: list[str] = []

    def replaced(self, objects: Sequence[Owner | Pod | ServiceClass]) -> None:
        self.replacements += 1
        for found in objects:
            self.changed(found)

    def changed(self, found: Owner | Pod | ServiceClass) -> None:
        metadata = found.metadata
        key = metadata.namespace, metadata.name
        if not self.replacements:
            self.broken.append(f"{key} was told before the first list")
        if key in self.objects and self.objects[key][0] != metadata.uid:
            self.broken.append(f"{key} became another object without a deletion")
        self.objects[key] = metadata.uid, metadata.resource_version
        self.told[metadata.name, metadata.uid, metadata.resource_version] += 1

    def deleted(self, identity: Identity, last: object) -> None:
        if identity.key not in self.objects and identity.name not in [problem.name for problem in self.problems]:
            self.broken.append(f"{identity.key} was deleted without having been there")
        self.objects.pop(identity.key, None)
        self.deletions.append((identity, last))

    def malformed(self, problem: Malformed) -> None:
        self.problems.append(problem)

    def in_order(self) -> None:
        assert not self.broken
        assert self.replacements == 1
        assert [state for state, times in self.told.items() if times > 1] == []


@asynccontextmanager
async def namespace(connection: Connection) -> AsyncIterator[str]:
    name = f"w{uuid.uuid4().hex[:10]}"
    await connection.post(NAMESPACE.path(), json.dumps({"metadata": {"name": name}}).encode())
    yield name
    await connection.delete(SECRET.path(name))
    await connection.delete(NAMESPACE.path(name=name))


@asynccontextmanager
async def running(*reflectors: Reflector[Owner] | Reflector[Pod] | Reflector[ServiceClass]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
    try:
        async with asyncio.timeout(120):
            for reflector in reflectors:
                await reflector.synced.wait()
        yield
        assert not [task for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come about in time"
        await asyncio.sleep(0.02)


async def put(connection: Connection, where: str, name: str, value: str) -> None:
    body = json.dumps({"metadata": {"name": name}, "stringData": {"value": value}}).encode()
    try:
        await connection.post(SECRET.path(where), body)
    except ApiError as error:
        if error.status != 409:
            raise
        await connection.put(SECRET.path(where, name), body)


async def truth(connection: Connection, where: str) -> dict[tuple[str, str], tuple[str, str]]:
    listing = SECRET.decode_list(await connection.get(SECRET.path(where)))
    return {
        (found.metadata.namespace, found.metadata.name): (found.metadata.uid, found.metadata.resource_version)
        for found in listing.items
    }


def scenario(access: Access, play: Callable[[Connection, FaultyProxy, str], Awaitable[None]]) -> None:
    """Plays with a direct connection, a proxy to watch through and a namespace of its own."""

    async def run() -> None:
        async with Connection(access) as direct, FaultyProxy(access) as proxy, namespace(direct) as where:
            await play(direct, proxy, where)

    asyncio.run(run())


def test_what_is_there_comes_first_then_every_change(access: Access) -> None:
    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:  # noqa: ARG001 (this one needs no faults)
        await put(direct, where, "a", "1")
        await put(direct, where, "b", "1")
        picture = Picture()
        reflector = Reflector(direct, SECRET, picture, path=SECRET.path(where))
        assert reflector.age() == float("inf")
        async with running(reflector):
            assert {name for _, name in picture.objects} == {"a", "b"}
            await put(direct, where, "a", "2")
            await put(direct, where, "c", "1")
            await direct.delete(SECRET.path(where, "b"))
            expected = await truth(direct, where)
            await until(lambda: picture.objects == expected)
            assert reflector.age() < 5.0
        picture.in_order()
        identity, last = picture.deletions[0]
        assert identity.name == "b"
        assert isinstance(last, Owner)
        assert reflector.lists == 1

    scenario(access, play)


def test_selectors_choose_what_is_seen(access: Access) -> None:
    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:  # noqa: ARG001 (this one needs no faults)
        picture = Picture()
        reflector = Reflector(direct, SECRET, picture, path=SECRET.path(where), label_selector="color in (red, blue)")
        async with running(reflector):
            for name, color in (("a", "red"), ("b", "green"), ("c", "blue")):
                body = {"metadata": {"name": name, "labels": {"color": color}}}
                await direct.post(SECRET.path(where), json.dumps(body).encode())
            await until(lambda: len(picture.objects) == 2)
            await direct.patch(SECRET.path(where, "a"), b'{"metadata":{"labels":{"color":"green"}}}')
            await until(lambda: {name for _, name in picture.objects} == {"c"})
        picture.in_order()

    scenario(access, play)


def test_a_cut_watch_goes_on_where_it_was(access: Access) -> None:
    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:
        picture = Picture()
        async with Connection(proxy.access()) as watched:
            reflector = Reflector(watched, SECRET, picture, path=SECRET.path(where))
            async with running(reflector):
                for round_ in range(4):
                    await put(direct, where, "a", str(round_))
                    await until(lambda: proxy.open_watches == 1)
                    proxy.cut_watches()
                    await put(direct, where, f"b{round_}", "x")
                    await direct.delete(SECRET.path(where, f"b{round_}"))
                    await put(direct, where, f"c{round_}", "x")
                expected = await truth(direct, where)
                await until(lambda: picture.objects == expected)
            assert reflector.lists == 1
            # Nothing is missed: also what came and went while no watch was open.
            assert {identity.name for identity, _ in picture.deletions} == {"b0", "b1", "b2", "b3"}
        picture.in_order()

    scenario(access, play)


class Timed(Picture):
    """A picture that notes how long the watch had been away when it was told of something, and moments around that."""

    def __init__(self) -> None:
        super().__init__()
        self.away: Callable[[], float] = lambda: 0.0
        self.notes: dict[str, tuple[float, float, float]] = {}

    def changed(self, found: Owner | Pod | ServiceClass) -> None:
        super().changed(found)
        before = time.monotonic()
        self.notes[found.metadata.name] = self.away(), before, time.monotonic()


def test_a_watch_that_catches_up_knows_since_when_it_was_away(access: Access) -> None:
    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:
        picture = Timed()
        async with Connection(proxy.access()) as watched:
            reflector = Reflector(watched, SECRET, picture, path=SECRET.path(where))
            picture.away = reflector.away
            async with running(reflector):
                await until(lambda: proxy.open_watches == 1)
                sent = time.monotonic()
                await put(direct, where, "before", "1")
                await until(lambda: "before" in picture.notes)
                blind = proxy.add(Fault(status=503))
                lost = time.monotonic()
                proxy.cut_watches()
                await until(lambda: proxy.seen["GET", "503"] > 0)
                await put(direct, where, "missed", "1")
                blind.times = 0
                await until(lambda: "missed" in picture.notes)
                await asyncio.sleep(0.1)
                await put(direct, where, "soon", "1")
                await until(lambda: "soon" in picture.notes)
                await until(lambda: reflector.away() == 0.0)
                await put(direct, where, "later", "1")
                await until(lambda: "later" in picture.notes)
        assert picture.notes["before"][0] == picture.notes["later"][0] == 0.0
        caught_up = picture.notes["missed"][2]
        for name in ("missed", "soon"):
            away, before, after = picture.notes[name]
            if name == "soon" and after - caught_up > CATCHING_UP_SECONDS / 2:
                continue  # the machine was too slow for that
            # No later than it was cut, and no earlier than the watch last showed that it lived.
            assert before - lost <= away <= after - sent

    scenario(access, play)


def test_after_an_expired_watch_the_handler_is_told_the_difference(access: Access) -> None:
    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:
        for name in ("same", "changed", "gone", "again"):
            await put(direct, where, name, "1")
        picture = Picture()
        async with Connection(proxy.access()) as watched:
            reflector = Reflector(watched, SECRET, picture, path=SECRET.path(where))
            async with running(reflector):
                before = dict(picture.objects)
                await until(lambda: proxy.open_watches == 1)
                blind = proxy.add(Fault(status=503))
                proxy.cut_watches()
                await until(lambda: proxy.seen["GET", "503"] > 0)
                await put(direct, where, "changed", "2")
                await put(direct, where, "new", "1")
                for name in ("gone", "again"):
                    await direct.delete(SECRET.path(where, name))
                await put(direct, where, "again", "1")
                blind.times = 0
                # The server no longer knows where the watch was.
                proxy.faults.insert(0, Fault(status=410, watches=True, times=1))
                expected = await truth(direct, where)
                await until(lambda: picture.objects == expected)
                assert reflector.lists == 2
                assert {identity.name for identity, last in picture.deletions if last is None} == {"gone", "again"}
                told = {name for name, uid, version in picture.told if (uid, version) not in before.values()}
                assert told == {"changed", "new", "again"}
        picture.in_order()

    scenario(access, play)


def test_an_expiry_in_the_middle_of_a_watch_lists_again(access: Access) -> None:
    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:
        picture = Picture()
        async with Connection(proxy.access()) as watched:
            reflector = Reflector(watched, SECRET, picture, path=SECRET.path(where))
            async with running(reflector):
                await put(direct, where, "a", "1")
                await until(lambda: len(picture.objects) == 1 and proxy.open_watches == 1)
                assert proxy.expire_watches() == 1
                await put(direct, where, "b", "1")
                await until(lambda: len(picture.objects) == 2)
                assert reflector.lists == 2
        picture.in_order()

    scenario(access, play)


@pytest.mark.parametrize("seed", [1, 2])
def test_under_every_fault_at_once_the_picture_ends_up_true(access: Access, seed: int) -> None:
    """Changes go on for some seconds while watches are cut, expire and answers fail; then all heals."""
    chance = random.Random(seed)

    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:
        picture = Picture()

        async def churn() -> None:
            for step in range(250):
                name = f"n{chance.randrange(12)}"
                if chance.random() < 0.35:
                    try:
                        await direct.delete(SECRET.path(where, name))
                    except ApiError as error:
                        assert error.status == 404  # noqa: PT017
                else:
                    await put(direct, where, name, str(step))
                await asyncio.sleep(0.01)

        async def break_things() -> None:
            while True:
                await asyncio.sleep(chance.uniform(0.05, 0.4))
                chance.choice([proxy.cut_watches, proxy.expire_watches])()

        async with Connection(proxy.access(), timeout=10.0) as watched:
            reflector = Reflector(watched, SECRET, picture, path=SECRET.path(where))
            async with running(reflector):
                for fault in (
                    Fault(status=500, chance=0.1),
                    Fault(status=410, watches=True, chance=0.1),
                    Fault(reset=True, chance=0.1),
                    Fault(halve_answer=True, watches=False, chance=0.1),
                    Fault(delay=0.2, chance=0.1),
                ):
                    proxy.add(fault)
                breaking = asyncio.create_task(break_things())
                await churn()
                breaking.cancel()
                proxy.heal()
                expected = await truth(direct, where)
                await until(lambda: picture.objects == expected)
                assert reflector.failures > 0
                assert reflector.lists > 1
        picture.in_order()

    scenario(access, play)


def test_a_server_that_is_down_is_asked_again_and_again_but_not_hammered(access: Access) -> None:
    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:
        picture = Picture()
        async with Connection(proxy.access()) as watched:
            reflector = Reflector(watched, SECRET, picture, path=SECRET.path(where))
            async with running(reflector):
                await until(lambda: proxy.open_watches == 1)
                down = time.monotonic()
                await proxy.go_down()
                await asyncio.sleep(3.0)
                await until(lambda: reflector.failures >= 2)
                assert reflector.failures <= 4 * (time.monotonic() - down)
                assert reflector.age() >= 2.5
                assert "secrets" in reflector.last_error
                await put(direct, where, "late", "1")
                up = time.monotonic()
                await proxy.come_up()
                await until(lambda: len(picture.objects) == 1)
                await until(lambda: reflector.last_error == "")
                assert reflector.age() <= time.monotonic() - up
        picture.in_order()

    scenario(access, play)


def test_without_the_right_to_look_it_waits_and_says_so(access: Access) -> None:
    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:
        await put(direct, where, "a", "1")
        forbidden = proxy.add(Fault(status=403))
        picture = Picture()
        async with Connection(proxy.access()) as watched:
            reflector = Reflector(watched, SECRET, picture, path=SECRET.path(where))
            task = asyncio.create_task(reflector.run())
            await until(lambda: reflector.failures > 1)
            assert "403" in reflector.last_error
            assert not reflector.synced.is_set()
            forbidden.times = 0
            await until(reflector.synced.is_set)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        picture.in_order()

    scenario(access, play)


def test_a_malformed_object_is_reported_and_its_neighbours_are_seen(access: Access) -> None:
    """A custom resource without a schema lets anything in, as a class of a wrong version may."""
    group = f"t{uuid.uuid4().hex[:8]}.example.com"
    kind = Kind(ServiceClass, f"{group}/v1", "looses", "Loose", namespaced=False)
    definition = {
        "metadata": {"name": f"looses.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "looses", "kind": "Loose"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def loose(name: str, spec: object) -> bytes:
        body = {"apiVersion": kind.api_version, "kind": "Loose", "metadata": {"name": name}, "spec": spec}
        return json.dumps(body).encode()

    async def run() -> None:
        async with Connection(access) as direct:
            await direct.post(definitions, json.dumps(definition).encode())
            try:
                await _eventually(lambda: direct.post(kind.path(), loose("good", {"slo": 0.9, "rank": 1})))
                await direct.post(kind.path(), loose("bad", {"slo": "high", "rank": 1}))
                picture = Picture()
                reflector = Reflector(direct, kind, picture)
                async with running(reflector):
                    # The first list may come from a cache that has not seen the last object yet: then the watch has it.
                    await until(lambda: [problem.name for problem in picture.problems] == ["bad"])
                    assert {name for _, name in picture.objects} == {"good"}
                    assert "$.spec.slo" in picture.problems[0].problem
                    await direct.post(kind.path(), loose("worse", ["nothing", "fits"]))
                    await direct.post(kind.path(), loose("fine", {"slo": 1, "rank": 2}))
                    await until(lambda: {name for _, name in picture.objects} == {"good", "fine"})
                    assert [problem.name for problem in picture.problems] == ["bad", "worse"]
                    await direct.patch(kind.path(name="bad"), b'{"spec":{"slo":0.5}}')
                    await until(lambda: ("", "bad") in picture.objects)
                    await direct.delete(kind.path(name="worse"))
                    await until(lambda: len(picture.deletions) == 1)
                    assert picture.deletions[0][0].name == "worse"
                picture.in_order()
            finally:
                await direct.delete(f"{definitions}/looses.{group}")

    asyncio.run(run())


async def _eventually(call: Callable[[], Awaitable[bytes]]) -> None:
    for _ in range(100):
        try:
            await call()
        except (ApiError, Unreachable):
            await asyncio.sleep(0.1)
        else:
            return
    raise AssertionError("never came to be")


@pytest.mark.parametrize("expired", [0, 1, 2])
def test_lists_come_in_pages_and_begin_anew_where_the_next_one_has_expired(
    access: Access, monkeypatch: pytest.MonkeyPatch, expired: int
) -> None:
    """The third attempt asks for the whole list."""
    monkeypatch.setattr(reflector, "ATTEMPTS", (2, 2, 0))

    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:
        for name in "abcde":
            await put(direct, where, name, "1")
        async with Connection(proxy.access()) as watched:
            picture = Picture()
            reflector = Reflector(watched, SECRET, picture, path=SECRET.path(where))
            proxy.add(Fault(status=410, query="continue=", times=expired))
            async with running(reflector):
                assert {name for _, name in picture.objects} == set("abcde")
                lists = [path for method, path in proxy.paths if "watch" not in path]
                assert [("limit=2" in path, "continue=" in path) for path in lists] == {
                    0: [(True, False), (True, True), (True, True)],
                    1: [(True, False), (True, True), (True, False), (True, True), (True, True)],
                    2: [(True, False), (True, True), (True, False), (True, True), (False, False)],
                }[expired]
                # After a break only what is new is told, and what is gone: pages say who is there.
                proxy.add(Fault(status=410, watches=True, times=1))
                proxy.cut_watches()
                await put(direct, where, "c", "2")
                await put(direct, where, "f", "1")
                await direct.delete(SECRET.path(where, "a"))
                expected = await truth(direct, where)
                await until(lambda: picture.objects == expected and reflector.lists >= 2)
        picture.in_order()
        assert [identity.name for identity, _ in picture.deletions] == ["a"]

    scenario(access, play)


def test_thousands_of_pods_do_not_stall_the_event_loop(access: Access) -> None:
    pods = 2000

    async def play(direct: Connection, proxy: FaultyProxy, where: str) -> None:
        body = {"spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]}}

        async def create(numbers: range) -> None:
            for number in numbers:
                metadata = {"name": f"p{number}", "labels": {"app": "many"}}
                await direct.post(POD.path(where), json.dumps({**body, "metadata": metadata}).encode())

        await asyncio.gather(*(create(range(start, pods, 64)) for start in range(64)))
        picture = Picture()
        reflector = Reflector(direct, POD, picture, path=POD.path(where))
        stalls: list[float] = []

        async def watch_the_clock() -> None:
            while True:
                # Our own work, not the time in which the machine does something else.
                before = time.thread_time()
                await asyncio.sleep(0.001)
                stalls.append(time.thread_time() - before)

        clock = asyncio.create_task(watch_the_clock())
        gc.disable()  # a scheduler collects at quiet moments (slacktide.kube.housekeeping)
        try:
            async with running(reflector):
                assert len(picture.objects) == pods
                await direct.delete(POD.path(where), b'{"gracePeriodSeconds":0}', timeout=120.0)
                await until(lambda: not picture.objects)
        finally:
            gc.enable()
        clock.cancel()
        picture.in_order()
        assert max(stalls) < 0.1
        assert proxy.paths == []

    scenario(access, play)


def test_an_api_server_without_dynamic_resources_is_watched_all_the_same(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only pods that have claims wait, with the reason."""
    for name in ("DEVICE_CLASS", "RESOURCE_SLICE", "RESOURCE_CLAIM"):
        kind = getattr(watches, name)
        monkeypatch.setattr(watches, name, Kind(kind.type, "resource.k8s.io/v999", kind.plural, namespaced=False))

    async def first() -> ClusterMirror:
        mirror = ClusterMirror(load_live(), time.time)
        async with Connection(access) as connection, asyncio.TaskGroup() as group:
            found = watches.Watches(connection, mirror)
            # The custom resources are not installed here.
            found.leave_out(SERVICE_CLASS)
            tasks = [group.create_task(one) for one in found.running()]
            await found.first_lists()
            for one in tasks:
                one.cancel()
        return mirror

    unknown = asyncio.run(first()).devices.unknown
    assert unknown.startswith("deviceclasses cannot be listed")
    assert "404" in unknown


async def first_lists_with(access: Access, faults: Sequence[Fault]) -> ClusterMirror:
    """What is known after the first lists, where these faults come meanwhile."""
    mirror = ClusterMirror(load_live(), time.time)
    async with FaultyProxy(access) as proxy:
        for one in faults:
            proxy.add(one)
        async with Connection(proxy.access()) as connection, asyncio.TaskGroup() as group:
            found = watches.Watches(connection, mirror)
            tasks = [group.create_task(one) for one in found.running()]
            await found.first_lists()
            for task in tasks:
                task.cancel()
    return mirror


@pytest.mark.parametrize("status", [500, 404, 403, 0])
def test_one_bad_moment_at_the_start_leaves_nothing_without_bounds(
    lab: ControlPlane, access: Access, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    path, body = (
        f"/apis/{PROMISE_QUOTA.api_version}/namespaces/default/promisequotas",
        {"class": "x", "hard": {"cpu": 1}},
    )
    quota = {"apiVersion": PROMISE_QUOTA.api_version, "kind": "PromiseQuota", "metadata": {"name": "q"}, "spec": body}
    lab.api.post(path, quota)
    faults = [
        Fault(path=f"/{kind}$", status=status, reset=not status, times=1)
        for kind in ("promisequotas", "maintenancewindows")
    ]
    try:
        mirror = asyncio.run(first_lists_with(access, faults))
    finally:
        lab.api.delete(f"{path}/q")
    assert [one.times for one in faults] == [0, 0]
    assert mirror.quotas.namespaces() == ["default"]
    assert "apply the manifests of this version" not in caplog.text


@pytest.mark.parametrize("status", [404, 403])
def test_a_cluster_without_quotas_and_windows_is_scheduled_without_and_told(
    access: Access, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    kinds = ("maintenancewindows", "promisequotas")
    asyncio.run(first_lists_with(access, [Fault(path=f"/{kind}$", status=status) for kind in kinds]))
    said = [one.getMessage() for one in caplog.records if "apply the manifests of this version" in one.getMessage()]
    assert [one.partition(":")[0] for one in said] == [
        "maintenance windows are not used",
        "promise quotas are not used",
    ]
