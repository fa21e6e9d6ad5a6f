"""Nodes of a lab: ordinary objects, whose kubelets KWOK plays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slacktide.lab.api import Api

MANAGED_LABEL = "node-restriction.kubernetes.io/slacktide"
ZONES = ("zone-a", "zone-b", "zone-c")


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    zone: str = "",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    resources: Mapping[str, str] | None = None,
    managed: bool = True,
) -> dict[str, Any]:
    """A Ready node with so much allocatable, as Kubernetes quantities; ``resources`` adds any others.

    ``managed`` gives it to slacktide by its label.
    """
    marks = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **({"topology.kubernetes.io/zone": zone} if zone else {}),
        **({MANAGED_LABEL: "true"} if managed else {}),
        **(labels or {}),
    }
    room = {"cpu": cpu, "memory": memory, "ephemeral-storage": "100Gi", "pods": str(pods), **(resources or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": marks},
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "Hostname", "address": name}],
            "conditions": [ready_condition(True)],
        },
    }


def ready_condition(ready: bool) -> dict[str, str]:
    """The condition by which a kubelet says how it is."""
    if ready:
        return {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet posts its status"}
    return {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "set so by the lab"}


def create_nodes(
    api: Api, count: int, *, prefix: str = "node", first: int = 0, zones: Sequence[str] = ZONES, **settings: Any
) -> list[str]:
    """Creates ``count`` nodes ``prefix-0, prefix-1, ...`` (from ``first`` on), zones in turn; about 1,000 a second.

    ``settings`` are those of ``node``. Returns the names.
    """
    names = [f"{prefix}-{number}" for number in range(first, first + count)]
    zone_of = dict(zip(names, (zones[number % len(zones)] if zones else "" for number in range(count)), strict=True))
    api.create_all("/api/v1/nodes", [node(name, zone=zone_of[name], **settings) for name in names])
    return names
