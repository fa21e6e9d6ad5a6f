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
FOUND, UNAUTHORIZED, GONE = 302, 401, 410


async def serve(source: Source, port: int, opens: bool) -> None:
    """Serves the page until interrupted."""
    import webbrowser

    from slacktide.dashboard.pages import PAGE
    from slacktide.kube.observe.http_site import Site, near

    key, ticket = secrets.token_urlsafe(24), f"/open/{secrets.token_urlsafe(24)}"
    page = f"{PAGE}#token={key}"
    routes = local_routes(source.routes, key) | ({ticket: near(once(page))} if opens else {})
    async with Site("--port", f"{HOST}:{port}", routes) as site:
        here = f"http://{HOST}:{site.port}"
        click.echo(f"{source.what}: {here}{page}\nCtrl-C ends it.")
        if opens:
            webbrowser.open(here + ticket)
        await until_signal(_forever())


def local_routes(data: Mapping[str, Route], key: str) -> dict[str, Route]:
    """The page and its data by path: for who is on this machine, the data for who has the key."""
    from slacktide.dashboard.pages import page_routes
    from slacktide.kube.observe.http_site import near

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


def once(location: str) -> Route:
    """Leads to ``location`` the first time. What a browser is started with can be read by other users of this machine
    (its command line): so that is not the key, but an address that is worth nothing any more when it has been used."""
    from aiohttp import hdrs, web

    from slacktide.dashboard.pages import HEADERS, refusal

    left = [location]

    async def asked(request: web.Request) -> web.StreamResponse:  # noqa: ARG001
        if not left:
            return refusal(GONE, "this address has been used: use the one that 'slacktide dashboard' printed")
        headers = {**HEADERS, hdrs.CACHE_CONTROL: "no-store", hdrs.LOCATION: left.pop()}
        return web.Response(status=FOUND, headers=headers)

    return asked
