"""Requests against a real API server, also when it or the network misbehaves."""

import asyncio
import json
import logging
import time
import traceback
import uuid
from pathlib import Path

import pytest

from cluster.faulty import Fault, FaultyProxy
from slacktide.kube.client import http as connection_module
from slacktide.kube.client import payload
from slacktide.kube.client.credentials import Access, Fixed, TokenFile, load_access
from slacktide.kube.client.http import ApiError, Connection, NotSent, Unreachable, connect
from slacktide.kube.client.payload import LineSplitter
from slacktide.kube.resources.objects import NAMESPACE
from slacktide.lab import ControlPlane

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


def config_map(name: str, text: str = "") -> bytes:
    return json.dumps({"metadata": {"name": name}, "data": {"text": text}}).encode()


def fresh() -> str:
    return f"c{uuid.uuid4().hex[:10]}"


def test_an_object_is_created_read_changed_and_deleted(access: Access) -> None:
    async def run() -> None:
        async with Connection(access) as connection:
            path = f"{CONFIG_MAPS}/{(name := fresh())}"
            await connection.post(CONFIG_MAPS, config_map(name, "one"))
            await connection.patch(path, b'{"data":{"text":"two"}}')
            assert json.loads(await connection.get(path))["data"] == {"text": "two"}
            assert json.loads(await connection.get(CONFIG_MAPS, query={"fieldSelector": f"metadata.name={name}"}))[
                "items"
            ]
            await connection.delete(path)
            with pytest.raises(ApiError) as caught:
                await connection.get(path)
            assert (caught.value.status, caught.value.reason) == (404, "NotFound")
            assert name in caught.value.message

    asyncio.run(run())


def test_a_refusal_has_status_reason_and_message(access: Access) -> None:
    async def run() -> None:
        async with Connection(access) as connection:
            with pytest.raises(ApiError) as caught:
                await connection.post(NAMESPACE.path(), b'{"metadata":{"name":"default"}}')
            assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")
            with pytest.raises(ApiError) as caught:
                await connection.post(CONFIG_MAPS, b'{"metadata":{"name":"Not A Name"}}')
            assert (caught.value.status, caught.value.reason) == (422, "Invalid")

    asyncio.run(run())


def test_reads_wait_as_long_as_the_server_asks_and_try_again(access: Access) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            proxy.add(Fault(status=429, retry_after=2, times=2))
            began = time.monotonic()
            await connection.get("/version")
            # Without its word each wait would be a second at least, too: a longer one shows that it counts.
            assert time.monotonic() - began >= 4.0
            assert proxy.seen["GET", "429"] == 2

    asyncio.run(run())


def test_reads_give_up_after_the_allowed_retries(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "LONGEST_RETRY_SECONDS", 0.01)

    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            proxy.add(Fault(status=503, retry_after=3600))
            with pytest.raises(ApiError) as caught:
                await connection.get("/version")
            assert (caught.value.status, caught.value.retry_after) == (503, 3600.0)
            assert proxy.seen["GET", "503"] == 1 + connection_module.RETRIES
            with pytest.raises(ApiError):
                await connection.get("/version", retries=0)
            assert proxy.seen["GET", "503"] == 2 + connection_module.RETRIES

    asyncio.run(run())


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_post_is_never_sent_twice(access: Access, status: int) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            proxy.add(Fault(status=status, retry_after=1))
            with pytest.raises(ApiError) as caught:
                await connection.post(CONFIG_MAPS, config_map(fresh()))
            assert (caught.value.status, caught.value.retry_after) == (status, 1.0)
            assert len(proxy.paths) == 1

    asyncio.run(run())


@pytest.mark.parametrize("comes", [True, False])
def test_a_right_that_the_server_does_not_know_of_yet_is_waited_for(lab: ControlPlane, comes: bool) -> None:
    """It answers as one that has just begun and has not read its bindings yet."""
    name = fresh()
    lab.api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    kubeconfig = lab.service_account_kubeconfig("default", name)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}

    async def run() -> None:
        patience = 60.0 if comes else 1.0
        async with await connect(kubeconfig, rights_patience=patience) as connection:
            posted = asyncio.create_task(connection.post(CONFIG_MAPS, config_map(name)))
            while not connection._missing.since:
                await asyncio.sleep(0.01)
            if comes:
                path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
                await asyncio.to_thread(lab.api.post, path, binding)
                assert json.loads(await posted)["metadata"]["name"] == name
                assert not connection._missing.since
                return
            with pytest.raises(ApiError, match="cannot create resource") as caught:
                await posted
            assert caught.value.status == 403

    asyncio.run(run())


def test_a_lost_answer_leaves_the_outcome_open(access: Access) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            name = fresh()
            proxy.add(Fault(method="POST", lose_answer=True, times=1))
            with pytest.raises(Unreachable):
                await connection.post(CONFIG_MAPS, config_map(name))
            assert len(proxy.paths) == 1
            await connection.get(f"{CONFIG_MAPS}/{name}")  # It was carried out all the same.

    asyncio.run(run())


def test_resets_halved_answers_and_dead_servers_are_unreachable(access: Access) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            await connection.get("/version")
            for fault in (Fault(reset=True), Fault(halve_answer=True)):
                proxy.add(fault)
                with pytest.raises(Unreachable, match=r"GET http://127\.0\.0\.1:\d+/version: "):
                    await connection.get("/version")
                proxy.heal()
            await proxy.go_down()
            with pytest.raises(Unreachable):
                await connection.get("/version")
            await proxy.come_up()
            await connection.get("/version")

    asyncio.run(run())


def test_a_slow_answer_is_not_waited_for_longer_than_asked(access: Access) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            proxy.add(Fault(delay=600.0))
            with pytest.raises(Unreachable, match="no answer in time"):
                async with asyncio.timeout(120.0):
                    await connection.get("/version", timeout=0.2)

    asyncio.run(run())


def test_a_permit_that_ends_while_a_request_waits_for_a_connection_holds_it_back(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "POOL", 1)
    name, allowed = fresh(), [True]

    def ends(answer: bytes) -> bytes:
        allowed.clear()
        return answer

    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            proxy.rewrite = ends
            proxy.add(Fault(delay=0.3, times=1))
            first = asyncio.create_task(connection.get(NAMESPACE.path("", "default")))
            while not proxy.paths:
                await asyncio.sleep(0.01)
            with pytest.raises(NotSent, match="no longer needed"):
                await connection.post(CONFIG_MAPS, config_map(name), permit=lambda: bool(allowed))
            await first
            assert [method for method, _ in proxy.paths] == ["GET"]
            await connection.post(CONFIG_MAPS, config_map(name), permit=lambda: True)  # and the next one is sent

    asyncio.run(run())


def test_urgent_requests_pass_the_rate_limit(access: Access) -> None:
    async def run() -> None:
        async with Connection(access, qps=0.001, burst=1) as connection:  # the next one in a quarter of an hour
            await connection.get("/version")
            async with asyncio.timeout(120.0):
                await connection.get("/version", urgent=True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.0):
                    await connection.get("/version")

    asyncio.run(run())


def test_hundreds_of_requests_are_under_way_at_once(access: Access) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            proxy.add(Fault(delay=600.0))
            tasks = [asyncio.create_task(connection.get("/version", timeout=600.0)) for _ in range(200)]
            async with asyncio.timeout(120):
                while len(proxy.paths) < 200:
                    await asyncio.sleep(0.01)
            assert not any(task.done() for task in tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


def test_the_server_is_verified(lab: ControlPlane, tmp_path: Path) -> None:
    """Neither without the cluster's authority, nor under another name; unless one says so."""

    def variant(name: str, **cluster: object) -> Path:
        config = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": lab.url, **cluster}}],
            "users": [{"name": "x", "user": {"token": lab.token}}],
        }
        path = tmp_path / name
        path.write_text(json.dumps(config))
        return path

    async def reaches(path: Path) -> bool:
        async with await connect(path) as connection:
            try:
                await connection.get("/version")
            except Unreachable as error:
                assert "certificate" in str(error).lower()  # noqa: PT017 (the other way is as good)
                return False
        return True

    trusted = {"certificate-authority": str(lab.ca_file)}

    async def run() -> None:
        assert await reaches(variant("trusted", **trusted))
        assert not await reaches(variant("unknown"))
        assert not await reaches(variant("named", **trusted, **{"tls-server-name": "elsewhere.example"}))
        assert await reaches(variant("unchecked", **{"insecure-skip-tls-verify": True}))

    asyncio.run(run())


def test_no_message_shows_the_token(access: Access, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "very-secret-token-5e0a"
    told: list[str] = []

    async def run() -> None:
        asyncio.get_running_loop().set_debug(True)
        async with FaultyProxy(access) as proxy:
            wrong = Access(proxy.url, Fixed(f"Bearer {secret}"))
            told.extend((repr(wrong), repr(wrong.credentials), str(vars(wrong.credentials).keys())))
            async with Connection(wrong, timeout=0.5) as connection:
                told.append(repr(connection))
                for fault in (None, Fault(reset=True), Fault(halve_answer=True), Fault(status=500), Fault(delay=1.0)):
                    proxy.heal()
                    if fault is not None:
                        proxy.add(fault)
                    with pytest.raises((ApiError, Unreachable)) as caught:
                        await connection.get("/api/v1/pods")
                    told.append("".join(traceback.format_exception(caught.value)) + repr(caught.value))
                    with pytest.raises((ApiError, Unreachable)) as caught:
                        async for _ in connection.stream("/api/v1/pods", {"watch": "true"}):
                            pass
                    told.append("".join(traceback.format_exception(caught.value)) + repr(caught.value))

    asyncio.run(run())
    assert len(told) == 14
    assert not [text for text in (*told, caplog.text) if secret in text]


def test_a_renewed_token_file_is_read_again(access: Access, tmp_path: Path) -> None:
    right = (access.credentials.header() or "").removeprefix("Bearer ")
    file = tmp_path / "token"
    file.write_text("not-yet-valid\n")

    async def run() -> None:
        credentials = TokenFile(file)
        async with Connection(Access(access.server, credentials, access.context)) as connection:
            with pytest.raises(ApiError) as caught:
                await connection.get("/api/v1/pods")
            assert caught.value.status == 401
            file.write_text(right + "\n")
            # A refusal makes it look at once, though not again and again.
            connection._refused_at = float("-inf")
            await connection.get("/api/v1/pods")
            file.write_text("no-longer-valid\n")
            await connection.get("/api/v1/pods")
            credentials.valid_until = 0.0
            with pytest.raises(ApiError):
                await connection.get("/api/v1/pods")

    asyncio.run(run())


def test_a_watch_passes_large_objects_on_whole(access: Access) -> None:
    async def run() -> None:
        async with Connection(access) as connection:
            name, text = fresh(), "x" * 900_000
            query = {"watch": "true", "fieldSelector": f"metadata.name={name}", "resourceVersion": "0"}
            stream = connection.stream(CONFIG_MAPS, query)
            assert await anext(stream) == []
            await connection.post(CONFIG_MAPS, config_map(name, text))
            async with asyncio.timeout(120):
                event = json.loads((await anext(stream))[0])
            assert (event["type"], event["object"]["data"]["text"]) == ("ADDED", text)
            await stream.aclose()
            await connection.delete(f"{CONFIG_MAPS}/{name}")

    asyncio.run(run())


def test_lines_come_whole_however_the_stream_was_cut() -> None:
    stream = b'{"a":1}\n{"b":"' + b"z" * 5000 + b'"}\n\n{"c":3}\n'
    for size in (1, 2, 7, 100, 4096, 10_000):
        splitter = LineSplitter()
        lines = [line for at in range(0, len(stream), size) for line in splitter.feed(stream[at : at + size])]
        assert lines == stream.split(b"\n")[:-1]


def test_an_endless_line_is_refused(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "LONGEST_LINE", 100_000)

    async def run() -> None:
        async with Connection(access) as connection:
            name = fresh()
            await connection.post(CONFIG_MAPS, config_map(name, "x" * 900_000))
            query = {"watch": "true", "fieldSelector": f"metadata.name={name}", "resourceVersion": "0"}
            with pytest.raises(Unreachable, match="a line of more than 100000 bytes"):
                async for _ in connection.stream(CONFIG_MAPS, query):
                    pass
            await connection.delete(f"{CONFIG_MAPS}/{name}")

    asyncio.run(run())
