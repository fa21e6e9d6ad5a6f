"""/metrics, /livez, /readyz and /configz over HTTP; on localhost unless told otherwise."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from aiohttp import web

from slacktide.errors import ConfigError
from slacktide.kube.scheduler import Scheduler
from slacktide.settings import to_mapping


class Server:
    """Serves while it is entered; an empty ``kube.listen`` serves nothing. Raises :class:`ConfigError`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        listen = self.scheduler.config.kube.listen
        if listen:
            host, _, port = listen.rpartition(":")
            if not host or not port.isdecimal():
                raise ConfigError(f"kube.listen: found {listen!r}, expected ADDRESS:PORT")
            application = web.Application()
            application.add_routes(
                [
                    web.get("/livez", self._livez),
                    web.get("/readyz", self._readyz),
                    web.get("/configz", self._configz),
                ]
            )
            self._runner = web.AppRunner(application, access_log=None)
            await self._runner.setup()
            await web.TCPSite(self._runner, host.strip("[]"), int(port)).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _livez(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        if not self.scheduler.synced:
            return web.Response(status=503, text="the watches have not told their first lists\n")
        if stale := self.scheduler.stale():
            return web.Response(status=503, text=f"the watch of {stale} is dead\n")
        return web.Response(text="ok\n")

    async def _configz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response({"slacktide": to_mapping(self.scheduler.config)})
