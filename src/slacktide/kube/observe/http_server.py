"""/metrics, /explain, /livez, /readyz and /configz over HTTP; on localhost unless told otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Protocol

from aiohttp import web
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.registry import CollectorRegistry

from slacktide.config import Config
from slacktide.engine.core.operations import Decided, Journal, Operation
from slacktide.engine.core.types import Decision
from slacktide.kube.client.status_codes import BAD_REQUEST, FORBIDDEN, NOT_FOUND, UNAVAILABLE
from slacktide.kube.observe.explain import PodHistory, PodStory
from slacktide.kube.observe.http_site import Route, Site, metrics_page
from slacktide.kube.observe.loop_lag import LoopLag
from slacktide.kube.observe.metrics import Meter
from slacktide.kube.observe.scrape import Collector
from slacktide.kube.scheduler import Scheduler
from slacktide.settings import to_mapping

PRIVATE = ("/configz", "/explain", "/report")
"""What is told of pods of all namespaces, and of settings, is for whoever may be on this machine (or in this pod)."""


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
        """The kind whose watch is dead, or empty."""


class Server(Site):
    """Serves while it is entered, where ``kube.listen`` says; ``routes`` by path beside those about health.

    Raises :class:`ConfigError`.
    """

    def __init__(self, served: Served, routes: Mapping[str, Route]) -> None:
        self.served = served
        every: dict[str, Route] = {"/readyz": self._readyz, "/configz": self._configz, **routes}
        every |= {path: private(every[path]) for path in PRIVATE if path in every}
        super().__init__("kube.listen", served.config.kube.listen or "", every)

    async def _readyz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        if missing := self.served.missing:
            return web.Response(status=UNAVAILABLE, text=f"{missing}\n")
        if not self.served.synced:
            return web.Response(status=UNAVAILABLE, text="the watches have not told their first lists\n")
        if stale := self.served.stale():
            return web.Response(status=UNAVAILABLE, text=f"the watch of {stale} is dead\n")
        return web.Response(text="ok\n")

    async def _configz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        return web.json_response({"slacktide": to_mapping(self.served.config)})


def private(route: Route) -> Route:
    """Answers connections from this machine only."""

    async def guarded(request: web.Request) -> web.StreamResponse:
        if is_near(request.remote):
            return await route(request)
        return web.json_response(
            {"error": f"{request.path} is told on this machine only: port-forward"}, status=FORBIDDEN
        )

    return guarded


def is_near(address: str | None) -> bool:
    """Whether an address is one of this machine's own."""
    try:
        return address is not None and ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


class SchedulerPages:
    """What a scheduler shows: let ``journal`` be (part of) its journal, then serve ``routes``.

    The scheduler tells of a pass's decisions one by one (:meth:`decided`), so that many of them hold up nobody.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._stories: PodStory | None = None
        self.meter = Meter(lambda: scheduler.engine)
        self.memory = PodHistory(self._name_of)
        self.loop_lag = LoopLag()
        scheduler.told = self.decided

    def _name_of(self, uid: str) -> tuple[str, str] | None:
        record = self._scheduler.mirror.pods.get(uid)
        return None if record is None else record.namespaced_name

    def journal(self, operation: Operation) -> None:
        """Hear of an operation of the engine."""
        if isinstance(operation, Decided):
            self.meter.passed(operation.outcome)
            return
        self.meter(operation)
        self.memory(operation)

    def decided(self, decision: Decision) -> None:
        """Hear of one decision of the last pass."""
        self.meter.decided(decision)
        self.memory.decided(decision)

    def routes(self) -> dict[str, Route]:
        """What to serve."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(Collector(self._scheduler, self.meter, self._longest_stall))
        for standard in (GCCollector, PlatformCollector, ProcessCollector):
            standard(registry=registry)
        return {"/metrics": metrics_page(registry), "/explain": self._explain}

    def _longest_stall(self) -> float:
        longest, self.loop_lag.longest = self.loop_lag.longest, 0.0
        return longest

    async def _explain(self, request: web.Request) -> web.Response:
        """The answer to /explain?namespace=NAMESPACE&name=NAME."""
        name, namespace = request.query.get("name", ""), request.query.get("namespace", "default")
        if not name:
            return web.json_response({"error": "name: found nothing, expected a pod's name"}, status=BAD_REQUEST)
        scheduler = self._scheduler
        if scheduler.term is None:
            holder = "" if scheduler.election is None else scheduler.election.holder
            whom = f"; ask the leader, {holder}" if holder else ""
            text = f"this replica stands by and knows nothing{whom}"
            return web.json_response({"error": text}, status=UNAVAILABLE)
        await scheduler.term.gate.passed()  # why somebody waits is worked out from the tables of the pass
        if self._stories is None:
            self._stories = PodStory(scheduler.term.feed, self.memory, scheduler.clock, self._waits_for)
        found = self._stories.document(namespace, name)
        if found is None:
            return web.json_response({"error": f"pod {namespace}/{name} is not known"}, status=NOT_FOUND)
        return web.json_response(found)

    def _waits_for(self, uid: str) -> tuple[str, int] | None:
        found = self._scheduler.nominations.get(uid)
        return None if found is None else (found.decision.host, len(found.outstanding))


def told_to(*journals: Journal) -> Journal:
    """One journal that tells several."""

    def tell(operation: Operation) -> None:
        for one in journals:
            one(operation)

    return tell
