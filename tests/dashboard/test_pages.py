"""The page's own files and how they are sent; who gets the data on this machine; the command."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from click.testing import CliRunner

from dashboard.test_simulation import results
from slacktide import palette
from slacktide.cli import app
from slacktide.cli.cluster.dashboard import Relay, Source, local_routes, once, serve
from slacktide.cli.cluster.scheduler_pages import Trust
from slacktide.dashboard.pages import HEADERS, PAGE, answer, assets, page_routes
from slacktide.dashboard.view import COLUMNS, TABLES
from slacktide.errors import ConfigError, InputError
from slacktide.kube.observe import http_site
from slacktide.kube.observe.http_site import Site
from support import clusters
from support.repository import REPOSITORY

KEY = "a-key-of-this-test"


def texts() -> dict[str, str]:
    return {name: one.content.decode() for name, one in assets().items()}


def asked(paths: list[str], routes: Any = None, **headers: str) -> list[tuple[int, dict[str, str], str]]:
    """Status, headers and body of each path."""

    async def ask() -> list[tuple[int, dict[str, str], str]]:
        async def data(request: web.Request) -> web.StreamResponse:  # noqa: ARG001
            return answer(b'{"secret": 1}')

        chosen = routes or local_routes({"/view": data}, KEY)
        async with Site("test", "127.0.0.1:0", chosen) as site, aiohttp.ClientSession() as session:
            found = []
            for path in paths:
                url = f"http://127.0.0.1:{site.port}{path}"
                async with session.get(url, headers=headers, allow_redirects=False) as got:
                    found.append((got.status, dict(got.headers), await got.text()))
            return found

    return asyncio.run(ask())


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    policy = dict(one.strip().split(" ", 1) for one in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
    assert {policy[name] for name in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    for status, headers, _ in asked([PAGE, f"{PAGE}app.js", f"{PAGE}palette.css", f"{PAGE}nothing.js", "/"]):
        assert status in (200, 404, 302)
        for name, value in HEADERS.items():
            assert headers[name] == value


def test_no_file_of_the_page_names_another_site_or_makes_markup_of_text() -> None:
    for name, text in texts().items():
        assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z0-9.-]+\.[a-z]{2,}", text), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            name
        )
    html = texts()["index.html"]
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", html)
    named = set(re.findall(r'(?:src|href)="([^"#]+)"', html))
    assert named <= set(assets())


def test_all_modules_are_there_and_all_rows_have_the_places_that_the_page_reads() -> None:
    for name, text in texts().items():
        if name.endswith(".js"):
            assert set(re.findall(r'from "\./([^"]+)"', text)) <= set(assets()), name
    for table, row in TABLES.items():
        assert COLUMNS[table] == list(row.__struct_fields__)
        assert COLUMNS[table][0] == "number"  # by which rows are known


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_colours_are_those_of_the_palette(ground: str) -> None:
    css = texts()["palette.css"]
    used = set(re.findall(r"var\(--([a-z0-9-]+)", "".join(texts().values()))) - {"ink"}
    assert used <= {one.name for one in palette.INKS}
    for one in palette.INKS:
        assert f"--{one.name}:{getattr(one, ground)};" in css


def test_who_has_no_key_gets_the_page_and_no_data() -> None:
    assert [one[0] for one in asked([PAGE, "/view"])] == [200, 401]
    assert asked(["/view"], Authorization="Bearer wrong")[0][0] == 401
    status, headers, text = asked(["/view"], Authorization=f"Bearer {KEY}")[0]
    assert (status, "secret" in text, headers["Cache-Control"]) == (200, True, "no-store")


def test_a_name_of_another_site_that_leads_here_gets_nothing() -> None:
    shown = {"Authorization": f"Bearer {KEY}", "Host": "elsewhere.example:80"}
    assert [one[0] for one in asked([PAGE, "/view"], **shown)] == [421, 421]


def test_what_a_browser_is_started_with_is_of_use_once() -> None:
    """Other users of this machine can read its command line."""
    page = f"{PAGE}#token={KEY}"
    first, second = asked(["/open/x"] * 2, {"/open/x": once(page)})
    assert (first[0], first[1]["Location"], first[1]["Cache-Control"]) == (302, page, "no-store")
    assert (second[0], KEY in second[2]) == (410, False)


def test_a_browser_is_started_without_the_key(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)

    async def play() -> None:
        task = asyncio.create_task(serve(Source("a test", {}), 0, opens=True))
        async with asyncio.timeout(30):
            while not opened:
                await asyncio.sleep(0.01)
        async with aiohttp.ClientSession() as session, session.get(opened[0]) as page:
            assert "<title>slacktide</title>" in await page.text()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(play())
    key = capsys.readouterr().out.partition("#token=")[2].split()[0]
    assert key not in opened[0]


def test_who_only_opens_connections_keeps_nobody_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_site, "MOST_CONNECTIONS", 8)

    async def play() -> int:
        async with Site("test", "127.0.0.1:0", {}) as site:
            idle = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(60)]
            async with aiohttp.ClientSession() as session:
                for _ in range(3):
                    async with session.get(f"http://127.0.0.1:{site.port}/livez") as got:
                        assert got.status == 200
            async with asyncio.timeout(30):
                ended = [await reader.read() == b"" for reader, _ in idle[:40]]
            for _, writer in idle:
                writer.close()
            return sum(ended)

    assert asyncio.run(play()) == 40


def relayed(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> tuple[int, str, str]:
    """Status, kind and text of what the command passes on of a scheduler's answer."""

    async def ask() -> tuple[int, str, str]:
        async with Site("test", "127.0.0.1:0", {"/view": answer}) as scheduler:
            relay = Relay(f"http://127.0.0.1:{scheduler.port}", cast(Trust, None))
            async with (
                Site("test", "127.0.0.1:0", relay.routes()) as site,
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{site.port}/view") as got,
            ):
                return got.status, got.content_type, await got.text()

    return asyncio.run(ask())


def test_what_would_be_a_page_or_a_script_is_not_passed_on() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:  # noqa: ARG001
        return web.Response(text="<script src='/view'></script>", content_type="text/html")

    status, kind, text = relayed(answer)
    assert (status, kind, "script" in text, "text/html" in text) == (502, "application/json", False, True)


def test_a_stream_that_breaks_off_ends_and_nothing_follows_in_it() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(b"data: 1\n\n")
        assert request.transport is not None
        request.transport.close()
        return stream

    async def ask() -> bytes:
        async with Site("test", "127.0.0.1:0", {"/view": answer}) as scheduler:
            relay = Relay(f"http://127.0.0.1:{scheduler.port}", cast(Trust, None))
            async with Site("test", "127.0.0.1:0", relay.routes()) as site:
                reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
                writer.write(b"GET /view HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
                async with asyncio.timeout(30):
                    found = await reader.read()
                writer.close()
                return found

    wire = asyncio.run(ask())
    assert (wire.count(b"HTTP/1.1 "), b"data: 1\n\n" in wire) == (1, True)


def test_a_file_that_did_not_change_is_not_sent_again() -> None:
    tag = assets()["app.js"].tag
    assert asked([f"{PAGE}app.js"], page_routes(), **{"If-None-Match": tag})[0][0] == 304


def test_what_is_asked_wrongly_is_refused_with_what_is_right(tmp_path: Path) -> None:
    from slacktide.dashboard.simulation import Simulation
    from slacktide.dashboard.timeline import timeline_routes

    routes = timeline_routes(Simulation(results(clusters.cluster(22), tmp_path)))
    paths = ["/view?at=soon", "/view?at=inf", "/history?workloads=x", "/history?workloads=" + "1," * 300 + "1",
             "/explain?name=nobody", "/history?workloads=1&samples=-3"]  # fmt: skip
    found = asked(paths, routes)
    assert [one[0] for one in found] == [400, 400, 400, 400, 404, 400]
    assert "at: found 'soon', expected seconds" in found[0][2]
    good = asked(["/view?at=3", "/history?workloads=1,2&told=1"], routes)
    assert [one[0] for one in good] == [200, 200]


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_serves_a_simulation_until_it_is_interrupted(tmp_path: Path) -> None:
    out = results(clusters.cluster(22), tmp_path)
    words = [sys.executable, "-m", "slacktide", "dashboard", str(out)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(
            rf"results in {re.escape(str(out))}: (http://127\.0\.0\.1:\d+)/dashboard/#token=(\S+)\n", line
        )
        assert found, line

        async def view() -> tuple[int, int]:
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{found[1]}/view", headers={"Authorization": f"Bearer {found[2]}"}) as good:
                    status = good.status
                async with session.get(f"{found[1]}/view") as bad:
                    return status, bad.status

        assert asyncio.run(view()) == (200, 401)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_folder_of_something_else_and_no_cluster_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app, ["dashboard", str(tmp_path)])
    assert isinstance(result.exception, InputError)
    assert "slacktide simulate --out" in str(result.exception)
    result = CliRunner().invoke(app, ["dashboard", str(REPOSITORY / "tests" / "recorded"), "--session", "9"])
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception) == "--session: found 9, expected one of 1, 2"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    result = CliRunner().invoke(app, ["dashboard"])
    assert isinstance(result.exception, ConfigError)
    assert "no cluster" in str(result.exception)


def test_the_dashboard_for_grafana_is_printed() -> None:
    result = CliRunner().invoke(app, ["dashboard", "--grafana"])
    assert result.exit_code == 0
    assert '"uid": "slacktide"' in result.output
