"""The page's own files over HTTP, and the headers with which all of it is sent.

The files hold no data, so anybody may have them. What they show comes from ``/view``, ``/history`` and ``/explain``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import NamedTuple

from aiohttp import hdrs, web

from slacktide import palette

Route = Callable[[web.Request], Awaitable[web.StreamResponse]]

PAGE = "/dashboard/"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HEADERS = {
    # Nothing inline, nothing from elsewhere, in nobody's frame.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Asset(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str
    tag: str


def assets() -> dict[str, Asset]:
    """All files of the page by name; the colours are those of :mod:`slacktide.palette`."""
    found = {"palette.css": _asset(_colours().encode(), ".css")}
    for file in (files("slacktide.dashboard") / "assets").iterdir():
        kind = "." + file.name.rpartition(".")[2]
        if kind in KINDS:
            found[file.name] = _asset(file.read_bytes(), kind)
    return found


def _asset(content: bytes, kind: str) -> Asset:
    return Asset(content, KINDS[kind], f'"{hashlib.sha256(content).hexdigest()[:16]}"')


def _colours() -> str:
    """Light and dark as the reader's system has it, unless the page's own button says otherwise."""
    light, dark = palette.css("light"), palette.css("dark")
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
    )


def page_routes() -> dict[str, Route]:
    """The page and its files, by path."""
    known = assets()

    async def file(request: web.Request) -> web.StreamResponse:
        one = known.get(request.match_info.get("name") or "index.html")
        if one is None:
            return web.json_response({"error": f"{request.path}: is no file of the page"}, status=404, headers=HEADERS)
        headers = {**HEADERS, hdrs.ETAG: one.tag, hdrs.CACHE_CONTROL: "no-cache"}
        if request.headers.get(hdrs.IF_NONE_MATCH) == one.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=one.content, content_type=one.kind, charset="utf-8", headers=headers)

    async def redirect(request: web.Request) -> web.StreamResponse:  # noqa: ARG001
        return web.Response(status=302, headers={**HEADERS, hdrs.LOCATION: PAGE})

    return {"/": redirect, "/dashboard": redirect, PAGE: file, PAGE + "{name}": file}


def answer(content: bytes) -> web.Response:
    """Data as JSON, which nobody keeps."""
    return web.Response(
        body=content, content_type="application/json", headers={**HEADERS, hdrs.CACHE_CONTROL: "no-store"}
    )


def refusal(status: int, text: str) -> web.Response:
    """Why there is no answer."""
    return web.json_response({"error": text}, status=status, headers={**HEADERS, hdrs.CACHE_CONTROL: "no-store"})
