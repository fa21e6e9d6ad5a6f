"""Slacktide's own resources: what a class promises, what a controller received, and what nodes' agents measured."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.metadata import Condition, Instant, LabelSelector, Metadata, Part
from slacktide.model.latency import Coordinate, Measured, Row

API_VERSION = "slacktide.io/v1beta1"
EVERYBODY = "*"
"""Among the namespaces of a class: all of them."""


class Tier(Part, frozen=True):
    """A penalty tier: ``bonus`` (a share of the price) is due below the availability ``boundary``."""

    boundary: float
    bonus: float


class WindowSpec(Part, frozen=True):
    """Over which time a promise is kept: ``rolling``, a duration, or ``calendar``, one of 1d, 1w, 1M, 1Q and 1Y.

    ``time_zone`` and ``start``, a local time, are the calendar's. What is empty was not written.
    """

    rolling: str = ""
    calendar: str = ""
    time_zone: str = ""
    start: str = ""
    budget: str = ""


class DisruptionsSpec(Part, frozen=True):
    """At most ``max`` disruptions within ``per``, a duration."""

    max: int
    per: str


class PreemptionLimitSpec(Part, frozen=True):
    """The same by the names of Kueue's PreemptionLimit: ``limit`` within ``limit_window_seconds``, of each workload."""

    scope: str
    limit: int
    limit_window_seconds: int


class HoursSpec(Part, frozen=True):
    """Hours ``from`` - ``to``, as HH:MM, of some ``days``, Mon to Sun; without these, of every day."""

    from_: str = msgspec.field(name="from")
    to: str
    days: tuple[str, ...] = ()
    time_zone: str = ""


class OwnLimitsSpec(Part, frozen=True):
    """What workloads of a class may say of disruptions themselves: each keeps them away for ``longest`` at most, a
    duration, and is open to them for ``hours_a_week`` at least; unless it may be ``untouchable``."""

    longest: str = "1h"
    hours_a_week: int = 40
    untouchable: bool = False


class ServiceClassSpec(Part, frozen=True):
    """What a class promises: availability ``slo`` (0 to 1), ``rank`` (1: most important), margin in seconds.

    ``cooldown``, ``min_running`` and ``alpha`` are durations, empty where none was written. Without ``hours`` there is
    no time at which disruptions are forbidden. ``counts`` is ``cluster`` or ``everything``. ``namespaces`` may use it,
    ``*`` is all; :meth:`ServiceClass.open_to` knows what none means.
    """

    slo: float
    rank: int
    margin_seconds: float = 10.0
    overhead_limit: float | None = None
    tiers: tuple[Tier, ...] | None = None
    approach: str = "independent"
    default: bool = False
    namespaces: tuple[str, ...] = ()
    window: WindowSpec | None = None
    counts: str = "cluster"
    disruptions: DisruptionsSpec | None = None
    preemption_limit: PreemptionLimitSpec | None = None
    cooldown: str = ""
    hours: tuple[HoursSpec, ...] = ()
    min_running: str = ""
    alpha: str = ""
    own_limits: OwnLimitsSpec | None = None
    before_budgets: bool = False


class ServiceClass(Part, frozen=True):
    """A service class, for the whole cluster."""

    metadata: Metadata
    spec: ServiceClassSpec

    def open_to(self, namespace: str) -> bool:
        """Whether workloads of a namespace may use the class."""
        named = self.spec.namespaces
        return namespace in named or EVERYBODY in named


class LedgerTarget(Part, frozen=True):
    """The workload that a ledger is about; it is in the ledger's namespace."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class LostSeconds(Part, frozen=True):
    """Instance seconds lost, by cause."""

    cluster: float = 0.0
    workload: float = 0.0
    operator: float = 0.0


class GivenUp(Part, frozen=True):
    """That a plan gives a workload up: of its class capacity carries ``carried`` of the ``promises``."""

    since: Instant | None = None
    instances: int = 0
    promises: int = 0
    carried: int = 0
    next_plan: Instant | None = None


class AvailabilityStatus(Part, frozen=True):
    """What a controller was promised and given. ``accumulators`` are the exact sums at the instant ``at``."""

    class_: str = msgspec.field(name="class", default="")
    promised: float | None = None
    delivered: float | None = None
    slack_seconds: float | None = None
    state: str = ""
    running: int = 0
    waiting: int = 0
    lost: int = 0
    starving: int = 0
    given_up: GivenUp | None = None
    preemptions: int = 0
    at: Instant | None = None
    deleted_at: Instant | None = None
    target: LedgerTarget | None = None
    good_seconds: float = 0.0
    lost_seconds: LostSeconds = LostSeconds()
    accumulators: dict[str, Any] = msgspec.field(default_factory=dict)


class Availability(Part, frozen=True):
    """The ledger of one controller."""

    metadata: Metadata
    status: AvailabilityStatus = AvailabilityStatus()


class MaintenanceWindowSpec(Part, frozen=True):
    """From ``start`` until ``end`` what nodes lose is the operator's doing; without a selector all nodes'."""

    start: Instant
    end: Instant
    node_selector: LabelSelector | None = None
    reason: str = ""


class MaintenanceWindow(Part, frozen=True):
    """A declared time of work on nodes, for the whole cluster."""

    metadata: Metadata
    spec: MaintenanceWindowSpec


class HardLimits(Part, frozen=True):
    """What all workloads of a class in a namespace may be promised together; ``None`` is no limit.

    ``cpu`` and ``memory``, quantities, are requests times promise: two pods of a CPU each that are promised .999 take
    1.998. Numbers are taken for quantities, too.
    """

    cpu: str | int | None = None
    memory: str | int | None = None
    workloads: int | None = None


class PromiseQuotaSpec(Part, frozen=True):
    """Which class a quota is about, and how much of it there is."""

    class_: str = msgspec.field(name="class")
    hard: HardLimits


class UsedAmounts(Part, frozen=True, omit_defaults=False):
    """What is promised together, and how many workloads have a place."""

    cpu: str = "0"
    memory: str = "0"
    workloads: int = 0


class PromiseQuotaStatus(Part, frozen=True, omit_defaults=False):
    """How much of a quota is used, as the leading scheduler wrote it."""

    observed_generation: int = 0
    hard: dict[str, str] = msgspec.field(default_factory=dict)
    used: UsedAmounts = UsedAmounts()
    refused: int = 0
    conditions: tuple[Condition, ...] = ()


class PromiseQuota(Part, frozen=True):
    """How much of a class a namespace may use."""

    metadata: Metadata
    spec: PromiseQuotaSpec
    status: PromiseQuotaStatus | None = None


SERVICE_CLASS = Kind(ServiceClass, API_VERSION, "serviceclasses", namespaced=False)
MAINTENANCE_WINDOW = Kind(MaintenanceWindow, API_VERSION, "maintenancewindows", namespaced=False)
PROMISE_QUOTA = Kind(PromiseQuota, API_VERSION, "promisequotas", namespaced=True)
AVAILABILITY = Kind(Availability, API_VERSION, "availabilities", namespaced=True)


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
