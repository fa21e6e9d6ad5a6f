"""/metrics, /explain, /configz and health over HTTP, for those who may ask; on localhost unless told otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Protocol, Self

from aiohttp import web
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.registry import CollectorRegistry

from slacktide.config import Config
from slacktide.dashboard.pages import page_routes
from slacktide.engine.core.operations import Decided, Journal, Operation
from slacktide.engine.core.types import Decision
from slacktide.errors import ConfigError
from slacktide.kube.client.http import BAD_REQUEST, NOT_FOUND, UNAVAILABLE, Connection
from slacktide.kube.observe.access import Reviews
from slacktide.kube.observe.certificates import Certificate, ClusterAuthorities
from slacktide.kube.observe.dashboard import PodHistory, WatchedScheduler, text_of
from slacktide.kube.observe.http_site import Route, Site, address_of, livez, metrics_page, near
from slacktide.kube.observe.metrics import LoopLag, Meter
from slacktide.kube.observe.scrape import Collector
from slacktide.kube.scheduler import Scheduler
from slacktide.settings import to_mapping

LOG = logging.getLogger(__name__)

HEALTH = ("/livez", "/healthz", "/readyz")
"""Told to everybody, as kube-scheduler tells it: probes show no token, and learn nothing of anybody's pods. So are the
files of the page (:func:`.pages.page_routes`), which hold no data and ask for a token themselves."""


class Served(Protocol):
    """Whose health is told."""

    config: Config

    @property
    def synced(self) -> bool:
        """Whether every watch has told its first list."""

    @property
    def missing(self) -> str:
        """What is to be applied before anything can be placed, or empty."""

    def stale(self) -> str:
        """Why nothing can be decided: which watch is dead; or empty."""


class Server(Site):
    """Serves while it is entered, where ``kube.listen`` says and to whom ``kube.http_access`` says.

    ``routes`` by path beside those about health; ``connection`` asks the API server who may. Raises
    :class:`ConfigError`.
    """

    def __init__(self, served: Served, routes: Mapping[str, Route], connection: Connection) -> None:
        self.served = served
        kube = served.config.kube
        every: dict[str, Route] = {"/healthz": livez, "/readyz": self._readyz, "/configz": self._configz, **routes}
        context, told_to_everybody = None, (*HEALTH, *page_routes())
        self._authorities: ClusterAuthorities | None = None
        self.certificate: Certificate | None = None
        self._reads: asyncio.Task[None] | None = None
        if kube.listen and kube.http_access == "delegated":
            host, _ = address_of("kube.listen", kube.listen)
            self.certificate = certificate = Certificate(kube.tls_certificate, kube.tls_key, host)
            self._authorities = ClusterAuthorities(connection, certificate.trust)
            reviews = Reviews(connection, certified=self._authorities.user_of)
            every = {path: one if path in told_to_everybody else reviews.guard(one) for path, one in every.items()}
            origin = "made at this start" if certificate.made else f"of {kube.tls_certificate}"
            LOG.info(
                "https at %s; the certificate, %s, has the SHA-256 fingerprint %s",
                *(kube.listen, origin, certificate.fingerprint),
            )
            context = certificate.context
        elif kube.listen:
            _must_be_near(kube.listen)
            every = {path: one if path in told_to_everybody else near(one) for path, one in every.items()}
        super().__init__("kube.listen", kube.listen or "", every, context)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        if self._authorities is not None:  # nobody's probe waits for it
            self._reads = asyncio.create_task(self._authorities.run())
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self._reads is not None:
            self._reads.cancel()
        await super().__aexit__(*raised)

    async def _readyz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        if missing := self.served.missing:
            return web.Response(status=UNAVAILABLE, text=f"{missing}\n")
        if not self.served.synced:
            return web.Response(status=UNAVAILABLE, text="the first lists of the watches have not been received\n")
        if stale := self.served.stale():
            return web.Response(status=UNAVAILABLE, text=f"{stale}\n")
        return web.Response(text="ok\n")

    async def _configz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response({"slacktide": to_mapping(self.served.config)})


def _must_be_near(listen: str) -> None:
    """Raise :class:`ConfigError` unless it is an address of this machine's own, which no other machine reaches."""
    host, _ = address_of("kube.listen", listen)
    with contextlib.suppress(ValueError):
        if ip_address(host.partition("%")[0]).is_loopback:
            return
    raise ConfigError(
        f"kube.listen: found {listen}, expected an address such as 127.0.0.1:10359 with kube.http_access=loopback, "
        "which asks nobody for a token; or set kube.http_access=delegated"
    )


class SchedulerPages:
    """What a scheduler shows: let ``journal`` be (part of) its journal, then serve ``routes``.

    The scheduler tells of a pass's decisions one by one (:meth:`decided`), so that many of them hold up nobody.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.meter = Meter(lambda: scheduler.engine)
        self.memory = PodHistory(self._name_of)
        self.watched = WatchedScheduler(scheduler, self.memory)
        self.loop_lag = LoopLag()
        self.certificate: Certificate | None = None
        """What the server of these pages shows, once there is one."""
        scheduler.on_decision = self.decided

    def _name_of(self, uid: str) -> tuple[str, str] | None:
        record = self._scheduler.mirror.pods.get(uid)
        return None if record is None else record.namespaced_name

    def journal(self, operation: Operation) -> None:
        """Hear of an operation of the engine."""
        self.watched.live.heard(operation)
        if isinstance(operation, Decided):
            self.meter.passed(operation.outcome)
            return
        self.meter(operation)
        self.memory(operation)

    def decided(self, decision: Decision) -> None:
        """Hear of one decision of the last pass."""
        self.meter.decided(decision)
        self.memory.decided(decision)
        self.watched.live.decided(decision)

    def routes(self) -> dict[str, Route]:
        """What to serve."""
        registry = CollectorRegistry(auto_describe=False)
        collector = Collector(self._scheduler, self.meter, self._longest_stall, self._certificate_ends)
        registry.register(collector)
        for standard in (GCCollector, PlatformCollector, ProcessCollector):
            standard(registry=registry)
        data = {"/metrics": metrics_page(registry, collector.look), "/explain": self._explain, **self.watched.routes()}
        return {**page_routes(), **data}

    def _longest_stall(self) -> float:
        longest, self.loop_lag.longest = self.loop_lag.longest, 0.0
        return longest

    def _certificate_ends(self) -> float | None:
        return None if self.certificate is None else self.certificate.ends

    async def _explain(self, request: web.Request) -> web.Response:
        """The answer to /explain?namespace=NAMESPACE&name=NAME."""
        name, namespace = request.query.get("name", ""), request.query.get("namespace", "default")
        if not name:
            return web.json_response({"error": "name: found nothing, expected a pod's name"}, status=BAD_REQUEST)
        session, story = self._scheduler.session, self.watched.story
        if session is None or story is None:
            return web.json_response({"error": self.watched.absent()}, status=UNAVAILABLE)
        await session.gate.passed()  # why somebody waits is worked out from the tables of the pass
        found = story.document(namespace, name)
        if found is None:
            return web.json_response({"error": f"pod {namespace}/{name} not found"}, status=NOT_FOUND)
        return web.json_response({**found, "text": text_of(found)})


def told_to(*journals: Journal) -> Journal:
    """One journal that tells several."""

    def tell(operation: Operation) -> None:
        for one in journals:
            one(operation)

    return tell
