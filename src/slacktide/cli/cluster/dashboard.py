"""``slacktide dashboard``: the page in a browser, of a running scheduler, a simulation or a record."""

from __future__ import annotations

import contextlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.cluster.scheduler_pages import Trust, asking_a_scheduler
from slacktide.cli.options import FILE
from slacktide.cli.process import until_signal
from slacktide.errors import ConfigError, fail

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp
    from aiohttp import web

    from slacktide.cli.cluster.scheduler_pages import Shown
    from slacktide.dashboard.pages import Route


@click.command()
@click.argument("folder", metavar="[DIR]", type=FILE, required=False)
@click.option("--session", type=click.IntRange(1), help="Which session of a record.  [default: the last]")
@click.option(
    "--address",
    metavar="[http://]HOST:PORT",
    help="The scheduler's kube.listen, https unless it says http.  [default: the lab's in a lab]",
)
@asking_a_scheduler
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the page, on this machine.  [default: free]")
@click.option("--grafana", is_flag=True, help="Print a dashboard for Grafana, of the scheduler's metrics, and end.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
def dashboard(
    folder: Path | None,
    session: int | None,
    address: str | None,
    trust: Trust,
    port: int,
    grafana: bool,
    opens: bool,
) -> None:
    """Shows in a browser who keeps its promise, and who waits.

    Also why a pod waits, and who made room for whom.

    \b
      slacktide dashboard                    the scheduler of the lab, or at --address
      slacktide dashboard results            of 'slacktide simulate --events --out results'
      slacktide dashboard record             of 'slacktide run --record record', with a time slider
      slacktide dashboard --grafana > slacktide.json

    The page is served on this machine only, to who has the address that is printed. It needs no other site. Of a
    cluster's scheduler: 'kubectl port-forward', then --address and --fingerprint, as for 'slacktide explain'.
    """
    import asyncio

    if grafana:
        from importlib.resources import files

        file = files("slacktide.dashboard") / "grafana" / "slacktide.json"
        click.echo(file.read_text(encoding="utf-8"), nl=False)
        return

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(source(folder, session, address, trust), port, opens))


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
    from aiohttp import hdrs

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


@dataclass(frozen=True, slots=True)
class Source:
    """Routes that give the page its data, and what they are of, in words."""

    what: str
    routes: Mapping[str, Route]


def source(folder: Path | None, session: int | None, address: str | None, trust: Trust) -> Source:
    """The data of the page: of results or a record in ``folder``, else of a scheduler at ``address``, by ``trust``.

    Raises :class:`InputError` for a folder that holds neither.
    """
    from slacktide.dashboard.simulated_tables import is_results
    from slacktide.dashboard.simulation import Simulation
    from slacktide.dashboard.timeline import timeline_routes

    if folder is None:
        address = address or lab_address(trust)
        return Source(f"scheduler at {address}", Relay(address, trust).routes())
    if is_results(folder):
        return Source(f"results in {folder}", timeline_routes(Simulation(folder)))
    if any(folder.glob("session-*.json")):
        return _recorded(folder, session)
    expected = "a folder that 'slacktide simulate --out' or 'slacktide run --record' wrote"
    raise fail(folder, expected)


def _recorded(folder: Path, number: int | None) -> Source:
    from slacktide.cli.progress import Bar
    from slacktide.dashboard.recorded import Recording
    from slacktide.dashboard.timeline import timeline_routes
    from slacktide.engine.journal.record import sessions

    known = {one.number: one for one in sessions(folder)}
    chosen = known.get(max(known) if number is None else number)
    if chosen is None:
        raise ConfigError(f"--session: found {number}, expected one of {', '.join(map(str, known))}")
    with Bar() as bar:
        recording = Recording(
            chosen, folder.resolve().name, lambda share: bar.tell(f"doing session {chosen.number} again", share)
        )
    return Source(f"record in {folder}, session {chosen.number}", timeline_routes(recording))


def lab_address(trust: Trust) -> str:
    """Where the scheduler of the lab listens whose kubeconfig is in use. Raises :class:`ConfigError` where none is."""
    import asyncio

    from slacktide.cli.cluster.explain import of_lab
    from slacktide.kube.client.credentials import load_access

    access = asyncio.run(load_access(trust.kubeconfig, trust.context))
    found = of_lab(trust.kubeconfig, access.server)
    if not found:
        raise ConfigError(
            "--address: found none, and no lab of this kubeconfig; expected the scheduler's, for example "
            "https://127.0.0.1:10359 after 'kubectl -n slacktide-system port-forward deploy/slacktide 10359'"
        )
    return found


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
