"""/metrics, /livez, /readyz and /row of an agent over HTTP."""

from __future__ import annotations

import math
from collections.abc import Iterator

from aiohttp import web
from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from slacktide.kube.observe.http_site import Site, metrics_page
from slacktide.netprobe.agent import Agent
from slacktide.netprobe.publisher import status_of

PREFIX = "slacktide_netprobe_"
DROPPED = ("size", "format", "forged", "misdirected", "stale", "replayed", "unasked")
PROBES = ("answered", "outlier", "lost", "unsent")
PUBLISHED = ("written", "refused", "failed")


class AgentCollector(Collector):
    """An agent's numbers for Prometheus."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield from self._peers()
        yield from self._actions()
        yield from self._rows()

    def _peers(self) -> Iterator[Metric]:
        found = self._agent.prober.measured()
        reached = {name: one for name, one in found.items() if math.isfinite(one.mean)}
        yield _gauge("rtt_seconds", "Round-trip time to a peer, smoothed mean.", "peer",
                     {name: one.mean for name, one in reached.items()})  # fmt: skip
        yield _gauge("rtt_deviation_seconds", "Its standard deviation.", "peer",
                     {name: one.deviation for name, one in reached.items()})  # fmt: skip
        yield _gauge("loss_ratio", "Share of the latest probes of a peer that were lost.", "peer",
                     {name: one.lost for name, one in found.items()})  # fmt: skip
        prober = self._agent.prober
        yield _gauge("peers", "Other agents that are known.", "", {"": len(prober.peers)})
        yield _gauge("measured_peers", "Of these, those that are measured.", "", {"": len(prober.paths)})
        yield _gauge("coordinate_error_ratio", "Relative error expected of the network coordinate.", "",
                     {"": prober.position.error})  # fmt: skip

    def _actions(self) -> Iterator[Metric]:
        counts = self._agent.prober.counts
        yield _counter("probes", "Probes that are over, by result; outliers were answered.", "result",
                       {one: counts.probes[one] for one in PROBES})  # fmt: skip
        yield _counter("packets_dropped", "Packets that were not believed, by reason.", "reason",
                       {one: counts.dropped[one] for one in DROPPED})  # fmt: skip
        yield _counter("answers", "Probes of others that were answered.", "", {"": counts.answers})
        if self._agent.publisher is not None:
            published = self._agent.publisher.counts
            yield _counter("publishes", "Writings of the row, by result.", "result",
                           {one: published[one] for one in PUBLISHED})  # fmt: skip

    def _rows(self) -> Iterator[Metric]:
        agent = self._agent
        yield _gauge("row_age_seconds", "Time since this node's latest measurement.", "", {"": agent.age()})
        if agent.rows is None:
            return
        ages = agent.rows.ages()
        stale = sum(age > agent.options.stale_after for age in ages.values())
        yield _gauge("rows", "Nodes' rows on the cluster, fresh and stale.", "state",
                     {"fresh": len(ages) - stale, "stale": stale})  # fmt: skip
        oldest = max(ages.values(), default=0.0)
        yield _gauge("oldest_row_age_seconds", "Age of the oldest row on the cluster.", "", {"": oldest})


class Server(Site):
    """Serves an agent while it is entered, where its identity says (``HOST:PORT``; empty: not at all).

    Raises :class:`slacktide.errors.ConfigError`.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        registry = CollectorRegistry(auto_describe=False)
        registry.register(AgentCollector(agent))
        ProcessCollector(registry=registry)
        routes = {"/metrics": metrics_page(registry), "/readyz": self._readyz, "/row": self._row}
        super().__init__("--listen", agent.identity.listen, routes)

    async def _readyz(self, request: web.Request) -> web.Response:  # noqa: ARG002
        why = self._agent.not_ready()
        return web.Response(status=503, text=f"{why}\n") if why else web.Response(text="ok\n")

    async def _row(self, request: web.Request) -> web.Response:  # noqa: ARG002
        row = self._agent.row()
        return web.json_response({"node": row.node, **status_of(row, self._agent.addresses)})


def _gauge(name: str, text: str, label: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=(label,) if label else ())
    for key, value in values.items():
        family.add_metric((key,) if label else (), float(value))
    return family


def _counter(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=(label,) if label else ())
    for key, value in values.items():
        family.add_metric((key,) if label else (), float(value))
    return family
