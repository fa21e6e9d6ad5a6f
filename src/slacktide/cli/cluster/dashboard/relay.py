"""The data of a running scheduler, passed on: it gets a token that the browser never sees."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp
    from aiohttp import web

    from slacktide.cli.cluster.scheduler_pages import Shown, Trust
    from slacktide.dashboard.pages import Route

PATHS = ("/view", "/explain")
KINDS = ("text/event-stream", "application/json", "text/plain")
BAD_GATEWAY = 502
CHUNK = 1 << 16
QUIET_SECONDS = 60.0
"""A stream says something every ten seconds at least: silence for longer is its end."""


class Relay:
    """Passes questions of the page on to the scheduler at ``[http://]HOST:PORT``."""

    def __init__(self, address: str, trust: Trust) -> None:
        self._base = address if "://" in address else f"https://{address}"
        self._trust = trust

    def routes(self) -> Mapping[str, Route]:
        """What the page asks of a scheduler, by path."""
        return dict.fromkeys(PATHS, self._pass_on)

    async def _shown(self) -> Shown | None:
        """What ``slacktide explain`` shows; read again each time, as tokens are renewed."""
        return await self._trust.shown() if self._base.startswith("https://") else None

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        import aiohttp

        from slacktide.cli.cluster.scheduler_pages import asking
        from slacktide.dashboard.pages import refusal
        from slacktide.errors import ConfigError

        timeout = aiohttp.ClientTimeout(total=None, connect=10.0, sock_read=QUIET_SECONDS)
        try:
            shown = await self._shown()
            asked: dict[str, Any] = {"params": request.query, "allow_redirects": False}
            asked |= {} if shown is None else shown.options
            url = f"{self._base}{request.path}"
            async with asking(timeout, shown) as session, session.get(url, **asked) as found:
                return await self._told(request, found)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, ConfigError) as error:
            return refusal(BAD_GATEWAY, f"{self._base} does not answer: {str(error) or type(error).__name__}")

    async def _told(self, request: web.Request, found: aiohttp.ClientResponse) -> web.StreamResponse:
        import aiohttp
        from aiohttp import hdrs, web

        from slacktide.dashboard.pages import HEADERS

        if found.content_type not in KINDS:  # it would be ours in the browser's eyes
            raise ValueError(f"it answers with {found.content_type}, expected one of {', '.join(KINDS)}")
        headers = {**HEADERS, hdrs.CACHE_CONTROL: "no-store", hdrs.CONTENT_TYPE: found.headers[hdrs.CONTENT_TYPE]}
        answer = web.StreamResponse(status=found.status, headers=headers)
        await answer.prepare(request)
        # Where it breaks off, so does this: another answer cannot follow.
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async for part in found.content.iter_chunked(CHUNK):
                await answer.write(part)
        return answer
