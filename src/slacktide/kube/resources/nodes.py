"""Nodes."""

from __future__ import annotations

import msgspec

from slacktide.kube.client.metadata import Condition, Metadata, Part


class Taint(Part, frozen=True):
    """Keeps pods without a matching toleration away; effect NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Part, frozen=True):
    """What an operator said about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeImage(Part, frozen=True):
    """An image on a node, by all its names, and its size in bytes."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(Part, frozen=True):
    """What a node has, by resource name, as quantities; ``allocatable`` is for pods. ``declared_features`` are those
    of its kubelet that pods may need (Kubernetes 1.36)."""

    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    images: tuple[NodeImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(Part, frozen=True):
    """A node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
