"""The custom resource NodeLatency: what a node's agent has measured, and how rows come out of it."""

from __future__ import annotations

import math

from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.metadata import Metadata, Part
from slacktide.kube.client.timestamps import Instant
from slacktide.kube.resources.custom_resources import API_VERSION
from slacktide.model.latency import Coordinate, Measured, Row


class PeerLatency(Part, frozen=True):
    """What a node measured of one peer, milliseconds; no ``mean_ms``: nothing was answered lately."""

    node: str
    mean_ms: float | None = None
    deviation_ms: float | None = None
    lost: float = 0.0
    samples: int = 0


class CoordinateStatus(Part, frozen=True):
    """A network coordinate in milliseconds."""

    point: tuple[float, ...] = ()
    height: float = 0.0


class NodeLatencyStatus(Part, frozen=True):
    """A node's row. ``addresses`` (``HOST:PORT``): where its agent takes probes; ``at``: its latest measurement."""

    addresses: tuple[str, ...] = ()
    at: Instant | None = None
    reached: int = 0
    measured: int = 0
    error: float = 1.0
    coordinate: CoordinateStatus | None = None
    peers: tuple[PeerLatency, ...] = ()


class NodeLatency(Part, frozen=True):
    """The row of the node of the same name, which owns it."""

    metadata: Metadata
    status: NodeLatencyStatus = NodeLatencyStatus()


NODE_LATENCY = Kind(NodeLatency, API_VERSION, "nodelatencies", namespaced=False)


def as_row(found: NodeLatency) -> Row:
    """The row for :func:`slacktide.model.latency.latencies`; one without a measurement is older than any."""
    status = found.status
    peers = {
        one.node: Measured(
            math.nan if one.mean_ms is None else one.mean_ms / 1e3,
            math.nan if one.deviation_ms is None else one.deviation_ms / 1e3,
            one.lost,
            one.samples,
        )
        for one in status.peers
    }
    at = -math.inf if status.at is None else float(status.at)
    said = status.coordinate
    coordinate = None
    # Where nothing was measured yet, the coordinate is the origin and says nothing.
    if said is not None and said.point and status.error < 1.0:
        coordinate = Coordinate(tuple(one / 1e3 for one in said.point), said.height / 1e3)
    return Row(found.metadata.name, at, peers, coordinate, status.error)
