"""The report of a dry run over HTTP."""

from __future__ import annotations

from aiohttp import web

from slacktide.dryrun.dry_run import DryRun
from slacktide.kube.client.status_codes import UNAVAILABLE
from slacktide.kube.observe.http_site import Route


def reports(watched: DryRun) -> dict[str, Route]:
    """What to serve of a dry run: /report as JSON, or as text with ?format=text."""

    async def report(request: web.Request) -> web.Response:
        if not watched.synced:
            return web.json_response(
                {"error": "the first lists of the watches have not been received"}, status=UNAVAILABLE
            )
        if request.query.get("format") == "text":
            return web.Response(text=watched.text() + "\n")
        return web.json_response(watched.report())

    return {"/report": report}
