"""Pods that are promised nothing because they have no class that they may use, for ``slacktide top``.

They have no ledger. The scheduler says in their condition why they wait.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from slacktide.cli.cluster.top_rows import Line, named
from slacktide.kube.client.http import FORBIDDEN, ApiError, Connection
from slacktide.kube.client.kinds import Identity, Malformed
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.client.reflector import Reflector
from slacktide.kube.resources.objects import POD, Pod
from slacktide.kube.translate.owners import Target, controlling
from slacktide.kube.translate.service_classes import CLASS_LABEL, concerns_class

TEMPLATE_HASH = "pod-template-hash"


class PodsWithoutClass:
    """Handler of the watch of pods that wait for a node."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], tuple[Pod, str]] = {}
        """Pods, and what the scheduler says of them."""
        self._refused = ""

    async def watches(self, connection: Connection, namespace: str, scheduler: str) -> list[Reflector[Pod]]:
        """What is to be watched: nothing where pods may not be read."""
        path, selector = POD.path(namespace), f"spec.schedulerName={scheduler},spec.nodeName="
        try:
            await connection.get(path, query={"limit": "1", "fieldSelector": selector})
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            self._refused = f"pods without a class are not shown: {error.message}"
            return []
        return [Reflector(connection, POD, self, path=path, field_selector=selector)]

    def replaced(self, objects: Any) -> None:
        for one in objects:
            self.changed(one)

    def changed(self, found: Pod) -> None:
        key = found.metadata.namespace, found.metadata.name
        said = next((one.message for one in found.status.conditions if one.type == "PodScheduled"), "")
        if concerns_class(said):
            self.found[key] = found, said
        else:
            self.found.pop(key, None)

    def deleted(self, identity: Identity, last: Pod | None) -> None:  # noqa: ARG002
        self.found.pop(identity.key, None)

    def malformed(self, problem: Malformed) -> None: ...

    def lines(self) -> list[Line]:
        """A row for each workload."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for pod, _ in self.found.values():
            metadata = pod.metadata
            counts[metadata.namespace, workload_of(metadata), metadata.labels.get(CLASS_LABEL, "-")] += 1
        return [
            Line(namespace, name, service, None, None, float("inf"), "Unknown", 0, waiting, 0)
            for (namespace, name, service), waiting in counts.items()
        ]

    def sentences(self) -> list[str]:
        """Why, and how many."""
        by_reason: dict[str, list[str]] = {}
        for (namespace, name), (_, reason) in self.found.items():
            by_reason.setdefault(reason, []).append(f"{namespace}/{name}")
        said = [
            f"{len(pods)} {'pod waits' if len(pods) == 1 else 'pods wait'} without a class: {reason} "
            f"({named(sorted(pods))})"
            for reason, pods in sorted(by_reason.items())
        ]
        return [*said, self._refused] if self._refused else said


def workload_of(pod: Metadata) -> str:
    """The name that a pod's ledger would have, as far as the pod alone tells."""
    owner, template = controlling(pod), pod.labels.get(TEMPLATE_HASH, "")
    if owner is None:
        return f"pod-{pod.name}"
    if owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}"):
        return f"deployment-{owner.name.removesuffix(f'-{template}')}"
    return Target(owner.api_version, owner.kind, pod.namespace, owner.name, owner.uid).ledger
