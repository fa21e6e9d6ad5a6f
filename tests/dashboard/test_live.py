"""Views of a live engine: increments come to the same as the whole, nobody's engine works while nobody watches."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestClient, TestServer

from slacktide.dashboard import hub as hubs
from slacktide.dashboard.hub import MAY_STILL, Hub
from slacktide.dashboard.live import Live
from slacktide.dashboard.view import WAITING, View
from slacktide.kube.observe.http_site import Site
from support.benches import loaded

MadeCluster = loaded("page_parts/cluster").MadeCluster
TABLES = ("workloads", "nodes", "pods")


def fold(views: list[View], tables: dict[str, dict[int, Any]]) -> None:
    """What the page makes of views."""
    for view in views:
        if view.whole:
            for table in tables.values():
                table.clear()
        for name in TABLES:
            tables[name].update((row.number, row) for row in getattr(view, name))
            for number in view.gone.get(name, []):
                tables[name].pop(number, None)


async def changes(live: Live) -> list[View]:
    return [view async for view in live.changes()]


def test_increments_come_to_the_same_as_the_whole() -> None:
    async def play() -> None:
        cluster = MadeCluster(30, 300, seed=3)
        live = cluster.live
        await live.begin()
        seen: dict[str, dict[int, Any]] = {name: {} for name in TABLES}
        fold(live.whole(), seen)
        assert len(seen["pods"]) == 300
        for turn in range(12):
            cluster.churn(20)
            if turn % 3 == 0:
                cluster.surge(40)  # more than there is room for
                cluster.churn(1)
            live._looked = 0.0  # the second after which all is looked at has passed
            fold(await changes(live), seen)
            live._looked = 0.0
            fold(await changes(live), seen)  # what was found out meanwhile: reasons
        anew: dict[str, dict[int, Any]] = {name: {} for name in TABLES}
        fold(live.whole(), anew)
        assert {name: set(table) for name, table in seen.items()} == {name: set(table) for name, table in anew.items()}
        assert seen["pods"] == anew["pods"]
        assert seen["nodes"] == anew["nodes"]
        engine = cluster.engine
        assert {row.name for row in seen["pods"].values()} == {pod.name for pod in engine.pods.values()}
        waiting = {row.name: row.reason for row in seen["pods"].values() if row.state == WAITING}
        assert waiting
        assert all("nodes are available: " in reason for reason in waiting.values())
        on_nodes: dict[str, set[str]] = {}
        names = {row.number: row.name for row in seen["nodes"].values()}
        for row in seen["pods"].values():
            if row.node >= 0:
                on_nodes.setdefault(names[row.node], set()).add(row.name)
        truth: dict[str, set[str]] = {}
        for pod in engine.pods.values():
            if pod.bound:
                truth.setdefault(pod.host, set()).add(pod.name)
        assert on_nodes == truth
        live.end()

    asyncio.run(play())


def test_while_nobody_watches_only_the_last_decisions_are_remembered() -> None:
    async def play() -> None:
        cluster = MadeCluster(10, 100)
        cluster.surge(30)
        cluster.churn(5)
        live = cluster.live
        assert (live._pods, live._keys, live._hosts, live.tables["pods"]) == (set(), set(), set(), {})
        await live.begin()
        decisions = live.whole()[0].decisions
        assert any(one.victims for one in decisions)
        live.end()
        cluster.churn(5)
        assert (live._pods, live._keys, live._hosts, live.tables["pods"]) == (set(), set(), set(), {})

    asyncio.run(play())


def test_who_could_make_room_is_what_the_policy_says() -> None:
    async def play() -> None:
        cluster = MadeCluster(4, 40)
        cluster.surge(40)  # gold, more than there is room for
        await cluster.live.begin()
        whole = cluster.live.whole()
        asks, free = whole[0].asks, set(whole[0].free or [])
        assert asks
        classes = {row.number: row.cls for view in whole for row in view.workloads}
        names = {one.number: one.name for one in whole[0].classes}
        of_class = {row.number: names[classes[row.workload]] for view in whole for row in view.pods if row.node >= 0}
        assert {of_class[one] for one in free} <= {"silver", "bronze"}
        assert free

    asyncio.run(play())


# -- those who watch ---------------------------------------------------------------------------------------------------


def watched(play: Callable[[Hub, TestClient[Any, Any]], Awaitable[None]], may_still: Any = None) -> None:
    async def run() -> None:
        cluster = MadeCluster(5, 50)

        async def view(request: web.Request) -> web.StreamResponse:
            MAY_STILL.set(may_still)
            found: web.StreamResponse = await cluster.hub.view(request)
            return found

        application = web.Application()
        application.router.add_get("/view", view)
        async with TestClient(TestServer(application)) as client:
            await play(cluster.hub, client)
            async with asyncio.timeout(30):
                while cluster.hub.watchers:
                    await asyncio.sleep(0.01)
            assert cluster.live.tables["pods"] == {}

    asyncio.run(run())


def test_the_last_who_leaves_ends_the_work() -> None:
    async def play(hub: Hub, client: TestClient[Any, Any]) -> None:
        async with client.get("/view") as first, client.get("/view") as second:
            assert first.headers["Content-Type"] == "text/event-stream"
            assert "script-src 'self'" in first.headers["Content-Security-Policy"]
            assert (await first.content.readline()).startswith(b'data: {"at":')
            assert (await second.content.readline()).startswith(b'data: {"at":')
            assert hub.watchers == 2

    watched(play)


def test_more_than_so_many_do_not_watch() -> None:
    async def play(_: Hub, client: TestClient[Any, Any]) -> None:
        streams = [await client.get("/view") for _ in range(hubs.MOST_WATCHERS)]
        refused = await client.get("/view")
        assert refused.status == 429
        assert "16 watch already" in (await refused.json())["error"]
        for one in streams:
            one.close()

    watched(play)


def test_a_stream_ends_soon_after_the_right_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "CHECK_SECONDS", 0.3)
    asked = []

    async def may_still() -> bool:
        asked.append(1)
        return len(asked) < 3

    async def play(_: Hub, client: TestClient[Any, Any]) -> None:
        async with asyncio.timeout(60), client.get("/view") as stream:
            await stream.read()  # to its end
        assert len(asked) == 3

    watched(play, may_still)


def test_who_is_too_slow_is_let_go_and_nothing_is_kept_for_him() -> None:
    async def play(hub: Hub, client: TestClient[Any, Any]) -> None:
        async with client.get("/view") as stream:
            await stream.content.readline()
            (queue,) = hub._told
            for _ in range(hubs.BEHIND + 1):
                hub._tell(b": a view\n\n")
            assert (queue.qsize(), queue.get_nowait()) == (1, None)
            queue.put_nowait(None)
            assert hub.watchers == 1, "he counts until he is gone"
            async with asyncio.timeout(30):
                await stream.read()  # to its end

    watched(play)


def test_who_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that never reads: the connection's buffers fill, and what is sent next cannot be."""
    monkeypatch.setattr(hubs, "WRITE_SECONDS", 0.3)

    async def play(hub: Hub, client: TestClient[Any, Any]) -> None:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect((client.server.host, client.server.port))
            deaf.sendall(b"GET /view HTTP/1.1\r\nHost: here\r\n\r\n")
            async with asyncio.timeout(60):
                while not hub.watchers:
                    await asyncio.sleep(0.01)
                while hub.watchers:
                    hub._tell(b": " + b"x" * 1_000_000 + b"\n\n")
                    await asyncio.sleep(0.01)

    watched(play)


def test_who_watches_does_not_hold_up_the_end() -> None:
    async def play() -> float:
        cluster = MadeCluster(2, 10)
        async with ClientSession() as session:
            async with Site("test", "127.0.0.1:0", {"/view": cluster.hub.view}) as site:
                stream = await session.get(f"http://127.0.0.1:{site.port}/view")
                await stream.content.readline()
                began = asyncio.get_running_loop().time()
            took = asyncio.get_running_loop().time() - began
            stream.close()
        assert cluster.hub.watchers == 0
        return took

    assert asyncio.run(play()) < 20.0  # by default it would be a minute


def test_who_does_not_lead_has_nothing_to_show() -> None:
    async def play() -> None:
        cluster = MadeCluster(1, 1)
        hub = Hub(cluster.live, lambda: "this replica stands by")
        application = web.Application()
        application.router.add_get("/view", hub.view)
        async with TestClient(TestServer(application)) as client:
            answer = await client.get("/view")
            assert (answer.status, (await answer.json())["error"]) == (503, "this replica stands by")

    asyncio.run(play())
