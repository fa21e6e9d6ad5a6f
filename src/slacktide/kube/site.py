"""An HTTP server at an address that a setting names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from slacktide.errors import ConfigError
from slacktide.kube.addresses import split_address

Route = Callable[[web.Request], Awaitable[web.StreamResponse]]


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
