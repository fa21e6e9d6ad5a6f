"""Nodes, and what their storage drivers can attach."""

from __future__ import annotations

import msgspec

from slacktide.kube.metadata import Condition, Metadata, Part
from slacktide.kube.times import Instant


class Taint(Part, frozen=True):
    """Keeps pods without a matching toleration away; effect NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    effect: str
    value: str = ""
    time_added: Instant | None = None


class NodeSpec(Part, frozen=True):
    """What an operator said about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeImage(Part, frozen=True):
    """An image on a node, by all its names, and its size in bytes."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(Part, frozen=True):
    """What a node has, by resource name, as quantities; ``allocatable`` is for pods."""

    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    images: tuple[NodeImage, ...] | None = None


class Node(Part, frozen=True):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class AttachLimit(Part, frozen=True):
    """How many volumes of a driver a node can attach; ``None`` is any number."""

    count: int | None = None


class CSINodeDriver(Part, frozen=True):
    """A storage driver on a node."""

    name: str
    allocatable: AttachLimit | None = None


class CSINodeSpec(Part, frozen=True):
    """The storage drivers on a node."""

    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(Part, frozen=True):
    """The storage drivers on the node of the same name."""

    metadata: Metadata
    spec: CSINodeSpec = CSINodeSpec()
