"""The page on this machine: on loopback, for who has the key that is printed with the address."""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING

import click

from slacktide.cli.loops import until_signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slacktide.cli.cluster.dashboard.sources import Source
    from slacktide.dashboard.pages import Route

HOST = "127.0.0.1"
UNAUTHORIZED, MISDIRECTED = 401, 421


async def serve(source: Source, port: int, opens: bool) -> None:
    """Serves the page until interrupted."""
    import webbrowser

    from slacktide.dashboard.pages import PAGE
    from slacktide.kube.observe.http_site import Site

    key = secrets.token_urlsafe(24)
    async with Site("--port", f"{HOST}:{port}", local_routes(source.routes, key)) as site:
        url = f"http://{HOST}:{site.port}{PAGE}#token={key}"
        click.echo(f"{source.what}: {url}\nCtrl-C ends it.")
        if opens:
            webbrowser.open(url)
        await until_signal(_forever())


def local_routes(data: Mapping[str, Route], key: str) -> dict[str, Route]:
    """The page and its data by path: for who is on this machine, the data for who has the key."""
    from slacktide.dashboard.pages import page_routes

    routes = {path: near(one) for path, one in page_routes().items()}
    return routes | {path: near(guarded(one, key)) for path, one in data.items()}


async def _forever() -> None:
    import asyncio

    await asyncio.Event().wait()


def guarded(route: Route, key: str) -> Route:
    """``route`` for who shows the key: other users of this machine have no part in what you may see."""
    from aiohttp import hdrs, web

    from slacktide.dashboard.pages import refusal

    async def asked(request: web.Request) -> web.StreamResponse:
        shown = request.headers.get(hdrs.AUTHORIZATION, "").removeprefix("Bearer ")
        if not hmac.compare_digest(shown.encode(), key.encode()):
            return refusal(UNAUTHORIZED, "the address that 'slacktide dashboard' printed has a key behind '#': use it")
        return await route(request)

    return asked


def near(route: Route) -> Route:
    """``route`` for requests that name this machine: another site's name that is made to lead here is none."""
    from aiohttp import web

    from slacktide.dashboard.pages import refusal

    async def asked(request: web.Request) -> web.StreamResponse:
        if request.host.rpartition(":")[0] not in (HOST, "localhost"):
            return refusal(MISDIRECTED, f"Host: found {request.host!r}, expected {HOST}")
        return await route(request)

    return asked
