"""Writes a node's row into its NodeLatency: rarely, and only when it says something new."""

from __future__ import annotations

import logging
import math
from collections import Counter
from typing import Any

from slacktide.kube.client.http import NOT_FOUND, ApiError, Connection, KubeError
from slacktide.kube.client.kinds import Kind, Malformed, encode
from slacktide.kube.client.metadata import Metadata, Part, rfc3339
from slacktide.kube.resources.custom_resources import API_VERSION, NODE_LATENCY, NodeLatency, as_row
from slacktide.model.latency import Measured, Row
from slacktide.netprobe.options import Options

LOG = logging.getLogger(__name__)


class NodeAddress(Part, frozen=True):
    """An address of a node; ``type`` is InternalIP, ExternalIP, Hostname, ..."""

    type: str
    address: str


class Addresses(Part, frozen=True):
    """The part of a node's status that matters here."""

    addresses: tuple[NodeAddress, ...] = ()


class OwnNode(Part, frozen=True):
    """The Node that an agent runs on."""

    metadata: Metadata
    status: Addresses = Addresses()


OWN_NODE = Kind(OwnNode, "v1", "nodes", "Node", namespaced=False)


def news(before: Row | None, row: Row, options: Options) -> str:
    """What is new in ``row`` since ``before`` was written; empty where that is too little to write it again."""
    if before is None:
        return "first"
    if before.peers.keys() != row.peers.keys():
        return "peers"
    for name, found in row.peers.items():
        old = before.peers[name]
        if math.isfinite(old.mean) != math.isfinite(found.mean):
            return "silent" if math.isfinite(old.mean) else "answered"
        if math.isfinite(found.mean) and _differs(old.mean, found.mean, options):
            return "mean"
        if abs(old.lost - found.lost) >= options.change_lost:
            return "lost"
    if (before.coordinate is None) != (row.coordinate is None):
        return "coordinate"
    if before.coordinate is not None and row.coordinate is not None:
        means = [one.mean for one in row.peers.values() if math.isfinite(one.mean)]
        apart = math.dist(before.coordinate.point, row.coordinate.point)
        apart += abs(before.coordinate.height - row.coordinate.height)
        if means and _differs(0.0, apart, options, scale=sum(means) / len(means)):
            return "coordinate"
    return ""


def _differs(old: float, new: float, options: Options, scale: float | None = None) -> bool:
    """Both thresholds must be passed: a share of nearly nothing, or a small part of much, is no news."""
    base = old if scale is None else scale
    return abs(new - old) > max(options.change_seconds, options.change_share * base)


def status_of(row: Row, addresses: tuple[str, ...]) -> dict[str, Any]:
    """A row as the resource has it, in milliseconds; numbers are cut to microseconds and per mille."""
    status: dict[str, Any] = {
        "addresses": list(addresses),
        "at": rfc3339(row.at) if math.isfinite(row.at) else None,
        "measured": len(row.peers),
        "reached": sum(math.isfinite(one.mean) for one in row.peers.values()),
        "error": round(row.error, 3),
        "peers": [_peer(name, one) for name, one in sorted(row.peers.items())],
        "coordinate": None,
    }
    if row.coordinate is not None:
        point = [round(1e3 * one, 3) for one in row.coordinate.point]
        status["coordinate"] = {"point": point, "height": round(1e3 * row.coordinate.height, 3)}
    return status


def _peer(name: str, found: Measured) -> dict[str, Any]:
    one: dict[str, Any] = {"node": name, "lost": round(found.lost, 3), "samples": found.samples}
    if math.isfinite(found.mean):
        # Not 0, which the resource refuses: a mean is measured, and no time is nothing.
        one |= {"meanMs": max(0.001, round(1e3 * found.mean, 3)), "deviationMs": round(1e3 * found.deviation, 3)}
    return one


class Publisher:
    """Keeps the row of ``node`` on the cluster. ``counts`` has attempts by result: written, refused, failed."""

    def __init__(self, connection: Connection, node: str, options: Options) -> None:
        self.node, self.options = node, options
        self.counts: Counter[str] = Counter()
        self._connection = connection
        self._written: Row | None = None
        self._addresses: tuple[str, ...] = ()
        self._written_at = self._tried_at = float("-inf")
        self._uid = ""

    async def own_node(self) -> OwnNode:
        """This agent's Node. Raises ``KubeError``."""
        found = OWN_NODE.decode(await self._connection.get(OWN_NODE.path(name=self.node)))
        if isinstance(found, Malformed):
            raise ApiError(200, "Malformed", found.problem)
        return found

    def carry_on(self, found: NodeLatency) -> None:
        """Take over the row that an agent before this one has left, so that a restart does not empty it."""
        self._written, self._addresses = as_row(found), found.status.addresses

    def begin_anew(self) -> None:
        """The row was deleted (with its node, perhaps, which came back): write it, with its owner, at once."""
        self._written, self._addresses, self._uid = None, (), ""
        self._tried_at = float("-inf")

    def due(self, row: Row | None, addresses: tuple[str, ...], now: float) -> str:
        """Why ``row`` is to be written at ``now`` (monotonic seconds); empty where it is not.

        ``None`` before there is something to say: then only addresses are written, and the rest stays.
        """
        if addresses != self._addresses:
            return "addresses"
        if row is None or now - self._tried_at < self.options.at_least_apart:
            return ""
        if why := news(self._written, row, self.options):
            return why
        # A row without new measurements stays as it is: it grows stale, as it should.
        # Another instant, and be it an earlier one: the clock may have been set back.
        later = self._written is not None and row.at != self._written.at
        return "heartbeat" if later and now - self._written_at >= self.options.heartbeat else ""

    async def write(self, row: Row | None, addresses: tuple[str, ...], now: float) -> None:
        """Write it; counts how that went. Raises ``KubeError`` where it is not written."""
        self._tried_at = now
        try:
            await self._put({"addresses": list(addresses)} if row is None else status_of(row, addresses))
        except ApiError as error:
            self.counts["refused" if 400 <= error.status < 500 else "failed"] += 1
            raise
        except KubeError:
            self.counts["failed"] += 1
            raise
        self.counts["written"] += 1
        self._addresses = addresses
        if row is None:
            self._tried_at = float("-inf")  # the first measurements need not wait
        else:
            self._written, self._written_at = row, now

    async def _put(self, status: dict[str, Any]) -> None:
        path = NODE_LATENCY.path(name=self.node)
        if self._uid:
            try:
                await self._connection.patch(path, encode({"status": status}))
                return
            except ApiError as error:
                if error.status != NOT_FOUND:
                    raise
        # Not there, or (after a start of ours) perhaps there: the owner is written too, so that it goes with its node.
        node = await self.own_node()
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": node.metadata.uid}
        metadata = {"name": self.node, "ownerReferences": [owner]}
        body = {"apiVersion": API_VERSION, "kind": NODE_LATENCY.kind, "metadata": metadata, "status": status}
        try:
            await self._connection.patch(path, encode({"metadata": metadata, "status": status}))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            await self._connection.post(NODE_LATENCY.path(), encode(_without_nulls(body)))
        self._uid = node.metadata.uid


def _without_nulls(value: Any) -> Any:
    """Nulls remove in a patch; in a new object they would only be dropped."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return value
