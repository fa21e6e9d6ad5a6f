"""Schedulers that work on our nodes as well."""

from __future__ import annotations

import logging

from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.owners import controlling

LOG = logging.getLogger(__name__)

HARMLESS_OWNERS = ("DaemonSet", "Node")
"""Owners of pods that every node has; their scheduler is no rival."""


class Rivals:
    """Says once of each scheduler that its pods are on our nodes: two that preempt there thrash."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def see(self, pod: Pod) -> None:
        """A pod of another scheduler is on a node of ours."""
        owner, name = controlling(pod.metadata), pod.spec.scheduler_name
        if (owner is not None and owner.kind in HARMLESS_OWNERS) or not name or name in self._known:
            return
        self._known.add(name)
        LOG.warning(
            "pod %s/%s of scheduler %s is on node %s, which is ours: its room counts as used and it is never "
            "preempted; two schedulers that preempt on the same nodes fight each other",
            pod.metadata.namespace,
            pod.metadata.name,
            name,
            pod.spec.node_name,
        )
