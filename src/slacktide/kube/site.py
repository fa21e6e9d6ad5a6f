"""Addresses of the form HOST:PORT, and an HTTP server at one that a setting names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from slacktide.errors import ConfigError

Route = Callable[[web.Request], Awaitable[web.StreamResponse]]


def split_address(text: str, least_port: int = 1) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, an IPv6 address in brackets. Raises ``ValueError``."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or not host or (":" in host) != bracketed or not port.isascii() or not port.isdigit():
        raise ValueError(f"found {text!r}, expected HOST:PORT, an IPv6 address in brackets")
    if not least_port <= int(port) < 2**16:
        raise ValueError(f"found port {port} in {text!r}, expected {least_port} to 65535")
    return host, int(port)


def join_address(host: str, port: int) -> str:
    """``HOST:PORT``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def open_site(setting: str, listen: str, routes: Mapping[str, Route]) -> web.AppRunner:
    """Serves GET of ``routes`` by path at ``listen`` until ``cleanup`` of what it gives.

    ``listen`` is ``HOST:PORT``, port 0 any that is free. Raises :class:`ConfigError` that names the ``setting``.
    """
    try:
        host, port = split_address(listen, least_port=0)
    except ValueError as error:
        raise ConfigError(f"{setting}: {error}") from None
    application = web.Application()
    application.add_routes([web.get(path, route) for path, route in routes.items()])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise ConfigError(f"{setting}: cannot listen on {listen}: {error.strerror or error}") from error
    return runner
