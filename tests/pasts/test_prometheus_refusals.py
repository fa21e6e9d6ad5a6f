"""What a server may answer instead of series, and what is said then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from slacktide.errors import InputError
from slacktide.pasts.prometheus import source as prometheus
from slacktide.pasts.prometheus.client import access
from slacktide.pasts.prometheus.names import label_key, matchers, quantity_text, resource
from support.web_server import serving

HOUR = 3600.0
SLEPT: list[float] = []


async def sleep(for_seconds: float) -> None:
    SLEPT.append(for_seconds)
    await asyncio.sleep(0)


def asked(handler: Callable[[web.Request], Awaitable[web.Response]], **more: Any) -> Any:
    SLEPT.clear()
    with serving(handler) as url:
        return prometheus.story(url, 0.0, 2 * HOUR, sleep=sleep, **more)


def always(**how: Any) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(**how)

    return handler


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"status": 401, "text": "who are you"}, "found '401: who are you', expected access: --token, or --user"),
        ({"status": 403, "text": "not for you"}, "found '403: not for you', expected access"),
        ({"status": 404, "text": "nothing here"}, "the API of Prometheus at http://.*/api/v1/label/__name__/values"),
        ({"status": 200, "text": "<html>Grafana</html>"}, "expected the API of Prometheus"),
        ({"status": 400, "text": '{"status":"error","error":"parse error"}'}, "parse error', expected a query"),
        ({"status": 302, "headers": {"Location": "https://me:pw@sso.example/in"}}, "sends on to https://sso.example"),
        ({"status": 418, "text": '{"status":"error","error":"a teapot"}'}, "418: a teapot"),
        ({"status": 200, "text": '{"status":"success","data":7}'}, "an answer of another form"),
        ({"status": 422, "text": '{"error":"too many"}'}, "422: too many"),
    ],
)  # fmt: skip
def test_what_cannot_be_mended_is_said_at_once(how: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        asked(always(**how), folder=tmp_path / "week" / "fetched")
    assert SLEPT == []
    assert not (tmp_path / "week").exists(), "nothing is left of what did not begin"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"status": 503, "text": "starting"}, r"503: starting', expected an answer \(asked 7 times\)"),
        ({"status": 429, "text": "slow down", "headers": {"Retry-After": "11"}}, "429: slow down"),
        ({"status": 200, "text": '{"status":"success","data":["kube_'}, r"cut short, or no JSON \(34 bytes\)"),
    ],
)
def test_what_may_pass_is_waited_for_a_while(how: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked(always(**how))
    assert len(SLEPT) == 6
    assert sorted(SLEPT) == SLEPT
    assert SLEPT[-1] <= 30.0
    assert min(SLEPT) >= (11.0 if "headers" in how else 0.5)


def test_a_server_that_is_not_there_is_named() -> None:
    with serving(always()) as url:
        pass
    with pytest.raises(InputError, match=f"{url}: found 'Client.*expected an answer"):
        prometheus.story(url, 0.0, HOUR, sleep=sleep)


def test_a_server_without_such_series_is_told_apart_from_one_that_is_none() -> None:
    with pytest.raises(InputError, match=r"kube_pod_info: found 'no such series', expected kube-state-metrics 2.*Helm"):
        asked(always(text='{"status":"success","data":["up"]}', content_type="application/json"))


def test_credentials_go_into_the_header_and_nowhere_else(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.headers.get("Authorization", ""), str(request.url)))
        return web.Response(status=403, text="no")

    with serving(handler) as url:
        place = url.removeprefix("http://")
        for where, more in (
            (f"http://ann:hush@{place}", {}),
            (url, {"user": "ann", "password": "hush"}),
            (url, {"token": "hush"}),
        ):
            with pytest.raises(InputError) as caught:
                prometheus.story(where, 0.0, HOUR, folder=tmp_path, sleep=sleep, **more)  # type: ignore[arg-type]
            assert "hush" not in str(caught.value)
    assert [header.split()[0] for header, _ in seen] == ["Basic", "Basic", "Bearer"]
    assert all("hush" not in asked_for for _, asked_for in seen)


def test_a_server_that_takes_no_posts_is_asked_by_gets() -> None:
    methods: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        methods.append(f"{request.method} {request.path.rpartition('/')[2]}")
        if request.method == "POST":
            return web.Response(status=405)
        names = '["kube_pod_info","kube_node_status_allocatable","kube_pod_container_resource_requests"]'
        data = (
            names if request.path.endswith("values") else "[]" if request.path.endswith("labels") else '{"result":[]}'
        )
        return web.Response(text=f'{{"status":"success","data":{data}}}', content_type="application/json")

    with pytest.raises(InputError, match="expected samples of kube_pod_info"):
        asked(handler)
    assert methods == ["GET values", "POST labels", "GET labels", "GET labels", "GET query_range"]


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("localhost:9090", "http://localhost:9090"),
        ("http://localhost:9090/", "http://localhost:9090"),
        ("https://example.org/prometheus/graph?g0.expr=up", "https://example.org/prometheus"),
        ("https://example.org/prometheus/api/v1/query", "https://example.org/prometheus"),
        ("https://me:pw@example.org:8443/x", "https://example.org:8443/x"),
    ],
)
def test_urls_are_taken_as_people_copy_them(url: str, found: str) -> None:
    assert access(url).url == found


@pytest.mark.parametrize("url", ["", "ftp://example.org", "https://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="the URL of a Prometheus"):
        access(url)


def test_two_ways_to_say_who_one_is_are_one_too_many() -> None:
    with pytest.raises(InputError, match="not both"):
        access("localhost", token="a", user="b")


def test_matchers_are_read_as_prometheus_writes_them() -> None:
    said = '{cluster="prod", namespace=~"a,b|c\\"d",job!="x"}'
    assert [label for label, _ in matchers(said)] == ["cluster", "namespace", "job"]
    assert matchers("") == []
    for wrong in ("prod", "cluster=prod", 'cluster="prod" job="x"', 'a="b"}or{c="d"'):
        with pytest.raises(InputError, match="--match: found"):
            matchers(wrong)


def test_names_are_those_of_kubernetes_as_far_as_they_can_be_told() -> None:
    names = {
        "nvidia_com_gpu": "nvidia.com/gpu",
        "hugepages_2Mi": "hugepages-2Mi",
        "ephemeral_storage": "ephemeral-storage",
    }
    assert {one: resource(one) for one in names} == names
    assert resource("memory") == "memory"
    assert label_key("topology_kubernetes_io_zone") == "topology.kubernetes.io/zone"
    assert label_key("node_kubernetes_io_instance_type") == "node.kubernetes.io/instance-type"
    assert label_key("team") == "team"
    assert [quantity_text("cpu", 0.25), quantity_text("memory", 2.0**30)] == ["250m", "1073741824"]
