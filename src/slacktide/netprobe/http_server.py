"""/metrics, /livez, /readyz and /row of an agent over HTTP."""

from __future__ import annotations

import math
from collections.abc import Iterator

from aiohttp import web
from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from slacktide.kube.observe.families import Families
from slacktide.kube.observe.http_site import Site, metrics_page
from slacktide.netprobe.agent import Agent
from slacktide.netprobe.publisher import status_of

DROPPED = ("size", "format", "forged", "misdirected", "stale", "replayed", "unasked")
PROBES = ("answered", "outlier", "lost", "unsent")
PUBLISHED = ("written", "refused", "failed")

AGENT = Families("Agents of netprobe", "Of each agent, at its own address (`--listen`).")
RTT = AGENT.gauge(
    "slacktide_netprobe_rtt_seconds", "Round-trip time to a peer, smoothed mean; absent for a silent peer.", "peer"
)
DEVIATION = AGENT.gauge(
    "slacktide_netprobe_rtt_deviation_seconds", "Its standard deviation; absent for a silent peer.", "peer"
)
LOSS = AGENT.gauge("slacktide_netprobe_loss_ratio", "Share of the latest probes of a peer that were lost.", "peer")
PEERS = AGENT.gauge("slacktide_netprobe_peers", "Other agents that are known.")
MEASURED = AGENT.gauge("slacktide_netprobe_measured_peers", "Of these, those that are measured.")
ERROR = AGENT.gauge(
    "slacktide_netprobe_coordinate_error_ratio",
    "Relative error expected of the network coordinate; 1: it knows nothing.",
)
PROBES_OVER = AGENT.counter(
    "slacktide_netprobe_probes",
    "Probes that are over, by result: answered (outlier: of these, far from the others), lost, unsent (no route, no "
    "address).",
    "result",
)
PACKETS_DROPPED = AGENT.counter(
    "slacktide_netprobe_packets_dropped",
    "Packets that were not believed, by reason: size, format, forged (wrong key), misdirected, "
    "stale (its clock is off), replayed, unasked.",
    "reason",
)
ANSWERS = AGENT.counter("slacktide_netprobe_answers", "Probes of others that were answered.")
PUBLISHES = AGENT.counter(
    "slacktide_netprobe_publishes",
    "Writings of the row, by result: written, refused, failed. On a cluster only.",
    "result",
)
ROW_AGE = AGENT.gauge("slacktide_netprobe_row_age_seconds", "Time since this node's latest measurement.")
ROWS = AGENT.gauge("slacktide_netprobe_rows", "Nodes' rows on the cluster: fresh, stale. On a cluster only.", "state")
OLDEST = AGENT.gauge(
    "slacktide_netprobe_oldest_row_age_seconds", "Age of the oldest row on the cluster. On a cluster only."
)


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
        prober = self._agent.prober
        found = prober.measured()
        reached = {(name,): one for name, one in found.items() if math.isfinite(one.mean)}
        yield RTT.of({name: one.mean for name, one in reached.items()})
        yield DEVIATION.of({name: one.deviation for name, one in reached.items()})
        yield LOSS.of({(name,): one.lost for name, one in found.items()})
        yield PEERS.of({(): len(prober.peers)})
        yield MEASURED.of({(): len(prober.paths)})
        yield ERROR.of({(): prober.position.error})

    def _actions(self) -> Iterator[Metric]:
        counts = self._agent.prober.counts
        yield PROBES_OVER.of({(one,): counts.probes[one] for one in PROBES})
        yield PACKETS_DROPPED.of({(one,): counts.dropped[one] for one in DROPPED})
        yield ANSWERS.of({(): counts.answers})
        if self._agent.publisher is not None:
            published = self._agent.publisher.counts
            yield PUBLISHES.of({(one,): published[one] for one in PUBLISHED})

    def _rows(self) -> Iterator[Metric]:
        agent = self._agent
        yield ROW_AGE.of({(): agent.age()})
        if agent.rows is None:
            return
        ages = agent.rows.ages()
        stale = sum(age > agent.options.stale_after for age in ages.values())
        yield ROWS.of({("fresh",): len(ages) - stale, ("stale",): stale})
        yield OLDEST.of({(): max(ages.values(), default=0.0)})


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
