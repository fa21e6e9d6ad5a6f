"""An HTTP server at an address that a setting names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from slacktide.errors import ConfigError

Route = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def open_site(setting: str, listen: str, routes: Mapping[str, Route]) -> web.AppRunner:
    """Serves GET of ``routes`` by path at ``listen`` (``ADDRESS:PORT``, an IPv6 address in brackets; port 0: any that
    is free) until ``cleanup`` of what it gives. Raises :class:`ConfigError` that names the ``setting``."""
    host, _, port = listen.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    wrong = not host or (":" in host) != bracketed or not (port.isascii() and port.isdigit())
    if wrong or not 0 <= int(port) < 2**16:
        raise ConfigError(f"{setting}: found {listen!r}, expected ADDRESS:PORT, an IPv6 address in brackets")
    application = web.Application()
    application.add_routes([web.get(path, route) for path, route in routes.items()])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, int(port)).start()
    except OSError as error:
        await runner.cleanup()
        raise ConfigError(f"{setting}: cannot listen on {listen}: {error.strerror or error}") from error
    return runner
