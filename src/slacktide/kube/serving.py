"""/metrics, /explain, /livez, /readyz and /configz over HTTP; on localhost unless told otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from aiohttp import web
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry

from slacktide.config import Config
from slacktide.kube.explaining import Memory, Teller
from slacktide.kube.metrics import Meter
from slacktide.kube.scheduler import Scheduler
from slacktide.kube.scraping import Collector
from slacktide.kube.site import Route, open_site
from slacktide.kube.stalls import Stalls
from slacktide.live.engine import Journal
from slacktide.settings import to_mapping

if TYPE_CHECKING:
    from slacktide.kube.dry_run import DryRun

PRIVATE = ("/configz", "/explain", "/report")
"""What is told of pods of all namespaces, and of settings, is for whoever may be on this machine (or in this pod)."""


class Served(Protocol):
    """Whose health is told."""

    config: Config

    @property
    def synced(self) -> bool:
        """Whether every watch has told its first list."""

    def stale(self) -> str:
        """The kind whose watch is dead, or empty."""


class Server:
    """Serves while it is entered, where ``kube.listen`` says; ``routes`` by path beside those about health.

    Raises :class:`ConfigError`.
    """

    def __init__(self, served: Served, routes: Mapping[str, Route]) -> None:
        self.served = served
        self._routes = routes
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        every: dict[str, Route] = {
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/configz": self._configz,
            **self._routes,
        }
        every |= {path: private(every[path]) for path in PRIVATE if path in every}
        if listen := self.served.config.kube.listen:
            self._runner = await open_site("kube.listen", listen, every)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _livez(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        if not self.served.synced:
            return web.Response(status=503, text="the watches have not told their first lists\n")
        if stale := self.served.stale():
            return web.Response(status=503, text=f"the watch of {stale} is dead\n")
        return web.Response(text="ok\n")

    async def _configz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response({"slacktide": to_mapping(self.served.config)})


def private(route: Route) -> Route:
    """Answers connections from this machine only."""

    async def guarded(request: web.Request) -> web.StreamResponse:
        if is_near(request.remote):
            return await route(request)
        return web.json_response({"error": f"{request.path} is told on this machine only: port-forward"}, status=403)

    return guarded


def is_near(address: str | None) -> bool:
    """Whether an address is one of this machine's own."""
    try:
        return address is not None and ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


class Window:
    """What a running scheduler shows: give ``journal`` to it as (part of) its journal, then serve ``routes``."""

    def __init__(self) -> None:
        self.meter = Meter()
        self.memory = Memory()
        self.stalls = Stalls()

    def journal(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Hear of an operation of the engine."""
        self.meter(name, arguments)
        self.memory(name, arguments)

    def routes(self, scheduler: Scheduler) -> dict[str, Route]:
        """What to serve of a scheduler."""
        actor = scheduler.actor
        registry = CollectorRegistry(auto_describe=False)
        registry.register(Collector(scheduler, self.meter, self._longest_stall))
        for standard in (GCCollector, PlatformCollector, ProcessCollector):
            standard(registry=registry)

        def waits_for(uid: str) -> tuple[str, int] | None:
            found = actor.nominations.get(uid)
            return None if found is None else (found.decision.host, len(found.outstanding))

        teller = Teller(scheduler.intake, self.memory, scheduler.clock, waits_for)

        async def metrics(request: web.Request) -> web.Response:
            encode, content_type = choose_encoder(request.headers.get("Accept", ""))
            body = encode(registry)
            return web.Response(body=body, headers={"Content-Type": content_type})

        async def explain(request: web.Request) -> web.Response:
            return explained(request, teller, scheduler)

        return {"/metrics": metrics, "/explain": explain}

    def _longest_stall(self) -> float:
        longest, self.stalls.longest = self.stalls.longest, 0.0
        return longest


def explained(request: web.Request, teller: Teller, scheduler: Scheduler) -> web.Response:
    """The answer to /explain?namespace=NAMESPACE&name=NAME."""
    name, namespace = request.query.get("name", ""), request.query.get("namespace", "default")
    if not name:
        return web.json_response({"error": "name: found nothing, expected a pod's name"}, status=400)
    if scheduler.intake.engine is None:
        holder = "" if scheduler.election is None else scheduler.election.holder
        whom = f"; ask the leader, {holder}" if holder else ""
        return web.json_response({"error": f"this replica stands by and knows nothing{whom}"}, status=503)
    found = teller.document(namespace, name)
    if found is None:
        return web.json_response({"error": f"pod {namespace}/{name} is not known"}, status=404)
    return web.json_response(found)


def reports(watched: DryRun) -> dict[str, Route]:
    """What to serve of a dry run: /report as JSON, or as text with ?format=text."""

    async def report(request: web.Request) -> web.Response:
        if not watched.synced:
            return web.json_response({"error": "the watches have not told their first lists"}, status=503)
        if request.query.get("format") == "text":
            return web.Response(text=watched.text() + "\n")
        return web.json_response(watched.report())

    return {"/report": report}


def told_to(*journals: Journal) -> Journal:
    """One journal that tells several."""

    def tell(name: str, arguments: tuple[Any, ...]) -> None:
        for one in journals:
            one(name, arguments)

    return tell
